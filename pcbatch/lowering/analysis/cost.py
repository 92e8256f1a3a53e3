"""A static estimate of what an operation costs per lane, in about one arithmetic operation each.

It orders blocks and decides what is cheap enough to compute for lanes that do not need it. No result depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import jax.extend.core as jex

from pcbatch.data.by_width import by_width_p
from pcbatch.ir.ops import Check, Prim, Print, PureOp
from pcbatch.ir.roles import writes
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.trace import JaxprFn

FREE = {
    "broadcast_in_dim",
    "empty",
    "reshape",
    "squeeze",
    "convert_element_type",
    "random_wrap",
    "random_unwrap",
    "copy",
}
LINALG = "cholesky eig eigh geqrf hessenberg householder_product lu qr schur svd triangular_solve tridiagonal".split()
# Cost per element of the largest operand or result; what is in neither table costs 1.
EXPENSIVE = dict.fromkeys([*LINALG, "tridiagonal_solve"], 100.0) | {"sort": 10.0, "top_k": 10.0, "fft": 10.0}
HASHES = ("threefry2x32", "random_bits", "random_split", "random_fold_in", "random_seed")
EXPENSIVE |= dict.fromkeys(HASHES, 60.0)
TRANSCENDENTAL = {"exp", "log", "log1p", "expm1", "sin", "cos", "tan", "tanh", "logistic", "pow", "erf", "erf_inv"}
SCATTERS = ("scatter", "scatter-add", "scatter-mul", "scatter-min", "scatter-max")
READS_PART = {"gather", "dynamic_slice", "slice"}
WRITES_PART = dict.fromkeys(SCATTERS, 2) | {"dynamic_update_slice": 1}  # the input that is written
SCATTER = 64.0  # of each store in place: four nanoseconds
STORE = 4.0  # of each element that is stored in place
VECTOR = 8  # elements with which one instruction computes
TOGETHER = {"dot_general", "conv_general_dilated", "sort", "top_k", "fft", *LINALG, "tridiagonal_solve"}
HOST = ("pure_callback", "io_callback", "ffi_call")  # code that is not JAX's
UNKNOWN_TRIPS = 32.0  # iterations to expect of an inner while loop


def op_cost(op: object, types: Any = None) -> float:
    """Estimate one IR operation; calls, and primitives that were not traced, cost infinity.

    `types` maps variables to `ArrayType`; moves and selections cost by size only if it is given.
    """
    match op:
        case Prim(expr=expr):
            return jaxpr_cost(expr.fn.closed.jaxpr) if isinstance(expr.fn, JaxprFn) else math.inf
        case _ if isinstance(op, PureOp):
            type_ = types.get(*writes(op)) if types is not None else None
            return float(type_.size) * 0.25 if isinstance(type_, ArrayType) else 1.0
        case Print():
            return 0.0  # paid on the host
        case Check():
            return 1.0
        case _:
            return math.inf


def visit_cost(op: object, types: Any = None) -> float:
    """Estimate one IR operation where it stands in a block of the machine.

    A store into a part of a variable is made in place, whatever the size of the variable. A look-up in a hash table
    reads short rows, each of which is one vector. So both are cheaper than their operations tell.
    """
    cost = op_cost(op, types)
    if not isinstance(op, Prim) or not isinstance(op.expr.fn, JaxprFn):
        return cost
    jaxpr = op.expr.fn.closed.jaxpr
    rows = _on_rows(jaxpr)
    start = 0.0 if rows else SCATTER
    stores = sum(max(0.0, equation_cost(eqn) - start - STORE * _stored(eqn)) for eqn in _in_place(op, jaxpr))
    return cost - stores - (1 - 1 / VECTOR) * sum(equation_cost(eqn) for eqn in rows)


def _stored(eqn: Any) -> float:
    """The number of elements that a scatter stores."""
    return size(eqn.invars[WRITES_PART[eqn.primitive.name]])


def _on_rows(jaxpr: Any) -> list[Any]:
    """The equations that compute with rows of at most `VECTOR` elements which are read of an array."""
    rows: set[Any] = set()
    found = []
    for eqn in jaxpr.eqns:
        read = eqn.primitive.name in READS_PART and 1 < size(eqn.outvars[0]) <= VECTOR
        if read or any(v in rows for v in eqn.invars if not isinstance(v, jex.Literal)):
            found.append(eqn)
            rows.update(v for v in eqn.outvars if 1 < size(v) <= VECTOR)
    return found


def _in_place(op: Prim, jaxpr: Any) -> list[Any]:
    """The scatters of a typed primitive that make the new value of a variable from its old one."""
    by_result = {eqn.outvars[0]: eqn for eqn in jaxpr.eqns if eqn.primitive.name in SCATTERS}
    found = []
    for name, var in zip(op.dsts, jaxpr.outvars, strict=True):
        chain = []
        while not isinstance(var, jex.Literal) and var in by_result:
            chain.append(by_result[var])
            var = chain[-1].invars[0]
        if any(var is old and name == source for old, source in zip(jaxpr.invars, op.expr.ins, strict=True)):
            found.extend(chain)
    return found


@lru_cache(maxsize=4096)
def jaxpr_cost(jaxpr: Any) -> float:
    """Estimate a jaxpr: the sum over its equations, inner jaxprs included."""
    return float(sum(equation_cost(eqn) for eqn in jaxpr.eqns))


def size(v: Any) -> float:
    """Return the number of elements of a value of a jaxpr."""
    return float(math.prod(getattr(v.aval, "shape", ())))


def priced_name(eqn: Any) -> str:
    """Return the name that an equation is priced by: an unrolled hash (`unroll_threefry.py`) is one kernel."""
    name = eqn.params.get("name")
    return name if name == "threefry2x32" else str(eqn.primitive.name)


def equation_cost(eqn: Any) -> float:
    """Estimate one equation of a jaxpr."""
    name = priced_name(eqn)
    inner = [jaxpr_cost(j) for j in inner_jaxprs(eqn)] if name not in EXPENSIVE else []
    if name == "scan":
        return float(eqn.params["length"]) * sum(inner)
    if name == "while":
        return UNKNOWN_TRIPS * sum(inner)
    if name == "cond":
        return max(inner)
    if inner:
        return sum(inner)
    out = sum(size(v) for v in eqn.outvars)
    if name == "dot_general":
        (contract, _), _ = eqn.params["dimension_numbers"]
        # A quarter of the arithmetic: nothing else runs as close to the peak of the hardware.
        return 0.5 * out * float(math.prod(eqn.invars[0].aval.shape[d] for d in contract))
    if name == "conv_general_dilated":
        kernel = eqn.invars[1].aval.shape
        features = eqn.params["dimension_numbers"].rhs_spec[0]
        return 0.5 * out * float(math.prod(kernel) / max(1, kernel[features]))  # a product for each place
    if name in FREE:
        return 0.0
    if name in READS_PART:
        return out
    work = max([out, *[size(v) for v in eqn.invars]])
    return work * (EXPENSIVE.get(name) or (8.0 if name in TRANSCENDENTAL else 1.0))


def most_expensive_kernel(jaxpr: Any) -> float:
    """Return the cost of the most expensive kernel: an equation that makes one pass over its values.

    Matrix products are left out, because XLA gives them threads of their own.
    """
    return max((_kernel_cost(eqn) for eqn in jaxpr.eqns), default=0.0)


def _kernel_cost(eqn: Any) -> float:
    inner = [most_expensive_kernel(j) for j in inner_jaxprs(eqn)] if priced_name(eqn) not in EXPENSIVE else []
    if inner or eqn.primitive.name in ("dot_general", "conv_general_dilated"):
        return max(inner, default=0.0)
    if eqn.primitive.name in WRITES_PART:  # in place, if it can be
        return size(eqn.invars[WRITES_PART[eqn.primitive.name]])
    return equation_cost(eqn)


def inner_jaxprs(eqn: Any) -> Iterable[Any]:
    """The jaxprs inside an equation's parameters; of computations in two forms that for lanes together."""
    for value in (eqn.params["together"],) if eqn.primitive is by_width_p else eqn.params.values():
        for item in value if isinstance(value, tuple | list) else (value,):
            if isinstance(item, jex.ClosedJaxpr):
                yield item.jaxpr
            elif isinstance(item, jex.Jaxpr):
                yield item


def all_equations(jaxpr: Any) -> Iterator[Any]:
    """The equations of a jaxpr, each followed by those inside its parameters."""
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in inner_jaxprs(eqn):
            yield from all_equations(inner)


def wants_rows(jaxpr: Any) -> bool:
    """Return whether a jaxpr calls a kernel of a library, which wants the elements of a lane in one row.

    The product of two vectors does not: XLA makes it a sum of products.
    """
    return any(e.primitive.name in TOGETHER and any(v.aval.ndim for v in e.outvars) for e in all_equations(jaxpr))


def may_not_end(jaxpr: Any) -> bool:
    """Return whether a jaxpr must not run for inactive lanes: on their stale values a while loop might never end, and
    a callback on the host might raise."""
    return any(e.primitive.name in ("while", *HOST) for e in all_equations(jaxpr))


def op_may_not_end(op: object) -> bool:
    """Return whether an operation contains a loop that might not end on the values of inactive lanes."""
    return isinstance(op, Prim) and isinstance(op.expr.fn, JaxprFn) and may_not_end(op.expr.fn.closed.jaxpr)
