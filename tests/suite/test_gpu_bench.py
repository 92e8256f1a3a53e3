"""The benchmarks for GPUs: their programs, a dry run, and what they make of rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.gpu import __main__ as command
from benchmarks.gpu import cases, peers, programs, tables

SMALL = ("fib", "gillespie", "rays", "ode", "queens")


def row(program: str, way: str, rate: float, **more: Any) -> dict[str, Any]:
    usual = {"lanes": 16_384, "graphs": True, "unit": "step", "first_s": 1.0, "check": [1.0]}
    return {"program": program, "way": way, "work": rate, "seconds": 1.0, **usual, **more}


def measured(kernel: float) -> list[dict[str, Any]]:
    ways = [("port", 1.0), ("kernel 32x1", kernel), ("kernel", 0.5)]
    return [row(name, way, rate) for name in cases.FIRST[:5] for way, rate in ways]


@pytest.mark.promotion("standard")
@pytest.mark.parametrize("name", SMALL)
def test_peers_do_the_same_work(name: str) -> None:
    of, (peer,) = programs.program(name), peers.peers(name)
    made = peer.prepare(6)
    assert made is not None
    import jax

    ours, theirs = of.function(*of.inputs(6)), jax.jit(made[0])(*made[1])
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    assert of.work(ours) == peer.work(theirs) > 0


def test_what_decides_comes_first() -> None:
    every = list(cases.cases(programs.NAMES, None, False))
    first = every[: len(every) // 8]
    assert {case.what["lanes"] for case in first} <= {10_000, 16_384} and all(c.what["graphs"] for c in first)
    assert {case.program for case in every} == set(programs.NAMES)
    assert {"guard", "port", "mask", "kernel"} <= {case.what.get("emitter") for case in every}


@pytest.mark.long
def test_a_dry_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command.main(["--dry-run", "--only", "ode", "--emitters", "guard", "kernel", "--out", str(tmp_path)])
    found = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert [r["way"] for r in found] == ["guard", "kernel", "vmap of a loop"] and not any("error" in r for r in found)
    assert found[0]["check"] == pytest.approx(found[1]["check"], rel=1e-4)
    assert (tmp_path / "ode.png").stat().st_size > 10_000 and "| guard | yes |" in (tmp_path / "tables.md").read_text()
    capsys.readouterr()
    command.main(["--dry-run", "--only", "ode", "--emitters", "guard", "--out", str(tmp_path), "--resume"])
    assert "0 cases, of 3" in capsys.readouterr().out


@pytest.mark.parametrize(("kernel", "choice"), [(1.6, "kernel, where"), (1.4, "port")])
def test_the_decision(kernel: float, choice: str) -> None:
    assert tables.decision(measured(kernel)).startswith(f'"auto" should be: {choice}')


def test_no_decision_without_measurements() -> None:
    failed = [{**r, "error": "out of memory"} for r in measured(2.0) if r["program"] != "fib"]
    assert tables.decision(failed).startswith("undecided")


def test_tables_show_what_failed() -> None:
    text = tables.markdown([row("fib", "port", 1e6), {**row("fib", "kernel", 0.0), "error": "out of memory"}])
    assert "| port | yes | 1e+06 |" in text and "| kernel | yes | failed |" in text and "out of memory" in text


def test_results_that_differ_are_found() -> None:
    same = [row("fib", "guard", 1.0), row("fib", "port", 2.0, check=[1.0005])]
    assert not tables.disagreements(same)
    assert len(tables.disagreements([*same, row("fib", "kernel", 1.0, check=[2.0])])) == 1
