"""Barriers between accesses of different threads. Interpret mode has no threads: results do not depend on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pcbatch
from pcbatch.runtime.kernel import launch, memory
from pcbatch.runtime.kernel.memory import Order
from tests.programs.classics import fib
from tests.runtime.kernel.kernels import lowered

BARRIER = ("wait", "")
KERNEL = pcbatch.Kernel(tile=4)


def order(*accesses: tuple[str, str], begun: bool = False) -> list[tuple[str, str]]:
    """The accesses with the barriers between them; "a" and "b" are stored into, "c" never is."""
    seen: list[tuple[str, str]] = []
    found = Order(lambda: seen.append(BARRIER), frozenset("ab"))
    if begun:
        found.begin()
    for how, name in accesses:
        match how:
            case "load":
                found.load(name)
            case _:
                found.store(name, again=how == "store again")
        seen.append((how, name))
    return seen


@pytest.mark.parametrize(
    ("first", "second", "waits"),
    [
        (("store", "a"), ("load", "a"), True),
        (("load", "a"), ("store", "a"), True),
        (("store", "a"), ("store again", "a"), True),
        (("store", "a"), ("store", "a"), False),
        (("load", "a"), ("load", "a"), False),
        (("store", "a"), ("load", "b"), False),
        (("load", "a"), ("store", "b"), False),
    ],
)
def test_two_accesses(first: tuple[str, str], second: tuple[str, str], waits: bool) -> None:
    assert order(first, second) == [first, *([BARRIER] if waits else []), second]


def test_one_barrier_is_enough() -> None:
    accesses = [("store", "a"), ("store", "b"), ("load", "a"), ("load", "b")]
    assert order(*accesses).count(BARRIER) == 1


def test_a_visit_waits_for_those_before_it_once() -> None:
    accesses = [("load", "c"), ("load", "a"), ("load", "b"), ("store", "b")]
    assert order(*accesses, begun=True) == [accesses[0], BARRIER, *accesses[1:3], BARRIER, accesses[3]]
    assert order(("store", "a"), begun=True) == [BARRIER, ("store", "a")]
    assert BARRIER not in order(("load", "c"), begun=True)


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Loads, stores, barriers and beginnings of visits, in the order in which they are traced."""
    seen: list[str] = []

    def noted(name: str, act: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **more: Any) -> Any:
            seen.append(name)
            return act(*args, **more)

        return called

    monkeypatch.setattr(memory.triton, "load", noted("load", memory.triton.load))
    monkeypatch.setattr(memory.triton, "store", noted("store", memory.triton.store))
    monkeypatch.setattr(launch.triton, "debug_barrier", noted("barrier", launch.triton.debug_barrier))
    monkeypatch.setattr(Order, "begin", noted("begin", Order.begin))
    return seen


def test_frames_are_read_behind_a_barrier(events: list[str]) -> None:
    f = pcbatch.batch(fib, plan=pcbatch.Plan(emitter=KERNEL), max_depth=8)
    lowered(f, np.arange(6, dtype=np.int32))
    # The program is traced for this machine first, which has no barriers.
    of_gpu = events[events.index("barrier") :]
    visits = [visit.split() for visit in " ".join(of_gpu).split("begin")]
    assert len(visits) > 3 and all(visit[0] == "barrier" for visit in visits)
    assert any(visit[1:] == ["load", "load", "barrier", "store", "store"] for visit in visits)


def test_interpret_mode_has_none(events: list[str]) -> None:
    f = pcbatch.batch(fib, plan=pcbatch.Plan(emitter=KERNEL), max_depth=8)
    assert f(np.arange(6, dtype=np.int32)).tolist() == [1, 1, 2, 3, 5, 8]
    assert "load" in events and "barrier" not in events
