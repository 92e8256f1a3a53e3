"""A visit whose loads are in front of the stores behind them, for which XLA would copy the array otherwise.

before:  y = load x i                after:   y, x' = load x i
         x2 = store x j z                     x2 = store x' j z

A native function stores in place where all that is read of the array comes before, and XLA knows that one call comes
before another only where the second one needs what the first one gives. Most stores need what was loaded; a store that
does not, as `d[b]` of a `defaultdict` behind a look at `d[a]`, gets the array out of the call that loads.

A register that a visit gives a new array of anything (`jax.lax.empty`), as the places of an empty dict are, is not
written: it keeps what it held.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.extend.core as jex

from pcbatch.runtime.scalar.native import FORM, LOAD, own_call
from pcbatch.runtime.vm.block_body import Values


@dataclass(frozen=True, slots=True)
class Ordered:
    """A visit, traced once, of operands of given types.

    Attributes:
        closed: The jaxpr of what it writes, in order.
        writes: The keys of that.
    """

    closed: jex.ClosedJaxpr
    writes: tuple[str, ...]

    @classmethod
    def of(cls, visit: Callable[..., Values], *args: Any) -> Ordered:
        """Trace a visit, with each store behind the loads that come before it, and without arrays of anything."""
        closed, types = jax.make_jaxpr(visit, return_shape=True)(*args)
        jaxpr: Any = _in_order(closed.jaxpr)
        anything = {var for eqn in jaxpr.eqns if eqn.primitive.name == "empty" for var in eqn.outvars}
        # The results of a jaxpr are in the order of sorted keys.
        writes = {k: var for k, var in zip(sorted(types), jaxpr.outvars, strict=True) if not _is_in(var, anything)}
        return cls(jex.ClosedJaxpr(jaxpr.replace(outvars=[*writes.values()]), closed.consts), tuple(writes))

    def __call__(self, *args: Any) -> Values:
        outs = jex.jaxpr_as_fun(self.closed)(*jax.tree.leaves(args))
        return dict(zip(self.writes, outs, strict=True))


def _is_in(var: Any, some: Collection[Any]) -> bool:
    return not isinstance(var, jex.Literal) and var in some


def _in_order(jaxpr: Any) -> Any:
    later: dict[Any, Any] = {}  # the name of an array behind the loads so far

    def atom(var: Any) -> Any:
        return var if isinstance(var, jex.Literal) else later.get(var, var)

    eqns = []
    for k, eqn in enumerate(jaxpr.eqns):
        new = eqn.replace(invars=list(map(atom, eqn.invars)))
        behind = jaxpr.eqns[k + 1 :]
        if stored := [j for j in _arrays_read(eqn) if _stored_regardless(eqn, eqn.invars[j], behind)]:
            arrays, new = [new.invars[j] for j in stored], _giving_arrays(new, stored)
            for j, array, out in zip(stored, arrays, new.outvars[len(eqn.outvars) :], strict=True):
                later[eqn.invars[j]] = out
                later |= {var: out for var in later if later[var] is array}
        eqns.append(new)
    return jaxpr if not later else jaxpr.replace(eqns=eqns, outvars=list(map(atom, jaxpr.outvars)))


def _arrays_read(eqn: Any) -> list[int]:
    """The positions of the arrays that an equation reads and gives no other version of, in a function that
    `rules.ForOneLane` has made: a load, or the form of a computation for a lane alone."""
    if eqn.params.get("name") not in (LOAD, FORM):
        return []
    arrays = [j for j, var in enumerate(eqn.invars) if not isinstance(var, jex.Literal) and var.aval.shape]
    return [j for j in arrays if not any(_alike(out.aval, eqn.invars[j].aval) for out in eqn.outvars)]


def _stored_regardless(reads: Any, array: Any, behind: Sequence[Any]) -> bool:
    """Whether an equation behind one that reads an array stores into it, and needs nothing of what that one gives."""
    needs = {*reads.outvars}
    for eqn in behind:
        operands = [var for var in eqn.invars if not isinstance(var, jex.Literal)]
        if not needs.isdisjoint(operands):
            needs |= {*eqn.outvars}
        elif array in operands and any(_alike(out.aval, array.aval) for out in eqn.outvars):
            return True
    return False


def _alike(a: Any, b: Any) -> bool:
    return bool(a.shape == b.shape and a.dtype == b.dtype)


def _giving_arrays(reads: Any, positions: Sequence[int]) -> Any:
    """Return an equation as a call of a function of its own, with some of its operands as further results."""
    jaxpr = reads.params["jaxpr"].jaxpr
    used = {var for eqn in jaxpr.eqns for var in eqn.invars if not isinstance(var, jex.Literal)}
    needed = [j for j, var in enumerate(jaxpr.invars) if var in used or j in positions]
    compute = _function_of(reads.params["jaxpr"])

    def both(*operands: Any) -> Any:
        def call(*given: Any) -> Any:
            every = [*operands]
            for j, value in zip(needed, given, strict=True):
                every[j] = value
            return (*compute(*every), *(every[j] for j in positions))

        return own_call(call, *(operands[j] for j in needed))

    (new,) = jax.make_jaxpr(jax.jit(both))(*(var.aval for var in reads.invars)).eqns
    arrays = [jex.Var(reads.invars[j].aval) for j in positions]
    return reads.replace(params=new.params, outvars=[*reads.outvars, *arrays])


def _function_of(closed: jex.ClosedJaxpr) -> Callable[..., Any]:
    """Return the function of a jaxpr; where it is a call of its own, as a load is, that of the call."""
    inside = closed.jaxpr
    call = inside.eqns[0]
    of_call = [*call.invars] == [*inside.invars] and [*call.outvars] == [*inside.outvars]
    if len(inside.eqns) > 1 or "jaxpr" not in call.params or not of_call:
        made: Callable[..., Any] = jex.jaxpr_as_fun(closed)
        return made
    return _function_of(call.params["jaxpr"])
