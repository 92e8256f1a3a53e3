"""A lane does not know the others: whatever they hold, wherever they stand, its result has the same bits."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

import pcbatch
from tests.oracles.plans import replanned
from tests.programs import REGISTRY, Program, select
from tests.programs.compare import assert_same_bits

pytestmark = [pytest.mark.share(3), pytest.mark.long, pytest.mark.promotion("standard")]

LANES = 8
LIMITS = {"max_steps": 400, "max_depth": 32}  # lanes that hold nonsense need not end by themselves
VARIANTS: tuple[dict[str, Any], ...] = (
    *(
        {"schedule": schedule, "emitter": emitter}
        for schedule in ("earliest", "largest", "sweep")
        for emitter in ("guard", "port")
    ),
    {"strategy": "local"},
)
# Loops, recursion, arrays on the stack, writes in place, a matrix that all lanes share, random numbers.
NAMES = ("pea_nuts", "write_through_recursion", "mandelbrot", "tree_sum", "random_walk", "wide_and_narrow")

every_variant = pytest.mark.parametrize("options", VARIANTS, ids=lambda o: "-".join(o.values()))
every_name = pytest.mark.parametrize("name", NAMES)


def hostile(leaf: Any) -> Any:
    """Values of the same type that nobody would choose."""
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) or leaf.dtype == np.bool_:
        return leaf
    if jnp.issubdtype(leaf.dtype, jnp.inexact):
        top = float(jnp.finfo(leaf.dtype).max)
        values = [np.nan, np.inf, -np.inf, top, -top, 1e-40, -0.0]
    else:
        info = np.iinfo(leaf.dtype)
        values = [info.min, info.max, 0, info.max - 1, info.min + 1]
    return jnp.asarray(np.resize(np.array(values, leaf.dtype), leaf.shape))


def replaced(program: Program, args: Any, keep: np.ndarray) -> Any:
    """The arguments with everything hostile in the lanes that are not kept."""

    def leaf(axis: Any, old: Any) -> Any:
        if axis is None:
            return old
        old = jnp.asarray(old)
        mask = keep.reshape((-1,) + (1,) * (old.ndim - 1))
        return jnp.where(mask, old, hostile(old)) if hostile(old) is not old else old

    axes = program.in_axes if isinstance(program.in_axes, tuple) else (program.in_axes,) * len(args)
    return tuple(jax.tree.map(lambda x, a=axis: leaf(a, x), arg) for axis, arg in zip(axes, args, strict=True))


@pytest.mark.share(20)
@every_variant
@every_name
def test_other_lanes_change_nothing(name: str, options: dict[str, Any]) -> None:
    program = REGISTRY[name]
    with program.mode():
        args = program.args(LANES)
        batched = program.batched(**LIMITS, **options)
        base = batched.run(*args)

        @settings(max_examples=6)
        @given(st.permutations(range(LANES)))
        def permuted(order: list[int]) -> None:
            index = np.array(order)
            result = batched.run(*select(args, program.in_axes, index))
            assert_same_bits(result.value, jax.tree.map(lambda leaf: leaf[index], base.value))
            assert np.array_equal(result.status, base.status[index])

        @settings(max_examples=6)
        @given(st.sets(st.integers(0, LANES - 1), min_size=1))
        def among_nonsense(kept: set[int]) -> None:
            lanes = np.array(sorted(kept))
            keep = np.isin(np.arange(LANES), lanes)
            result = batched.run(*replaced(program, args, keep))
            assert_same_bits(*(jax.tree.map(lambda leaf: leaf[lanes], run.value) for run in (result, base)))
            assert np.array_equal(result.status[lanes], base.status[lanes])

        permuted()
        among_nonsense()
        assert np.all(base.status == pcbatch.Status.OK)


@pcbatch.batch
def guarded_division(a, b, n):
    total = 0
    while n > 0:
        if b != 0 and a % b != 1:
            total += a // b + a % b
        a, b, n = a + 3, b - 1, n - 1
    return total


@every_variant
def test_division_by_zero_in_lanes_that_are_elsewhere(options: dict[str, Any]) -> None:
    """Every lane's divisor passes zero while others divide; the smallest integer by -1 overflows, too."""
    least = np.iinfo(np.int32).min
    args = [np.array(x, np.int32) for x in ([5, 8, 0, -9, least], [1, 3, 0, 2, -1], [3, 5, 2, 4, 0])]
    want = [guarded_division.plain(*(int(x[k]) for x in args)) for k in range(5)]
    assert replanned(guarded_division, **options)(*map(jnp.asarray, args)).tolist() == want


# With jax_debug_nans, a batch raises for what a lane returned; what inactive lanes compute is nobody's value.


@pcbatch.batch
def sheltered(n, x):
    """Logarithms of positive numbers only, in a branch, in a loop, and after a call; divisors are never zero."""
    if n <= 0 or x <= 0.0:
        return x
    y = jnp.log(x) / n
    while n > 2:
        y = y + jnp.log(x) / n
        n = n - 1
    return sheltered(n - 1, x - 1.0) / jnp.sqrt(x) + y


@pcbatch.batch(in_axes=(0, None))
def never_needed(n, w):
    """The logarithm is the same for all lanes, so it may be taken before any lane runs, though none comes to it."""
    if n <= 0:
        return 0.0
    y = 1.0
    if w > 0.0:
        y = jnp.log(w)
    return never_needed(n - 1, w) + y


@pcbatch.batch
def deep(n, x):
    if n <= 0:
        return x
    return deep(n - 1, x) + 1.0


@pcbatch.batch
def root(x):
    if x < -1.0:
        return jnp.sqrt(x)
    return 1.0 / x


@pytest.mark.full_only
@every_variant
def test_debug_nans_does_not_see_inactive_lanes(options: dict[str, Any]) -> None:
    n, x = jnp.array([3, 2, 4, 0, 5]), jnp.array([5.0, -1.0, 2.0, 0.0, 0.5])
    want = sheltered(n, x)
    with jax.debug_nans(True), jax.debug_infs(True):
        assert_same_bits(replanned(sheltered, **options)(n, x), want)
        assert replanned(never_needed, **options)(n, np.float32(-1)).tolist() == n.tolist()
        assert replanned(deep, **options)(jnp.array([70, 3]), jnp.ones(2)).tolist() == [71, 4]


@every_variant
def test_debug_nans_raises_for_what_a_lane_returns(options: dict[str, Any]) -> None:
    batched = replanned(root, **options)
    x = jnp.array([1.0, -4.0, 0.0])
    assert np.isnan(batched(x)[1]) and np.isinf(batched(x)[2])
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match="computes nan"):
        batched(x)
    with jax.debug_infs(True), pytest.raises(FloatingPointError, match="computes inf"):
        batched.run(x)


def test_debug_nans_lets_failing_lanes_fail() -> None:
    """Their results are NaN, which says that there is none."""
    shallow = deep.with_options(max_depth=5)
    args = jnp.array([70, 3]), jnp.ones(2)
    with jax.debug_nans(True):
        assert shallow.run(*args).status.tolist() == [pcbatch.Status.STACK_FULL, pcbatch.Status.OK]
        with pytest.raises(pcbatch.BatchRuntimeError):
            shallow(*args)
        compiled = shallow.lower(*args).compile()
        assert compiled(jnp.array([5, 3]), jnp.ones(2)).tolist() == [6, 4]
