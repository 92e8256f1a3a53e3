"""Plain operations in place of marks of integers (`pcbatch.data.integer_marks`) that nothing reads any more.

before:  r, fits = jit[name=checked_add] a b       after:  r = add a b
         y = jit[name=between] x 0 31                      y = x

What is read stays, and compares one operand only where the other is known: `3 * n` fits where `n` lies between two
numbers.
"""

from __future__ import annotations

from typing import Any

import jax.extend.core as jex

from pcbatch.data.integer_marks import Mark, mark_of, specialised
from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.ops import Move, Prim
from pcbatch.lowering.jaxpr_passes.rewrite_jaxprs import Rewrite
from pcbatch.lowering.typing.trace import JaxprFn


def has_marks(program: CfgProgram, kind: str = "") -> bool:
    """Return whether a primitive of a program has an operation of integers that is marked, of one kind if given."""
    prims = (op for f in program.functions for op in f.ops if isinstance(op, Prim))
    jaxprs = (op.expr.fn.closed.jaxpr for op in prims if isinstance(op.expr.fn, JaxprFn))
    marks = (mark for jaxpr in jaxprs for eqn in jaxpr.eqns if (mark := mark_of(eqn)))
    return any(mark.kind == kind or not kind for mark in marks)


def run(program: CfgProgram) -> CfgProgram:
    """Remove the marks of all primitives, but for checks that are left. What is then a variable itself is moved."""
    return _Removing().cfg(program) if has_marks(program) else program


class _Removing(Rewrite):
    """Rewrites the jaxprs of primitives; those inside of their equations have no marks."""

    def op(self, op: Any) -> Any:
        new = super().op(op)
        if new is op or len(op.dsts) != 1 or new.expr.fn.closed.jaxpr.eqns or new.expr.fn.casts != (None,):
            return new
        sources = dict(zip(new.expr.fn.closed.jaxpr.invars, op.expr.ins, strict=True))
        out = new.expr.fn.closed.jaxpr.outvars[0]
        return new if isinstance(out, jex.Literal) else Move(op.dsts[0], sources[out], op.loc)

    def inner(self, value: Any) -> Any:
        return without_marks(value)


def _compared(eqn: Any, mark: Mark | None) -> Any:
    """The jaxpr of a checked operation that compares one operand, the other being known; None for all others."""
    avals = [v.aval for v in eqn.invars]
    if mark is None or len(avals) != 2 or any(aval.shape for aval in avals):
        return None
    known = tuple(int(v.val) if isinstance(v, jex.Literal) else None for v in eqn.invars)
    return specialised(mark.name, known, str(avals[0].dtype)) if known.count(None) == 1 else None


def without_marks(closed: jex.ClosedJaxpr) -> jex.ClosedJaxpr:
    """Return a jaxpr without marks of which nothing but the result is read; the jaxpr itself if it has none."""
    jaxpr = closed.jaxpr
    marks = [mark_of(eqn) for eqn in jaxpr.eqns]
    if not any(marks):
        return closed
    read = {v for eqn in jaxpr.eqns for v in eqn.invars if isinstance(v, jex.Var)}
    read |= {v for v in jaxpr.outvars if isinstance(v, jex.Var)}
    same: dict[Any, Any] = {}  # variable -> what it is equal to
    eqns = []
    for eqn, mark in zip(jaxpr.eqns, marks, strict=True):
        eqn = eqn.replace(invars=[v if isinstance(v, jex.Literal) else same.get(v, v) for v in eqn.invars])
        if mark is not None and mark.kind == "between":
            same[eqn.outvars[0]] = eqn.invars[0]
            continue
        if mark is not None and (mark.kind == "exact" or eqn.outvars[1] not in read):
            plain = eqn.params["jaxpr"].jaxpr.eqns[0]
            eqn = eqn.replace(primitive=plain.primitive, params=plain.params, outvars=eqn.outvars[:1])
        elif (compared := _compared(eqn, mark)) is not None:
            eqn = eqn.replace(params={**eqn.params, "jaxpr": compared})
        eqns.append(eqn)
    outvars = [v if isinstance(v, jex.Literal) else same.get(v, v) for v in jaxpr.outvars]
    return jex.ClosedJaxpr(jaxpr.replace(eqns=eqns, outvars=outvars), closed.consts)
