"""Drop conversions to the dtype that a value has already.

    before:  b = convert_element_type[new_dtype=float32] a
             c = scatter b i v
             d = convert_element_type[new_dtype=float32] c
    after:   d = scatter a i v

JAX writes them where only the weakness of a type changes, as with `jnp.full(n, 0.0).at[i].set(x)`. They compute
nothing, but stand between an array and what stores into it, which then would not be done in place.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax.extend.core as jex

from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.ops import Prim
from pcbatch.lowering.typing.trace import JaxprFn


def run(program: CfgProgram) -> CfgProgram:
    """Drop the conversions of all primitives of a typed program."""
    functions = []
    for function in program.functions:
        blocks = tuple(replace(block, ops=tuple(map(_op, block.ops))) for block in function.blocks)
        functions.append(replace(function, blocks=blocks))
    return replace(program, functions=tuple(functions))


def _op(op: Any) -> Any:
    if not isinstance(op, Prim) or not isinstance(op.expr.fn, JaxprFn):
        return op
    fn = op.expr.fn
    closed = without_conversions(fn.closed)
    return op if closed is fn.closed else replace(op, expr=replace(op.expr, fn=JaxprFn(closed, fn.casts)))


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
