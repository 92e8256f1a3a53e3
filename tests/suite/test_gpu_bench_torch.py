"""PyTorch's side of the benchmarks for GPUs: what it computes. Runs where PyTorch is installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from benchmarks.gpu import peers, programs

torch = pytest.importorskip("torch")
from benchmarks.gpu import measure_torch, torch_peers  # noqa: E402 - they import PyTorch

pytestmark = [pytest.mark.promotion("standard")]
LANES = 40


def ours(name: str) -> Any:
    of = programs.program(name)
    return of.function(*of.inputs(LANES))


def check(name: str, found: list[Any]) -> None:
    """Compare with our own: rounding may move a step, and what follows from it."""
    right = jax.tree.leaves(ours(name))
    for a, b in zip(found, right, strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype and np.shape(a) == np.shape(b)
        near = np.isclose(np.asarray(a), np.asarray(b), rtol=1e-3, atol=1e-3)
        assert np.mean(near) >= (1.0 if name in ("fib", "queens", "trees", "gillespie") else 0.9)
    work = measure_torch.work(name, [np.asarray(x) for x in found])
    assert work == pytest.approx(programs.program(name).work(ours(name)), rel=0.01) and work > 0


def drawn(lanes: int) -> Any:
    """The uniform numbers that our Gillespie draws, in the order in which PyTorch asks for them."""
    keys = programs.program("gillespie").inputs(lanes)[0]

    @jax.jit
    def numbers(keys: jax.Array) -> Any:
        keys, when, which = split(keys)
        return keys, jax.vmap(jax.random.uniform)(when), jax.vmap(jax.random.uniform)(which)

    def split(keys: jax.Array) -> Any:
        parts = jax.vmap(lambda key: jax.random.split(key, 3))(keys)
        return parts[:, 0], parts[:, 1], parts[:, 2]

    waiting: list[Any] = []

    def draw(like: Any) -> Any:
        nonlocal keys
        if not waiting:
            keys, when, which = numbers(keys)
            waiting.extend(torch.tensor(np.asarray(x)) for x in (when, which))
        return waiting.pop(0)

    return draw


@pytest.mark.parametrize("planes", [False, True])
@pytest.mark.parametrize("name", [name for name in peers.IN_TORCH if name != "gillespie"])
def test_it_computes_the_same(name: str, planes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)  # what is compiled, without the compiler
    check(name, torch_peers.CALLS[name](LANES, planes, "cpu")())


@pytest.mark.parametrize("name", [name for name in peers.IN_TORCH if name not in ("gillespie", "trees")])
def test_lanes_that_are_done_are_left_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_peers, "NARROWEST", 1)
    call = torch_peers.CALLS[name](LANES, False, "cpu")
    check(name, call())
    check(name, call())  # the first state is still what it was


def test_the_same_events_from_the_same_random_numbers() -> None:
    check("gillespie", torch_peers.gillespie(LANES, False, "cpu", drawn(LANES))())


def test_its_own_random_numbers_say_the_same_on_average() -> None:
    torch.manual_seed(0)
    found = torch_peers.gillespie(2000, False, "cpu")()
    of = programs.program("gillespie")
    right = of.function(*of.inputs(2000))
    for a, b in zip(found, right, strict=True):
        assert np.mean(a.numpy()) == pytest.approx(np.mean(np.asarray(b)), rel=0.05)


def test_numbers_too_large_for_the_stack_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_peers, "SLOTS", 4)
    with pytest.raises(ValueError, match="a stack of 4 slots is for n up to 9, not 15"):
        torch_peers.fib(LANES, False, "cpu")


def test_levels_need_only_what_is_before_them() -> None:
    assert torch_peers._levels(3, np.array([1, 2, 3, 4, 5])) == [2, 4, 5] and torch_peers._levels(1, np.array([])) == []


@pytest.mark.long
@pytest.mark.parametrize("name", ["ode", "fib"])
def test_a_process_measures_it_compiled_and_not(name: str, tmp_path: Path) -> None:
    asked = [{"peer": "PyTorch", "torch": way, "lanes": 8, "graphs": False} for way in peers.TORCH]
    asked[0]["trace"] = str(tmp_path)
    command = [sys.executable, "-m", "benchmarks.gpu.measure_torch", name]
    said = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=True).stdout
    ends = [json.loads(line.removeprefix("gpu-bench:")) for line in said.splitlines() if '"ends"' in line]
    assert len(ends) == 2 and (tmp_path / "trace.json").exists()
    if "error" in ends[1]:  # no compiler for C++ here
        pytest.skip(ends[1]["error"])
    assert ends[0]["check"] == pytest.approx(ends[1]["check"], rel=1e-3) and ends[0]["work"] > 0
