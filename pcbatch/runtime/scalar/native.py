"""Computations that XLA:CPU compiles into one native function, with all loops, conditionals and calls in them.

XLA:CPU runs a program as a list of kernels, each of which costs a microsecond or more to start. A computation that is
called with the frontend attribute `xla_cpu_small_call="true"`, which XLA itself puts on loops over small buffers,
becomes machine code of its own instead. Where an XLA does not know the attribute, the result is the
same and takes longer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental.xla_metadata import set_xla_metadata

LOAD = "lane_load"  # the name of a computation that loads a part of an array, its first operand, by an own call
FORM = "lane_form"  # the name of a computation in its form for a lane alone


def in_one_function(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Return `compute` as a call of one native function.

    `compute` takes pytrees of arrays, of which the last leaf is an int32[], and gives a pytree of arrays.
    """
    mark: Any = set_xla_metadata  # untyped

    def marked(*args: Any) -> Any:
        leaves, tree = jax.tree.flatten(args)
        given = [leaf for leaf in leaves if leaf.size]

        def function(given: list[Any]) -> Any:
            rest = iter(given)
            every = [next(rest) if leaf.size else jnp.zeros_like(leaf) for leaf in leaves]
            # Before all else, in a call that no fusion takes apart: an array that is read later on would be copied
            # before it is written.
            every[-1] = every[-1] + own_call(_zero, given)
            return compute(*jax.tree.unflatten(tree, every))

        # Behind a barrier, so that no operand is a constant: XLA would compute large ones while it compiles.
        barrier: Any = jax.lax.optimization_barrier  # untyped
        outs, structure = jax.tree.flatten(jax.jit(function)(barrier(given)))
        marks = [mark(leaf, xla_cpu_small_call="true", inlineable="false") for leaf in outs]
        return jax.tree.unflatten(structure, marks)

    return marked


def own_call(compute: Callable[..., Any], *args: Any) -> Any:
    """Return `compute(*args)` as a call of a function of its own inside of a native function.

    XLA reads an array in it before anything after it is written, as with `isolated`, in fewer instructions. `compute`
    must need all of its arguments, pytrees of arrays: XLA's emitter ends the process otherwise.
    """
    mark: Any = set_xla_metadata  # untyped
    return jax.tree.map(lambda leaf: mark(leaf, xla_cpu_small_call="true", inlineable="false"), jax.jit(compute)(*args))


def _zero(arrays: list[Any]) -> jax.Array:
    """Return zero, int32[], by way of an element of each array.

    XLA's emitter ends the process at a parameter that a native function does not use; its optimiser does not see that
    this is zero.
    """
    first = (jnp.real(jnp.ravel(array)[0]).astype(jnp.int32) for array in arrays)
    some = sum(first, jnp.zeros((), jnp.int32)).astype(jnp.uint32)
    zero: jax.Array = (some >> jnp.uint32(16) >> jnp.uint32(16)).astype(jnp.int32)
    return zero
