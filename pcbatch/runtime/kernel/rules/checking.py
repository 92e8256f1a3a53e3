"""The list of all that a kernel cannot hold, found without a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.extend.core as jex

from pcbatch.runtime.kernel.rules.control_flow import CALLS
from pcbatch.runtime.kernel.rules.evaluation import apply, literal
from pcbatch.runtime.kernel.rules.hoisting import jaxprs_inside
from pcbatch.runtime.kernel.rules.padding import struct
from pcbatch.runtime.kernel.rules.unsupported import Unsupported


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
