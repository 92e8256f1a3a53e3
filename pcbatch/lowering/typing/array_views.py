"""The arrays of a jaxpr that NumPy would make as views of its inputs.

In the plain function, on arrays of NumPy, a change of such an array would be seen in the input, and the other way
round. Indexing is counted as a view whatever the index: which gathers are copies, a jaxpr does not tell.
"""

from __future__ import annotations

from typing import Any

import jax.extend.core as jex

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
