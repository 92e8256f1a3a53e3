"""docs/users/jax.md: every row of its tables names a test that exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.devices import four_meshes
from tests.devices.four import name_of

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "users" / "jax.md"
HEAD = "| what works | how | test |"
TEST = re.compile(r"`(tests/[\w/]+\.py)::([\w:]+)`|\[[^\]]*\]\(\.\./(tests/[\w/]+\.py)::([\w:]+)\)")
FOUR = re.compile(r"`four_meshes\.py: ([\w, ]+)`")


def rows() -> Iterator[tuple[int, str]]:
    """The rows of all tables of that head, with their lines."""
    inside = False
    for number, line in enumerate(PAGE.read_text("utf-8").splitlines(), 1):
        inside = line.startswith("|") and (inside or line == HEAD)
        if inside and line != HEAD and not set(line) <= set("|- "):
            yield number, line


ROWS = [pytest.param(line, id=str(number)) for number, line in rows()]


@cache
def defined(path: str) -> frozenset[str]:
    """The tests of a file: `test_one`, `TestSome::test_two`."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    found = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
    return frozenset(name for name in found if name.rpartition("::")[2].startswith("test_"))


def test_there_are_tables() -> None:
    assert len(ROWS) > 20


@pytest.mark.parametrize("row", ROWS)
def test_a_row_names_its_test(row: str) -> None:
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert len(cells) == 3 and cells[0], row
    named = TEST.findall(cells[2])
    assert named, "no test is named"
    for path, name, *linked in named:
        assert (name or linked[1]) in defined(path or linked[0]), (path, name)


def test_cases_of_four_devices_exist() -> None:
    named = [name for names in FOUR.findall(PAGE.read_text("utf-8")) for name in names.split(", ")]
    assert len(named) > 10 and set(named) <= set(map(name_of, four_meshes.CASES))
