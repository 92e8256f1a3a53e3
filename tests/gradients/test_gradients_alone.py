"""Gradients of lanes that are run again, recorded and undone one after the other."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.transforms.tape import lane_undoing
from tests.oracles.plans import planned

pytestmark = [pytest.mark.promotion("standard"), pytest.mark.alone]

X, N = jnp.array([0.3, -1.2, 2.0, 0.1]), jnp.array([5, 300, 0, 41])


def loop(x: Any, w: Any, n: Any) -> Any:
    y = x
    for k in range(n):
        y = jnp.sin(y * w[k % 3]) if y < 0.9 else y * 0.5
    return y


def descent(x: Any, w: Any, n: Any) -> Any:
    if n <= 0:
        return x
    return jnp.sin(descent(x * w[n % 3], w, n - 1)) + 0.1 * x


W = jnp.array([1.1, 0.9, 1.3])


def gradients(f: Any, jit: bool = True, **options: Any) -> Any:
    """The gradients of a program by the numbers of lanes and by what they share."""
    batched = pcbatch.batch(f, **planned(in_axes=(0, None, 0), **options))
    gradient = jax.grad(lambda x, w: jnp.sum(batched(x, w, N)), argnums=(0, 1))
    return (jax.jit(gradient) if jit else gradient)(X, W)


def plain(f: Any) -> Any:
    """The gradients that JAX gives for one lane after the other, in Python."""
    of_lanes = [jax.grad(f, argnums=(0, 1))(x, W, int(n)) for x, n in zip(X, N, strict=True)]
    return jnp.stack([x for x, _ in of_lanes]), sum(w for _, w in of_lanes)


def assert_close(found: Any, wanted: Any) -> None:
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("f", [loop, descent])
@pytest.mark.parametrize("rows", [3, 64, 1000])
def test_a_lane_longer_than_its_tape_is_run_again_for_each_segment(
    f: Any, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane_undoing, "LEAST_ROWS", rows)
    monkeypatch.setattr(lane_undoing, "MOST_ROWS", rows)
    assert_close(gradients(f, max_depth=400), plain(f))


def test_no_tape_is_too_short() -> None:
    assert_close(gradients(loop, max_tape=1, on_failure="error"), plain(loop))


@pytest.mark.parametrize("f", [loop, descent])
def test_memory_does_not_grow_with_the_lanes(f: Any) -> None:
    batched = pcbatch.batch(f, in_axes=(0, None, 0), max_depth=64, plan=pcbatch.Plan(emitter="scalar"))
    gradient = jax.jit(jax.grad(lambda x, n: jnp.sum(batched(x, W, n))))
    sizes = []
    for lanes in (16, 512):
        analysis = gradient.lower(jnp.ones(lanes), jnp.ones(lanes, int)).compile().memory_analysis()
        assert analysis is not None
        sizes.append(analysis.temp_size_in_bytes)
    assert sizes[1] - sizes[0] < 496 * 1000  # frames of 64 calls are a part of the run before it


def test_lanes_that_fail_have_no_gradient_and_disturb_no_other() -> None:
    def f(x: Any, w: Any, n: Any) -> Any:
        if n == 300:
            raise ValueError("too many")
        return loop(x, w, n)

    of_lanes, shared = gradients(f, on_failure="ignore")
    assert np.isnan(of_lanes).tolist() == [False, True, False, False]
    assert np.isnan(shared).all(), "the failed lane is a part of the sum"
    np.testing.assert_allclose(of_lanes[jnp.array([0, 2, 3])], plain(loop)[0][jnp.array([0, 2, 3])], rtol=1e-4)


def test_a_lane_that_takes_no_part_is_not_run_again() -> None:
    def f(x: Any, w: Any, n: Any) -> Any:
        while n > 200:  # never ends
            x = x * 1.0
        return x * w[0]

    batched = pcbatch.batch(f, in_axes=(0, None, 0), max_steps=1000, on_failure="ignore")
    gradient = jax.jit(jax.grad(lambda x: jnp.sum(jnp.where(N > 200, 0.0, batched(x, W, N)))))
    np.testing.assert_allclose(gradient(X), [1.1, 0.0, 1.1, 1.1], rtol=1e-6)


@pytest.mark.parametrize("f", [loop, descent])
def test_elements_of_a_vmap_become_lanes(f: Any) -> None:
    batched = pcbatch.batch(f, in_axes=(0, None, 0))
    n = jnp.array([5, 30, 0, 41])

    def gradient(x: Any, scale: Any) -> Any:
        return jax.grad(lambda x: jnp.sum(scale * batched(x, W, n)))(x)

    xs, scales = jnp.stack([X, 0.5 * X, -X]), jnp.array([1.0, 2.0, -3.0])
    found = jax.vmap(gradient)(xs, scales)
    assert_close(found, jnp.stack([gradient(x, scale) for x, scale in zip(xs, scales, strict=True)]))
    jacobian = jax.jacrev(lambda w: batched(X, w, n))(W)
    rows = [jax.grad(lambda w, k=k: batched(X, w, n)[k])(W) for k in range(4)]
    assert_close(jacobian, jnp.stack(rows))


def test_an_element_of_a_table_is_added_in_its_place() -> None:
    """A table of a thousand rows costs no more than one of ten."""
    table, words = jnp.linspace(0, 1, 4000).reshape(1000, 4), jnp.array([[1, 999, 1], [7, 0, 500]])

    def f(words: Any, table: Any) -> Any:
        total = 0.0
        for word in words:
            row = table[word]
            total = total + jnp.sum(row * row) if total < 1e6 else total
        return total

    batched = pcbatch.batch(f, in_axes=(0, None))
    gradient = jax.jit(jax.grad(lambda table: jnp.sum(batched(words, table))))
    wanted = jnp.zeros_like(table).at[words.ravel()].add(2 * table[words.ravel()])
    np.testing.assert_allclose(gradient(table), wanted, rtol=1e-5)
    text = gradient.lower(table).compile().as_text()
    assert text is not None
    inside = [line for line in text.splitlines() if "f32[1000,4]" in line and "while/body" in line]
    assert not [line for line in inside if " add(" in line or " copy(" in line or " broadcast(" in line]


def test_of_second_order() -> None:
    batched = pcbatch.batch(loop, in_axes=(0, None, 0))
    n = jnp.array([5, 3, 0, 4])
    found = jax.jit(jax.hessian(lambda x: jnp.sum(batched(x, W, n))))(X)
    wanted = [jax.grad(jax.grad(loop))(x, W, int(k)) for x, k in zip(X, n, strict=True)]
    np.testing.assert_allclose(found, jnp.diag(jnp.stack(wanted)), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("jit", [False, True])
def test_stacks_are_as_deep_as_the_run_needs(jit: bool) -> None:
    options = {"max_depth": 400} if jit else {}
    assert_close(gradients(descent, jit=jit, **options), plain(descent))


def test_a_long_chain_of_sums_is_traced_in_time() -> None:
    def f(x: Any, w: Any, n: Any) -> Any:
        total = x
        for k in range(60):
            total = total + w[k] * x if n > 0 else total
        return total

    w = jnp.linspace(0, 1, 60)
    batched = pcbatch.batch(f, in_axes=(0, None, 0), plan=pcbatch.Plan(emitter="scalar"))
    found = jax.jit(jax.grad(lambda w: jnp.sum(batched(X, w, N))))(w)
    np.testing.assert_allclose(found, jnp.full(60, X[N > 0].sum()), rtol=1e-5)


def test_arrays_on_two_devices() -> None:
    """A backward run is not split by XLA, nor is the run before it."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("d",))
    lanes, all_of_it = (jax.sharding.NamedSharding(mesh, jax.P(*axes)) for axes in (("d",), ()))
    batched = pcbatch.batch(loop, in_axes=(0, None, 0))
    x, n, w = jax.device_put(X, lanes), jax.device_put(N, lanes), jax.device_put(W, all_of_it)
    found = jax.jit(jax.grad(lambda x, w, n: jnp.sum(batched(x, w, n)), argnums=(0, 1)))(x, w, n)
    assert_close(found, plain(loop))


def test_loops_of_jax_in_a_step_keep_lanes_together() -> None:
    def f(x: Any, n: Any) -> Any:
        for _ in range(n):
            x = jax.lax.scan(lambda c, a: (jnp.tanh(c * a + x), None), x, jnp.linspace(-1.0, 1.0, 50))[0]
        return x

    batched, n = pcbatch.batch(f), jnp.arange(64) % 5
    text = str(jax.make_jaxpr(jax.grad(lambda x: jnp.sum(batched(x, n))))(jnp.linspace(0.1, 1.0, 64)))
    assert "taped run" in text and "repeatable" not in text
