"""Imports one module of pcbatch with a defect, in this process and in those that tests start.

It is also the plugin of pytest that notes which test noticed the defect. Python imports it at every start, so it does
not import pytest, which is told not to try to rewrite it: PYTEST_DONT_REWRITE.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from tools.mutants import Mutant, load

NAME = "PCBATCH_MUTANT"  # environment: the mutant's name
REPORT = "PCBATCH_MUTANT_REPORT"  # environment: a file that gets one line of JSON per event


class _Loader(SourceFileLoader):
    """Loads a module from changed source; compiled files are neither read nor written."""

    def __init__(self, mutant: Mutant, path: str) -> None:
        super().__init__(mutant.module, path)
        self.mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        note("applied", fullname)
        return compile(self.mutant.apply(self.mutant.source), self.path, "exec", dont_inherit=True)


class _Finder:
    """Asked before all others, and answers for one module."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.mutant.module:
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(self.mutant, spec.loader.path)
        return spec


def install() -> None:
    """Import the mutant that the environment names, if it names one."""
    name = os.environ.get(NAME)
    if name:
        sys.meta_path.insert(0, _Finder(next(m for area in load().values() for m in area if m.name == name)))


def note(event: str, text: str) -> None:
    """Append an event to the report."""
    with Path(os.environ[REPORT]).open("a", encoding="utf-8") as report:
        report.write(json.dumps([event, text]) + "\n")


def pytest_runtest_logstart(nodeid: str) -> None:
    """Whatever hangs is the last test that started."""
    note("start", nodeid)


def pytest_runtest_logreport(report: Any) -> None:
    """Note a failure."""
    if report.failed:
        note("failed", report.nodeid)


def pytest_collectreport(report: Any) -> None:
    """A test module that cannot even be imported says nothing: the mutant is a bad one."""
    if report.failed:
        note("uncollected", str(report.longrepr)[-2000:])
