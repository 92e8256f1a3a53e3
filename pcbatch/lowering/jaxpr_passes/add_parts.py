"""Sums with arrays that are zero but for a part: the part is added in its place.

before:  b = dynamic_update_slice zeros p i j;  c = add a b
after:   c = jit[a[i:, j:] += p] a p i j

The pullback of a slice or a gather is such an array. Added as a whole, an element of a table costs as much as the
table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp

from pcbatch.lowering.jaxpr_passes.rewrite_jaxprs import as_call

SUMS = ("add", "add_any")


def add_parts(closed: jex.ClosedJaxpr) -> jex.ClosedJaxpr:
    """Rewrite the sums of a jaxpr; what they no longer need is left in it."""
    found = _Sums.of(closed.jaxpr)
    eqns: list[Any] = []
    for eqn in closed.jaxpr.eqns:
        eqns += found.rewritten(eqn)
    return jex.ClosedJaxpr(closed.jaxpr.replace(eqns=eqns), closed.consts)


@dataclass(frozen=True)
class _Sums:
    made_by: Mapping[Any, Any]  # variable -> equation
    terms: Set[Any]  # variables that are terms of sums and nothing else, once

    @classmethod
    def of(cls, jaxpr: jex.Jaxpr) -> _Sums:
        used = [v for eqn in jaxpr.eqns for v in eqn.invars] + list(jaxpr.outvars)
        uses = Counter(v for v in used if not isinstance(v, jex.Literal))
        added = [v for eqn in jaxpr.eqns if eqn.primitive.name in SUMS for v in eqn.invars]
        terms = {v for v in added if not isinstance(v, jex.Literal) and uses[v] == 1}
        return cls({v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}, terms)

    def rewritten(self, eqn: Any) -> list[Any]:
        """Return the equations in place of one."""
        if eqn.primitive.name not in SUMS or eqn.outvars[0] in self.terms:
            return [eqn]  # a part of a longer sum is none by itself
        terms = self._terms(eqn)
        parts = [part for v in terms if (part := self._part(v)) is not None]
        whole = [v for v in terms if self._part(v) is None]
        if not parts or not whole or any(v.aval != eqn.outvars[0].aval for v in whole):
            return [eqn]
        counts = [len(part.invars) - 1 for part in parts]

        def added(*args: Any) -> jax.Array:
            out: jax.Array = sum(args[1 : len(whole)], start=args[0])
            rest = list(args[len(whole) :])
            for part, count in zip(parts, counts, strict=True):
                out = ADDED[part.primitive.name](out, part.params, *rest[:count])
                del rest[:count]
            return out

        operands = [*whole, *(v for part in parts for v in part.invars[1:])]
        call = as_call(lambda *args: jax.jit(added)(*args), eqn.replace(invars=operands, params={}))
        return [eqn] if call is None else [call]

    def _terms(self, eqn: Any) -> list[Any]:
        """Return the terms of a sum, in order, those of sums among them that nothing else uses."""
        found: list[Any] = []
        rest = list(reversed(eqn.invars))
        while rest:
            v = rest.pop()
            made = None if isinstance(v, jex.Literal) or v not in self.terms else self.made_by.get(v)
            if made is not None and made.primitive.name in SUMS:
                rest += reversed(made.invars)
            else:
                found.append(v)
        return found

    def _part(self, v: Any) -> Any | None:
        """Return the equation that makes an array of zeros but for a part; None if none does."""
        made = None if isinstance(v, jex.Literal) else self.made_by.get(v)
        if made is None or made.primitive.name not in ADDED:
            return None
        zeros = self.made_by.get(made.invars[0]) if not isinstance(made.invars[0], jex.Literal) else None
        return made if zeros is not None and _is_zero(zeros) else None


def _is_zero(eqn: Any) -> bool:
    if eqn.primitive.name != "broadcast_in_dim" or not isinstance(eqn.invars[0], jex.Literal):
        return False
    value = eqn.invars[0].val
    return bool(jnp.ndim(value) == 0 and value == 0)


def _slice_added(whole: jax.Array, params: Mapping[str, Any], part: jax.Array, *starts: jax.Array) -> jax.Array:
    old = jax.lax.dynamic_slice(whole, starts, part.shape)
    return jax.lax.dynamic_update_slice(whole, old + part, starts)


def _scatter_added(whole: jax.Array, params: Mapping[str, Any], indices: jax.Array, updates: jax.Array) -> jax.Array:
    return jax.lax.scatter_add_p.bind(whole, indices, updates, **params)  # type: ignore[no-any-return]


ADDED: dict[str, Callable[..., jax.Array]] = {"dynamic_update_slice": _slice_added, "scatter-add": _scatter_added}
"""The function that adds the part of an array that an operation makes of zeros, by the name of its primitive."""
