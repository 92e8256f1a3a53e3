"""Replacement of equations in the jaxprs of a program, also inside loops, branches and calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import jax
import jax.extend.core as jex

from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.ops import Prim
from pcbatch.ir.stack import StackProgram
from pcbatch.lowering.typing.jax_types import array_struct
from pcbatch.lowering.typing.trace import JaxprFn

T = TypeVar("T")

# Equations that run the jaxprs among their parameters, and ask nothing else of them.
CALLS = set("jit pjit closed_call core_call remat remat2 checkpoint custom_jvp_call custom_vjp_call".split())
CALLS |= {"cond", "while", "scan"}


class Rewrite:
    """A rewrite of jaxprs; subclasses define `equation`.

    A jaxpr that is used in several places is rewritten to one object, so JAX lowers it once.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, Any]] = {}  # the old jaxpr is kept alive, so that its id stays its own

    def equation(self, eqn: Any) -> Any:
        """Return the replacement of an equation that holds no jaxpr; the equation itself to leave it."""
        raise NotImplementedError

    def stack(self, program: StackProgram) -> StackProgram:
        """Rewrite a program whose calls are lowered."""
        blocks = tuple(replace(b, ops=tuple(self.op(op) for op in b.ops)) for b in program.blocks)
        return replace(program, blocks=blocks, prologue=tuple(self.op(op) for op in program.prologue))

    def cfg(self, program: CfgProgram) -> CfgProgram:
        """Rewrite a program whose calls are operations."""

        def ops(block: Any) -> Any:
            return replace(block, ops=tuple(self.op(op) for op in block.ops))

        functions = (replace(f, blocks=tuple(map(ops, f.blocks))) for f in program.functions)
        return replace(program, functions=tuple(functions))

    def op(self, op: T) -> T:
        """Rewrite one operation; only primitives hold jaxprs."""
        if not isinstance(op, Prim) or not isinstance(op.expr.fn, JaxprFn):
            return op
        fn = op.expr.fn
        closed = self.inner(fn.closed)
        if closed is fn.closed:
            return op
        return replace(op, expr=replace(op.expr, fn=JaxprFn(closed, fn.casts, fn.beside_product)))

    def inner(self, value: Any) -> Any:
        """Rewrite the jaxprs in the value of a parameter of an equation: a jaxpr, a tuple of them, or neither."""
        if isinstance(value, tuple) and any(isinstance(item, jex.ClosedJaxpr | jex.Jaxpr) for item in value):
            return tuple(self.inner(item) for item in value)
        if not isinstance(value, jex.ClosedJaxpr | jex.Jaxpr):
            return value
        if id(value) not in self._known:
            self._known[id(value)] = value, self._rewritten(value)
        return self._known[id(value)][1]

    def any_equation(self, eqn: Any) -> Any:
        """Rewrite one equation: those of `CALLS` inside, all others by `equation`."""
        if eqn.primitive.name not in CALLS:
            return self.equation(eqn)
        params = {key: self.inner(value) for key, value in eqn.params.items()}
        same = all(new is old for new, old in zip(params.values(), eqn.params.values(), strict=True))
        return eqn if same else eqn.replace(params=params)

    def _rewritten(self, value: Any) -> Any:
        closed = isinstance(value, jex.ClosedJaxpr)
        jaxpr = value.jaxpr if closed else value
        eqns = [self.any_equation(eqn) for eqn in jaxpr.eqns]
        if all(new is old for new, old in zip(eqns, jaxpr.eqns, strict=True)):
            return value
        return jex.ClosedJaxpr(jaxpr.replace(eqns=eqns), value.consts) if closed else jaxpr.replace(eqns=eqns)


def as_call(fn: Callable[..., Any], eqn: Any) -> Any | None:
    """Return an equation that calls `fn` in place of `eqn`, with the same operands and parameters.

    None if JAX traces the call to something other than one equation, or with results of other types.
    """
    ins = [_aval(v.aval) for v in eqn.invars]
    closed = jax.make_jaxpr(lambda *args: fn(*args, **eqn.params))(*ins)
    if len(closed.eqns) != 1 or closed.consts or closed.jaxpr.outvars != closed.eqns[0].outvars:
        return None
    call = closed.eqns[0]
    if [v.aval for v in call.outvars] != [v.aval for v in eqn.outvars]:
        return None
    return eqn.replace(primitive=call.primitive, params=call.params)


def _aval(aval: Any) -> jax.ShapeDtypeStruct:
    struct: jax.ShapeDtypeStruct = array_struct(aval.shape, aval.dtype, weak_type=getattr(aval, "weak_type", False))
    return struct
