"""Write docs/files.md, what every file of the package is for, from their docstrings: `python -m tools.file_list`."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "pcbatch"
OUTPUT = ROOT / "docs" / "files.md"
HEAD = """\
# What every file is for

<!-- Written by `python -m tools.file_list` from the docstrings of the files; do not edit. -->

[ARCHITECTURE.md](../ARCHITECTURE.md) tells how they work together.
"""
FOLDERS = {
    "": "what users call, and what they are told",
    "frontend": "from Python source to the CFG IR",
    "ir": "the program types, without JAX",
    "lowering": "passes from program to program, and types",
    "runtime": "the machine",
    "runtime/emit": "how a trip is written in JAX",
    "transforms": "`vmap`, `jvp` and `grad` of a run",
    "codes": "pages about error codes",
}


def document() -> str:
    """All files, by folder."""
    parts = [HEAD]
    for folder, title in FOLDERS.items():
        rows = [
            f"| `{path.name}` | {said} |" for path in sorted((PACKAGE / folder).glob("*.py")) if (said := _said(path))
        ]
        name = "/".join(("pcbatch", folder)).rstrip("/")
        parts.append("\n".join([f"## `{name}/`: {title}\n", "| file | |", "|---|---|", *rows, ""]))
    return "\n".join(parts)


def _said(path: Path) -> str:
    """The first paragraph of its docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")


if __name__ == "__main__":
    OUTPUT.write_text(document(), encoding="utf-8")
