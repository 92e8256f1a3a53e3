"""Print the size and the shape of the code: lines by folder, docstrings, comments, annotations.

    python -m tools.measure_code                   this tree
    python -m tools.measure_code --against REV     lines beside those of commit REV

Lines are counted of files that git tracks. A docstring cannot be understood alone if its first sentence is a question,
begins with a word such as "What", "The same" or "Of", or is shorter than 25 characters.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PYTHON: Final = ("pcbatch", "tests", "tools", "examples", "benchmarks")
COUNTED: Final = ("pcbatch", "tests", "tools")  # folders whose sum is printed
NOT_ALONE: Final = re.compile(r"(What|The same|As|Of|How|Who|Whose|Where|Which|When|Why)\b")
SHORTEST: Final = 25  # characters of a first sentence


def lines(revision: str | None) -> Counter[str]:
    """Count lines of Python by top folder, and lines of Markdown outside of the pages about codes as "docs"."""
    count: Counter[str] = Counter()
    for path, text in _files(revision):
        folder = path.partition("/")[0]
        if path.endswith(".py") and folder in PYTHON:
            count[folder] += text.count("\n")
        elif path.endswith(".md") and "/pages/" not in path:
            count["docs (*.md)"] += text.count("\n")
    return count


def docstrings(folder: Path) -> Iterator[str]:
    """Give the docstrings of a folder that cannot be understood alone, one line each."""
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
                first = text.partition("\n\n")[0].replace("\n", " ")
                if NOT_ALONE.match(first) or first.endswith("?") or len(first) < SHORTEST:
                    yield f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}: {first}"


def shape(folder: Path) -> Mapping[str, str]:
    """Measure comments, annotations and folders."""
    comments = code = parameters = untyped = 0
    sizes: Counter[str] = Counter()
    for path in folder.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        sizes[str(path.parent.relative_to(ROOT))] += 1
        code += sum(bool(line.strip()) for line in text.splitlines())
        comments += sum(t.type == tokenize.COMMENT for t in tokenize.generate_tokens(io.StringIO(text).readline))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                annotations = [arg.annotation for arg in ast.walk(node.args) if isinstance(arg, ast.arg)]
                parameters += len(annotations)
                untyped += sum(isinstance(a, ast.Name) and a.id == "Any" for a in annotations)
    largest, files = sizes.most_common(1)[0]
    return {
        "files": str(sum(sizes.values())),
        "largest folder": f"{largest}, {files} files",
        "comments per 100 lines": f"{100 * comments / code:.1f}",
        "parameters of type Any": f"{untyped} of {parameters}",
    }


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description="Print the size and the shape of the code.")
    parser.add_argument("--against", metavar="REV", help="a commit to compare with")
    parser.add_argument("--docstrings", action="store_true", help="list docstrings that cannot be understood alone")
    options = parser.parse_args(argv)
    new, old = lines(None), lines(options.against) if options.against else None
    for counts in filter(None, (new, old)):
        counts[" + ".join(COUNTED)] = sum(counts[folder] for folder in COUNTED)
    for name, count in new.items():
        print(f"{name:28} {count:8,}" + ("" if old is None else f"  {count - old[name]:+8,}"))
    for name, value in shape(ROOT / "pcbatch").items():
        print(f"{name:28} {value}")
    unclear = list(docstrings(ROOT / "pcbatch"))
    print(f"{'docstrings not alone':28} {len(unclear)}")
    if options.docstrings:
        print("\n".join(unclear))
    return 0


def _files(revision: str | None) -> Iterator[tuple[str, str]]:
    """Give path and text of all tracked files, of the working tree or of a commit."""
    listing = ["ls-files"] if revision is None else ["ls-tree", "-r", "--name-only", revision]
    for path in _git(*listing).splitlines():
        if path.endswith((".py", ".md")):
            if revision is not None:
                yield path, _git("show", f"{revision}:{path}")
            elif (ROOT / path).exists():
                yield path, (ROOT / path).read_text(encoding="utf-8")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
