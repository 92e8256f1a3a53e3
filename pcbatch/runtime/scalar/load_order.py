"""Loads of a visit in front of the stores behind them, which XLA would otherwise copy the array for.

before:  y = load x i                after:   y, x' = load x i
         x2 = store x j z                     x2 = store x' j z

A native function stores in place where all that is read of the array comes before, and XLA knows that one call comes
before another only where the second one needs what the first one gives. Most stores need what was loaded; a store that
does not, as `d[b]` of a `defaultdict` behind a look at `d[a]`, gets the array out of the call that loads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend.core as jex

from pcbatch.runtime.scalar.native import LOAD, own_call


def loads_first(compute: Callable[..., Any], *args: Any) -> Any:
    """Return `compute(*args)`, of pytrees of arrays, with each store behind the loads that come before it."""
    leaves, tree = jax.tree.flatten(args)
    closed, types = jax.make_jaxpr(lambda *flat: compute(*jax.tree.unflatten(tree, flat)), return_shape=True)(*leaves)
    outs = jex.jaxpr_as_fun(jex.ClosedJaxpr(_in_order(closed.jaxpr), closed.consts))(*leaves)
    return jax.tree.unflatten(jax.tree.structure(types), outs)


def _in_order(jaxpr: jex.Jaxpr) -> jex.Jaxpr:
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
