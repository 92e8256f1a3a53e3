"""Objects and arrays that the results of a primitive have in common with its inputs, or hold at several places.

The arrays of a jaxpr that NumPy would make as views of its inputs.

In the plain function, on arrays of NumPy, a change of such an array would be seen in the input, and the other way
round. Indexing is counted as a view whatever the index: which gathers are copies, a jaxpr does not tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend.core as jex

from pcbatch.data.aliasing import Alias, Key, Parts, captured
from pcbatch.lowering.typing.abstract_values import Abstract, Known

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


VIEWS = frozenset(
    "slice dynamic_slice reshape transpose squeeze rev gather broadcast_in_dim expand_dims jit pjit "
    "optimization_barrier".split()
)
"""Operations of JAX whose result may be what a view is in NumPy."""


def views(jaxpr: jex.Jaxpr) -> dict[Any, frozenset[int]]:
    """Return the variables that may be views of inputs, each with the numbers of these inputs.

    Scalars are none: a number that is read from an array has no tie to it.
    """
    found: dict[Any, frozenset[int]] = {var: frozenset((k,)) for k, var in enumerate(jaxpr.invars) if _is_array(var)}
    for eqn in jaxpr.eqns:
        if eqn.primitive.name not in VIEWS:
            continue
        inner = eqn.params.get("jaxpr")
        if inner is not None:
            of_inner = views(inner.jaxpr)
            tied = [
                of_inner.get(var, frozenset()) if isinstance(var, jex.Var) else frozenset()
                for var in inner.jaxpr.outvars
            ]
        else:
            tied = [frozenset(range(len(eqn.invars)))] * len(eqn.outvars)
        for var, numbers in zip(eqn.outvars, tied, strict=True):
            given = (eqn.invars[k] for k in numbers)
            sources = frozenset(k for each in given if isinstance(each, jex.Var) for k in found.get(each, ()))
            if sources and _is_array(var):
                found[var] = sources
    return found


def _is_array(var: Any) -> bool:
    return bool(getattr(var.aval, "shape", ()))
