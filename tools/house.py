"""The size and the shape of the package, each figure beside its bound, which only falls.

    python -m tools.house            print the figures; exit status 1 if one is above its bound in tools/house.toml
    python -m tools.house --write    set the bounds to the figures

Cycles are of files that import each other, imports for types apart. The way of a call is that of a function that is
compiled already: the files of the package that run, and how often a file calls one of a folder above its own.
"""

from __future__ import annotations

import argparse
import ast
import os
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = ROOT / "pcbatch"
BOUNDS: Final = Path(__file__).with_suffix(".toml")
WANTED: Final = 24  # files of a folder
LAYERS: Final = (
    *("jax_settings", "contexts", "decisions", "errors", "plan", "options", "diagnostics"),
    *("ir", "data", "frontend", "lowering"),
    *(
        "runtime",
        "transforms",
        "call",
        "compiler",
        "sizing",
        "report",
        "runs",
        "learning",
        "tuning",
        "ask",
        "api",
        "cli",
        "mcmc",
    ),
)
"""The folders, each above those that it may import."""
GOALS: Final[Mapping[str, int]] = {
    "lines of the package": 68_000,
    "files of the largest folder": WANTED,
    f"folders of more than {WANTED} files": 0,
    "files in cycles of imports": 0,
    "imports of the package inside functions": 0,
    "lines of the largest class": 250,
    "public names": 30,
    "options of pcbatch.batch": 16,
    "files on the way of a call": 25,
    "returns to a folder above on the way of a call": 10,
    "lines of tests for 1000 of the package": 1000,
}


def trees() -> dict[str, ast.Module]:
    """Return the files of the package, by the names of their modules."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(p for p in parts if p != "__init__")] = ast.parse(path.read_text("utf-8"))
    return found


def imported(tree: ast.AST, inside: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield the names that a file imports at run time, and whether it does inside of a function."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
            case ast.Import(names=names):
                yield from ((alias.name, inside) for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield from ((f"{module}.{alias.name}", inside) for alias in names)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                yield from imported(node, True)
            case _:
                yield from imported(node, inside)


def way_of_a_call() -> tuple[int, int]:
    """Return the files of the package that a call of a compiled function runs, and the calls of a folder above."""
    import jax
    import numpy as np

    import pcbatch

    batched, xs = pcbatch.batch(_example), np.arange(8, dtype=np.int32)
    for _ in range(3):  # the first one compiles, and the second one is remembered
        jax.block_until_ready(batched(xs))
    files: set[str] = set()
    above = 0

    def part(frame: FrameType | None) -> str | None:
        name = frame.f_code.co_filename if frame is not None else ""
        return os.path.relpath(name, PACKAGE) if name.startswith(str(PACKAGE)) else None

    def watch(frame: FrameType, event: str, _: Any) -> None:
        nonlocal above
        if event != "call" or (here := part(frame)) is None:
            return
        files.add(here)
        if (caller := part(frame.f_back)) is not None:
            above += _height(here) > _height(caller)

    sys.setprofile(watch)
    try:
        jax.block_until_ready(batched(xs))
    finally:
        sys.setprofile(None)
    return len(files), above


def _example(n: Any) -> Any:
    count = 0
    while n > 1:
        n = n // 2
        count += 1
    return count


def _height(file: str) -> int:
    name = file.split(os.sep)[0].removesuffix(".py")
    return LAYERS.index(name) if name in LAYERS else len(LAYERS)


def figures() -> dict[str, int]:
    """Measure the package."""
    import pcbatch
    from pcbatch.ir.analysis.dataflow import components
    from pcbatch.options import Options

    files = trees()
    sizes = Counter(path.parent for path in PACKAGE.rglob("*.py"))
    lines = sum(path.read_text("utf-8").count("\n") for path in PACKAGE.rglob("*.py"))
    tests = sum(path.read_text("utf-8").count("\n") for path in (ROOT / "tests").rglob("*.py"))
    edges: dict[str, set[str]] = {}
    inside = 0
    for module, tree in files.items():
        edges[module] = set()
        for name, in_function in imported(tree):
            target = next((each for each in (name, name.rpartition(".")[0]) if each in files), None)
            if target is not None:
                edges[module].add(target)
                inside += in_function
    classes = [node for tree in files.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    called, above = way_of_a_call()
    found = (
        lines,
        max(sizes.values()),
        sum(size > WANTED for size in sizes.values()),
        sum(len(component) for component in components(edges) if len(component) > 1),
        inside,
        max((node.end_lineno or 0) - node.lineno + 1 for node in classes),
        len(pcbatch.__all__),
        len(Options.__dataclass_fields__),
        called,
        above,
        1000 * tests // lines,
    )
    return dict(zip(GOALS, found, strict=True))


def _rounded(figure: int) -> int:
    """Return the bound for a figure: of thousands of lines the next hundred."""
    return figure if figure < 10_000 else -(-figure // 100) * 100


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="set the bounds to the figures")
    given = parser.parse_args()
    found = figures()
    if given.write:
        BOUNDS.write_text("".join(f'"{name}" = {_rounded(figure)}\n' for name, figure in found.items()), "utf-8")
    bounds: dict[str, int] = tomllib.loads(BOUNDS.read_text("utf-8"))
    for name, figure in found.items():
        worse = f"   above {bounds[name]:,}" if figure > bounds[name] else ""
        print(f"{name:<50}{figure:>8,}   goal {GOALS[name]:>7,}{worse}")
    above = [name for name, figure in found.items() if figure > bounds[name]]
    if above:
        print(f"\n{len(above)} above the bounds in {BOUNDS.relative_to(ROOT)}: make them smaller, or say there why not")
    return int(bool(above))


if __name__ == "__main__":
    sys.exit(main())
