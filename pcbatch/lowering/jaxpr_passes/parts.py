"""Parts of the jaxpr of a primitive: what computes some of its values, with others given."""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
