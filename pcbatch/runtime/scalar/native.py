"""Computations that XLA:CPU compiles into one native function, with all loops, conditionals and calls in them.

XLA:CPU runs a program as a list of kernels, each of which costs a microsecond or more to start. A computation that is called
with the frontend attribute `xla_cpu_small_call="true"`, which XLA itself puts on loops over small buffers, becomes machine
code of its own instead. Where an XLA does not know the attribute, the result is the same and takes longer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.experimental.xla_metadata import set_xla_metadata


def in_one_function(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Return `compute`, a function of pytrees of arrays, as a call of one native function."""
    mark: Any = set_xla_metadata  # untyped

    def marked(*args: Any) -> Any:
        leaves, tree = jax.tree.flatten(jax.jit(compute)(*jax.lax.optimization_barrier(args)))
        marks = [mark(leaf, xla_cpu_small_call="true", inlineable="false") for leaf in leaves]
        return jax.tree.unflatten(tree, marks)

    return marked
