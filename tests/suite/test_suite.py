"""The report of `make test`, and what a usual run leaves out."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from pcbatch.runtime.costs import xla_options
from tests import emitters
from tests.differential import test_differential
from tests.programs import REGISTRY
from tests.runs import test_map
from tests.runtime import test_schedule
from tests.shares import in_share
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


WAYS = (
    test_differential.test_default_options_on_every_lane_count,
    test_differential.test_under_jit,
    test_differential.test_local_strategy,
    test_differential.test_schedules_and_emitters,
    test_map.TestEveryProgram.test_fewer_lanes,
    test_schedule.test_modes,
)


def test_a_usual_run_takes_four_of_five_named_programs() -> None:
    """The machine runs each of these in one of these ways, half of them with default options."""
    shares = [mark.args for way in WAYS for mark in way.pytestmark if mark.name == "share"]
    kept = [number for share in shares for number in range(400) if in_share(number, *share)]
    assert len(set(kept)) == len(kept) == 320


def test_every_test_has_a_case_in_a_usual_run() -> None:
    assert all(in_share(0, n) for n in range(1, 9))
    assert [number for number in range(12) if in_share(number, 3)] == [0, 4, 8, 9]


def test_what_the_page_of_behaviours_names_exists() -> None:
    """Each row names a test, a file or a program."""
    page = (ROOT / "docs" / "developers" / "behaviours.md").read_text("utf-8")
    rows = re.findall(r"^\| (.+) \| (.+) \|$", page, re.MULTILINE)
    assert len(rows) > 100
    for _, shown in rows[1:]:
        for name in re.findall("`(.+?)`", shown):
            file, _, test = name.partition("[")[0].partition("::")
            text = (ROOT / file).read_text("utf-8") if "/" in file else ""
            assert all(f"def {part}(" in text or f"class {part}:" in text for part in test.split("::") if part), name
            assert text or name in REGISTRY, name


def test_the_emitters_that_the_flags_choose_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emitters, "version", lambda name: "0.10.2")
    for flags in ([emitters.OF_USERS], ["--another", emitters.OLDER]):
        assert emitters.choose(flags) == flags
    for full, chosen in ((["--full"], emitters.OF_USERS), ([], emitters.OLDER)):
        monkeypatch.setattr("sys.argv", ["pytest", *full])
        assert emitters.choose(["--another"]) == ["--another", chosen]
    monkeypatch.setattr(emitters, "version", lambda name: "0.12.0")
    assert emitters.choose([]) == [], "it ends at a flag that it does not know"


@pytest.mark.skipif(not version("jaxlib").startswith("0.10."), reason="XLA has one kind of emitters")
def test_tests_of_the_machine_update_buffers_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", f"--another {emitters.OLDER}")
    assert not xla_options.keeps_in_place()
    emitters.use_those_of_users(monkeypatch)
    assert xla_options.keeps_in_place()
    assert xla_options.ON_CPUS["xla_cpu_use_fusion_emitters"] is True
