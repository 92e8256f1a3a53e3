"""Facts about integers that tests establish: after `tree.left is None` was false, `tree.left` is a row.

An expression is a tuple: `("var", name)`, `("lit", number)`, or the name of an operation with what else decides it,
its parameters and the dtype of its integers, and operands. A fact gives the least and the greatest value of an
expression. Facts speak of variables as they are now: one that is written takes what mentions it with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np

from pcbatch.data.integer_marks import CALLS, mark_of
from pcbatch.ir.ops import Prim
from pcbatch.lowering.analysis.intervals import ANY, Interval, computed, meet, of_dtype, within
from pcbatch.lowering.typing.trace import JaxprFn

Expression = tuple[Any, ...]
Facts = Mapping[Expression, Interval]

NAMES = {"_where": "where", "remainder": "remainder", "floor_divide": "floor_divide"}
"""Functions of JAX that are calls in a jaxpr, and have a rule in `intervals`."""
FROM = {f"from {d}": d for d in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()}
"""Conversions of integers, with the dtype that they convert from."""
DEPTH = 10  # of expressions; what is deeper is not compared
NEGATED = {"ge": "lt", "lt": "ge", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}
MIRRORED = {"ge": "le", "lt": "gt", "gt": "lt", "le": "ge", "eq": "eq", "ne": "ne"}


def expressions(op: Prim) -> tuple[Expression | None, ...]:
    """Return the expression of each result of a primitive; None for one that is not compared."""
    fn = op.expr.fn
    if not isinstance(fn, JaxprFn):
        return (None,) * len(op.dsts)
    jaxpr = fn.closed.jaxpr
    known: dict[Any, Expression | None] = dict(zip(jaxpr.invars, (("var", v) for v in op.expr.ins), strict=True))
    for eqn in jaxpr.eqns:
        name = _name(eqn)
        operands = [_operand(v, known) for v in eqn.invars]
        if name and None not in operands and _is_exact(eqn):
            for var, result in zip(eqn.outvars, (name, f"fits {name}"), strict=False):
                made = (result, (_parameters(eqn), _dtype(eqn)), *operands)
                known[var] = made if _depth(made) <= DEPTH else None
    casts = fn.casts
    return tuple(None if cast is not None else _operand(v, known) for v, cast in zip(jaxpr.outvars, casts, strict=True))


def _name(eqn: Any) -> str:
    """The name of an operation that is compared; empty for those that call jaxprs without one, or give more results."""
    if mark := mark_of(eqn):
        return f"{mark.kind} {mark.name}" if mark.name else mark.kind
    if eqn.primitive.name in CALLS:
        return str(NAMES.get(eqn.params["name"], ""))
    if eqn.primitive.name == "convert_element_type":
        return next((name for name, dtype in FROM.items() if dtype == str(eqn.invars[0].aval.dtype)), "")
    calls = any(isinstance(p, jex.Jaxpr | jex.ClosedJaxpr) for p in eqn.params.values())
    return "" if calls or len(eqn.outvars) != 1 else str(eqn.primitive.name)


def _dtype(eqn: Any) -> str:
    """The dtype of the integers that an operation gives or compares; empty for arrays and other numbers."""
    aval: Any = eqn.invars[0].aval if eqn.primitive.name in NEGATED else eqn.outvars[0].aval
    return str(aval.dtype) if aval.shape == () and _is_whole(aval.dtype) else ""


def _operand(var: Any, known: Mapping[Any, Expression | None]) -> Expression | None:
    if isinstance(var, jex.Literal):
        value = var.val
        scalar = np.asarray(value).item() if np.ndim(value) == 0 else None
        return "lit", scalar if isinstance(scalar, int | float) else str(value)
    return known.get(var)


def _is_exact(eqn: Any) -> bool:
    """Whether a comparison is of whole numbers, since a NaN is neither less nor greater, and a connective of bools."""
    name = eqn.primitive.name
    aval: Any = eqn.invars[0].aval if eqn.invars else None
    if name in NEGATED:
        return aval.shape == () and jnp.issubdtype(aval.dtype, jnp.integer)
    return name not in ("and", "or", "not") or (aval.shape == () and _is_whole(aval.dtype))


def _is_whole(dtype: Any) -> bool:
    return bool(jnp.issubdtype(dtype, jnp.bool_) or jnp.issubdtype(dtype, jnp.integer))


def _parameters(eqn: Any) -> str:
    if not eqn.params or eqn.primitive.name in CALLS:
        return ""
    return str(sorted((k, str(v)) for k, v in eqn.params.items()))


def _depth(expression: Expression) -> int:
    parts = [part for part in expression[2:] if isinstance(part, tuple)]
    return 1 + max((_depth(part) for part in parts if part[0] not in ("var", "lit")), default=0)


def mentioned(expression: Expression) -> Iterator[str]:
    """Yield the variables of an expression."""
    if expression[0] == "var":
        yield expression[1]
    elif expression[0] != "lit":
        for part in expression[2:]:
            yield from mentioned(part)


def interval(expression: Expression, facts: Facts) -> Interval:
    """Return the least and the greatest value of an expression."""
    match expression:
        case ("lit", value):
            return (value, value) if isinstance(value, int | float) else ANY
        case ("var", _):
            return facts.get(expression, ANY)
    known, dtype = facts.get(expression, ANY), expression[1][1]
    if not dtype:
        return known
    name, limits = str(expression[0]), of_dtype(dtype)
    exact = exact_interval(expression, facts)
    if not name.startswith(("checked", "exact", "between")) and not within(exact, limits):
        return known  # it may wrap around
    return meet(meet(exact, limits), known)


def exact_interval(expression: Expression, facts: Facts) -> Interval:
    """Return the interval of the whole number that an operation of integers stands for."""
    name, (_, dtype), *operands = expression
    limits = of_dtype(dtype)
    if name in ("where", "select_n") and len(operands) == 3:
        # What the condition says holds in each case: `where(n < 5, n, 5)`.
        condition, *cases = operands if name == "where" else (operands[0], operands[2], operands[1])
        one, other = (meet(interval(case, _given(condition, k == 0, facts)), limits) for k, case in enumerate(cases))
        return min(one[0], other[0]), max(one[1], other[1])
    found = [interval(operand, facts) for operand in operands]
    if name in FROM:
        return meet(found[0], of_dtype(FROM[name]))
    return computed(name.rpartition(" ")[2], [meet(operand, limits) for operand in found])


def _given(condition: Expression, value: bool, facts: Facts) -> Facts:
    more = dict(facts)
    learned(condition, value, more)
    return more


def holds(condition: Expression, facts: Facts) -> bool | None:
    """Return whether a condition is known to hold, or not to hold; None if neither."""
    match condition:
        case ("lit", bool() as value):
            return bool(value)
        case ("not", _, inner):
            negated = holds(inner, facts)
            return None if negated is None else not negated
        case (("and" | "or") as name, _, a, b):
            one, other, decides = holds(a, facts), holds(b, facts), bool(name == "or")
            if decides in (one, other):
                return decides
            return None if None in (one, other) else not decides
        case (name, _, a, b) if name in NEGATED:
            return _compared(name, interval(a, facts), interval(b, facts))
        case (name, (_, dtype), *_) if str(name).startswith("fits "):
            return True if within(exact_interval(condition, facts), of_dtype(dtype)) else None
    return None


def _compared(name: str, a: Interval, b: Interval) -> bool | None:
    match name:
        case "ge":
            return True if a[0] >= b[1] else False if a[1] < b[0] else None
        case "lt":
            return True if a[1] < b[0] else False if a[0] >= b[1] else None
        case "gt" | "le":
            mirrored = _compared("lt" if name == "gt" else "ge", b, a)
            return mirrored
    disjoint = a[1] < b[0] or b[1] < a[0]
    equal = a == b and a[0] == a[1]
    return (name == "ne") if disjoint else (name == "eq") if equal else None


def learned(condition: Expression, value: bool, facts: dict[Expression, Interval]) -> None:
    """Add what is known where a condition has a value."""
    match condition:
        case ("not", _, inner):
            learned(inner, not value, facts)
        case (("and" | "or") as name, _, a, b):
            if value is (name == "and"):
                learned(a, value, facts)
                learned(b, value, facts)
            else:
                for one, other in ((a, b), (b, a)):
                    if holds(one, facts) is not value and holds(one, facts) is not None:
                        learned(other, value, facts)
        case (name, (_, dtype), a, b) if name in NEGATED:
            name = name if value else NEGATED[name]
            one, other = (meet(interval(part, facts), of_dtype(dtype)) for part in (a, b))
            _narrow(name, a, other, facts)
            _narrow(MIRRORED[name], b, one, facts)


def _narrow(name: str, expression: Expression, other: Interval, facts: dict[Expression, Interval]) -> None:
    if expression[0] == "lit":
        return
    low, high = facts.get(expression, ANY)
    match name:
        case "ge":
            low = max(low, other[0])
        case "gt":
            low = max(low, other[0] + 1 if other[0] > -math.inf else low)
        case "le":
            high = min(high, other[1])
        case "lt":
            high = min(high, other[1] - 1 if other[1] < math.inf else high)
        case "eq":
            low, high = max(low, other[0]), min(high, other[1])
    if (low, high) != ANY:
        facts[expression] = (low, high)


def met(a: Facts | None, b: Facts) -> Facts:
    """Return what holds on two ways; None stands for a way that is not known yet."""
    if a is None:
        return b
    both = {e: (min(a[e][0], b[e][0]), max(a[e][1], b[e][1])) for e in a.keys() & b.keys()}
    return {e: limits for e, limits in both.items() if limits != ANY}
