"""Jaxprs inside a jaxpr: their constants are lifted to the top, and what a kernel cannot hold is listed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend.core as jex
import numpy as np
from jax import lax
from jax.extend import source_info_util

from pcbatch.lowering.jaxpr_passes.parts import evaluated
from pcbatch.lowering.typing.jax_types import array_struct
from pcbatch.runtime.kernel.rules.control_flow import CALLS, closed, inner, looped, platform
from pcbatch.runtime.kernel.rules.evaluation import apply, literal
from pcbatch.runtime.kernel.rules.padding import struct
from pcbatch.runtime.kernel.rules.registry import Unsupported, is_key, where


def hoisted(whole: jex.ClosedJaxpr) -> tuple[jex.Jaxpr, list[Any]]:
    """Lift the array constants of all jaxprs inside to the top, identical ones once; calls are put in line.

    A kernel may close over numbers only: its caller passes the arrays as arguments of the kernel.

    Args:
        whole: a jaxpr with its constants.

    Returns:
        A jaxpr whose `constvars` are all arrays that it closes over, and these arrays; random keys as their words.
    """
    found: dict[int, Any] = {}
    _collect(whole, found)
    arrays = list(found.values())
    avals = [v.aval for v in whole.jaxpr.invars]
    args = [array_struct(a.shape, a.dtype, weak_type=getattr(a, "weak_type", False)) for a in avals]

    def replayed(given: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        known = dict(zip(found, given, strict=True))
        return _replay(whole, args, lambda x: known.get(id(x), x))

    traced = jax.make_jaxpr(replayed)([array_struct(x.shape, x.dtype) for x in arrays], args)
    invars = traced.jaxpr.invars
    jaxpr = traced.jaxpr.replace(
        constvars=[*traced.jaxpr.constvars, *invars[: len(arrays)]],
        invars=invars[len(arrays) :],
        debug_info=traced.jaxpr.debug_info.with_unknown_names(),
    )
    return jaxpr, [_words(x) for x in (*traced.consts, *arrays)]


def _words(x: Any) -> Any:
    return jax.random.key_data(x) if is_key(x) else x


def _lifted(x: Any) -> bool:
    return hasattr(x, "dtype") and (np.ndim(x) > 0 or is_key(x))


def _collect(whole: jex.ClosedJaxpr, found: dict[int, Any]) -> None:
    """Find all arrays that a jaxpr and those inside close over, by identity."""
    for x in whole.consts:
        if _lifted(x):
            found.setdefault(id(x), x)
    for eqn in whole.jaxpr.eqns:
        for v in eqn.invars:
            if isinstance(v, jex.Literal) and _lifted(v.val):
                found.setdefault(id(v.val), v.val)
        for jaxpr in jaxprs_inside(eqn):
            _collect(jaxpr, found)
    for v in whole.jaxpr.outvars:
        if isinstance(v, jex.Literal) and _lifted(v.val):
            found.setdefault(id(v.val), v.val)


def jaxprs_inside(eqn: Any) -> list[jex.ClosedJaxpr]:
    """Return the jaxprs that an equation runs."""
    name, p = eqn.primitive.name, eqn.params
    if name in CALLS:
        return [inner(eqn)]
    keys = {"cond": ["branches"], "while": ["cond_jaxpr", "body_jaxpr"], "scan": ["jaxpr"]}.get(name, [])
    return [closed(j) for k in keys for j in (p[k] if isinstance(p[k], tuple) else [p[k]])]


def _replay(whole: jex.ClosedJaxpr, args: Sequence[Any], known: Callable[[Any], Any]) -> list[Any]:
    """Trace a jaxpr again with other arrays in place of its constants."""

    def constant(v: Any) -> Any:
        return known(v.val) if _lifted(v.val) else literal(v)

    def equation(eqn: Any, operands: list[Any]) -> Sequence[Any]:
        with _line_of(eqn):
            return _again(eqn, operands, known)

    return evaluated(whole.jaxpr, map(known, whole.consts), args, equation, constant)


def _line_of(eqn: Any) -> Any:
    """The user's line, for messages; that of the call around it if JAX knows none of the equation's own."""
    if not where(eqn):
        return contextlib.nullcontext()
    return source_info_util.user_context(eqn.source_info.traceback, name_stack=eqn.source_info.name_stack)


def _again(eqn: Any, xs: Sequence[Any], known: Callable[[Any], Any]) -> Sequence[Any]:
    name, p = eqn.primitive.name, eqn.params

    def run(jaxpr: Any, args: Sequence[Any]) -> list[Any]:
        return _replay(closed(jaxpr), args, known)

    if name in CALLS:
        return run(inner(eqn), xs)
    if name == "platform_index":
        return [np.int32(platform(p["platforms"]))]
    if name == "cond" and isinstance(xs[0], np.integer):  # of `platform_index`
        return run(p["branches"][int(xs[0])], xs[1:])
    if name == "cond":
        branches: Any = [lambda *args, b=b: run(b, args) for b in p["branches"]]
        return list(lax.switch(xs[0], branches, *xs[1:]))
    if name == "while":
        nc, nb = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
        test = lambda state: run(p["cond_jaxpr"], [*xs[:nc], *state])[0]  # noqa: E731
        turn = lambda state: run(p["body_jaxpr"], [*xs[nc:nb], *state])  # noqa: E731
        return list(looped(test, turn, list(xs[nb:]), len(closed(p["cond_jaxpr"]).jaxpr.outvars[0].aval.shape)))
    if name == "scan":
        nc, nk = p["num_consts"], p["num_consts"] + p["num_carry"]

        def step(carry: Sequence[Any], rows: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            outs = run(p["jaxpr"], [*xs[:nc], *carry, *rows])
            return outs[: nk - nc], outs[nk - nc :]

        carry, rows = lax.scan(step, list(xs[nc:nk]), list(xs[nk:]), length=p["length"], reverse=p["reverse"])
        return [*carry, *rows]
    bind: Any = eqn.primitive.bind
    outs = bind(*xs, **p)
    return outs if eqn.primitive.multiple_results else [outs]


def check(jaxpr: jex.Jaxpr) -> list[Unsupported]:
    """List the equations that have no form in a kernel, those of jaxprs inside too, each with its reason.

    Each rule is evaluated abstractly, by itself: an empty list says that `evaluate` raises nothing.

    Args:
        jaxpr: of true shapes.

    Example:
        >>> [str(u) for u in check(jax.make_jaxpr(jax.numpy.linalg.cholesky)(jax.numpy.eye(2)).jaxpr)][0]
        '`cholesky` has no form in a kernel: it factorises a matrix'
    """
    found: list[Unsupported] = []
    for eqn in jaxpr.eqns:
        inside = [u.of(eqn) for part in jaxprs_inside(eqn) for u in check(part.jaxpr)]
        found += inside
        if not inside and eqn.primitive.name not in CALLS and (refused := _refusal(eqn)) is not None:
            found.append(refused)
    return found


def _refusal(eqn: Any) -> Unsupported | None:
    """Why one equation is refused, None if it is not."""
    given = [v for v in eqn.invars if not isinstance(v, jex.Literal)]
    try:
        structs = [struct(v.aval) for v in given]
    except (AttributeError, TypeError):
        return Unsupported("a value that is no array").of(eqn)

    def computed(*args: Any) -> Sequence[Any]:
        values = iter(args)
        return apply(eqn, [literal(v) if isinstance(v, jex.Literal) else next(values) for v in eqn.invars])

    try:
        jax.eval_shape(computed, *structs)
    except Unsupported as refused:
        return refused.of(eqn)
    return None
