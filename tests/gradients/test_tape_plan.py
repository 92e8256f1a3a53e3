"""The values that blocks record, and the cotangents that the backward machine defers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import pcbatch
from pcbatch.transforms import tangent
from pcbatch.transforms.tape.tape_plan import BlockTape, Tape, plan_tape

NS = jnp.array([3, 1, 2])
XS = jnp.ones((3, 40))


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[BlockTape]]:
    """A function that traces the gradient of a batched function, and returns its blocks that record something."""
    tapes: list[Tape] = []

    def plan(*args: Any) -> Tape:
        tapes.append(plan_tape(*args))
        return tapes[-1]

    monkeypatch.setattr(tangent, "plan_tape", plan)

    def blocks(f: Any, *args: Any) -> list[BlockTape]:
        floats = tuple(k for k, x in enumerate(args) if jnp.issubdtype(x.dtype, jnp.floating))
        jax.make_jaxpr(jax.grad(lambda *xs: jnp.sum(f(*xs)), floats))(*args)
        return [block for block in tapes[-1].blocks if block.recorded]

    return blocks


def test_a_record_has_what_the_pullback_reads(recorded: Callable[..., list[BlockTape]]) -> None:
    @pcbatch.batch(max_tape=8, plan=pcbatch.Plan(unroll=1))
    def f(n, x, w, z):
        while n > 0:
            x = w * x
            z = z + jnp.tanh(x)
            w = w + x
            n = n - 1
        return z

    (block,) = recorded(f, NS, jnp.ones(3), jnp.ones(3), jnp.ones(3))
    assert {source.key for source in block.recorded} == {"read:x", "read:w"}


def test_equal_cotangents_are_deferred_once(recorded: Callable[..., list[BlockTape]]) -> None:
    @pcbatch.batch(in_axes=(0, 0, None, None), max_tape=8)
    def f(n, x, w, b):
        while n > 0:
            x = jnp.tanh(w @ x + b)
            n = n - 1
        return jnp.sum(x)

    (block,) = [b for b in recorded(f, NS, XS, jnp.ones((40, 40)) / 40, jnp.ones(40)) if b.deferred]
    assert set(block.deferred) == {"w", "b"}
    assert len(block.reads.deferred_cts) == 1 and set(block.reads.alias_of.values()) == set(block.reads.deferred_cts)
    assert [type(source).__name__ for source in block.recorded] == ["ReadRegister", "ExpensiveResult"]
