"""Every message as users see it: `errors/NAME.py` is a wrong program, `errors/NAME.err` what is said about it.

`errors/CODE.err` is what is said about the wrong program on the page of that code.

`pytest tests/diagnostics/test_golden_errors.py --update-golden` writes the second; look at what changed before it is
committed.
"""

from __future__ import annotations

import os
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

import pcbatch
from pcbatch.diagnostics.error_pages import pages

FOLDER = Path(__file__).parents[1] / "errors"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.py"))
ON_PAGES = sorted(path.stem for path in FOLDER.glob("PCB???.err"))

# What JAX and Python say changes from release to release: it is shown in the files, and not compared.
FOREIGN = re.compile(r"^  = note: \w+(Error|Exception|Warning)\b.*(\n {10}.*)*", re.MULTILINE)

# Spans inside an expression come from code objects, which grow more exact from release to release.
GOLDEN_PYTHON = (3, 11)
COLUMNS = re.compile(r"(?<=:\d):\d+$|(?<=:\d\d):\d+$|^ +\| +[-^]+", re.MULTILINE)

pytestmark = pytest.mark.promotion("standard")


@pytest.fixture(autouse=True)
def as_users_have_it() -> Iterator[None]:
    """The programs are those of users, who have not asked for the strictness of this suite."""
    with jax.numpy_rank_promotion("allow"):
        yield


@pytest.fixture
def program(case: str, tmp_path: Path) -> Path:
    """The file of a wrong program."""
    if case not in ON_PAGES:
        return FOLDER / f"{case}.py"
    file = tmp_path / f"{case}.py"
    file.write_text(f"{pages()[case].bad}\n", encoding="utf-8")
    return file


def error(program: Path) -> pcbatch.PcbatchError:
    with pytest.raises(pcbatch.PcbatchError) as info:
        runpy.run_path(str(program))
    return info.value


def rendering(found: pcbatch.PcbatchError, program: Path) -> str:
    text = str(found).strip().replace(f"{program.parent}{os.sep}", "")
    return text.replace(f"{FOLDER.parent}{os.sep}", "") + "\n"


def comparable(text: str) -> str:
    text = FOREIGN.sub("", text)
    return text if sys.version_info[:2] == GOLDEN_PYTHON else COLUMNS.sub("", text)


def oldest_python(case: str) -> tuple[int, ...]:
    if case in ON_PAGES:
        return pages()[case].since
    first = (FOLDER / f"{case}.py").read_text(encoding="utf-8").splitlines()[0]
    return tuple(map(int, first.removeprefix("# python ").split("."))) if first.startswith("# python ") else (3, 11)


@pytest.mark.parametrize("case", [*PROGRAMS, *ON_PAGES])
def test_rendering(case: str, program: Path, request: pytest.FixtureRequest) -> None:
    if sys.version_info < oldest_python(case):
        pytest.skip("syntax of a later Python")
    found = error(program)
    text, golden = rendering(found, program), FOLDER / f"{case}.err"
    if request.config.getoption("--update-golden"):
        golden.write_text(text, encoding="utf-8")
    assert comparable(text) == comparable(golden.read_text(encoding="utf-8"))
    if case.startswith("PCB"):
        assert {d.code for d in found.diagnostics} <= set(re.findall(r"PCB\d{3}", case.replace("_and_", " PCB")))
    # JAX adds where what it transforms was called.
    assert found.__cause__ is None or type(found.__cause__).__name__ == "JaxStackTraceBeforeTransformation"
    assert found.__suppress_context__ or found.__context__ is None
    for diagnostic in found.diagnostics:
        assert diagnostic.helps
        assert not diagnostic.title.endswith(".") and not diagnostic.title[0].isupper()


def test_every_code_has_a_program() -> None:
    warnings = {"PCB429"}  # no error: see tests/api/test_plan.py
    assert {case[:6] for case in (*PROGRAMS, *ON_PAGES) if case.startswith("PCB")} == set(pages()) - warnings


def test_every_rendering_has_a_program() -> None:
    assert {path.stem for path in FOLDER.glob("*.err")} == {*PROGRAMS, *ON_PAGES}
    assert set(ON_PAGES) <= set(pages())
