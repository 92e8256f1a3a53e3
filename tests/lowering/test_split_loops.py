"""Loops over shared arrays are split: in which programs, and that lanes, tasks and gradients give what Python gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.lowering.analysis.counted_loops import moving_variables
from pcbatch.lowering.left_out import without
from tests.ir.samples import cfg
from tests.lowering.typed import typed
from tests.oracles.interpret_cfg import interpret_cfg
from tests.oracles.numpy_jaxpr import on_numpy
from tests.oracles.plans import replanned

RNG = np.random.default_rng(0)
HIDDEN, ROUNDS, LANES = 32, 5, 3


def normal(*shape: int) -> Any:
    return jnp.asarray(RNG.normal(size=shape) * shape[-1] ** -0.5, jnp.float32)


W, U, V = (normal(HIDDEN, HIDDEN) for _ in range(3))
XS, H = normal(ROUNDS, HIDDEN), normal(LANES, HIDDEN)
COUNTS = jnp.array([0, 2, ROUNDS + 2], jnp.int32)  # also more rounds than there are rows: JAX clamps the index


def over_rows(w, u, v, xs, h, n):  # type: ignore[no-untyped-def]
    """An RNN over the rows of an argument."""
    for x in xs:
        h = jnp.tanh(w @ x + u @ h)
    return h


def over_numbers(w, u, v, xs, h, n):  # type: ignore[no-untyped-def]
    """The same over indices, for a number of rounds that each lane has."""
    for t in range(n):
        h = jnp.tanh(xs[t] @ w + u @ h)
    return h


def two_layers(w, u, v, xs, h, n):  # type: ignore[no-untyped-def]
    """Of two layers only the first one reads inputs."""
    g = jnp.sin(h)
    for x in xs:
        h = jnp.tanh(w @ x + u @ h)
        g = jnp.tanh(v @ h + u @ g)
    return g


def while_with_index(w, u, v, xs, h, n):  # type: ignore[no-untyped-def]
    """A counter of the user's own."""
    t = 0
    while t < n:
        y = jnp.tanh(w @ xs[t])
        h = jnp.tanh(y + u @ h)
        t += 1
    return h


def nested(w, u, v, xs, h, n):  # type: ignore[no-untyped-def]
    """The inner loop goes over all rows in each round of the outer one."""
    for _ in range(n):
        for x in xs:
            h = jnp.tanh(w @ (x + 1) + u @ h)
    return h


def several_uses(w, u, v, xs, h, n):  # type: ignore[no-untyped-def]
    """Two products of a row, and the row itself; what is read of two arrays at one index."""
    ys = xs[::-1] * 2
    for t in range(n):
        h = jnp.tanh(w @ xs[t] + u @ h) * (v @ (xs[t] * ys[t])) + xs[t]
    return h


def with_break(w, u, v, xs, h, n):  # type: ignore[no-untyped-def]
    """How many rows are read depends on what is computed."""
    for x in xs:
        h = jnp.tanh(w @ x + u @ h)
        if h[0] > 0.1:
            break
    return h


def with_return(w, u, v, xs, h, n):  # type: ignore[no-untyped-def]
    """The same, where the function ends."""
    for x in xs:
        h = jnp.tanh(w @ x + u @ h)
        if h[0] > 0.1:
            return h
    return -h


def index_moved_first(w, u, v, xs, h, n):  # type: ignore[no-untyped-def]
    """Rows from the second one on; the last round reads the last row again, as JAX clamps the index."""
    t = 0
    while t < n:
        t += 1
        h = jnp.tanh(w @ xs[t] + u @ h)
    return h


def from_the_end(w, u, v, xs, h, n):  # type: ignore[no-untyped-def]
    """Rows from the last one on, and then, as JAX clamps the index, the first one again."""
    for t in range(n):
        h = jnp.tanh(w @ xs[-1 - jnp.int32(t)] + u @ h)
    return h


def looked_up(w, u, v, xs, h, n):  # type: ignore[no-untyped-def]
    """Rows of a table, by an array of their numbers."""
    numbers = jnp.argsort(v[0])[:7] % ROUNDS
    for t in range(n):
        h = jnp.tanh(w @ xs[numbers[t]] + u @ h)
    return h


def until_small(w, u, v, xs, h, n):  # type: ignore[no-untyped-def]
    """The same, where the test of the loop says so."""
    t = 0
    while t < n and h[0] < 0.1:
        h = jnp.tanh(w @ xs[t] + u @ h)
        t += 1
    return h


def in_some_rounds(w, u, v, xs, h, n):  # type: ignore[no-untyped-def]
    """Rows that few rounds may read."""
    for t in range(n):
        if h[t] > 0.3:
            h = jnp.linalg.inv(u) @ jnp.tanh(w @ xs[t] + u @ h)
        h = h + 0.1
    return h


def found_index(w, u, v, xs, h, n):  # type: ignore[no-untyped-def]
    """An index that does not move by one: a table of many rows, of which few may be read."""
    for _ in range(n):
        h = jnp.tanh(w @ xs[jnp.argmax(h[:ROUNDS])] + u @ h)
    return h


def cheap(w, u, v, xs, h, n):  # type: ignore[no-untyped-def]
    """To read what was computed costs as much as to compute it."""
    for x in xs:
        h = h + jnp.sin(x)
    return h


def several_rows(w, u, v, xs, h, n):  # type: ignore[no-untyped-def]
    """Two rows at a time."""
    for t in range(n):
        h = jnp.tanh(w @ jax.lax.dynamic_slice(xs, (t, 0), (2, HIDDEN)).sum(0) + u @ h)
    return h


def two_indices(w, u, v, xs, h, n):  # type: ignore[no-untyped-def]
    """A row and the one before it are no function of one row."""
    for t in range(n):
        h = jnp.tanh(w @ (xs[t] * xs[t - 1]) + u @ h)
    return h


def changed(w, u, v, xs, h, n):  # type: ignore[no-untyped-def]
    """An array that the loop changes is another one in each round."""
    for t in range(n):
        xs = xs * 0.9
        h = jnp.tanh(w @ xs[t] + u @ h)
    return h


def of_the_round(w, u, v, xs, h, n):  # type: ignore[no-untyped-def]
    """A function of the index itself is none of the row: rows that there are not have none."""
    for t in range(n):
        h = jnp.tanh(w @ (xs[t] * jnp.float32(t)) + u @ h)
    return h


SPLIT = {over_rows: 1, over_numbers: 1, two_layers: 1, while_with_index: 1, nested: 1, several_uses: 2}
SPLIT |= {index_moved_first: 1, from_the_end: 1, looked_up: 1}
WHOLE = (
    several_rows,
    two_indices,
    with_break,
    with_return,
    until_small,
    in_some_rounds,
    found_index,
    cheap,
    changed,
    of_the_round,
)
SHARED = (None, None, None, None, 0, 0)


def compiled(fn: Callable[..., Any], axes: Any = SHARED, xs: Any = XS) -> Any:
    return pcbatch.batch(fn, in_axes=axes).lower(W, U, V, xs, H, COUNTS).stages.inlined_cfg


def ahead(program: Any) -> int:
    """The variables that a program computes ahead."""
    return sum(name.startswith("ahead.") for f in program.functions for name in f.types)


@pytest.mark.parametrize("fn", [*SPLIT, *WHOLE], ids=lambda fn: str(fn.__name__))
def test_which_loops_are_split(fn: Callable[..., Any]) -> None:
    program = compiled(fn)
    assert ahead(program) == SPLIT.get(fn, 0)
    for h, n in zip(H, COUNTS, strict=True):
        with np.errstate(all="ignore"):
            (found,), _ = interpret_cfg(on_numpy(program), tuple(map(np.asarray, (W, U, V, XS, h, n))))
        np.testing.assert_allclose(found, fn(W, U, V, XS, h, int(n)), rtol=1e-4, atol=1e-5)


def test_arrays_of_each_lane_are_left_alone() -> None:
    own = jnp.broadcast_to(XS, (LANES, *XS.shape))
    assert ahead(compiled(over_rows, (None, None, None, 0, 0, 0), own)) == 0


def test_results_that_take_much_room_are_left_alone() -> None:
    def outer(w, u, v, xs, h, n):  # type: ignore[no-untyped-def]
        for x in xs:
            h = jnp.tanh(jnp.outer(x, x) @ w @ h)
        return h

    many = normal(3000, HIDDEN)
    assert ahead(compiled(outer, xs=many)) == 0


@pytest.mark.share(2)
@pytest.mark.parametrize("fn", [over_numbers, several_uses], ids=lambda fn: str(fn.__name__))
def test_lanes_and_gradients(fn: Callable[..., Any]) -> None:
    """The machine computes the rows once, in its prologue, and gradients go through them."""
    f = pcbatch.batch(fn, in_axes=SHARED)
    program = f.lower(W, U, V, XS, H, COUNTS).stages.opt
    assert any(v.startswith("ahead.") for op in program.prologue for v in op.dsts)  # type: ignore[union-attr]

    def loss(w: Any, xs: Any) -> Any:
        return jnp.sum(f(w, U, V, xs, H, COUNTS) ** 2)

    def plain(w: Any, xs: Any) -> Any:
        return sum(jnp.sum(fn(w, U, V, xs, h, int(n)) ** 2) for h, n in zip(H, COUNTS, strict=True))

    found, want = (jax.value_and_grad(each, (0, 1))(W, XS) for each in (loss, plain))
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def tree(w, u, xs, h, levels):  # type: ignore[no-untyped-def]
    """A loop in a function that calls itself twice."""
    for x in xs:
        h = jnp.tanh(w @ x + u @ h)
    if levels > 0:
        h = h + tree(w, u, xs, h, levels - 1) + tree(w, u, xs, -h, levels - 1)
    return h


def test_a_loop_in_a_function_whose_calls_run_side_by_side() -> None:
    f = pcbatch.batch(tree, in_axes=(None, None, None, 0, 0), plan=pcbatch.Plan(fork="always"))
    levels = jnp.array([0, 2, 1], jnp.int32)
    tasks = f.lower(W, U, XS, H, levels).program.tasks.program
    assert any(name.split(".")[-2] == "ahead" for op in tasks.prologue for name in op.dsts)
    want = np.stack([tree(W, U, XS, h, int(n)) for h, n in zip(H, levels, strict=True)])
    np.testing.assert_allclose(f(W, U, XS, H, levels), want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(replanned(f, fork="never")(W, U, XS, H, levels), want, rtol=1e-4, atol=1e-5)


LOOP = """pcir 1 cfg
func @f(x: f32[9], n: i32[]) -> (r: f32[9]) {
  t: i32[]   more, done: bool[]
bb0:
  r = { x * 1 }
  t = { 0 }
  jump bb1
bb1:
  more = { t < n }
  branch more, bb2, return
bb2:
  r = { jnp.tanh(r) }
  t = { t + 1 }
  done = { r[0] > 0 }
  %s
}
"""


def test_rounds_of_a_loop_that_returns_are_not_known() -> None:
    """What each round moves by one counts only where nothing but a counter ends the loop."""
    counted, leaving = (
        moving_variables(typed(cfg(LOOP % end)).functions[0]) for end in ("jump bb1", "branch done, return, bb1")
    )
    assert counted == {"bb0": frozenset(), "bb1": frozenset("t"), "bb2": frozenset("t")}
    assert set(leaving.values()) == {frozenset()}


def test_it_can_be_left_out() -> None:
    with without("split_loops"):
        assert ahead(compiled(over_rows)) == 0
