"""Cut the jaxpr of a primitive into pieces: where it meets shared values, and around expensive equations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp

from pcbatch.data.rounding import rounded_p
from pcbatch.lowering.jaxpr_passes.parts import cut_out, evaluated

EXPENSIVE = 16  # products per element of a result that is worth recording

# Primitives whose pullback only moves and adds cotangents: zero stays zero, whatever the values are.
LINEAR = {
    *("add", "sub", "neg", "reshape", "squeeze", "broadcast_in_dim", "convert_element_type", "slice", "concatenate"),
    *("transpose", "select_n", "copy", "copy_p", "reduce_sum", "stop_gradient", "rev", "pad", "gather", "real", "imag"),
    *("dynamic_slice", "iota", "and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "add_any", "expand_dims"),
    rounded_p.name,
}

# Primitives that are a call of a library: expensive whatever their size.
LIBRARY = {"conv_general_dilated", "cholesky", "triangular_solve", "lu", "qr", "eigh", "svd"}

# Primitives that read an element of their operand for another place of their result.
SHIFTS = {"concatenate", "dynamic_slice", "gather", "pad", "rev", "slice", "split"}

# Primitives that cost many times as much as an addition.
COSTLY = {
    *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "digamma", "erf", "erf_inv"),
    *("erfc", "exp", "exp2", "expm1", "lgamma", "log", "log1p", "logistic", "pow", "sin", "sinh", "tan", "tanh"),
}


@dataclass(frozen=True, slots=True)
class JaxprPiece:
    """Consecutive equations of a jaxpr, as a jaxpr of their own; `ins` and `outs` are variables of the whole."""

    closed: jex.ClosedJaxpr
    ins: tuple[Any, ...]
    outs: tuple[Any, ...]
    expensive: bool  # a single equation, whose results are worth recording


def only_linear(jaxpr: Any) -> bool:
    """Whether the pullback only moves and adds cotangents. Others may give `0 * inf` for inactive lanes."""
    return all(_passes(eqn) for eqn in jaxpr.eqns)


def any_of(eqn: Any, primitives: Set[str]) -> bool:
    """Whether an equation, or one of the jaxprs that it calls, is of one of these primitives."""
    parts = (x for value in eqn.params.values() for x in (value if isinstance(value, tuple | list) else (value,)))
    called = [x.jaxpr for x in parts if isinstance(x, jex.ClosedJaxpr)]
    return eqn.primitive.name in primitives or any(any_of(e, primitives) for jaxpr in called for e in jaxpr.eqns)


def _passes(eqn: Any) -> bool:
    return eqn.primitive.name in LINEAR or not any(map(_is_float, eqn.invars))


def _is_float(v: Any) -> bool:
    return bool(jnp.issubdtype(v.aval.dtype, jnp.inexact))


def inlined(closed: jex.ClosedJaxpr) -> jex.ClosedJaxpr:
    """Return the jaxpr with calls of jitted functions of floating numbers replaced by their equations."""
    if not any(_is_call(eqn) for eqn in closed.jaxpr.eqns):
        return closed

    def run(*args: Any) -> list[Any]:
        return _evaluated(closed.jaxpr, closed.consts, args)

    flat: jex.ClosedJaxpr = jax.make_jaxpr(run)(*closed.in_avals)
    return flat


def _is_call(eqn: Any) -> bool:
    return eqn.primitive.name in ("jit", "pjit") and "jaxpr" in eqn.params and any(map(_is_float, eqn.invars))


def _evaluated(jaxpr: Any, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    def equation(eqn: Any, operands: list[Any]) -> list[Any]:
        if _is_call(eqn):
            inner = eqn.params["jaxpr"]
            return _evaluated(inner.jaxpr, inner.consts, operands)
        # As a jaxpr of one equation: JAX knows how to apply each primitive with its parameters.
        closed, ins = cut_out(jaxpr, [eqn], eqn.outvars)
        values = {v: x for v, x in zip(eqn.invars, operands, strict=True) if isinstance(v, jex.Var)}
        outs: list[Any] = jex.jaxpr_as_fun(closed)(*(values[v] for v in ins))
        return outs

    return evaluated(jaxpr, consts, args, equation, lambda v: v.val)


def _piece(
    jaxpr: Any, eqns: Sequence[Any], outs: Sequence[Any], consts: Mapping[Any, Any], expensive: bool = False
) -> JaxprPiece:
    return JaxprPiece(*cut_out(jaxpr, eqns, outs, consts), tuple(outs), expensive)


def pieces(closed: jex.ClosedJaxpr, uniform: set[Any], deferred: set[Any]) -> Iterator[JaxprPiece]:
    """Cut a jaxpr into pieces, in order; equations without use are left out.

    `uniform`: its inputs that are the same for all lanes; `deferred`: those of them whose cotangents are deferred.
    """
    jaxpr = closed.jaxpr
    consts = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    uniform, deferred = {*uniform, *consts}, set(deferred)
    groups: list[tuple[str, list[Any]]] = []
    for eqn in jaxpr.eqns:
        kind = _kind(eqn, uniform, deferred)
        if kind == "uniform":
            uniform |= set(eqn.outvars)
            deferred |= set(eqn.outvars) if any(v in deferred for v in _vars(eqn)) else set()
        # An expensive equation, or one where the cotangents of lanes end, is a piece by itself: its results are named.
        if groups and groups[-1][0] == kind and kind in ("uniform", "plain"):
            groups[-1][1].append(eqn)
        else:
            groups.append((kind, [eqn]))
    needed = {v for v in jaxpr.outvars if isinstance(v, jex.Var)}
    parts: list[JaxprPiece] = []
    for kind, eqns in reversed(groups):
        outs = [v for eqn in eqns for v in eqn.outvars if v in needed]
        if not outs:
            continue
        expensive = kind == "expensive" or (kind == "deferred" and _is_expensive(eqns[0]))
        parts.append(_piece(jaxpr, eqns, outs, consts, expensive))
        needed |= set(parts[-1].ins)
    yield from reversed(parts)


def _vars(eqn: Any) -> list[Any]:
    return [v for v in eqn.invars if isinstance(v, jex.Var)]


def _kind(eqn: Any, uniform: set[Any], deferred: set[Any]) -> str:
    if all(v in uniform for v in _vars(eqn)):
        return "uniform"
    if any(v in deferred for v in _vars(eqn)):
        return "deferred"
    return "expensive" if _is_expensive(eqn) else "plain"


def _is_expensive(eqn: Any) -> bool:
    if eqn.primitive.name != "dot_general":
        return eqn.primitive.name in LIBRARY
    (contract, _), _ = eqn.params["dimension_numbers"]
    return bool(math.prod(eqn.invars[0].aval.shape[d] for d in contract) >= EXPENSIVE)
