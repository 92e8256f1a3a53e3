"""A primitive's jaxpr in pieces: cut where it meets what lanes share, and around what is dear to compute."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp

EXPENSIVE = 16  # products per element of a result that is worth recording

LINEAR = {
    *("add", "sub", "neg", "reshape", "squeeze", "broadcast_in_dim", "convert_element_type", "slice", "concatenate"),
    *("transpose", "select_n", "copy", "copy_p", "reduce_sum", "stop_gradient", "rev", "pad", "gather", "real", "imag"),
    *("dynamic_slice", "iota", "and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "add_any", "expand_dims"),
}


LIBRARY = {"conv_general_dilated", "cholesky", "triangular_solve", "lu", "qr", "eigh", "svd"}


@dataclass(frozen=True, slots=True)
class JaxprPiece:
    """Some equations in a row."""

    closed: jex.ClosedJaxpr
    ins: tuple[Any, ...]
    outs: tuple[Any, ...]
    dear: bool  # is it a single equation, whose results cost much?


def only_linear(jaxpr: Any) -> bool:
    """Does the pullback only move and add cotangents? Others may give `0 * inf` for lanes that do not take part."""
    return all(_passes(eqn) for eqn in jaxpr.eqns)


def _passes(eqn: Any) -> bool:
    return eqn.primitive.name in LINEAR or not any(map(_is_float, eqn.invars))


def _is_float(v: Any) -> bool:
    return bool(jnp.issubdtype(v.aval.dtype, jnp.inexact))


def inlined(closed: jex.ClosedJaxpr) -> jex.ClosedJaxpr:
    """The same without calls of jitted functions of floating numbers."""
    if not any(_is_call(eqn) for eqn in closed.jaxpr.eqns):
        return closed

    def run(*args: Any) -> list[Any]:
        return _evaluated(closed.jaxpr, closed.consts, args)

    found: jex.ClosedJaxpr = jax.make_jaxpr(run)(*closed.in_avals)
    return found


def _is_call(eqn: Any) -> bool:
    return eqn.primitive.name in ("jit", "pjit") and "jaxpr" in eqn.params and any(map(_is_float, eqn.invars))


def _evaluated(jaxpr: Any, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    env: dict[Any, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True))

    def look(v: Any) -> Any:
        return v.val if isinstance(v, jex.Literal) else env[v]

    for eqn in jaxpr.eqns:
        if _is_call(eqn):
            inner = eqn.params["jaxpr"]
            outs = _evaluated(inner.jaxpr, inner.consts, [look(v) for v in eqn.invars])
        else:  # by itself: whatever it takes to apply a primitive, JAX knows
            alone = _piece(jaxpr, [eqn], list(eqn.outvars), {})
            outs = jex.jaxpr_as_fun(alone.closed)(*(env[v] for v in alone.ins))
        env.update(zip(eqn.outvars, outs, strict=True))
    return [look(v) for v in jaxpr.outvars]


def _piece(
    jaxpr: Any, eqns: Sequence[Any], outs: Sequence[Any], consts: Mapping[Any, Any], dear: bool = False
) -> JaxprPiece:
    made = {v for eqn in eqns for v in eqn.outvars}
    used = list(dict.fromkeys(v for e in eqns for v in e.invars if isinstance(v, jex.Var) and v not in made))
    ins = [v for v in used if v not in consts]
    constants = [v for v in used if v in consts]
    part = jaxpr.replace(
        constvars=constants,
        invars=ins,
        outvars=list(outs),
        eqns=list(eqns),
        debug_info=jaxpr.debug_info.with_unknown_names(),
    )
    return JaxprPiece(jex.ClosedJaxpr(part, [consts[v] for v in constants]), tuple(ins), tuple(outs), dear)


def pieces(closed: jex.ClosedJaxpr, common: set[Any], follows: set[Any]) -> Iterator[JaxprPiece]:
    """The jaxpr in pieces. `common`: inputs that all lanes share; `follows`: those of them that have cotangents."""
    jaxpr = closed.jaxpr
    consts = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    common, follows = {*common, *consts}, set(follows)
    runs: list[tuple[str, list[Any]]] = []
    for eqn in jaxpr.eqns:
        kind = _kind(eqn, common, follows)
        if kind == "common":
            common |= set(eqn.outvars)
            follows |= set(eqn.outvars) if any(v in follows for v in _vars(eqn)) else set()
        if runs and runs[-1][0] == kind and kind in ("common", "plain"):
            runs[-1][1].append(eqn)
        else:
            runs.append((kind, [eqn]))
    needed = {v for v in jaxpr.outvars if isinstance(v, jex.Var)}
    found: list[JaxprPiece] = []
    for kind, eqns in reversed(runs):
        outs = [v for eqn in eqns for v in eqn.outvars if v in needed]
        if not outs:
            continue
        found.append(_piece(jaxpr, eqns, outs, consts, kind == "dear" or (kind == "meets" and _is_dear(eqns[0]))))
        needed |= set(found[-1].ins)
    yield from reversed(found)


def _vars(eqn: Any) -> list[Any]:
    return [v for v in eqn.invars if isinstance(v, jex.Var)]


def _kind(eqn: Any, common: set[Any], follows: set[Any]) -> str:
    if all(v in common for v in _vars(eqn)):
        return "common"
    if any(v in follows for v in _vars(eqn)):
        return "meets"
    return "dear" if _is_dear(eqn) else "plain"


def _is_dear(eqn: Any) -> bool:
    if eqn.primitive.name != "dot_general":
        return eqn.primitive.name in LIBRARY
    (contract, _), _ = eqn.params["dimension_numbers"]
    return bool(math.prod(eqn.invars[0].aval.shape[d] for d in contract) >= EXPENSIVE)
