"""Floats that are hidden from compilers (`pcbatch.data.rounding`) where none would compute them otherwise.

before:  p = mul x y                 after:  p = mul x y
         q = pcbatch_rounded p p             r = mul p z
         r = mul q z

A product is computed together with what adds it, and a constant of a sum or of a product with the next one. So both may
be seen by what multiplies them by a value of the lane, divides, compares or computes a function of them. An operand of
a division may be seen where it is such a result: a constant, a quotient or a root may not.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import jax.extend.core as jex
import jax.numpy as jnp

from pcbatch.data.rounding import rounded_p
from pcbatch.ir.cfg import CfgProgram
from pcbatch.lowering.jaxpr_passes.rewrite_jaxprs import Rewrite

MADE = frozenset({"add", "sub", "mul", "integer_pow", "square", "pow"})
ALONE = frozenset(
    """mul div lt le gt ge eq ne sqrt rsqrt floor ceil round is_finite exp exp2 expm1 log log1p sin cos tan tanh
    asin acos atan atan2""".split()
)


def run(program: CfgProgram) -> CfgProgram:
    """Remove what hides floats in the primitives of a program, where nothing has to be hidden."""
    return _Removing().cfg(program)


class _Removing(Rewrite):
    """Rewrites the jaxprs of primitives; those inside of their equations are left."""

    def inner(self, value: Any) -> Any:
        return without_needless(value)


def without_needless(closed: jex.ClosedJaxpr) -> jex.ClosedJaxpr:
    """Return a jaxpr in which only that is hidden which has to be; the jaxpr itself if that is all."""
    jaxpr = closed.jaxpr
    if not any(eqn.primitive is rounded_p for eqn in jaxpr.eqns):
        return closed
    reads: dict[Any, list[Any]] = defaultdict(list)
    for eqn in jaxpr.eqns:
        for v in eqn.invars:
            if isinstance(v, jex.Var):
                reads[v].append(eqn)
    given = {v for v in jaxpr.outvars if isinstance(v, jex.Var)}
    same: dict[Any, Any] = {}  # variable -> what it is equal to
    makes: dict[Any, Any] = {}
    eqns = []
    for eqn in jaxpr.eqns:
        new = eqn.replace(invars=[v if isinstance(v, jex.Literal) else same.get(v, v) for v in eqn.invars])
        if eqn.primitive is rounded_p and not given & {*eqn.outvars} and _is_needless(new, reads, makes):
            same[eqn.outvars[0]] = new.invars[0]
            continue
        makes |= dict.fromkeys(eqn.outvars, new)
        eqns.append(new)
    return closed if not same else jex.ClosedJaxpr(jaxpr.replace(eqns=eqns), closed.consts)


def _is_needless(eqn: Any, reads: dict[Any, list[Any]], makes: dict[Any, Any]) -> bool:
    """Whether the value that an equation hides may be seen by all that reads it."""
    value, of = eqn.invars
    made = None if isinstance(value, jex.Literal) else makes.get(value)
    if made is None or not jnp.issubdtype(of.aval.dtype, jnp.floating):
        return False
    out = eqn.outvars[0]
    if _is_operand_of_division(eqn, reads):
        return made.primitive is rounded_p or made.primitive.name in MADE
    return made.primitive.name in MADE and all(_sees_alone(reader, out, reads) for reader in reads[out])


def _is_operand_of_division(eqn: Any, reads: dict[Any, list[Any]]) -> bool:
    return all(reader.primitive.name == "div" for reader in reads[eqn.outvars[0]])


def _sees_alone(reader: Any, value: Any, reads: dict[Any, list[Any]]) -> bool:
    """Whether an equation computes nothing that a compiler would do together with what made one of its operands."""
    if reader.primitive is rounded_p:
        return reader.invars[0] is not value or _is_operand_of_division(reader, reads)
    literal = any(isinstance(v, jex.Literal) for v in reader.invars)
    return reader.primitive.name in ALONE and not (literal and reader.primitive.name in ("mul", "div"))
