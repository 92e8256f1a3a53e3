"""Run one lane step by step to find the operation that first gives a NaN or an infinity.

The program runs in the reference interpreter, one equation of one jaxpr at a time; JAX keeps, for every equation, the
traceback of the Python call that made it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax.extend.core as jex
import jax.numpy as jnp

from pcbatch.diagnostics.diagnostic import Label, Loc
from pcbatch.ir.cfg import Block, CfgProgram
from pcbatch.ir.interpret import LaneError, Watch, interpret
from pcbatch.ir.ops import Prim
from pcbatch.lowering.diagnose.traceback_spans import spans, traceback_frames
from pcbatch.lowering.typing.trace import JaxprFn, is_key_array

MOST_STEPS = 100_000  # blocks that the lane may run in the search

_BAD = {"nan": jnp.isnan, "inf": jnp.isinf}


@dataclass(frozen=True, slots=True)
class Witness:
    """The operation that first gave a NaN or an infinity: its name in JAX, its span, and the helpers below that.

    `kind` is "nan" or "inf", `operation` is empty if no single equation gives the value.
    """

    kind: str
    operation: str
    place: Loc
    helpers: tuple[Label, ...]


def find(program: CfgProgram, args: Sequence[Any], kinds: Sequence[str]) -> Witness | None:
    """Run one lane with these arguments, and return the first operation that gives a value of one of `kinds` ("nan",
    "inf"); None if there is none within `MOST_STEPS` blocks."""
    try:
        interpret(_watching(program, kinds), args, Watch(MOST_STEPS))
    except _Found as found:
        return found.witness
    except LaneError:
        pass
    return None


class _Found(Exception):
    def __init__(self, witness: Witness) -> None:
        super().__init__()
        self.witness = witness


def _watching(program: CfgProgram, kinds: Sequence[str]) -> CfgProgram:
    """The program with primitives that raise `_Found` when a result is of one of `kinds`."""

    def block(b: Block) -> Block:
        return replace(b, ops=tuple(_watched(op, kinds) if isinstance(op, Prim) else op for op in b.ops))

    functions = tuple(replace(f, blocks=tuple(map(block, f.blocks))) for f in program.functions)
    return replace(program, functions=functions)


def _watched(op: Prim, kinds: Sequence[str]) -> Prim:
    run = op.expr.fn
    if not isinstance(run, JaxprFn) or op.loc is None:
        return op
    loc = op.loc

    def fn(*args: Any) -> Any:
        values = run(*args)
        outs = (values,) if len(op.dsts) == 1 else values
        kind = next((kind for kind in kinds if any(_is_bad(kind, value) for value in outs)), None)
        if kind is not None:
            eqn = _first_equation(run.closed, args, kind)
            recorded = None if eqn is None else eqn.source_info.traceback
            frames = [] if recorded is None else traceback_frames(recorded.as_python_traceback())
            place, helpers = spans(frames, loc) or (loc, ())
            operation = "" if eqn is None else str(eqn.params.get("name", eqn.primitive.name))
            raise _Found(Witness(kind, operation, place, helpers))
        return values

    return replace(op, expr=replace(op.expr, fn=fn))


def _is_bad(kind: str, value: Any) -> bool:
    return bool(jnp.issubdtype(value.dtype, jnp.inexact) and _BAD[kind](value).any())


def _first_equation(closed: jex.ClosedJaxpr, args: Sequence[Any], kind: str) -> Any:
    """The first equation of a jaxpr with a result of this kind, each evaluated on its own; None if there is none."""
    jaxpr = closed.jaxpr
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    for v, value in zip(jaxpr.invars, args, strict=True):
        env[v] = value if is_key_array(value) else jnp.asarray(value, v.aval.dtype)
    read = {v for eqn in jaxpr.eqns for v in eqn.invars if isinstance(v, jex.Var)}
    read |= {v for v in jaxpr.outvars if isinstance(v, jex.Var)}
    for eqn in jaxpr.eqns:
        ins = list(dict.fromkeys(v for v in eqn.invars if isinstance(v, jex.Var)))
        outs = [v for v in eqn.outvars if v in read]
        one = jex.ClosedJaxpr(jaxpr.replace(constvars=[], invars=ins, outvars=outs, eqns=[eqn]), [])
        values = jex.jaxpr_as_fun(one)(*(env[v] for v in ins))
        if any(_is_bad(kind, value) for value in values):
            return eqn
        env.update(zip(outs, values, strict=True))
    return None
