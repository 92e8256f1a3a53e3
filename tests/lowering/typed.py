"""Programs in text form as the passes that weigh costs want them: every primitive with its jaxpr."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from pcbatch.ir.cfg import CfgProgram, Function
from pcbatch.ir.ops import Prim
from pcbatch.ir.stack import StackProgram
from pcbatch.lowering.typing.abstract_values import Abstract
from pcbatch.lowering.typing.jax_types import to_aval
from pcbatch.lowering.typing.pytree import flatten
from pcbatch.lowering.typing.trace import JaxprFn
from tests.oracles.text.functions import as_function

NAMES: Mapping[str, Any] = {"jnp": jnp, "jax": jax}

ProgramT = TypeVar("ProgramT", CfgProgram, StackProgram)


def typed(program: ProgramT) -> ProgramT:
    """The same program with a function for every primitive; all variables must have types."""
    if isinstance(program, CfgProgram):
        return replace(program, functions=tuple(_function(function) for function in program.functions))
    types = {name: var.type for name, var in program.vars.items()}
    blocks = tuple(replace(b, ops=tuple(_op(op, types.__getitem__) for op in b.ops)) for b in program.blocks)
    return replace(program, blocks=blocks)


def _function(function: Function) -> Function:
    blocks = tuple(replace(b, ops=tuple(_op(op, function.types.__getitem__) for op in b.ops)) for b in function.blocks)
    return replace(function, blocks=blocks)


def _op(op: Any, type_of: Callable[[str], Any]) -> Any:
    if not isinstance(op, Prim):
        return op
    plain = as_function(op.expr.text, op.expr.ins, NAMES)

    def fn(*args: Any) -> Any:
        out = plain(*args)
        outs = out if len(op.dsts) > 1 else (out,)
        return [jnp.asarray(value, type_of(dst).dtype) for value, dst in zip(outs, op.dsts, strict=True)]

    closed = jax.make_jaxpr(fn)(*(to_aval(type_of(v)) for v in op.expr.ins))
    return replace(op, expr=replace(op.expr, fn=JaxprFn(closed, [None] * len(op.dsts))))


def abstract_of(tree_of_types: Any) -> Abstract:
    """Return the abstract value of a pytree whose leaves are `ArrayType`."""
    leaves, tree = flatten(tree_of_types)
    return Abstract(tree, tuple(leaves))
