"""Unroll the hash of random draws to straight-line arithmetic.

before:  k:key<fry>[2] = random_split[shape=(2,)] key
after:   k:key<fry>[2] = jit[name=split jaxpr={ ... some 110 additions, shifts and xors of uint32 ... }] key

JAX compiles its hash, threefry2x32, as a loop of five rounds on CPU (elsewhere as this arithmetic): dozens of kernels
for each draw, none of which XLA can fuse with what uses the numbers, where a trip of the machine is a few dozen kernels
altogether. The straight line is one fusion or two; drawn bits are a call of their own, so that they are computed once.
It was faster at every size that was measured, from 32 to a million numbers, and sooner compiled
(docs/users/performance.md), so there is no size from which on the loop is kept.

The bits stay the same, by construction: which counters a draw hashes is asked of JAX itself (`jax.extend.random`), and
only the hash is written here. Both are compared with `jax.random` before the first use; should a later JAX differ,
programs stay as they are. So do keys of other kinds, and draws in code that is opaque here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.extend.core as jex
import jax.extend.random as jex_random
import jax.numpy as jnp
import numpy as np
from jax.experimental.xla_metadata import set_xla_metadata

from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.stack import StackProgram
from pcbatch.lowering.jaxpr_passes.rewrite_jaxprs import Rewrite, as_call

IMPL = "threefry2x32"


def run(program: StackProgram) -> StackProgram:
    """Unroll the draws of a program whose calls are lowered."""
    return Unrolling(agrees).stack(program)


def run_cfg(program: CfgProgram) -> CfgProgram:
    """Unroll the draws of a program whose calls are operations."""
    return Unrolling(agrees).cfg(program)


def unrolled(closed: jex.ClosedJaxpr) -> jex.ClosedJaxpr:
    """Unroll the draws and hashes of a jaxpr, also in loops, branches and calls; one without any is returned itself."""
    jaxpr: jex.ClosedJaxpr = Unrolling(agrees).inner(closed)
    return jaxpr


class Unrolling(Rewrite):
    """Replaces draws and hashes by calls of the functions of `DRAWS`, if `trusted(partitionable)` says they agree."""

    def __init__(self, trusted: Callable[[bool], bool]) -> None:
        super().__init__()
        self._trusted = trusted

    def equation(self, eqn: Any) -> Any:
        draw = DRAWS.get(eqn.primitive.name)
        if draw is None or eqn.invars[0].aval.dtype not in (np.uint32, _key_dtype()):
            return eqn
        call = _as_call(draw, eqn) if self._trusted(_partitionable(eqn)) else None
        if call is None:
            return eqn
        return self.any_equation(call)


def _as_call(fn: Callable[..., Any], eqn: Any) -> Any | None:
    """An equation that calls a jitted function in place of `eqn`."""
    with jax.threefry_partitionable(_partitionable(eqn)):
        call = as_call(fn, eqn)
    if call is None or eqn.primitive.name != "threefry2x32":
        return call
    # Into the draw that hashes. In later releases of JAX the parameter is an enumeration.
    inlined = getattr(type(call.params["inline"]), "JAX_EARLY", True)
    return call.replace(params={**call.params, "inline": inlined})


def _partitionable(eqn: Any) -> bool:
    """The setting that decides what a draw hashes. JAX keeps with every equation the one it was traced under."""
    current = getattr(jax.config, "jax_threefry_partitionable", True)
    return bool(getattr(getattr(eqn, "ctx", None), "threefry_partitionable", current))


@cache
def _key_dtype() -> Any:
    return jax.eval_shape(lambda: jax.random.key(0, impl=IMPL)).dtype


# The hash, and the draws that JAX makes of it.

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


@jax.jit
def threefry2x32(key0: Any, key1: Any, x0: Any, x1: Any) -> tuple[Any, Any]:
    """Threefry-2x32 of 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011)."""
    shape = np.broadcast_shapes(*(x.shape for x in (key0, key1, x0, x1)))
    keys = (key0, key1, key0 ^ key1 ^ np.uint32(PARITY))
    x0, x1 = x0 + key0, x1 + key1
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = x0 ^ (x1 << np.uint32(rotation) | x1 >> np.uint32(32 - rotation))
        x0 = x0 + keys[(group + 1) % 3]
        x1 = x1 + (keys[(group + 2) % 3] + np.uint32(group + 1))
    return jnp.broadcast_to(x0, shape), jnp.broadcast_to(x1, shape)


def _jax_own() -> Any:
    """JAX's functions of one key as two words: the parameters of `jax.extend.random.define_prng_impl`."""
    return jex_random.threefry_prng_impl


@partial(jax.jit, static_argnames=("bit_width", "shape"))
def random_bits(keys: Any, *, bit_width: int, shape: tuple[int, ...]) -> Any:
    """Draw random bits from each key: uint of `bit_width`, of shape `keys.shape + shape`."""
    draw = _mapped(keys.ndim, lambda key: _jax_own().random_bits(key, bit_width, shape))
    return jax.lax.platform_dependent(jax.random.key_data(keys), cpu=_computed_once(draw), default=draw)


def _computed_once(draw: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function as a call that XLA does not inline.

    An integer operation counts as cheap there: XLA:CPU would fuse the hash into each kernel that uses a number, and
    compute it anew for each element of an array to which the number is broadcast.
    """
    not_inlined: Any = set_xla_metadata  # untyped

    def once(words: Any) -> Any:
        with not_inlined(inlineable="false"):
            return jax.jit(draw)(words)

    return once


@partial(jax.jit, static_argnames="shape")
def random_split(keys: Any, *, shape: tuple[int, ...]) -> Any:
    """Split each key: the result has shape `keys.shape + shape`."""
    return _keys(_mapped(keys.ndim, lambda key: _jax_own().split(key, shape))(jax.random.key_data(keys)))


@jax.jit
def random_fold_in(keys: Any, data: Any) -> Any:
    """Fold a number into each key; `keys` and `data` broadcast."""
    shape = np.broadcast_shapes(keys.shape, data.shape)
    words = jnp.broadcast_to(jax.random.key_data(keys), (*shape, 2))
    return _keys(_mapped(len(shape), _jax_own().fold_in)(words, jnp.broadcast_to(data, shape)))


def _mapped(axes: int, fn: Callable[..., Any]) -> Callable[..., Any]:
    for _ in range(axes):
        fn = jax.vmap(fn)
    return fn


def _keys(words: Any) -> Any:
    return jax.random.wrap_key_data(words, impl=IMPL)


# The replacement of an equation, by the name of its primitive. `random_seed` hashes nothing.
DRAWS: dict[str, Callable[..., Any]] = {
    "threefry2x32": threefry2x32,
    "random_bits": random_bits,
    "random_split": random_split,
    "random_fold_in": random_fold_in,
}


@cache
def agrees(partitionable: bool) -> bool:
    """Return whether unrolled draws have the bits of `jax.random`, for one setting of `jax_threefry_partitionable`.

    The comparison takes a quarter of a second, once per setting.
    """
    words = np.array([12, 345], np.uint32)
    try:
        with jax.threefry_partitionable(partitionable), jax.disable_jit(False), jax.transfer_guard("allow"):
            unrolled_draws = jex.jaxpr_as_fun(Unrolling(lambda _: True).inner(jax.make_jaxpr(_some_draws)(words)))
            both = jax.jit(lambda words: (unrolled_draws(words), _some_draws(words))).lower(words).compile()
            actual, expected = both(words)  # compiled by hand, so that it runs even inside a trace
            return all(np.array_equal(x, y) for x, y in zip(actual, expected, strict=True))
    except Exception:  # whatever a later JAX has changed, its own draws still work
        return False


def _some_draws(words: Any) -> list[Any]:
    key = _keys(words)
    keys = jax.random.split(key), jax.random.fold_in(key, 67)
    return [jax.random.bits(key, (5,)), *map(jax.random.key_data, keys)]
