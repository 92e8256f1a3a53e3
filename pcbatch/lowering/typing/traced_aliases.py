"""Objects and arrays that the results of a primitive have in common with its inputs, or hold at several places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend.core as jex

from pcbatch.containers.aliasing import Alias, Key, Parts, captured
from pcbatch.lowering.typing.abstract_values import Abstract, Known
from pcbatch.lowering.typing.array_views import views

PLAIN_LEAVES = (bool, int, float, complex, str, bytes, type, type(None))


def array_aliases(closed: jex.ClosedJaxpr, ins: Sequence[Abstract], outs: Sequence[Abstract]) -> set[Alias]:
    """The results and inputs of which an array of the first may be a view of one of the second."""
    owners = [k for k, value in enumerate(ins) for _ in value.arrays]
    if not any(type_.shape for value in ins for type_ in value.arrays):
        return set()
    of_var = views(closed.jaxpr)
    found: set[Alias] = set()
    position = 0
    for k, value in enumerate(outs):
        for _ in value.arrays:
            var = closed.jaxpr.outvars[position]
            if isinstance(var, jex.Var):
                sources = (owners[j] for j in of_var.get(var, ()))
                found.update(Alias(k, j, is_leaf(value), is_leaf(ins[j])) for j in sources)
            position += 1
    return found


def existing_objects(fn: Callable[..., Any], ins: Sequence[Abstract]) -> set[Key]:
    """The objects that existed before a primitive: those that it has captured, and known ones among its inputs."""
    keys = captured(fn)
    for leaf in (leaf for value in ins for leaf in value.leaves):
        if isinstance(leaf, Known) and not isinstance(leaf.value, PLAIN_LEAVES):
            keys |= Parts(leaf.value).own
    return keys


def repeated_arrays(closed: jex.ClosedJaxpr, outs: Sequence[Abstract]) -> set[int]:
    """The results that hold one array, or views of one, at several places."""
    of_var = views(closed.jaxpr)
    inputs = closed.jaxpr.invars
    found: set[int] = set()
    position = 0
    for k, value in enumerate(outs):
        seen: set[Any] = set()
        for type_ in value.arrays:
            var = closed.jaxpr.outvars[position]
            position += 1
            if isinstance(var, jex.Var) and type_.shape:
                sources = {inputs[j] for j in of_var.get(var, ())} or {var}
                found |= set[int]() if seen.isdisjoint(sources) else {k}
                seen |= sources
    return found


def is_leaf(value: Abstract) -> bool:
    return len(value.leaves) == 1 and bool(jax.tree_util.treedef_is_leaf(value.tree))
