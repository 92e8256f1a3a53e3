"""Rules of random draws: keys of threefry2x32 are their words, and the hash is arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend.random as jex_random
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from pcbatch.lowering.jaxpr_passes.unroll_threefry import PARITY, ROTATIONS
from pcbatch.lowering.typing.jax_types import array_struct
from pcbatch.runtime.kernel.rules.evaluation import evaluate
from pcbatch.runtime.kernel.rules.padding import iota, logical_shape, padded_shape
from pcbatch.runtime.kernel.rules.registry import is_key, rule


@rule("random_wrap", "random_unwrap", "random_clone")
def words(eqn: Any, x: Array) -> Sequence[Array]:
    """Return the words of a key, which are the key."""
    return [x]


@rule("threefry2x32")
def threefry(eqn: Any, key0: Array, key1: Array, x0: Array, x1: Array) -> Sequence[Array]:
    """Hash by 20 rounds of Threefry-2x32 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011)."""
    shape = jnp.broadcast_shapes(key0.shape, key1.shape, x0.shape, x1.shape)

    def c(n: int) -> Array:
        return jnp.full(shape, n, jnp.uint32)

    key0, key1, x0, x1 = (jnp.broadcast_to(v, shape) for v in (key0, key1, x0, x1))
    keys = (key0, key1, key0 ^ key1 ^ c(PARITY))
    x0, x1 = x0 + key0, x1 + key1
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = x0 ^ (x1 << c(rotation) | x1 >> c(32 - rotation))
        x0 = x0 + keys[(group + 1) % 3]
        x1 = x1 + keys[(group + 2) % 3] + c(group + 1)
    return [x0, x1]


@rule("iota_2x32_shape")
def counters(eqn: Any, *_: Array) -> Sequence[Array]:
    """Number all elements of a shape, in two words; arrays of a kernel are far smaller than one word counts."""
    shape = eqn.params["shape"]
    room = padded_shape(shape)
    low, stride = jnp.zeros(room, jnp.int32), 1
    for axis in reversed(range(len(shape))):
        low, stride = low + iota(room, axis) * stride, stride * shape[axis]
    return [jnp.zeros(room, jnp.uint32), low.astype(jnp.uint32)]


def drawn(eqn: Any, fn: Callable[..., Any], *xs: Array) -> Sequence[Array]:
    """Evaluate a function of true shapes, of keys as their words, under the setting that the equation has."""
    avals = [array_struct(logical_shape(v.aval), x.dtype) for v, x in zip(eqn.invars, xs, strict=True)]
    current = getattr(jax.config, "jax_threefry_partitionable", True)
    setting = bool(getattr(getattr(eqn, "ctx", None), "threefry_partitionable", current))  # what it was traced under
    with jax.threefry_partitionable(setting):
        jaxpr = jax.make_jaxpr(fn)(*avals)
    return evaluate(jaxpr.jaxpr, jaxpr.consts, xs)


def _of_each(eqn: Any, fn: Callable[..., Any], *xs: Array) -> Sequence[Array]:
    """Evaluate what JAX itself computes for one key, mapped over all keys (and numbers, which broadcast with them)."""
    shape = np.broadcast_shapes(*(v.aval.shape for v in eqn.invars))
    words = [(2,) if is_key(v.aval) else () for v in eqn.invars]
    for _ in shape:
        fn = jax.vmap(fn)
    return drawn(
        eqn, lambda *args: fn(*(jnp.broadcast_to(x, shape + w) for x, w in zip(args, words, strict=True))), *xs
    )


@rule("random_bits")
def bits(eqn: Any, keys: Array) -> Sequence[Array]:
    """Draw bits from each key."""
    width, shape = eqn.params["bit_width"], tuple(eqn.params["shape"])
    return _of_each(eqn, lambda key: jex_random.threefry_prng_impl.random_bits(key, width, shape), keys)


@rule("random_split")
def split(eqn: Any, keys: Array) -> Sequence[Array]:
    """Split each key."""
    shape = tuple(eqn.params["shape"])
    return _of_each(eqn, lambda key: jex_random.threefry_prng_impl.split(key, shape), keys)


@rule("random_fold_in")
def fold_in(eqn: Any, keys: Array, data: Array) -> Sequence[Array]:
    """Fold a number into each key."""
    return _of_each(eqn, jex_random.threefry_prng_impl.fold_in, keys, data)


@rule("random_seed")
def seed(eqn: Any, seeds: Array) -> Sequence[Array]:
    """Make a key of each number."""
    return _of_each(eqn, jex_random.threefry_prng_impl.seed, seeds)


@rule("random_gamma")
def gamma(eqn: Any, keys: Array, shapes: Array) -> Sequence[Array]:
    """Draw with JAX's own use of each key, so that the draws are its."""
    size, axes = eqn.invars[1].aval.shape, len(eqn.invars[0].aval.shape)
    in_logs = eqn.params["log_space"]

    def of_all(words: Array, shapes: Array) -> Array:
        keys = jax.random.wrap_key_data(words, impl="threefry2x32").reshape(-1)
        apart = shapes.reshape(keys.size, -1)
        each = jax.vmap(lambda key: jax.random.split(key, apart.shape[1]))(keys)
        found = jax.vmap(lambda key, a: one(key, a, in_logs))(each.reshape(-1), apart.reshape(-1))
        return lax.reshape(found, size)

    assert size[:axes] == eqn.invars[0].aval.shape
    return drawn(eqn, of_all, keys, shapes)


def one(key: Any, shape: Any, in_logs: bool) -> Any:
    """Draw from one distribution (Marsaglia and Tsang, "A simple method for generating gamma variables", 2000).

    A shape below 1 is raised by 1 and the draw multiplied by a power of a uniform number, or, as this may underflow,
    its logarithm added to.
    """

    def c(value: float) -> Any:
        return lax.full_like(shape, value)

    large = shape >= c(1)
    d = lax.select(large, shape, shape + c(1)) - c(1 / 3)
    scale = c(1 / 3) / lax.sqrt(d)

    def refused(state: Any) -> Any:
        _, square, cube, u = state
        slow = lax.log(u) >= square * c(0.5) + d * (c(1) - cube + lax.log(cube))
        return (u >= c(1) - c(0.0331) * square * square) & slow

    def normal(state: Any) -> Any:
        key, mine = jax.random.split(state[0])
        x = jax.random.normal(mine, (), shape.dtype)
        return key, x, c(1) + x * scale

    def attempt(state: Any) -> Any:
        key, of_normal, of_uniform = jax.random.split(state[0], 3)
        _, x, v = lax.while_loop(lambda s: s[2] <= c(0), normal, (of_normal, c(0), c(-1)))
        return key, x * x, v * v * v, jax.random.uniform(of_uniform, (), shape.dtype)

    key, last = jax.random.split(key)
    _, _, cube, _ = lax.while_loop(refused, attempt, (key, c(0), c(1), c(2)))
    if in_logs:
        log_u = -jax.random.exponential(last, (), shape.dtype)
        boost = lax.select(large | (log_u == c(0)), c(0), log_u * (c(1) / shape))
        return lax.log(d) + lax.log(cube) + boost
    u = c(1) - jax.random.uniform(last, (), shape.dtype)
    return d * cube * lax.select(large, c(1), lax.pow(u, c(1) / shape))
