"""Drop conversions to the dtype that a value has already.

    before:  b = convert_element_type[new_dtype=float32] a
             c = scatter b i v
             d = convert_element_type[new_dtype=float32] c
    after:   d = scatter a i v

JAX writes them where only the weakness of a type changes, as with `jnp.full(n, 0.0).at[i].set(x)`. They compute
nothing, but stand between an array and what stores into it, which then would not be done in place.
"""

from __future__ import annotations

from typing import Any

import jax.extend.core as jex

from pcbatch.ir.cfg import CfgProgram
from pcbatch.lowering.jaxpr_passes.rewrite_jaxprs import Rewrite


def run(program: CfgProgram) -> CfgProgram:
    """Drop the conversions of all primitives of a typed program."""
    return _Dropping().cfg(program)


class _Dropping(Rewrite):
    """Rewrites the jaxprs of primitives; those inside of their equations stay as they are."""

    def inner(self, value: Any) -> Any:
        return without_conversions(value)


def without_conversions(closed: jex.ClosedJaxpr) -> jex.ClosedJaxpr:
    """Return a jaxpr without conversions to the same dtype; the jaxpr itself if it has none."""
    jaxpr = closed.jaxpr
    same: dict[Any, Any] = {}  # variable -> the variable whose value it has

    def source(var: Any) -> Any:
        return var if isinstance(var, jex.Literal) else same.get(var, var)

    eqns = []
    for eqn in jaxpr.eqns:
        if _changes_nothing(eqn):
            same[eqn.outvars[0]] = source(eqn.invars[0])
        else:
            eqns.append(eqn.replace(invars=[source(v) for v in eqn.invars]) if same else eqn)
    if not same:
        return closed
    new = jaxpr.replace(eqns=eqns, outvars=[source(v) for v in jaxpr.outvars])
    return jex.ClosedJaxpr(new, closed.consts)


def _changes_nothing(eqn: Any) -> bool:
    if eqn.primitive.name != "convert_element_type" or isinstance(eqn.invars[0], jex.Literal):
        return False
    return eqn.params.get("sharding") is None and eqn.invars[0].aval.dtype == eqn.outvars[0].aval.dtype
