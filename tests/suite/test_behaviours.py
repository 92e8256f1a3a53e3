"""The list of behaviours names tests that exist; `python -m tools.cases` runs them."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

from tests.programs import REGISTRY
from tools.behaviours import BEHAVIOURS, Behaviour
from tools.cases import table, verdict

ROOT = Path(__file__).parents[2]


@functools.cache
def names(file: str) -> frozenset[str]:
    """The tests and test classes of a file."""
    found: set[str] = set()
    for node in ast.parse((ROOT / file).read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
            found.update(f"{node.name}::{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef))
    return frozenset(found)


@pytest.mark.parametrize("group", dict.fromkeys(behaviour.group for behaviour in BEHAVIOURS))
def test_every_test_exists(group: str) -> None:
    for behaviour in (b for b in BEHAVIOURS if b.group == group):
        assert behaviour.tests, behaviour.text
        for test in behaviour.tests:
            file, _, name = test.partition("::")
            name, _, parameter = name.removesuffix("]").partition("[")
            assert (ROOT / file).is_file(), test
            assert not name or name in names(file), test
            if parameter and file.endswith("test_differential.py"):
                assert parameter in REGISTRY, test
            if parameter and file.endswith("test_golden_errors.py"):
                assert (ROOT / "tests" / "errors" / f"{parameter}.err").is_file(), test


def test_no_behaviour_is_listed_twice() -> None:
    texts = [behaviour.text for behaviour in BEHAVIOURS]
    assert len(set(texts)) == len(texts)


def test_the_document_has_their_number() -> None:
    text = (ROOT / "docs" / "developers" / "testing.md").read_text("utf-8")
    assert re.search(rf"\b{len(BEHAVIOURS)} of {len(BEHAVIOURS)} behaviours shown", text)


def test_verdicts() -> None:
    behaviour = Behaviour("Group", "it works", ("a.py::one", "a.py::Two"))
    outcomes = {"a.py::one[x]": "passed", "a.py::one[y]": "skipped", "a.py::Two::three": "passed"}
    assert verdict(behaviour, outcomes) == "shown by 2 tests"
    assert verdict(behaviour, {**outcomes, "a.py::Two::four": "failed"}) == "not shown: a.py::Two fails"
    assert verdict(behaviour, {"a.py::one": "passed"}) == "not shown: a.py::Two did not run"
    assert (
        verdict(behaviour, {"a.py::one": "skipped", "a.py::Two": "skipped"}) == "not shown: all its tests are skipped"
    )
    assert table({behaviour: "shown"}) == ["", "Group", "  it works  shown"]
