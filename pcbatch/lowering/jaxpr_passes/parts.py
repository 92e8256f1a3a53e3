"""Parts of a jaxpr: what computes some of its values, some of its equations, and one equation after the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import jax.extend.core as jex


def part(
    closed: jex.ClosedJaxpr, outvars: Sequence[Any], given: Collection[Any] = ()
) -> tuple[jex.ClosedJaxpr, tuple[Any, ...]]:
    """Return the part of a jaxpr that computes some values, and the variables that it reads.

    Args:
        closed: The jaxpr; no equation has a side effect, so what is not needed can go.
        outvars: The values to compute: variables of the jaxpr, or literals.
        given: Variables of the jaxpr whose values are operands of the part.
    """
    jaxpr = closed.jaxpr
    outside = set(given)
    needed = {v for v in outvars if not isinstance(v, jex.Literal)}
    eqns = []
    for eqn in reversed(jaxpr.eqns):
        if any(v in needed and v not in outside for v in eqn.outvars):
            eqns.append(eqn)
            needed.update(v for v in eqn.invars if not isinstance(v, jex.Literal))
    consts = [(v, c) for v, c in zip(jaxpr.constvars, closed.consts, strict=True) if v in needed]
    invars = [v for v in (*jaxpr.invars, *given) if v in needed]
    new = jaxpr.replace(
        constvars=[v for v, _ in consts],
        invars=invars,
        outvars=list(outvars),
        eqns=eqns[::-1],
        debug_info=jaxpr.debug_info.with_unknown_names(),
    )
    return jex.ClosedJaxpr(new, [c for _, c in consts]), tuple(invars)


def cut_out(
    jaxpr: Any, eqns: Sequence[Any], outvars: Sequence[Any], consts: Mapping[Any, Any] = MappingProxyType({})
) -> tuple[jex.ClosedJaxpr, tuple[Any, ...]]:
    """Return some equations of a jaxpr as a jaxpr of their own, whose constants are among `consts`, by variable; and
    the other variables that it reads."""
    defined = {v for eqn in eqns for v in eqn.outvars}
    read = (v for vs in (*(eqn.invars for eqn in eqns), outvars) for v in vs)
    used = list(dict.fromkeys(v for v in read if isinstance(v, jex.Var) and v not in defined))
    constants, ins = [v for v in used if v in consts], [v for v in used if v not in consts]
    unnamed = jaxpr.debug_info.with_unknown_names()
    part = jaxpr.replace(constvars=constants, invars=ins, outvars=[*outvars], eqns=[*eqns], debug_info=unnamed)
    return jex.ClosedJaxpr(part, [consts[v] for v in constants]), tuple(ins)


def evaluated(
    jaxpr: Any,
    consts: Iterable[Any],
    args: Sequence[Any],
    equation: Callable[[Any, list[Any]], Sequence[Any]],
    literal: Callable[[Any], Any],
) -> list[Any]:
    """Return the results of a jaxpr whose equations are computed by a function of the equation and its operands.

    `consts`, `args` and results may be anything that stands for values; `literal` gives it for numbers in the jaxpr.
    """
    env: dict[Any, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True))

    def look(v: Any) -> Any:
        return literal(v) if isinstance(v, jex.Literal) else env[v]

    for eqn in jaxpr.eqns:
        env.update(zip(eqn.outvars, equation(eqn, [look(v) for v in eqn.invars]), strict=True))
    return [look(v) for v in jaxpr.outvars]
