"""What makes people leave `jax.vmap`: conditionals that run both arms, loops that never end, recursion on values.

Each of these is a known difficulty of JAX's batching; the comment says which behaviour of `vmap` it is about.
"""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from tests.oracles.plans import planned

pytestmark = pytest.mark.promotion("standard")
VARIANTS: list[dict[str, str]] = [
    {"schedule": schedule, "emitter": emitter}
    for schedule in ("earliest", "largest", "sweep")
    for emitter in ("guard", "port")
]
EVERY = [*VARIANTS, {"strategy": "local"}]


def ends_at_zero(step: int) -> Any:
    """A loop of JAX's that ends for multiples of `step` on its side of zero only."""
    return lambda n: jax.lax.while_loop(lambda s: s[0] != 0, lambda s: (s[0] - step, s[1] + 1), (n, 0))[1]


@pytest.mark.share(4)
@pytest.mark.parametrize("options", EVERY, ids=lambda options: "-".join(options.values()))
def test_arms_with_loops_that_end_on_their_own_side_only(options: dict[str, str]) -> None:
    """Under `vmap` both arms run for every example, and each loop waits for examples that never get to zero."""
    down, up = ends_at_zero(3), ends_at_zero(-2)

    @pcbatch.batch(**planned(**options))
    def f(n):
        if n >= 0:
            return down(n)
        return up(n)

    assert f(jnp.array([9, -4, 0, -10, 3])).tolist() == [3, 2, 0, 5, 1]


@pytest.mark.share(2)
@pytest.mark.parametrize("options", EVERY, ids=lambda options: "-".join(options.values()))
def test_an_arm_that_no_lane_takes_is_not_run(options: dict[str, str]) -> None:
    """Under `vmap` a conditional becomes a selection, and its dear arm runs for every example."""
    runs = []

    def dear(x):
        def count(v):
            runs.append(int(v))
            return np.asarray(v) * 2

        return jax.pure_callback(count, jax.ShapeDtypeStruct((), x.dtype), x, vmap_method="sequential")

    @pcbatch.batch(**planned(**options))
    def f(x):
        if x > 100:
            return dear(x) @ jnp.ones(3) if x.ndim else dear(x)
        return x + 1

    assert f(jnp.array([1, 2, 3])).tolist() == [2, 3, 4]
    assert not runs
    assert f(jnp.array([1, 200, 3])).tolist() == [2, 400, 4]
    assert set(runs) == {200}, "values of lanes that are elsewhere are not shown to the host"


def test_a_dear_arm_is_not_visited() -> None:
    """The same by counting: the block of the products is not run once."""

    @pcbatch.batch(stats=True)
    def f(x, a):
        if x > 10:
            for _ in range(50):
                a = jnp.tanh(a @ a)
        return a.sum()

    x, a = jnp.arange(4), jnp.ones((4, 8, 8))
    assert f.run(x, a).stats.visits("a @ a") == 0
    assert f.run(x.at[2].set(11), a).stats.visits("a @ a") == 50


def test_recursion_on_values() -> None:
    """Under `jit` a function that calls itself until a value says stop never ends while it is traced."""

    @pcbatch.batch
    def depth(n):
        return 0 if n <= 1 else 1 + depth(n // 2)

    def unbatched(n):
        return jax.lax.cond(n <= 1, lambda n: 0, lambda n: 1 + unbatched(n // 2), n)

    assert depth(jnp.array([1, 5, 1000])).tolist() == [0, 2, 9]
    assert jax.jit(depth)(jnp.array([1, 5, 1000])).tolist() == [0, 2, 9]
    with pytest.raises(RecursionError):
        jax.jit(unbatched)(5)


@pytest.mark.parametrize("strategy", ["pc", "local"])
def test_products_of_lanes_with_a_shared_matrix_are_one_product(strategy: str) -> None:
    """A product with a matrix that all lanes share is one matrix product over lanes, not one per lane."""
    lanes, size = 7, 5

    @pcbatch.batch(in_axes=(0, 0, None), strategy=strategy)
    def power(x, n, weight):
        while n > 0:
            if n % 2:
                x = weight @ x
            x, n = x / 2, n - 1
        return x

    args = jnp.ones((lanes, size)), jnp.arange(lanes), jnp.ones((size, size))
    text = power.lower(*args).as_text("stablehlo")
    products = re.findall(r"dot_general.*", text)
    assert products and all("batching_dims" not in product for product in products)
    assert f"{lanes}x{size}x{size}" not in text
    np.testing.assert_allclose(power(*args)[:3, 0], [1, 2.5, 1.25])


def test_an_iteration_count_of_its_own() -> None:
    """Under `vmap` a lane that is done waits, and goes on computing, until the last one is."""

    @pcbatch.batch(stats=True, plan=pcbatch.Plan(unroll=1))
    def f(n):
        steps = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps

    n = jnp.array([1, 2, 27, 3])
    result = f.run(n)
    assert result.value.tolist() == [0, 1, 111, 7]
    blocks = [block for block in result.stats.blocks if any("steps + 1" in text for text in block.texts)]
    assert sum(block.active for block in blocks) == 0 + 1 + 111 + 7
