"""The report of `make test`, and what a usual run leaves out."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tools.suite import lines

ROOT = Path(__file__).parents[2]


def test_the_report_names_what_falls_short() -> None:
    def file(percent: float, missing: list[int]) -> dict[str, Any]:
        return {"summary": {"percent_covered": percent}, "missing_lines": missing}

    files = {"a.py": file(100.0, []), "b.py": file(94.96, [3, 4, 5, 9, 11, 12]), "c.py": file(95.0, [7])}
    found = {"files": files, "totals": {"percent_covered": 97.25, "num_statements": 320}}
    assert lines(found) == [
        "files below 95 %:",
        "  b.py: 95.0 %, not run: 3-5, 9, 11-12",
        "coverage: 97.2 % of 320 statements in 3 files",
    ]
    del files["b.py"]
    assert lines(found) == ["coverage: 97.2 % of 320 statements in 2 files"]


def test_the_long_suites_exist(request: pytest.FixtureRequest) -> None:
    """Those in which lines are not counted on Python 3.11."""
    conftest: Any = request.config.pluginmanager.get_plugin(str(ROOT / "tests" / "conftest.py"))
    for name in (*conftest.REPEATED, *conftest.SHARES, *conftest.LONG):
        path, *parts = name.split("::")
        assert (ROOT / path).exists(), path
        text = (ROOT / path).read_text(encoding="utf-8") if parts else ""
        assert all(f"def {part}" in text or f"class {part}" in text for part in parts), name


def test_a_usual_run_leaves_no_named_program_out(request: pytest.FixtureRequest) -> None:
    """The shares of the suites that run programs in other ways than the default one have each of them once."""
    conftest: Any = request.config.pluginmanager.get_plugin(str(ROOT / "tests" / "conftest.py"))
    suites = list(conftest.SHARES)[:5]
    counted: Counter[str] = Counter()
    kept = [
        {k for k in range(60) if not conftest._is_left_out(SimpleNamespace(nodeid=f"{suite}[{k}]"), counted, Counter())}
        for suite in suites
    ]
    assert set().union(*kept) == set(range(60)) and sum(map(len, kept)) == 60


def test_no_lines_are_counted_in_a_long_suite(request: pytest.FixtureRequest) -> None:
    """The tracer is off while such a test runs, and on again after it."""
    conftest: Any = request.config.pluginmanager.get_plugin(str(ROOT / "tests" / "conftest.py"))

    class Tracer:
        __module__ = "coverage.tracer"

        def __call__(self, *_: Any) -> Tracer:
            return self

    class Item:
        nodeid = "tests/differential/test_fuzz.py::test_of_some_kind"

    ours, tracer = sys.gettrace(), Tracer()
    sys.settrace(tracer)
    try:
        call = conftest.pytest_runtest_call(Item())
        next(call)
        during = sys.gettrace()
        with pytest.raises(StopIteration):
            call.send(None)
        after = sys.gettrace()
    finally:
        sys.settrace(ours)
    assert during is None and after is tracer
