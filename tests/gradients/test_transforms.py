"""A run is one operation of JAX: what `vmap` makes of it, what functions capture, and what gradients keep."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from tests.oracles.plans import replanned

pytestmark = pytest.mark.share(3)


@pcbatch.batch
def fib(n: Any) -> Any:
    if n <= 1:
        return 1
    return fib(n - 2) + fib(n - 1)


@pcbatch.batch(in_axes=(0, None))
def grow(x: Any, factor: Any) -> Any:
    while x < 5.0:
        x = x * factor + 0.25
    return x


@pcbatch.batch(in_axes=(0, 0, None))
def steps(x: Any, n: Any, w: Any) -> Any:
    i = 0
    while i < n:
        x = 0.9 * jnp.tanh(w @ x) + 0.1 * x
        i += 1
    return x


@pcbatch.batch(in_axes=(0, None))
def root(a: Any, rounds: Any) -> Any:
    """Newton's method in an inner loop that does not end on junk, behind a branch."""
    if a < 0.0:
        return a
    return jax.lax.while_loop(lambda x: jnp.abs(x * x - a) > 1e-3, lambda x: 0.5 * (x + a / x), a + rounds)


def loops(text: str) -> int:
    """How many loops a compiled program has."""
    return text.count(" while(")


class TestVmap:
    ns = jnp.arange(12, dtype=jnp.int32).reshape(3, 4)

    def test_elements_become_lanes(self) -> None:
        expected = np.asarray(fib(self.ns.reshape(-1))).reshape(3, 4)
        np.testing.assert_array_equal(jax.vmap(fib)(self.ns), expected)
        np.testing.assert_array_equal(jax.jit(jax.vmap(fib))(self.ns), expected)
        np.testing.assert_array_equal(jax.vmap(jax.vmap(fib))(self.ns.reshape(3, 2, 2)).reshape(3, 4), expected)

    def test_there_is_one_machine(self) -> None:
        folded = jax.jit(jax.vmap(fib)).lower(self.ns).compile().as_text()
        plain = jax.jit(fib).lower(self.ns.reshape(-1)).compile().as_text()
        assert loops(folded) == loops(plain)

    @pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0), (1, None)])
    def test_what_lanes_share(self, axes: tuple[Any, Any]) -> None:
        xs = jnp.linspace(0.1, 4.0, 12).reshape(3, 4)
        factors = jnp.array([1.2, 1.5, 2.0]) if axes[1] == 0 else jnp.float32(1.5)
        given = {0: xs, 1: xs.T, None: xs[0]}[axes[0]]
        found = jax.vmap(grow, axes)(given, factors)
        for e in range(3):
            lanes = xs[0] if axes[0] is None else xs[e]
            np.testing.assert_allclose(found[e], grow(lanes, factors[e] if axes[1] == 0 else factors), rtol=1e-6)

    def test_results_with_statuses(self) -> None:
        found = jax.vmap(lambda n: fib.with_options(max_steps=9).run(n).status)(self.ns)
        expected = fib.with_options(max_steps=9).run(self.ns.reshape(-1)).status
        np.testing.assert_array_equal(found, np.asarray(expected).reshape(3, 4))

    def test_loops_that_mind_junk_end(self) -> None:
        a = jnp.array([[4.0, -1.0], [-2.0, -3.0], [-5.0, 9.0]])
        expected = [[2.0, -1.0], [-2.0, -3.0], [-5.0, 3.0]]
        np.testing.assert_allclose(jax.vmap(root, (0, None))(a, 1.0), expected, rtol=1e-3)

    def test_map(self) -> None:
        found = jax.vmap(lambda n: fib.map(n, lanes=2).value)(self.ns)
        np.testing.assert_array_equal(found, np.asarray(fib(self.ns.reshape(-1))).reshape(3, 4))


class TestCaptured:
    """A batched function that is made inside a trace, of what the trace knows only as a tracer."""

    xs = jnp.array([0.1, 0.5, 1.0])

    @staticmethod
    def loss(w: Any, xs: Any) -> Any:
        @pcbatch.batch
        def inner(x: Any) -> Any:
            while x < 3.0:
                x = x * w + 0.5
            return x

        return inner(xs).sum()

    def plain(self, w: Any) -> Any:
        total = jnp.float32(0.0)
        for x in self.xs:
            while x < 3.0:
                x = x * w + 0.5
            total = total + x
        return total

    @pytest.mark.parametrize("jit", [False, True])
    def test_gradients_reach_it(self, jit: bool) -> None:
        gradient = jax.grad(self.loss)
        found = (jax.jit(gradient) if jit else gradient)(1.2, self.xs)
        np.testing.assert_allclose(found, jax.grad(self.plain)(1.2), rtol=1e-5)
        np.testing.assert_allclose(jax.grad(jax.jit(self.loss))(1.2, self.xs), jax.grad(self.plain)(1.2), rtol=1e-5)

    def test_two_of_them(self) -> None:
        def loss(w: Any, b: Any) -> Any:
            @pcbatch.batch
            def inner(x: Any) -> Any:
                while x < 3.0:
                    x = x * w + b
                return x

            return inner(jnp.array([0.5])).sum()

        found = jax.grad(loss, (0, 1))(2.0, 0.5)  # 0.5, 1.5, 3.5: x' = w x + b twice
        np.testing.assert_allclose(found, [2.0 * 2.0 * 0.5 + 0.5, 2.0 + 1.0])

    def test_elements_may_differ_in_it(self) -> None:
        found = jax.vmap(self.loss, (0, None))(jnp.array([1.2, 1.5]), self.xs)
        np.testing.assert_allclose(found, [self.plain(1.2), self.plain(1.5)], rtol=1e-5)


def unrolled(x: Any, n: Any, w: Any) -> Any:
    """The same as `steps`, of which JAX knows the gradient."""

    def one(x: Any, n: Any) -> Any:
        body = lambda x, i: (jnp.where(i < n, 0.9 * jnp.tanh(w @ x) + 0.1 * x, x), None)
        return jax.lax.scan(body, x, jnp.arange(300))[0]

    return jax.vmap(one)(x, n)


def gradients(f: Any, lanes: int, longest: int) -> Any:
    rng = np.random.default_rng(0)
    w = jnp.asarray(rng.normal(size=(8, 8)) / 3, jnp.float32)
    x = jnp.asarray(rng.normal(size=(lanes, 8)), jnp.float32)
    n = jnp.asarray(rng.integers(1, longest, lanes))
    weights = jnp.asarray(rng.normal(size=(lanes, 8)), jnp.float32)
    return jax.jit(jax.grad(lambda x, w: jnp.sum(f(x, n, w) * weights), (0, 1)))(x, w)


@pytest.mark.parametrize(
    ("options", "lanes", "longest"),
    [({}, 700, 9), ({"checkpoints": 2}, 5, 300), ({"checkpoints": 4}, 5, 300), ({"checkpoints": 3}, 600, 9)],
    ids=["many-lanes", "two-marks", "four-marks", "marks-of-many-lanes"],
)
def test_shared_matrices(options: dict[str, Any], lanes: int, longest: int) -> None:
    found = gradients(replanned(steps, **options), lanes, longest)
    for mine, theirs in zip(found, gradients(unrolled, lanes, longest), strict=True):
        assert float(jnp.linalg.norm(mine - theirs) / jnp.linalg.norm(theirs)) < 1e-5


@pytest.mark.full_only
def test_more_is_kept_at_the_end_than_one_pullback_takes() -> None:
    x = jnp.linspace(0.1, 1.0, 700 * 8).reshape(700, 8)
    w = jnp.linspace(0.1, 0.3, 64).reshape(8, 8)
    n = jnp.full((700,), 2)
    found = jax.grad(lambda w: jnp.sum(steps(x, n, w)))(w)
    np.testing.assert_allclose(found, jax.grad(lambda w: jnp.sum(unrolled(x, n, w)))(w), rtol=1e-4)


@pytest.mark.full_only
def test_marks_under_vmap_and_forward_over_reverse() -> None:
    marked = grow.with_options(checkpoints=2)
    xs = jnp.linspace(0.1, 4.0, 6).reshape(2, 3)
    loss = lambda f: lambda x: jnp.sum(jnp.sin(f(x, 1.01)))
    np.testing.assert_allclose(jax.vmap(jax.grad(loss(marked)))(xs), jax.vmap(jax.grad(loss(grow)))(xs), rtol=1e-5)
    twice = lambda f: jax.jvp(jax.grad(loss(f)), (xs[0],), (xs[1],))[1]
    np.testing.assert_allclose(twice(marked), twice(grow), rtol=1e-4)


class TestTapeUse:
    xs = jnp.array([0.5, 1.0, 4.0])

    @pytest.mark.full_only
    @pytest.mark.tape
    def test_the_number_is_enough_and_the_least(self) -> None:
        use = grow.tape(self.xs, 1.2)
        loss = lambda f: lambda x: jnp.sum(f(x, 1.2))
        expected = jax.grad(loss(grow))(self.xs)
        fits = jax.jit(jax.grad(loss(grow.with_options(max_tape=use.max_tape))))(self.xs)
        np.testing.assert_allclose(fits, expected)
        short = jax.jit(jax.grad(loss(grow.with_options(max_tape=use.max_tape - 1, on_failure="ignore"))))(self.xs)
        assert np.all(np.isnan(short))
        assert use.lanes == 3 and use.bytes > 0 and f"max_tape={use.max_tape}" in str(use)

    @pytest.mark.tape
    def test_lists_grow_as_outside_of_jit(self) -> None:
        """A lane without room for an element would stop there, and count what it has visited so far."""

        @pcbatch.batch
        def stacked(x: Any, n: Any) -> Any:
            kept = []
            while n > 0:
                kept.append(x * x)
                n = n - 1
            total = 0.0
            for y in kept:
                total = total + jnp.sin(y)
            return total

        ns = jnp.array([40, 1])
        use = stacked.tape(self.xs[:2], ns)
        assert use.max_length is not None and use.max_length >= 40 and f"max_length={use.max_length}" in str(use)
        assert stacked.tape(self.xs[:2], ns) == use, "told again by a program that has room from the start"
        slope = lambda f: jax.grad(lambda x: jnp.sum(f(x, ns)))
        fits = stacked.with_options(max_tape=use.max_tape, max_length=use.max_length, on_failure="error")
        np.testing.assert_allclose(jax.jit(slope(fits))(self.xs[:2]), slope(stacked)(self.xs[:2]), rtol=1e-6)
        short = fits.with_options(max_tape=use.max_tape - 1)
        with pytest.raises(jax.errors.JaxRuntimeError, match=f"max_tape={use.max_tape}"):
            np.asarray(jax.jit(slope(short))(self.xs[:2]))

    def test_not_inside_jit(self) -> None:
        with pytest.raises(pcbatch.UsageError, match="PCB421"):
            jax.jit(lambda x: grow.tape(x, 1.2).max_tape)(self.xs)

    def test_without_lanes_or_floats(self) -> None:
        assert grow.tape(self.xs[:0], 1.2).max_tape == 1
        assert fib.tape(jnp.arange(3)).bytes == 0

    @pytest.mark.tape
    def test_a_full_tape_ends(self) -> None:
        """Its links would lead in circles."""
        gradient = jax.jit(jax.grad(lambda x: jnp.sum(grow.with_options(max_tape=1, on_failure="ignore")(x, 1.01))))
        assert np.all(np.isnan(gradient(jnp.linspace(0.1, 1.0, 3))))
