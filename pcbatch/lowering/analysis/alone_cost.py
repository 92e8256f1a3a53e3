"""A static estimate of what an operation costs a lane that runs alone, in about one operation on numbers each.

Numbers stay in registers of the processor or near it, arrays are read and written by vector instructions, and a store
is as cheap as a load. No result depends on it.
"""

from __future__ import annotations

import math
from typing import Any

from pcbatch.containers.by_width import by_width_p
from pcbatch.ir.ops import Move, Prim, Select
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.analysis.cost import (
    EXPENSIVE,
    FREE,
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
LOOP = 60.0  # of a loop of a form for a lane alone (`by_width`), such as the steps of an element in a heap
TOUCH = 12.0  # of a load or a store of a part of an array
PASS = 2.0  # of an operation on arrays, and for each element:
ELEMENT = 0.25
PRODUCT = 0.35  # of what a product, or a solution, of matrices costs in units of `cost.py`
# In a sort, for each element and each time that runs of elements are merged. Measured are 20, but as much less is said
# of a sort for lanes together (`cost.py`) too, and the two are compared.
COMPARED = 0.3


def alone_cost(op: object, types: Any = None) -> float:
    """Estimate one IR operation; `types` maps variables to `ArrayType`."""
    match op:
        case Prim(expr=expr):
            return jaxpr_alone(expr.fn.closed.jaxpr) if isinstance(expr.fn, JaxprFn) else math.inf
        case Move(dst=dst) | Select(dst=dst):
            type_ = types.get(dst) if types is not None else None
            return _elements(float(type_.size)) if isinstance(type_, ArrayType) else 1.0
        case _:
            return 1.0


def jaxpr_alone(jaxpr: Any) -> float:
    """Estimate a jaxpr: the sum over its equations, inner jaxprs included."""
    return sum(map(_equation, jaxpr.eqns))


def _equation(eqn: Any) -> float:
    name = priced_name(eqn)
    if eqn.primitive is by_width_p:
        alone = eqn.params["alone"].jaxpr
        loops = sum(inner.primitive.name == "while" for inner in alone.eqns)
        return LOOP * loops if loops else jaxpr_alone(alone)
    out = sum(map(size, eqn.outvars))
    if name in ("sort", "top_k"):
        largest = max(map(size, eqn.invars))
        return COMPARED * largest * max(1.0, math.log2(max(1.0, largest)))
    inner = [] if name in EXPENSIVE else [jaxpr_alone(each) for each in inner_jaxprs(eqn)]
    if name in WRITES_PART:
        return TOUCH + size(eqn.invars[WRITES_PART[name]])
    match name:
        case "scan":
            return float(eqn.params["length"]) * sum(inner)
        case "while":
            return TRIPS * sum(inner)
        case "cond":
            return max(inner)
    if inner:
        return sum(inner)
    if name in FREE:
        return 0.0
    if name in READS_PART:
        return TOUCH + out * ELEMENT if size(eqn.invars[0]) > 1 else 1.0
    if name in EXPENSIVE or name == "dot_general":
        return equation_cost(eqn) * PRODUCT
    return _elements(max([out, *map(size, eqn.invars)])) * (8.0 if name in TRANSCENDENTAL else 1.0)


def _elements(count: float) -> float:
    """The cost of one operation on arrays of so many elements."""
    return 1.0 if count <= 1 else PASS + count * ELEMENT
