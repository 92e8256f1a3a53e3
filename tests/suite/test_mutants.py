"""The table of deliberate defects stays in step with the code; `python -m tools.mutate` runs it."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from tools.mutants import MUTANTS, Mutant
from tools.mutants.mutant import PACKAGE
from tools.mutate import judge

ROOT = PACKAGE.parent


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_it_still_applies(mutant: Mutant) -> None:
    """The rule that it breaks is where it was, once, and the broken module is another program."""
    changed = mutant.apply(mutant.source)
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(mutant.source))


def test_names_are_unique() -> None:
    assert [name for name, count in Counter(m.name for m in MUTANTS).items() if count > 1] == []


def test_the_tests_exist() -> None:
    files = {test.partition("::")[0] for m in MUTANTS for test in m.tests}
    assert [file for file in files if not (ROOT / file).exists()] == []
    for file, test in {tuple(t.split("[")[0].split("::")[:2]) for m in MUTANTS for t in m.tests if "::" in t}:
        text = (ROOT / file).read_text(encoding="utf-8")
        assert f"def {test}(" in text or f"class {test}:" in text, f"{file}::{test}"


WORDS_AND_TREES = {
    "frontend/source/dump.py",
    "frontend/source/faults.py",
    "frontend/source/tree.py",
}  # the golden errors hold those


@pytest.mark.parametrize("folder", ["frontend", "lowering", "runtime", "runtime/emit"])
def test_every_file_has_two(folder: str) -> None:
    counts = Counter(mutant.module for mutant in MUTANTS)
    code = [path for path in sorted((PACKAGE / folder).glob("*.py")) if "def " in path.read_text(encoding="utf-8")]
    names = [path.relative_to(PACKAGE).as_posix() for path in code]
    assert [name for name in names if counts[name] < 2 and name not in WORDS_AND_TREES] == []


@pytest.mark.parametrize(
    ("events", "status", "verdict"),
    [
        ([("applied", "m"), ("start", "tests/a.py::b")], 0, ("", "")),
        ([("applied", "m"), ("start", "tests/a.py::b")], -1, ("a.py::b does not end", "")),
        ([("applied", "m"), ("failed", "tests/a.py::b"), ("raised", "AssertionError: no")], 1, ("a.py::b", "")),
        ([("start", "tests/a.py::b")], 0, ("", "the module was never imported")),
        (
            [
                ("applied", "m"),
                ("failed", "tests/a.py::b"),
                ("raised", "InternalError: after pcbatch.lowering.passes.dead_code:\nbb1: pop n [slot]\npcir"),
            ],
            1,
            ("verifier, rule slot, after dce", ""),
        ),
    ],
)
def test_verdicts(events: list[tuple[str, str]], status: int, verdict: tuple[str, str]) -> None:
    assert judge(events, status, "") == verdict


def test_the_document_has_them_all() -> None:
    text = (ROOT / "docs" / "developers" / "testing.md").read_text(encoding="utf-8")
    assert [m.name for m in MUTANTS if f"| {m.name} |" not in text] == []
    assert "SURVIVED" not in text and "BROKEN" not in text
