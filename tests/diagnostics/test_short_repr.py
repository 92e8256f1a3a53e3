"""Values in messages: short, whatever they are."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.diagnostics.short_repr import short

pytestmark = pytest.mark.promotion("standard")


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Tree:
    value: Any
    left: Any = None
    right: Any = None


class Pair(NamedTuple):
    a: Any
    b: Any


class Silent:
    def __repr__(self) -> str:
        raise RuntimeError("nothing is said")


class Talkative:
    def __repr__(self) -> str:
        return "talk" * 10_000


def tree(depth: int) -> Tree:
    return Tree(1.5, tree(depth - 1), tree(depth - 1)) if depth else Tree(0.5)


@pytest.mark.parametrize(
    "value",
    [
        3,
        -1.5,
        2j,
        None,
        True,
        "text",
        b"bytes",
        (),
        (1,),
        (1, "a"),
        [1, [2]],
        {1: "a"},
        {3},
        set(),
        frozenset(),
        range(3),
    ],
)
def test_small_values_are_as_python_shows_them(value: object) -> None:
    assert short(value) == repr(value)


@pytest.mark.parametrize("value", [Pair(1, [2]), Tree(1, Tree(2)), frozenset({1}), int, np.float32(1.5), np.int32])
def test_other_small_values(value: object) -> None:
    assert short(value, 100) == repr(value)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (tree(10), "Tree"),
        ("x" * 10**6, "str"),
        (b"x" * 10**6, "bytes"),
        (list(range(10**6)), "list"),
        ({k: k for k in range(10**6)}, "dict"),
        (Talkative(), "Talkative"),
        ((tree(10), 1), "tuple"),
    ],
)
def test_large_values_are_cut_off(value: object, kind: str) -> None:
    text = short(value)
    assert text.endswith(f"... of type {kind}")
    assert len(text) == 60 + len(f" of type {kind}")


def test_arrays_show_their_type() -> None:
    assert short(np.zeros((1000, 3), np.float32)) == "ndarray(float32[1000, 3])"
    assert "float32[1000]" in short(jnp.zeros(1000))


def test_what_raises() -> None:
    assert short(Silent()) == "<a Silent, whose repr raises RuntimeError>"
    assert "whose repr raises" in short([1, Silent()], 100)
    assert short(10**5000) == "<a int, whose repr raises ValueError>"
    loop: list[Any] = []
    loop.append(loop)
    assert short(loop) == "[[[[[[[...]]]]]]]"


@pcbatch.batch
def grows(t):
    i = 0
    while i < 3:
        t = 1.0
        i += 1
    return t


@pcbatch.batch
def fails(t):
    return t.value + t.left.value.nothing


@pcbatch.batch(static_argnames=("options",))
def chooses(x, options):
    y = options
    if x > 1:
        y = 1.0
    return y


def lanes(t: Tree) -> Tree:
    return jax.tree.map(lambda leaf: jnp.full(2, leaf), t)


@pytest.mark.parametrize(
    "call",
    [
        lambda: grows(lanes(tree(8))),
        lambda: fails(lanes(tree(8))),
        lambda: chooses(jnp.arange(2.0), "x" * 5000),
        lambda: chooses(jnp.arange(2.0), tuple(range(5000))),
        lambda: pcbatch.batch(max_depth="x" * 5000)(grows.plain),
        lambda: pcbatch.batch(max_depth=tree(8))(grows.plain),
        lambda: pcbatch.batch(in_axes=Silent())(grows.plain)(jnp.ones(2)),
        lambda: pcbatch.batch(plan=pcbatch.Plan(schedule=Talkative()))(grows.plain),
        lambda: grows(lanes(tree(2)), 3),
    ],
)
def test_messages_stay_short(call: Any) -> None:
    with pytest.raises(pcbatch.PcbatchError) as info:
        call()
    assert all(len(line) < 400 for line in str(info.value).splitlines())
