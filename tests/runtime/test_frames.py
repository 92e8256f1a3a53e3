"""Frames against one Python list per lane; columns, hulls, runs, growth."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcbatch.ir.types import ArrayType
from pcbatch.runtime.vm import frames, word_packing
from pcbatch.runtime.vm.frames import Column, Frames
from pcbatch.runtime.vm.lane_window import Window, everyone, first
from tests.ir.samples import FIB_STACK, stack

pytestmark = pytest.mark.long

EXIT = 9


def plan_of(types: Mapping[str, ArrayType]) -> Frames:
    """All variables beside one another."""
    columns: dict[str, Column] = {}
    widths = {"frames": frames.RETURN_COLUMN}
    for v, type_ in types.items():
        word = word_packing.word(type_)
        buffer = frames.NAMES[word]
        start = widths.get(buffer, 0)
        widths[buffer] = start + word_packing.width(type_, word)
        columns[v] = Column(buffer, start, widths[buffer], type_)
    return Frames(columns, widths)


TYPES = {
    "a": ArrayType("float32", (2,)),
    "b": ArrayType("bool", ()),
    "c": ArrayType("complex64", (2,)),
    "e": ArrayType("float32", (0, 3)),
    "d": ArrayType("int16", (3,)),
}


def some(v: str, width: int, random: np.random.Generator) -> np.ndarray:
    """A value of a variable for each place."""
    type_ = TYPES[v]
    return (random.normal(size=(width, *type_.shape)) * 9).astype(type_.dtype)


def look(mask: Any, kind: str) -> Window:
    """A window on the lanes of a mask."""
    return first(mask, len(mask) // 2 + 1) if kind == "few" else everyone(mask, careful=kind == "careful")


SUBSETS = (tuple(TYPES), ("a", "d"), ())


class Step(NamedTuple):
    """What some lanes do: `waits` at a block, of whose places those in `chosen` take part."""

    waits: np.ndarray
    chosen: np.ndarray
    depth: np.ndarray
    values: dict[str, np.ndarray]
    back: np.ndarray | None


@partial(jax.jit, static_argnames=("kind", "whole_rows"))
def write(carry: Any, step: Step, kind: str, whole_rows: bool) -> tuple[Any, jax.Array, jax.Array]:
    """The buffers after a step, who took part, and which lane each place stands for."""
    plan, window = plan_of(TYPES), look(step.waits, kind)
    mask = window.here & step.chosen[: window.width]
    depth = window.read(step.depth)
    values = {v: x[: window.width] for v, x in step.values.items()}
    given = (carry, window, depth, values, None if step.back is None else step.back[: window.width], mask)
    new = plan.put(carry, window, depth, plan.rows(*given)) if whole_rows else plan.write(*given)
    return {**carry, **new}, mask, window.source


@jax.jit
def read(carry: Any, depth: jax.Array) -> tuple[jax.Array, dict[str, Any]]:
    """Return addresses and all that is saved."""
    plan, window = plan_of(TYPES), everyone(jnp.ones(depth.shape, bool))
    return plan.back(carry, window, depth), plan.read(carry, window, depth, list(TYPES))


@pytest.mark.full_only
@pytest.mark.parametrize("kind", ["dense", "careful", "few"])
@pytest.mark.parametrize("whole_rows", [False, True])
@pytest.mark.parametrize("lanes", [1, 5])
def test_against_a_model(lanes: int, whole_rows: bool, kind: str) -> None:
    """Saves, calls and returns at random; frames grow when a lane has no room."""
    random, room = np.random.default_rng(lanes), 2
    carry: dict[str, Any] = plan_of(TYPES).empty(lanes, room, EXIT)
    stacks: list[list[dict[str, Any]]] = [[{}] for _ in range(lanes)]
    returns: list[list[int]] = [[EXIT] for _ in range(lanes)]
    for _ in range(60):
        depth = np.array([len(stack) - 1 for stack in stacks], np.int32)
        values = {v: some(v, lanes, random) for v in SUBSETS[random.integers(3)]}
        back = random.integers(0, EXIT, lanes).astype(np.int8) if random.random() < 0.5 else None
        step = Step(random.random(lanes) < 0.6, random.random(lanes) < 0.8, depth, values, back)
        carry, mask, source = write(carry, step, kind, whole_rows)
        for place in np.flatnonzero(mask):
            stack, addresses = stacks[int(source[place])], returns[int(source[place])]
            stack[-1] |= {v: x[place] for v, x in values.items()}
            if back is not None:
                addresses.append(int(back[place]))
                stack.append({})
            elif len(stack) > 1 and random.random() < 0.5:
                addresses.pop()
                stack.pop()
        if max(map(len, stacks)) - 1 > room:
            room *= 2
            carry = {key: frames.grow(rows, lanes, room) for key, rows in carry.items()}
            assert frames.depth_of(carry["frames"], lanes) == room
        addresses, found = read(carry, jnp.array([len(stack) - 1 for stack in stacks], jnp.int32))
        assert addresses.tolist() == [addresses[-1] for addresses in returns]
        for lane, stack in enumerate(stacks):
            for v, want in stack[-1].items():
                np.testing.assert_array_equal(found[v][lane], want)


@pytest.mark.share(2)
@pytest.mark.parametrize("names", [["a"], ["b", "d"], ["c"], ["d", "a"], ["e"], []])
def test_some_variables_are_read_as_all_are(names: list[str]) -> None:
    plan, random = plan_of(TYPES), np.random.default_rng(0)
    window, depth = everyone(jnp.ones(3, bool)), jnp.array([0, 1, 2], jnp.int32)
    values = {v: jnp.asarray(some(v, 3, random)) for v in TYPES}
    empty = plan.empty(3, 4, EXIT)
    carry = empty | plan.write(empty, window, depth, values, None, window.here)
    found = plan.read(carry, window, depth, names)
    assert list(found) == [v for v in names if v in found] and set(found) == set(names)
    for v in names:
        assert found[v].dtype == values[v].dtype
        np.testing.assert_array_equal(found[v], values[v])


def test_what_nobody_writes_is_not_touched() -> None:
    plan = plan_of(TYPES)
    window = everyone(jnp.ones(3, bool))
    carry = plan.empty(3, 4, EXIT)
    depth = jnp.zeros(3, jnp.int32)
    assert plan.write(carry, window, depth, {}, None, window.here) == {}
    again = plan.put(carry, window, depth, plan.rows(carry, window, depth, {}, None, window.here))
    np.testing.assert_array_equal(again["frames"], carry["frames"])
    again = plan.put(carry, window, depth, plan.no_rows(window))
    np.testing.assert_array_equal(again["frames"], carry["frames"])


def test_adjacent_columns_are_written_together() -> None:
    plan = plan_of(TYPES)
    window = everyone(jnp.ones(3, bool))
    carry = plan.empty(3, 4, EXIT)
    random = np.random.default_rng(0)

    def scatters(names: str, calls: bool) -> int:
        values = {v: jnp.asarray(some(v, 3, random)) for v in names}
        back = jnp.zeros(3, jnp.int8) if calls else None
        depth = jnp.zeros(3, jnp.int32)
        text = str(jax.make_jaxpr(lambda: plan.write(carry, window, depth, values, back, window.here))())
        return text.count(" scatter[")

    assert scatters("abced", calls=True) == 1
    assert scatters("abc", calls=False) == 1
    assert scatters("bc", calls=True) == 2
    assert scatters("ad", calls=True) == 2
    assert scatters("ad", calls=False) == 2


def test_long_words_have_rows_of_their_own() -> None:
    with jax.enable_x64(True):
        plan = plan_of({"x": ArrayType("float64", (2,)), "n": ArrayType("int32", ())})
        assert plan.widths == {"frames": 2, "frames64": 2} and plan.bytes() == 24
        window, depth = everyone(jnp.ones(2, bool)), jnp.array([1, 0], jnp.int32)
        carry = plan.empty(2, 3, EXIT)
        values = {"x": jnp.array([[1 / 3, -0.0], [np.nan, 2.0]]), "n": jnp.array([5, 6], jnp.int32)}
        for form in (plan.write, lambda *args: plan.put(*args[:3], plan.rows(*args))):
            after = carry | form(carry, window, depth, values, None, window.here)
            found = plan.read(after, window, depth, ["n", "x"])
            np.testing.assert_array_equal(found["x"], values["x"])
            assert found["n"].tolist() == [5, 6]


def test_rows_of_lanes_that_do_not_write_are_out_of_range_one_by_one() -> None:
    """The scatter is told that its indices are unique."""
    plan = plan_of({"a": ArrayType("float32", ())})
    carry = plan.empty(4, 1, EXIT)
    window = everyone(jnp.zeros(4, bool))

    def write() -> Any:
        values = {"a": jnp.ones(4)}
        return plan.write(carry, window, jnp.zeros(4, jnp.int32), values, None, window.here)

    (eqn,) = [eqn for eqn in _equations(jax.make_jaxpr(write)().jaxpr) if eqn.primitive.name == "scatter"]
    assert eqn.params["unique_indices"]
    np.testing.assert_array_equal(write()["frames"], carry["frames"])


def _equations(jaxpr: Any) -> list[Any]:
    inner = [p.jaxpr for eqn in jaxpr.eqns for p in eqn.params.values() if hasattr(p, "jaxpr")]
    return [*jaxpr.eqns, *(eqn for part in inner for eqn in _equations(part))]


class TestPlan:
    """Columns of a program."""

    def test_what_lives_together_lies_apart(self) -> None:
        plan = frames.plan(stack(FIB_STACK))
        assert plan is not None
        columns = {v: (c.start, c.stop) for v, c in plan.columns.items()}
        assert sorted(columns.values()) == [(1, 2), (2, 3)] and plan.widths == {"frames": 3}

    def test_bodies_that_differ_share_columns(self) -> None:
        plan = frames.plan(stack(TWO_BODIES))
        assert plan is not None
        assert plan.columns["a"].start == plan.columns["b"].start == 1
        assert plan.widths == {"frames": 3}

    def test_a_program_without_calls_has_none(self) -> None:
        assert frames.plan(stack(NO_CALLS)) is None


TWO_BODIES = """\
pcir 1 stack
program entry=bb0 in=(n) out=(r) {
  n: i32[] reg   r: i32[] reg   a: i32[] stack   b: f32[2] stack   x: f32[2] temp
// function @f
bb0:
  push a = n
  pushjump bb2, ret=bb1
bb1:
  pop a
  update r = { a + r }
  return
// function @g
bb2:
  x = { jnp.zeros(2) }
  push b = x
  pushjump bb4, ret=bb3
bb3:
  pop b
  update r = { r + b[0].astype(int) }
  return
// function @h
bb4:
  update r = { n }
  return
}
"""

NO_CALLS = """\
pcir 1 stack
program entry=bb0 in=(n) out=(r) {
  n, r: i32[] reg
// function @f
bb0:
  update r = { n }
  return
}
"""
