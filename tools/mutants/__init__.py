"""Deliberate defects: the TOML files of this folder, one for each area of the compiler."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A defect: in the function `within` of `module` (in all of it if that is empty), `old` becomes `new`.

    `old` stands once there. A function's name is preceded by those of its class or of the function around it where it
    is not the only one of the module. `tests` are arguments for pytest; `why` says what is broken.
    """

    name: str
    module: str
    within: str
    old: str
    new: str
    why: str
    tests: tuple[str, ...]

    @property
    def source(self) -> str:
        """The source of the module as it is."""
        path = ROOT / self.module.replace(".", "/")
        file = path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py"
        return file.read_text(encoding="utf-8")

    def apply(self, source: str) -> str:
        """The source with the defect. ValueError where the rule that it breaks is no longer there."""
        start, end = _place(source, self.within) if self.within else (0, len(source))
        count = source.count(self.old, start, end)
        if count != 1:
            where = f"{self.within or 'all'} of {self.module}"
            raise ValueError(f"mutant {self.name}: {self.old!r} stands {count} times in {where}")
        return source[:start] + source[start:end].replace(self.old, self.new) + source[end:]


def _place(source: str, name: str) -> tuple[int, int]:
    """The lines at which the only function of this name begins and ends."""
    found = [node for path, node in _definitions(ast.parse(source)) if f".{path}".endswith(f".{name}")]
    if len(found) != 1:
        raise ValueError(f"{len(found)} functions are called {name}")
    lines = source.splitlines(keepends=True)
    first = min(node.lineno for node in (found[0], *found[0].decorator_list))
    return len("".join(lines[: first - 1])), len("".join(lines[: found[0].end_lineno]))


def _definitions(tree: ast.AST, path: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.ClassDef]]:
    """All functions and classes, with their names and those of what they stand in."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield f"{path}{node.name}", node
            yield from _definitions(node, f"{path}{node.name}.")
        else:
            yield from _definitions(node, path)


def load() -> dict[str, tuple[Mutant, ...]]:
    """The mutants of every area."""
    return {path.stem: tuple(map(_read, _tables(path))) for path in sorted(FOLDER.glob("*.toml"))}


def _tables(path: Path) -> list[dict[str, str]]:
    with path.open("rb") as file:
        tables: list[dict[str, str]] = tomllib.load(file)["mutant"]
    return tables


def _read(table: dict[str, str]) -> Mutant:
    return Mutant(**{"within": table.pop("in", ""), **table, "tests": tuple(table["tests"])})  # type: ignore[arg-type]
