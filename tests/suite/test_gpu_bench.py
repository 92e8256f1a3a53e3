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
    assert {"guard", "port", "kernel"} <= {case.what.get("emitter") for case in every}


@pytest.mark.long
def test_a_dry_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--torch", "no-python", "--out", str(tmp_path)]
    command.main(["--dry-run", "--only", "ode", "--emitters", "guard", "kernel", *out])
    found = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert [r["way"] for r in found] == ["guard", "kernel", "vmap of a loop", *peers.TORCH.values()]
    assert not any("error" in r for r in found[:3]) and {r.get("error") for r in found[3:]} == {command.NO_TORCH}
    assert found[0]["check"] == pytest.approx(found[1]["check"], rel=1e-4)
    assert (tmp_path / "ode.png").stat().st_size > 10_000 and "| guard | yes |" in (tmp_path / "tables.md").read_text()
    capsys.readouterr()
    command.main(["--dry-run", "--only", "ode", "--emitters", "guard", *out, "--resume"])
    assert "2 cases, of 5" in capsys.readouterr().out  # PyTorch is asked for again: it may be there now
    assert len(json.loads((tmp_path / "rows.json").read_text())["rows"]) == 5


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


def test_peers_with_other_rounding_may_be_farther() -> None:
    peer = {"peer": "PyTorch", "compared": True}
    near, far = (row("ode", "PyTorch", 1.0, check=[x], **peer) for x in (1.005, 1.05))
    ours = row("ode", "guard", 1.0)
    assert not tables.disagreements([near, ours]) and not tables.disagreements([far])
    assert tables.disagreements([far, ours]) == ["ode, 16,384 lanes: PyTorch and guard differ"]
    assert not tables.disagreements([ours, row("ode", "NumPyro", 1.0, check=[7.0], peer="NumPyro")])


def test_pytorch_has_processes_of_its_own() -> None:
    groups = command._groups(list(cases.cases(["fib", "ode"], [1024], False)))
    assert all(len({"torch" in case.what for case in group}) == 1 for group in groups)
    rows = [command._row(case) for group in groups for case in group if "torch" in case.what]
    assert len(rows) == 4 and all(r["compared"] and not r["graphs"] for r in rows)
