"""Calls of NumPy on values of a lane that would be wrong without an error.

NumPy asks what it is given for an array, and what it does with a value that is none is its own affair: `np.bmat` gives
None. So a function of NumPy that is given values of a lane has to give such values, or ask for no more than a type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from pcbatch.errors import Refusal

TYPES = frozenset(
    "can_cast common_type dtype iscomplexobj isrealobj issubdtype iterable ndim promote_types result_type shape "
    "size".split()
)


def from_numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of NumPy that is called, with a look at what it gives."""

    def call(*args: Any, **options: Any) -> Any:
        found = function(*args, **options)
        if not _of_lane((args, options)):
            return found
        name = getattr(function, "__name__", "")
        if not _of_lane(found) and name not in TYPES:
            raise Refusal("PCB306", f"`{name}` of NumPy gives nothing that depends on the lane")
        if _of_lane(found) and not _can_be_lowered(function, args, options):
            raise Refusal("PCB306", f"`{name}` of NumPy hands on to JAX what JAX does not know")
        return found

    return call


def _can_be_lowered(function: Callable[..., Any], args: Any, options: Any) -> bool:
    """NumPy calls the method of its name with defaults of its own, and some that JAX does not check when it traces."""
    leaves, tree = jax.tree.flatten((args, options))
    places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, jax.core.Tracer)]

    def run(*values: Any) -> Any:
        given = dict(zip(places, values, strict=True))
        positional, named = jax.tree.unflatten(tree, [given.get(k, leaf) for k, leaf in enumerate(leaves)])
        return function(*positional, **named)

    struct: Any = jax.ShapeDtypeStruct  # untyped
    try:
        jax.jit(run).lower(*[struct(leaves[k].shape, leaves[k].dtype) for k in places])
    except TypeError:
        return False
    return True


def _of_lane(value: Any) -> bool:
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(value))
