"""The deliberate defects stay in step with the code; `python -m tools.mutate` runs them."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from tools.mutants import ROOT, load
from tools.mutate import judge

AREAS = load()
MUTANTS = [mutant for area in AREAS.values() for mutant in area]


@pytest.mark.parametrize("area", AREAS)
def test_they_still_apply(area: str) -> None:
    """The rule that a mutant breaks is where it was, once, and the broken module is another program."""
    for mutant in AREAS[area]:
        changed = mutant.apply(mutant.source)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(mutant.source)), mutant.name


def test_names_are_unique() -> None:
    assert [name for name, count in Counter(m.name for m in MUTANTS).items() if count > 1] == []


def test_the_tests_exist() -> None:
    files = {test.partition("::")[0] for m in MUTANTS for test in m.tests}
    assert [file for file in files if not (ROOT / file).exists()] == []
    for file, test in {tuple(t.split("[")[0].split("::")[:2]) for m in MUTANTS for t in m.tests if "::" in t}:
        text = (ROOT / file).read_text(encoding="utf-8")
        assert f"def {test}(" in text or f"class {test}:" in text, f"{file}::{test}"


WORDS_AND_TREES = {"dump", "faults", "tree"}  # the golden errors hold those


@pytest.mark.parametrize("folder", ["frontend", "lowering", "runtime", "runtime/emit"])
def test_every_file_has_one(folder: str) -> None:
    modules = {mutant.module.rpartition(".")[2] for mutant in MUTANTS} | WORDS_AND_TREES
    files = sorted((ROOT / "pcbatch" / folder).glob("[!_]*.py"))
    assert [f.name for f in files if f.stem not in modules and "def " in f.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize(
    ("events", "status", "verdict"),
    [
        ([("applied", "m"), ("start", "tests/a.py::b")], 0, "SURVIVED"),
        ([("applied", "m"), ("start", "tests/a.py::b")], -1, "tests/a.py::b does not end"),
        ([("applied", "m"), ("failed", "tests/a.py::b")], 1, "tests/a.py::b"),
        ([("start", "tests/a.py::b")], 0, "BROKEN: the module was never imported"),
    ],
)
def test_verdicts(events: list[tuple[str, str]], status: int, verdict: str) -> None:
    assert judge(events, status, "") == verdict
