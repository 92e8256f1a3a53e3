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
            renamed |= dict(zip(form.jaxpr.invars, eqn.invars, strict=True))
            eqns += [inner.replace(invars=list(map(atom, inner.invars))) for inner in form.jaxpr.eqns]
            renamed |= {out: atom(var) for out, var in zip(eqn.outvars, form.jaxpr.outvars, strict=True)}
        new = jaxpr.replace(constvars=[*jaxpr.constvars, *consts], eqns=eqns, outvars=list(map(atom, jaxpr.outvars)))
        assert isinstance(value, jex.ClosedJaxpr) or not consts
        return jex.ClosedJaxpr(new, [*value.consts, *consts.values()]) if isinstance(value, jex.ClosedJaxpr) else new
