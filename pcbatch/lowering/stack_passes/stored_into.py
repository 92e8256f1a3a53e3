"""The results of a primitive that are one of its operands, stored into: `ys = xs.at[i].set(v)`.

Where such a result has the operand's register, the lane stores one element in place (`runtime/vm/indexed_access.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax.extend.core as jex

from pcbatch.ir.ops import Prim
from pcbatch.lowering.analysis.cost import SCATTERS
from pcbatch.lowering.typing.trace import JaxprFn

MIN_SIZE = 16  # elements per lane; moving less whole is cheaper than a gather or a scatter


def stored_into(op: object) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a result and the operand that it is a version of."""
    if not isinstance(op, Prim) or not isinstance(op.expr.fn, JaxprFn):
        return
    jaxpr = op.expr.fn.closed.jaxpr
    versions: dict[Any, int] = {v: k for k, v in enumerate(jaxpr.invars)}
    for eqn in jaxpr.eqns:
        operand = eqn.invars[0] if eqn.invars else None
        if eqn.primitive.name in SCATTERS and isinstance(operand, jex.Var) and operand in versions:
            versions[eqn.outvars[0]] = versions[operand]
    for dst, out in zip(op.dsts, jaxpr.outvars, strict=True):
        aval: Any = out.aval
        if isinstance(out, jex.Var) and aval.size >= MIN_SIZE and out in versions and out not in jaxpr.invars:
            yield dst, op.expr.ins[versions[out]]
