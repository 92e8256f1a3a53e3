"""Turn values of an outer trace that a function has captured into parameters of the program.

before:  t = { x * w }    (w a tracer of a `jit` or `grad`)       after:  t = { x * w } reads (x, captured.0)

A program that holds such a value could be used in that trace alone, and JAX could not differentiate through the program
with respect to it. All lanes share the new parameters. Known values, arrays of numbers, stay in the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.extend.core as jex

from pcbatch.ir.ops import Prim
from pcbatch.ir.stack import StackProgram, Var
from pcbatch.lowering.typing.jax_types import from_aval
from pcbatch.lowering.typing.trace import JaxprFn


def run(program: StackProgram) -> tuple[StackProgram, Mapping[str, Any]]:
    """Return the program with further parameters, and the value of each by name."""
    finder = _Finder()
    blocks = tuple(replace(block, ops=tuple(map(finder.op, block.ops))) for block in program.blocks)
    if not finder.values:
        return program, {}
    captured = {name: Var(from_aval(jax.typeof(value))) for name, value in finder.values.items()}
    params = (*program.params, *captured)
    return replace(program, params=params, vars={**program.vars, **captured}, blocks=blocks), finder.values


@dataclass
class _Finder:
    values: dict[str, Any] = field(default_factory=dict)

    def op(self, op: Any) -> Any:
        """Return an operation that reads its captured values from parameters."""
        if not isinstance(op, Prim) or not isinstance(op.expr.fn, JaxprFn):
            return op
        closed = op.expr.fn.closed
        pairs = list(zip(closed.jaxpr.constvars, closed.consts, strict=True))
        outer = [(v, x) for v, x in pairs if isinstance(x, jax.core.Tracer)]
        if not outer:
            return op
        known = [(v, x) for v, x in pairs if not isinstance(x, jax.core.Tracer)]
        jaxpr = closed.jaxpr.replace(
            constvars=[v for v, _ in known],
            invars=[*closed.jaxpr.invars, *(v for v, _ in outer)],
            debug_info=closed.jaxpr.debug_info.with_unknown_names(),
        )
        fn = JaxprFn(jex.ClosedJaxpr(jaxpr, [x for _, x in known]), op.expr.fn.casts)
        return replace(op, expr=replace(op.expr, ins=(*op.expr.ins, *(self._name(x) for _, x in outer)), fn=fn))

    def _name(self, value: Any) -> str:
        for name, captured in self.values.items():
            if captured is value:
                return name
        name = f"captured.{len(self.values)}"
        self.values[name] = value
        return name
