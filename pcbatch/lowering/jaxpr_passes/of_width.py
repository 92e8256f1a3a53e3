"""Choose the forms for lanes that run together, where a computation has two (`data/by_width.py`).

before:  c:i32[8] = pcbatch_by_width[together={ ... } alone={ ... }] b
after:   the equations of the first form

Lanes that run one after the other take the second form, so the program with both is kept for their machine
(`runtime/scalar/rules.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.extend.core as jex

from pcbatch.data.by_width import by_width_p
from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.stack import StackProgram
from pcbatch.lowering.jaxpr_passes.rewrite_jaxprs import Rewrite


def run(
    typed: Sequence[CfgProgram], lowered: Sequence[StackProgram]
) -> tuple[Sequence[CfgProgram], Sequence[StackProgram]]:
    """Choose in all primitives of the stages of a program, before and after calls are lowered."""
    together = _Together()
    return list(map(together.cfg, typed)), list(map(together.stack, lowered))


class _Together(Rewrite):
    """Puts the equations of the first form in place of each equation, also of forms inside of forms."""

    def equation(self, eqn: Any) -> Any:
        return eqn

    def _rewritten(self, value: Any) -> Any:
        value = super()._rewritten(value)
        jaxpr = value.jaxpr if isinstance(value, jex.ClosedJaxpr) else value
        if not any(eqn.primitive is by_width_p for eqn in jaxpr.eqns):
            return value
        consts: dict[Any, Any] = {}
        renamed: dict[Any, Any] = {}

        def atom(var: Any) -> Any:
            return var if isinstance(var, jex.Literal) else renamed.get(var, var)

        eqns: list[Any] = []
        for eqn in jaxpr.eqns:
            eqn = eqn.replace(invars=list(map(atom, eqn.invars)))
            if eqn.primitive is not by_width_p:
                eqns.append(eqn)
                continue
            form = self.inner(eqn.params["together"])
            consts |= dict(zip(form.jaxpr.constvars, form.consts, strict=True))
            inside, outs = _spliced(form.jaxpr, eqn.invars)
            eqns += inside
            renamed |= dict(zip(eqn.outvars, outs, strict=True))
        new = jaxpr.replace(constvars=[*jaxpr.constvars, *consts], eqns=eqns, outvars=list(map(atom, jaxpr.outvars)))
        assert isinstance(value, jex.ClosedJaxpr) or not consts
        return jex.ClosedJaxpr(new, [*value.consts, *consts.values()]) if isinstance(value, jex.ClosedJaxpr) else new


def _spliced(form: jex.Jaxpr, operands: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return the equations of a form of these operands, and its results, with variables of their own: other places of
    the program may have the same form."""
    own = dict(zip(form.invars, operands, strict=True))

    def atom(var: Any) -> Any:
        return var if isinstance(var, jex.Literal) else own.get(var, var)

    eqns = []
    for eqn in form.eqns:
        ins = list(map(atom, eqn.invars))
        own |= {out: jex.Var(out.aval) for out in eqn.outvars if not isinstance(out, jex.DropVar)}
        eqns.append(eqn.replace(invars=ins, outvars=[own.get(out, out) for out in eqn.outvars]))
    return eqns, list(map(atom, form.outvars))
