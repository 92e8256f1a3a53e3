"""Derivatives of a batched function against those of the plain one, lane by lane.

The plain function runs in plain Python under `jax.vjp` and `jax.jvp`: values stay known, so `if` and `while` work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.oracles.plans import replanned
from tests.programs import as_jax, select

Arrays = list[Any]
TOLERANCE = {"float64": 1e-9, "complex128": 1e-9, "float32": 1e-4, "complex64": 1e-4, "bfloat16": 5e-2, "float16": 1e-2}


def is_inexact(x: Any) -> bool:
    """Has this leaf derivatives?"""
    return bool(jnp.issubdtype(jnp.asarray(x).dtype, jnp.inexact))


def leaf_axes(axes: Any, tree: Any) -> list[int | None]:
    """The axis of the lanes for every leaf, from `in_axes`."""
    if axes is None or isinstance(axes, int):
        return [axes] * len(jax.tree.leaves(tree))
    if isinstance(axes, dict):
        return [axis for key in sorted(tree) for axis in leaf_axes(axes[key], tree[key])]
    return [axis for part, inner in zip(axes, tree, strict=True) for axis in leaf_axes(part, inner)]


@dataclass(frozen=True)
class Call:
    """A batched function with arguments for some lanes. `raises`: how lanes may fail."""

    batched: Any
    args: tuple[Any, ...]
    in_axes: Any
    lanes: int
    raises: tuple[type[Exception], ...] = ()
    tolerance: float | None = None

    @cached_property
    def leaves(self) -> Arrays:
        """All leaves of the arguments."""
        return jax.tree.leaves(self.args)

    @cached_property
    def places(self) -> list[int]:
        """Which of them are floating."""
        return [k for k, x in enumerate(self.leaves) if is_inexact(x)]

    @property
    def axes(self) -> list[int | None]:
        """Of the lanes, for each floating leaf."""
        found = leaf_axes(self.in_axes, self.args)
        return [found[k] for k in self.places]

    @property
    def floats(self) -> Arrays:
        """The floating leaves."""
        return [jnp.asarray(self.leaves[k]) for k in self.places]

    def filled(self, floats: Sequence[Any], args: Any = None) -> Any:
        """The arguments with other floating leaves."""
        new, tree = jax.tree.flatten(self.args if args is None else args)
        for k, x in zip(self.places, floats, strict=True):
            new[k] = x
        return jax.tree.unflatten(tree, new)

    def function(self, **options: Any) -> Callable[..., Arrays]:
        """The batch as a function of the floating leaves, which gives those of the result."""
        batched = replanned(self.batched, **options)

        def found(*floats: Any) -> Arrays:
            value = batched.run(*self.filled(floats)).value
            return [jnp.asarray(x) for x in jax.tree.leaves(value) if is_inexact(x)]

        return found

    @cached_property
    def value(self) -> Arrays:
        """The leaves of the result of the batch."""
        return jax.tree.leaves(self.batched.run(*self.args).value)

    @property
    def outs(self) -> Arrays:
        """The floating ones."""
        return [x for x in self.value if is_inexact(x)]

    def example(self, lane: int) -> Any:
        """The arguments of one lane."""
        return as_jax(select(self.args, self.in_axes, lane))

    def plain(self, lane: int) -> tuple[Callable[..., Arrays], Arrays]:
        """The plain function of the floating leaves of one example, and these."""
        example = self.example(lane)
        types = [x.dtype if is_inexact(x) else None for x in self.value]

        def found(*floats: Any) -> Arrays:
            leaves = jax.tree.leaves(self.batched.plain(*self.filled(floats, example)))
            return [jnp.asarray(x).astype(t) for x, t in zip(leaves, types, strict=True) if t is not None]

        leaves = jax.tree.leaves(example)
        return found, [leaves[k] for k in self.places]

    def fails(self) -> np.ndarray:
        """bool[lanes]: which lanes raise in plain Python."""

        def one(lane: int) -> bool:
            try:
                self.batched.plain(*self.example(lane))
            except self.raises:
                return True
            return False

        return np.array([one(lane) for lane in range(self.lanes)], bool)


def random_like(x: Any, seed: int = 0) -> Any:
    """Numbers for a cotangent or tangent: none is zero."""
    rng = np.random.default_rng([seed, *np.shape(x)])
    found = rng.uniform(0.5, 1.5, np.shape(x)) * rng.choice([-1, 1], np.shape(x))
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        found = found + 1j * rng.uniform(0.5, 1.5, np.shape(x))
    return jnp.asarray(found, x.dtype)


def masked(lanes: np.ndarray, xs: Sequence[Any], other: Any = 0) -> Arrays:
    """Arrays [lanes, ...] with something else in some lanes."""
    return [jnp.where(lanes.reshape(-1, *(1,) * (x.ndim - 1)), jnp.asarray(other, x.dtype), x) for x in xs]


def plain_pullback(call: Call, cotangents: Sequence[Any], fails: np.ndarray) -> Arrays:
    """The cotangents of the floating leaves, lane by lane; zero for lanes that fail."""
    rows: list[Arrays] = []
    for lane in range(call.lanes):
        function, floats = call.plain(lane)
        if fails[lane]:
            rows.append([jnp.zeros_like(x) for x in floats])
            continue
        pull = jax.vjp(function, *floats)[1]
        rows.append(list(pull([ct[lane] for ct in cotangents])))
    columns = [list(column) for column in zip(*rows, strict=True)]
    return [
        sum_of(column) if axis is None else jnp.stack(column, axis)
        for axis, column in zip(call.axes, columns, strict=True)
    ]


def sum_of(values: Sequence[Any]) -> Any:
    """The sum, in 64 bits, as their type."""
    wide = np.complex128 if jnp.iscomplexobj(values[0]) else np.float64
    return jnp.asarray(np.sum([np.asarray(x).astype(wide) for x in values], axis=0).astype(values[0].dtype))


def plain_pushforward(call: Call, tangents: Sequence[Any], fails: np.ndarray) -> Arrays:
    """The tangents of the floating leaves of the result; NaN for lanes that fail."""
    rows: list[Arrays] = []
    for lane in range(call.lanes):
        if fails[lane]:
            rows.append([jnp.full(x.shape[1:], jnp.nan, x.dtype) for x in call.outs])
            continue
        function, floats = call.plain(lane)
        given = [t if axis is None else jnp.take(t, lane, axis) for t, axis in zip(tangents, call.axes, strict=True)]
        rows.append(jax.jvp(function, tuple(floats), tuple(given))[1])
    return [jnp.stack(column) for column in zip(*rows, strict=True)]


def assert_close(found: Any, want: Any, about: str = "", tolerance: float | None = None) -> None:
    """Equal in the norm of the whole array. NaN is never equal to a number."""
    assert jnp.shape(found) == jnp.shape(want), (about, jnp.shape(found), jnp.shape(want))
    assert found.dtype == want.dtype, (about, found.dtype, want.dtype)
    limit = TOLERANCE[str(found.dtype)] if tolerance is None else tolerance
    wide = np.complex128 if jnp.issubdtype(found.dtype, jnp.complexfloating) else np.float64
    a, b = np.asarray(found).astype(wide), np.asarray(want).astype(wide)
    odd = ~np.isfinite(b)
    assert np.array_equal(a[odd], b[odd], equal_nan=True), f"{about}: {a} instead of {b}"
    assert np.isfinite(a[~odd]).all(), f"{about}: {a} instead of {b}"
    error, size = np.linalg.norm(a[~odd] - b[~odd]), np.linalg.norm(b[~odd])
    assert error <= limit * max(size, 1e-2), f"{about}: {a} instead of {b}, error {error} of {size}"


def assert_all_close(
    found: Sequence[Any], want: Sequence[Any], about: str = "", tolerance: float | None = None
) -> None:
    """All leaves."""
    assert len(found) == len(want), (about, len(found), len(want))
    for k, (a, b) in enumerate(zip(found, want, strict=True)):
        assert_close(a, b, f"{about}, leaf {k}", tolerance)


def widened(args: Any) -> Any:
    """The same numbers with 64 bits."""

    def wide(x: Any) -> Any:
        if not is_inexact(x):
            return x
        return np.asarray(x).astype(np.complex128 if np.iscomplexobj(x) else np.float64)

    return jax.tree.map(wide, args)


def check_reverse(call: Call, jit: bool = False, **options: Any) -> None:
    """The cotangents of all floating arguments are those of plain Python."""
    fails = call.fails()
    function = call.function(**options)
    cts = masked(fails, [random_like(x) for x in call.outs])

    def pulled(floats: Arrays, cts: Arrays) -> Any:
        values, pull = jax.vjp(function, *floats)
        return values, pull(cts)

    values, found = (jax.jit(pulled) if jit else pulled)(call.floats, cts)
    assert_all_close(values, call.outs, "values", call.tolerance)
    assert_all_close(found, plain_pullback(call, cts, fails), f"cotangents with {options}, jit {jit}", call.tolerance)


def check_forward(call: Call, jit: bool = False, **options: Any) -> None:
    """The tangents of the results are those of plain Python."""
    fails = call.fails()
    tangents = [random_like(x, 1) for x in call.floats]

    def pushed(floats: Arrays, tangents: Arrays) -> Any:
        return jax.jvp(call.function(**options), tuple(floats), tuple(tangents))

    values, found = (jax.jit(pushed) if jit else pushed)(call.floats, tangents)
    assert_all_close(values, call.outs, "values", call.tolerance)
    assert_all_close(
        found, plain_pushforward(call, tangents, fails), f"tangents with {options}, jit {jit}", call.tolerance
    )


def check_elements(call: Call, jit: bool = False, **options: Any) -> None:
    """`jax.vmap` of the pullback over two sets of floating arguments, one half the other."""
    halved = replace(call, args=call.filled([x * jnp.asarray(0.5, x.dtype) for x in call.floats]))
    both, fails = (call, halved), [one.fails() for one in (call, halved)]
    function = call.function(**options)
    cts = [masked(bad, [random_like(x) for x in one.outs]) for one, bad in zip(both, fails, strict=True)]

    def pulled(floats: Arrays, cts: Arrays) -> Any:
        return jax.vjp(function, *floats)[1](cts)

    mapped = jax.vmap(pulled)
    stacked = (
        jax.tree.map(lambda *xs: jnp.stack(xs), *pair) for pair in (tuple(one.floats for one in both), tuple(cts))
    )
    found = (jax.jit(mapped) if jit else mapped)(*stacked)
    for k, one in enumerate(both):
        want = plain_pullback(one, cts[k], fails[k])
        assert_all_close([x[k] for x in found], want, f"element {k}, {options}, jit {jit}", call.tolerance)
