"""Facts about integers that tests establish: after `tree.left is None` was false, `tree.left` is a row.

An expression is a tuple: `("var", name)`, `("lit", number)`, or the name of an operation with its parameters and
operands. A fact gives the least and the greatest value of an expression. Facts speak of variables as they are now: one
that is written takes what mentions it with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import jax.extend.core as jex
import numpy as np

from pcbatch.ir.ops import Prim
from pcbatch.lowering.typing.trace import JaxprFn

Expression = tuple[Any, ...]
Interval = tuple[float, float]
Facts = Mapping[Expression, Interval]

ANY: Interval = (-math.inf, math.inf)
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
        if len(eqn.outvars) != 1 or any(isinstance(p, jex.Jaxpr | jex.ClosedJaxpr) for p in eqn.params.values()):
            continue
        operands = [_operand(v, known) for v in eqn.invars]
        if None not in operands and _is_exact(eqn):
            made = (eqn.primitive.name, _parameters(eqn), *operands)
            known[eqn.outvars[0]] = made if _depth(made) <= DEPTH else None
    casts = fn.casts
    return tuple(None if cast is not None else _operand(v, known) for v, cast in zip(jaxpr.outvars, casts, strict=True))


def _operand(var: Any, known: Mapping[Any, Expression | None]) -> Expression | None:
    if isinstance(var, jex.Literal):
        value = var.val
        return (
            "lit",
            value.item() if isinstance(value, np.ndarray | np.generic) and np.ndim(value) == 0 else str(value),
        )
    return known.get(var)


def _is_exact(eqn: Any) -> bool:
    """Whether a comparison is of whole numbers, since a NaN is neither less nor greater, and a connective of bools."""
    name = eqn.primitive.name
    aval: Any = eqn.invars[0].aval if eqn.invars else None
    if name in NEGATED:
        return aval.shape == () and np.issubdtype(aval.dtype, np.integer)
    return name not in ("and", "or", "not") or (aval.shape == () and aval.dtype == np.bool_)


def _parameters(eqn: Any) -> str:
    return str(sorted((k, str(v)) for k, v in eqn.params.items())) if eqn.params else ""


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
    if expression[0] == "lit":
        value = expression[1]
        return (value, value) if isinstance(value, int | float) else ANY
    return facts.get(expression, ANY)


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
    apart = a[1] < b[0] or b[1] < a[0]
    equal = a == b and a[0] == a[1]
    return (name == "ne") if apart else (name == "eq") if equal else None


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
        case (name, _, a, b) if name in NEGATED:
            name = name if value else NEGATED[name]
            _narrow(name, a, interval(b, facts), facts)
            _narrow(MIRRORED[name], b, interval(a, facts), facts)


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
