"""The results of a primitive that are one of its operands, stored into: `ys = xs.at[i].set(v)`.

Where such a result has the operand's register, the lane stores one element in place (`runtime/vm/indexed_access.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax.extend.core as jex

from pcbatch.data.by_width import by_width_p
from pcbatch.ir.ops import Prim
from pcbatch.lowering.analysis.cost import SCATTERS
from pcbatch.lowering.typing.trace import JaxprFn

MIN_SIZE = 16  # elements per lane; moving less whole is cheaper than a gather or a scatter


def stored_into(op: object) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a result and the operand that it is a version of."""
    if not isinstance(op, Prim) or not isinstance(op.expr.fn, JaxprFn):
        return
    jaxpr = op.expr.fn.closed.jaxpr
    for dst, out, stored in zip(op.dsts, jaxpr.outvars, _stored(jaxpr), strict=True):
        aval: Any = out.aval
        if stored is not None and aval.size >= MIN_SIZE:
            yield dst, op.expr.ins[stored]


def _stored(jaxpr: jex.Jaxpr) -> list[int | None]:
    """The position of the operand that each result is a version of, another one than the operand itself."""
    versions: dict[Any, int] = {v: k for k, v in enumerate(jaxpr.invars)}
    for eqn in jaxpr.eqns:
        for out, position in zip(eqn.outvars, _stored_by(eqn), strict=True):
            operand = None if position is None else eqn.invars[position]
            if isinstance(operand, jex.Var) and operand in versions:
                versions[out] = versions[operand]
    return [versions.get(out) if _is_made(out, jaxpr) else None for out in jaxpr.outvars]


def _is_made(out: Any, jaxpr: jex.Jaxpr) -> bool:
    return isinstance(out, jex.Var) and out not in jaxpr.invars


def _stored_by(eqn: Any) -> list[int | None]:
    """The position of the operand of an equation that each result of it is a version of."""
    if eqn.primitive is by_width_p:
        return _stored(eqn.params["together"].jaxpr)
    return [0 if eqn.primitive.name in SCATTERS else None for _ in eqn.outvars]
