"""Writes into a part of a register, in place: `xs = xs.at[i].set(v)`.

A register is normally updated by selecting, for whole lanes, between its new and its old value. For a large array of
which one row changes that would copy everything on each visit. So a scatter into the register that the primitive
itself reads is done apart: inactive lanes get an index out of range, which the scatter drops, and the array stays
where it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp

from pcbatch.ir.ops import Prim
from pcbatch.lowering.cost import SCATTERS
from pcbatch.lowering.jax_types import integer_limits
from pcbatch.lowering.trace import JaxprFn

MIN_SIZE = 16  # elements per lane; selecting less is cheaper than a scatter


@dataclass(frozen=True, slots=True)
class Stores:
    """A primitive split into what it computes and the scatters that end it."""

    rest: jex.ClosedJaxpr  # gives the plain results, then indices and updates of every scatter
    plain: tuple[str, ...]
    scatters: tuple[tuple[str, Any], ...]  # destination (and operand), equation

    def run(self, values: Sequence[Any], operands: Mapping[str, Any], active: jax.Array) -> dict[str, Any]:
        """All results for one lane; stores happen only where the lane is `active` (bool[])."""
        outs = list(jex.jaxpr_as_fun(self.rest)(*values))
        results = dict(zip(self.plain, outs, strict=False))
        parts = outs[len(self.plain) :]
        for k, (dst, eqn) in enumerate(self.scatters):
            indices, updates = parts[2 * k], parts[2 * k + 1]
            nowhere = jnp.asarray(integer_limits(indices.dtype)[1], indices.dtype)
            masked = jnp.where(active, indices, nowhere)
            results[dst] = eqn.primitive.bind(operands[dst], masked, updates, **eqn.params)
        return results


def find(op: Prim) -> Stores | None:
    """The split of a primitive, or None if it stores nothing in place."""
    return _split(op.dsts, op.expr.ins, op.expr.fn) if isinstance(op.expr.fn, JaxprFn) else None


def _split(dsts: tuple[str, ...], ins: tuple[str, ...], fn: JaxprFn) -> Stores | None:
    jaxpr = fn.closed.jaxpr
    made = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    operands = dict(zip(jaxpr.invars, ins, strict=True))
    scatters, plain, outvars = [], [], []
    for dst, var, cast in zip(dsts, jaxpr.outvars, fn.casts, strict=True):
        eqn = made.get(var) if isinstance(var, jex.Var) else None
        if eqn is not None and cast is None and _stores(eqn, dst, operands):
            scatters.append((dst, eqn))
        else:
            plain.append(dst)
            outvars.append(var)
    if not scatters or any(cast is not None for cast in fn.casts):
        return None
    for _, eqn in scatters:
        outvars += eqn.invars[1:]
    rest = jaxpr.replace(outvars=outvars, debug_info=jaxpr.debug_info.with_unknown_names())
    return Stores(jex.ClosedJaxpr(rest, fn.closed.consts), tuple(plain), tuple(scatters))


def _stores(eqn: Any, dst: str, operands: Mapping[Any, str]) -> bool:
    if eqn.primitive.name not in SCATTERS:
        return False  # first: an equation such as iota's has no operands at all
    target = eqn.invars[0]
    if isinstance(target, jex.Literal) or operands.get(target) != dst:
        return False
    # Masking needs an index that can point out of range: `.at[:]` has none at all, and a uint8 may not reach that far.
    indices = eqn.invars[1].aval
    if not indices.size or integer_limits(indices.dtype)[1] < max(target.aval.shape):
        return False
    drops: bool = eqn.params["mode"] == jax.lax.GatherScatterMode.FILL_OR_DROP
    return drops and int(target.aval.size) >= MIN_SIZE
