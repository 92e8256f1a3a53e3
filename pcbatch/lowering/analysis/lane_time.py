"""Estimated nanoseconds of an operation for one lane: one that runs alone, or one of many that run together.

Prices were fitted to 45 programs, whose visits were counted (docs/users/performance.md). They decide how lanes run; no
result depends on them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pcbatch.data.by_width import by_width_p
from pcbatch.ir.ops import Prim, PureOp
from pcbatch.ir.roles import writes
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.analysis.cost import (
    EXPENSIVE,
    FREE,
    HASHES,
    READS_PART,
    TRANSCENDENTAL,
    WRITES_PART,
    equation_cost,
    inner_jaxprs,
    priced_name,
    size,
)
from pcbatch.lowering.typing.trace import JaxprFn

TRIPS = 16.0  # iterations of an inner while loop: lanes together make as many as the one that makes the most


@dataclass(frozen=True, slots=True)
class Prices:
    """Nanoseconds of a lane.

    Attributes:
        operation: Of an operation on numbers; the processor makes several at once.
        transcendental: Of one such as `exp` on a number.
        element: Of an element of an array in an operation.
        whole: Of one of an array of integers or flags, among them the characters of texts.
        transcendental_element: Of one in an operation such as `exp`.
        part: Of an element that is read from a place known while compiling.
        access: Of a load or a store of a part of an array, at a place of the lane's.
        moved: Of an element of such a part of an array of integers or flags.
        product: Of a unit of `cost.py` in products, and in what is made of them.
        hashed: Of a word of random bits.
        compared: Of an element in a sort, each time that runs of elements are merged.
        loop: Of a loop of a form for a lane alone (`by_width`), such as the steps of an element in a heap.
    """

    operation: float
    transcendental: float
    element: float
    whole: float
    transcendental_element: float
    part: float
    access: float
    moved: float
    product: float
    hashed: float
    compared: float
    loop: float


# In native code for one lane, numbers stay in registers of the processor, and whole visits in its cache.
ALONE = Prices(0.05, 10.5, 0.3, 0.05, 1.8, 0.1, 1.0, 0.1, 0.15, 8.5, 0.04, 15.0)
# Lanes together compute with vectors, and look up places of their own by gathers and scatters.
TOGETHER = Prices(0.07, 3.5, 0.09, 0.09, 4.0, 0.02, 0.5, 2.0, 0.065, 4.3, 0.3, math.nan)


def lane_time(op: object, types: Any, prices: Prices) -> float:
    """Estimate one IR operation; `types` maps variables to `ArrayType`. What was not traced takes infinitely long."""
    match op:
        case Prim(expr=expr):
            return jaxpr_time(expr.fn.closed.jaxpr, prices) if isinstance(expr.fn, JaxprFn) else math.inf
        case _ if isinstance(op, PureOp):
            type_ = types.get(*writes(op))
            if not isinstance(type_, ArrayType):
                return prices.operation
            return _elements(float(type_.size), prices, is_whole(type_.dtype))
        case _:
            return prices.operation


@lru_cache(maxsize=4096)
def jaxpr_time(jaxpr: Any, prices: Prices = ALONE) -> float:
    """Estimate a jaxpr: the sum over its equations, inner jaxprs included."""
    return sum(_equation(eqn, prices) for eqn in jaxpr.eqns)


def _equation(eqn: Any, prices: Prices) -> float:
    name = priced_name(eqn)
    if eqn.primitive is by_width_p and prices is ALONE:
        alone = eqn.params["alone"].jaxpr
        loops = sum(inner.primitive.name == "while" for inner in alone.eqns)
        return prices.loop * loops if loops else jaxpr_time(alone, prices)
    largest = max([0.0, *map(size, (*eqn.invars, *eqn.outvars))])
    if name in ("sort", "top_k"):
        return prices.compared * largest * max(1.0, math.log2(max(1.0, largest)))
    if name in WRITES_PART:
        written = eqn.invars[WRITES_PART[name]]
        return prices.access + _moved(written, prices) * size(written)
    inner = [] if name in EXPENSIVE else [jaxpr_time(each, prices) for each in inner_jaxprs(eqn)]
    match name:
        case "scan":
            return float(eqn.params["length"]) * sum(inner)
        case "while":
            return TRIPS * sum(inner)
        case "cond":
            return max(inner)
    if inner or name in FREE:
        return sum(inner)
    if name == "slice":
        return prices.part * sum(map(size, eqn.outvars))
    if name in HASHES:
        return prices.hashed * largest
    if name in READS_PART:
        read = sum(map(size, eqn.outvars))
        return prices.access + read * _moved(eqn.invars[0], prices) if size(eqn.invars[0]) > 1 else prices.operation
    if name in EXPENSIVE or name == "dot_general":
        return equation_cost(eqn) * prices.product
    if name in TRANSCENDENTAL:
        return prices.transcendental if largest <= 1 else largest * prices.transcendental_element
    return _elements(largest, prices, all(map(_has_whole, (*eqn.invars, *eqn.outvars))))


def _elements(count: float, prices: Prices, whole: bool) -> float:
    """The time of one operation on arrays of so many elements, all of them `whole` numbers or flags or not."""
    return prices.operation if count <= 1 else count * (prices.whole if whole else prices.element)


def _moved(part: Any, prices: Prices) -> float:
    """The time of an element of a part that is read or written."""
    return prices.moved if _has_whole(part) else prices.element


def _has_whole(value: Any) -> bool:
    dtype = getattr(value.aval, "dtype", None)
    return dtype is not None and is_whole(dtype)


def is_whole(dtype: Any) -> bool:
    """Return whether a type is of integers or flags."""
    return str(dtype).startswith(("int", "uint", "bool"))
