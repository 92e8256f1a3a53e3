"""Calls of NumPy on values of a lane that would be wrong without an error.

NumPy converts its arguments to arrays, and may do anything with a value that it cannot convert: `np.bmat` returns None.
So a function of NumPy with a value of a lane among its arguments must return a value of the lane, or be one that asks
for types only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from pcbatch.data.origins import of_lane
from pcbatch.errors import Refusal

TYPES = frozenset(
    "can_cast common_type dtype iscomplexobj isrealobj issubdtype iterable ndim promote_types result_type shape "
    "size".split()
)


def from_numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function of NumPy with a check of its result; the wrapper raises Refusal (PCB306) for a wrong one."""

    def call(*args: Any, **options: Any) -> Any:
        result = function(*args, **options)
        if not of_lane((args, options)):
            return result
        name = getattr(function, "__name__", "")
        if not of_lane(result) and name not in TYPES:
            raise Refusal("PCB306", f"`{name}` of NumPy gives nothing that depends on the lane")
        if of_lane(result) and not _can_be_lowered(function, args, options):
            raise Refusal("PCB306", f"`{name}` of NumPy hands on to JAX what JAX does not know")
        return result

    return call


def _can_be_lowered(function: Callable[..., Any], args: Any, options: Any) -> bool:
    """Whether JAX can compile a call.

    NumPy calls the tracer's method of the same name, with default arguments that JAX may not know and that it checks
    only when it lowers.
    """
    leaves, tree = jax.tree.flatten((args, options))
    traced = [k for k, leaf in enumerate(leaves) if isinstance(leaf, jax.core.Tracer)]

    def run(*values: Any) -> Any:
        new = dict(zip(traced, values, strict=True))
        positional, named = jax.tree.unflatten(tree, [new.get(k, leaf) for k, leaf in enumerate(leaves)])
        return function(*positional, **named)

    struct: Any = jax.ShapeDtypeStruct  # untyped in JAX
    try:
        jax.jit(run).lower(*[struct(leaves[k].shape, leaves[k].dtype) for k in traced])
    except TypeError:
        return False
    return True
