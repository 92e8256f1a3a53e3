"""Decisions about a function are made once, however often it is compiled for containers of another room."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

import pcbatch
from pcbatch import frontend
from pcbatch.data.capacity import Room, capacity

# mypy: disable-error-code="no-untyped-def,no-untyped-call,operator"


def _is_small(k):
    if k % 3 == 0:  # a helper that branches on a value of the lane has to be compiled along
        return k < 50
    return False


@pcbatch.batch
def small_ones(n):
    found = []
    for k in range(n):
        found.append(k)
    return [k for k in found if _is_small(k)]


@pytest.mark.together
@pytest.mark.unsized
def test_a_larger_room_starts_no_compilation_again(monkeypatch: pytest.MonkeyPatch) -> None:
    rooms: list[int] = []
    compiled = frontend.compile_functions

    def counted(*args, **kwargs):
        rooms.append(capacity())
        return compiled(*args, **kwargs)

    monkeypatch.setattr(frontend, "compile_functions", counted)
    ns = jnp.array([3, 100])
    assert small_ones(ns).tolist() == [small_ones.plain(int(n)) for n in ns]
    first, *others = [rooms.count(room) for room in sorted(set(rooms))]
    assert first > 1 and others == [1] * len(others) != []


def test_an_error_is_that_of_the_program_as_it_was_written() -> None:
    """Decisions that a refused program has come to are left out where it is explained."""

    @pcbatch.batch
    def refused(n):
        found = [k for k in range(n) if _is_small(k)]
        return found[0] + "a"

    program, given = small_ones._programs.of_call((jnp.array([1, 2]),), {})
    with pytest.raises(pcbatch.CompileError) as plain:
        refused(jnp.array([3]))
    with pytest.raises(pcbatch.CompileError) as decided:
        refused._programs.compile(given, room=Room(64, 32, 32), decisions=program.recompile.decisions)
    assert str(plain.value) == str(decided.value)
