"""`lanes_last.py`: blocks of small arrays, evaluated with the lanes as the last axis."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.runtime.vm import lanes_last
from pcbatch.runtime.vm.lanes_last import Placed

WIDTH = 7
RNG = np.random.default_rng(0)


def _first(x):
    return x.array if x.axis != -1 or x.array.ndim == 1 else np.moveaxis(np.asarray(x.array), -1, 0)


def _check(f, *args, shared=()):
    """`evaluate` gives the results of `jax.vmap`, wherever the lanes of its operands are."""
    batched = [k not in shared for k in range(len(args))]
    one = [x[0] if lanes else x for x, lanes in zip(args, batched, strict=True)]
    closed = jax.make_jaxpr(f)(*one)
    expected = jax.tree.leaves(jax.vmap(f, in_axes=tuple(0 if lanes else None for lanes in batched))(*args))
    for last in (False, True):
        operands = [
            Placed(x, None)
            if not lanes
            else Placed(jnp.moveaxis(x, 0, -1), -1)
            if last or x.ndim == 1
            else Placed(x, 0)
            for x, lanes in zip(args, batched, strict=True)
        ]
        outs = lanes_last.evaluate(closed, operands, WIDTH)
        for out, value in zip(outs, expected, strict=True):
            array = np.broadcast_to(out.array, value.shape) if out.axis is None else _first(out)
            assert array.dtype == value.dtype
            np.testing.assert_allclose(array, value, rtol=2e-6, atol=1e-6)
    return outs


def _array(*shape):
    return jnp.asarray(RNG.normal(size=(WIDTH, *shape)), jnp.float32)


def test_a_scalar_of_each_lane_meets_an_array():
    outs = _check(lambda f, a: (f * jnp.cos(a) + a, jnp.where(a > 0, f, -f), f > a), _array(3), _array())
    assert [x.axis for x in outs] == [-1, -1, -1]


def test_an_array_of_each_lane_meets_one_that_all_share():
    _check(lambda f, g: (f + g, jnp.maximum(g, f), jnp.where(g > 0, f, g)), _array(2, 3), _array(2, 3)[0], shared={1})


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.sum(),
        lambda x: x.sum(axis=1) + x.max(axis=0)[:2].sum(),
        lambda x: x.reshape(6),
        lambda x: x.T + x.ravel()[:6].reshape(3, 2),
        lambda x: x[::-1, 1:],
        lambda x: jnp.concatenate([x, x * 2], axis=1),
        lambda x: jnp.stack([x[0], x[1]], axis=1),
        lambda x: jnp.pad(x, 1),
        lambda x: jnp.cumsum(x, axis=1),
        lambda x: jnp.argmax(x, axis=0),
        lambda x: jnp.argmin(x),
        lambda x: x.astype(jnp.int32),
        lambda x: jnp.broadcast_to(x[:, None], (2, 2, 3)),
        lambda x: jnp.vdot(x[0], x[1]),
        lambda x: x @ x.T,
        lambda x: jnp.sort(x, axis=1),
        lambda x: jnp.split(x, 3, axis=1),
        lambda x: jnp.squeeze(x[:1]),
        lambda x: jnp.clip(x, -0.5, x[0, 0]),
        lambda x: jnp.tile(x, (8, 8)).sum(axis=0) + x.sum(),  # an array that is not small
        lambda x: x.at[1, jnp.int32(x[0, 0])].set(0.0),
        lambda x: jax.lax.fori_loop(0, 3, lambda i, y: y * x + i, x),
        lambda x: jax.lax.cond(x[0, 0] > 0, lambda y: y + 1, lambda y: y * 2, x),
        lambda x: jax.nn.relu(x) + jax.nn.softplus(x),
        lambda x: jax.lax.bitcast_convert_type(x, jnp.uint16),
        lambda x: jnp.linalg.norm(x),
        lambda x: x[0, 0],
        lambda x: (jnp.arange(6.0).reshape(2, 3), x),
    ],
)
def test_equals_vmap(f):
    _check(f, _array(2, 3))


def test_keys():
    keys = jax.random.split(jax.random.key(0), WIDTH)
    closed = jax.make_jaxpr(lambda k: jax.random.normal(k, (5,)))(keys[0])
    (out,) = lanes_last.evaluate(closed, [Placed(keys, -1)], WIDTH)
    np.testing.assert_allclose(_first(out), jax.vmap(lambda k: jax.random.normal(k, (5,)))(keys), rtol=1e-6)


def test_results_that_no_lane_changes_stay_shared():
    closed = jax.make_jaxpr(lambda x: (jnp.arange(3) * 2, x + 1))(jnp.zeros(3))
    shared, own = lanes_last.evaluate(closed, [Placed(jnp.zeros((3, WIDTH)), -1)], WIDTH)
    assert (shared.axis, own.axis) == (None, -1)


def walk(key, x):
    """A random walk of a few numbers until it is far enough."""
    steps = 0
    while jnp.sum(x**2) < 9.0 and steps < 50:
        key, now = jax.random.split(key)
        x = x + 0.5 * jax.random.normal(now, (3,)) * jnp.cos(x[0])
        steps = steps + 1
    return x, steps


@pytest.mark.parametrize("schedule", ["earliest", "sweep", "drain"])
def test_small_arrays_in_lanes(schedule):
    keys, x = jax.random.split(jax.random.key(1), 9), jnp.zeros((9, 3))
    out, steps = pcbatch.batch(walk, plan=pcbatch.Plan(schedule=schedule))(keys, x)
    for k in range(9):
        expected, count = walk(keys[k], x[k])
        assert int(steps[k]) == int(count)
        np.testing.assert_allclose(out[k], expected, rtol=1e-5, atol=1e-5)


def test_loops_compute_on_lanes_last():
    """No kernel of the loop works on [lanes, 3]: each would be scalar code, with a branch per lane."""
    keys, x = jax.random.split(jax.random.key(1), 300), jnp.zeros((300, 3))
    text = (
        jax.jit(lambda k, x: pcbatch.batch(walk, plan=pcbatch.Plan(schedule="sweep"))(k, x))
        .lower(keys, x)
        .compile()
        .as_text()
    )
    kernels = [line for line in text.splitlines() if "/while/body/" in line and " = f32[" in line]
    assert any("f32[3,300]" in line for line in kernels)
    assert not any(" f32[300,3]{1,0} multiply(" in line or " f32[300,3]{1,0} cosine(" in line for line in kernels)


def test_products_with_shared_matrices_keep_their_rows():
    a = jnp.asarray(RNG.normal(size=(4, 4)), jnp.float32)

    def f(x):
        while jnp.max(jnp.abs(x)) < 100.0:
            x = jnp.tanh(a @ x) + 1.5 * x
        return x

    program = pcbatch.batch(f).lower(jnp.ones((8, 4)))
    text = program.as_text()
    assert "dot_general" in text
    out = pcbatch.batch(f)(jnp.ones((8, 4)))
    np.testing.assert_allclose(out[0], f(jnp.ones(4)), rtol=1e-4)
