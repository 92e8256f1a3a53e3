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

from pcbatch.runtime.scalar.native import LOAD, own_call
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
        if _is_load(eqn) and _stored_regardless(eqn, jaxpr.eqns[k + 1 :]):
            array = new.invars[0]
            new = _giving_array(new)
            later[eqn.invars[0]] = new.outvars[1]
            later |= {var: new.outvars[1] for var in later if later[var] is array}
        eqns.append(new)
    return jaxpr if not later else jaxpr.replace(eqns=eqns, outvars=list(map(atom, jaxpr.outvars)))


def _is_load(eqn: Any) -> bool:
    """Whether an equation is a load in a function of its own, as `rules.ForOneLane` makes it."""
    if eqn.params.get("name") != LOAD:
        return False
    inside = eqn.params["jaxpr"].jaxpr
    return inside.eqns[0].primitive is eqn.primitive and inside.eqns[0].invars[0] is inside.invars[0]


def _stored_regardless(load: Any, behind: Sequence[Any]) -> bool:
    """Whether one of the equations behind a load stores into its array, and does not need what it loads."""
    array, needs = load.invars[0], {*load.outvars}
    for eqn in behind:
        operands = [var for var in eqn.invars if not isinstance(var, jex.Literal)]
        if not needs.isdisjoint(operands):
            needs |= {*eqn.outvars}
        elif array in operands and any(_alike(out.aval, array.aval) for out in eqn.outvars):
            return True
    return False


def _alike(a: Any, b: Any) -> bool:
    return bool(a.shape == b.shape and a.dtype == b.dtype)


def _giving_array(load: Any) -> Any:
    """Return the equation of a load with the array as a second result."""
    inside = load.params["jaxpr"].jaxpr
    call = inside.eqns[0]
    compute = jex.jaxpr_as_fun(call.params["jaxpr"])

    def both(*operands: Any) -> Any:
        given = dict(zip(inside.invars, operands, strict=True))
        used = [var.val if isinstance(var, jex.Literal) else given[var] for var in call.invars]
        return own_call(lambda *args: (*compute(*args), args[0]), *used)

    (new,) = jax.make_jaxpr(jax.jit(both))(*(var.aval for var in load.invars)).eqns
    return load.replace(params=new.params, outvars=[*load.outvars, jex.Var(load.invars[0].aval)])
