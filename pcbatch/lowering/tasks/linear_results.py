"""Calls whose results are terms of the sum that a function returns: they need no frame.

    return fib(n - 2) + fib(n - 1)                      total = 0
                                                        while ...: total += queens(...)
                                                        return total

A backward data-flow problem gives each variable, at each point, its coefficient in the result of the function: 1 at a
`return` of it, the sum over its uses in additions before that, and none where anything else reads it or where paths
disagree. A call whose result has the coefficient 1 after it may add its result to where that of its caller goes,
whenever it is done. Only integers are added up so, whose sum does not depend on the order.

A sum may be one that is checked (`data/integer_marks.py`). What it says of its own terms is no use of them: it
holds for those that are known where it stands, and where results are added up the machine checks the rest.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import jax.extend.core as jex
import jax.numpy as jnp

from pcbatch.data.integer_marks import Mark, mark_of
from pcbatch.data.rounding import rounded_p
from pcbatch.ir.analysis.dataflow import backward
from pcbatch.ir.analysis.def_use import may_return, terminator_reads
from pcbatch.ir.cfg import Call, CfgProgram, Function, Op
from pcbatch.ir.ops import Move, Prim
from pcbatch.ir.roles import reads, writes
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.trace import JaxprFn

Site = tuple[str, int]  # label of a block, index of the call in it
CHECKED = Mark("checked", "add")
NONE = -1  # the coefficient of what is read by other operations than sums
Coefficients = dict[str, int]  # variables that are not in it have the coefficient 0


def linear_calls(program: CfgProgram) -> dict[str, frozenset[Site]]:
    """Return the calls of each function whose results are terms of its own result."""
    functions = {f.name: f for f in program.functions}
    return {f.name: _linear(f, functions) for f in program.functions}


def integer_result(function: Function) -> ArrayType | None:
    """The type of the only result of a function if that is one integer; else None."""
    if len(function.results) != 1:
        return None
    type_ = function.types.get(function.results[0])
    if type_ is None or type_.shape or type_.dtype.startswith("key<"):
        return None
    return type_ if jnp.issubdtype(jnp.dtype(type_.dtype), jnp.integer) else None


def _linear(function: Function, functions: Mapping[str, Function]) -> frozenset[Site]:
    own = integer_result(function)
    if own is None:
        return frozenset()
    found = set()
    leaving = _solve(function)
    for block in function.blocks:
        coefficients = dict(leaving[block.label])
        for v in terminator_reads(block.terminator):
            coefficients[v] = NONE
        for k in reversed(range(len(block.ops))):
            op = block.ops[k]
            if isinstance(op, Call) and len(op.dsts) == 1 and coefficients.get(op.dsts[0], 0) == 1:
                result = integer_result(functions[op.func])
                if result is not None and result.dtype == own.dtype and op.dsts[0] not in op.args:
                    found.add((block.label, k))
            _before(op, coefficients)
    return frozenset(found)


def _solve(function: Function) -> Mapping[str, Coefficients]:
    """The coefficients at the end of each block, before its terminator reads anything."""
    blocks = {block.label: block for block in function.blocks}
    start: Coefficients | None = None  # nothing is known of what follows, or the lane fails, and has no result

    def join(label: str, following: list[Coefficients | None]) -> Coefficients | None:
        known = [one for one in following if one is not None]
        known += [{function.results[0]: 1}] if may_return(blocks[label].terminator) else []
        return functools.reduce(_merged, known) if known else None

    def transfer(label: str, leaving: Coefficients | None) -> Coefficients | None:
        if leaving is None:
            return None
        coefficients = leaving | dict.fromkeys(terminator_reads(blocks[label].terminator), NONE)
        for op in reversed(blocks[label].ops):
            _before(op, coefficients)
        return {v: c for v, c in coefficients.items() if c}

    solution = backward(function.blocks, join=join, transfer=transfer, start=start)
    return {label: leaving or {} for label, leaving in solution.entering.items()}


def _merged(a: Coefficients, b: Coefficients) -> Coefficients:
    """The coefficients where paths meet."""
    return {v: a.get(v, 0) if a.get(v, 0) == b.get(v, 0) else NONE for v in {*a, *b}}


def _before(op: Op, coefficients: Coefficients) -> None:
    """Change the coefficients after an operation into those before it."""
    after = [coefficients.pop(v, 0) for v in writes(op)]
    linear: Mapping[str, int] = {}
    match op:
        case Move(src=src):
            linear = {src: after[0]}
        case Prim() if isinstance(op.expr.fn, JaxprFn):
            asked = checks(op)
            used = [k for k, c in enumerate(after) if c and k not in asked]
            if len(used) == 1 and after[used[0]] == 1:
                linear = dict.fromkeys(terms(op, used[0]), 1)
        case _:
            pass
    for v in dict.fromkeys(reads(op)):
        old, new = coefficients.get(v, 0), linear.get(v, NONE)
        coefficients[v] = NONE if NONE in (old, new) else old + new
        if coefficients[v] > 1:
            coefficients[v] = NONE


def terms(op: Prim, position: int) -> tuple[str, ...]:
    """Return the inputs of a primitive that enter one of its results as terms, with the coefficient 1, and no other."""
    assert isinstance(op.expr.fn, JaxprFn)
    jaxpr, casts = op.expr.fn.closed.jaxpr, op.expr.fn.casts
    result: Any = jaxpr.outvars[position]
    if casts[position] is not None and jnp.dtype(casts[position].dtype) != result.aval.dtype:  # type: ignore[union-attr]
        return ()
    asked = {position, *checks(op)}
    coefficients: dict[Any, int] = {v: NONE for k, v in enumerate(jaxpr.outvars) if k not in asked and _is_var(v)}
    if _is_var(result):
        coefficients[result] = NONE if result in coefficients else 1
    for eqn in reversed(jaxpr.eqns):
        outs = [coefficients.pop(v, 0) for v in eqn.outvars]
        if not any(outs):
            continue
        keeps = (
            eqn.primitive.name in ("add", "add_any", rounded_p.name)
            or _is_checked(eqn)
            or (eqn.primitive.name == "convert_element_type" and eqn.invars[0].aval.dtype == eqn.outvars[0].aval.dtype)
        )
        rounds = eqn.primitive is rounded_p  # the second operand says only where the first is NaN
        for v in filter(_is_var, eqn.invars[:1] if rounds else eqn.invars):
            new = outs[0] if keeps else NONE
            old = coefficients.get(v, 0)
            coefficients[v] = NONE if NONE in (old, new) or old + new > 1 else old + new
    names = zip(jaxpr.invars, op.expr.ins, strict=True)
    twice = {v for v in op.expr.ins if op.expr.ins.count(v) > 1}
    return tuple(name for v, name in names if coefficients.get(v, 0) == 1 and name not in twice)


def checks(op: Prim) -> frozenset[int]:
    """Return which results of a primitive say that one of its sums does not fit."""
    assert isinstance(op.expr.fn, JaxprFn)
    jaxpr = op.expr.fn.closed.jaxpr
    fits = {eqn.outvars[1] for eqn in jaxpr.eqns if _is_checked(eqn)}
    nots = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "not" and _is_var(eqn.invars[0])]
    negated = {eqn.outvars[0] for eqn in nots if eqn.invars[0] in fits}
    return frozenset(k for k, v in enumerate(jaxpr.outvars) if _is_var(v) and v in negated)


def _is_checked(eqn: Any) -> bool:
    """Whether an equation is a checked sum, signed: of those the machine sees that they wrap around."""
    return mark_of(eqn) == CHECKED and jnp.issubdtype(eqn.outvars[0].aval.dtype, jnp.signedinteger)


def has_checked_sums(function: Function) -> bool:
    """Return whether a function has a sum that is checked."""
    prims = (op for op in function.ops if isinstance(op, Prim))
    jaxprs = (op.expr.fn.closed.jaxpr for op in prims if isinstance(op.expr.fn, JaxprFn))
    return any(_is_checked(eqn) for jaxpr in jaxprs for eqn in jaxpr.eqns)


def is_sum_of_two(op: Prim) -> bool:
    """Return whether a primitive is the sum of its two inputs, and nothing else but whether that does not fit."""
    if len(op.expr.ins) != 2 or not isinstance(op.expr.fn, JaxprFn) or checks(op) != frozenset(range(1, len(op.dsts))):
        return False
    eqns = [eqn for eqn in op.expr.fn.closed.jaxpr.eqns if eqn.primitive.name not in ("convert_element_type", "not")]
    return len(eqns) == 1 and set(terms(op, 0)) == set(op.expr.ins)


def _is_var(v: object) -> bool:
    return not isinstance(v, jex.Literal)
