"""A pytest plugin that notes which test noticed a mutant, and what it saw."""

from __future__ import annotations

from typing import Any

import pytest

from tools.mutants.hook import note


def pytest_runtest_logstart(nodeid: str) -> None:
    """Whatever hangs is the last test that started."""
    note("start", nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Any:
    """Note a failure and what was raised."""
    report = yield
    if report.failed:
        note("failed", item.nodeid)
        note("raised", "" if call.excinfo is None else f"{call.excinfo.type.__name__}: {call.excinfo.value}"[:4000])
    return report


def pytest_collectreport(report: Any) -> None:
    """A test module that cannot even be imported says nothing: the mutant is a bad one."""
    if report.failed:
        note("uncollected", str(report.longrepr)[-2000:])
