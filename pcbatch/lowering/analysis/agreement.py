"""The registers in which the lanes of a visit agree: counters that say which part of a shared array a product is with.

    bb1:  x = tanh(w[i] @ x); i = i + 1        keys: i

A visit of all lanes would gather a matrix for each, and a gradient would add up one for each. So a visit is of those
lanes that have the `i` of the first one: `w[i]` is one slice of the array, and the product is one of two matrices. The
others still wait for the block. A counter is a register whose values depend on counters and on shared values alone:
lanes that began together agree in it. An index that comes from data may differ in all lanes, and is no key.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence

import jax.extend.core as jex

from pcbatch.ir.ops import Move, Prim, Select
from pcbatch.ir.roles import writes
from pcbatch.ir.stack import Pop, Push, StackBlock, StackProgram
from pcbatch.lowering.typing.trace import JaxprFn

MIN_SIZE = 256  # elements of a matrix that is worth a visit for each of its values

Keys = frozenset[str] | None  # the counters that a value depends on, besides shared values; None: on anything else


def keys_of(program: StackProgram, registers: Collection[str]) -> list[tuple[str, ...]]:
    """Return the keys of each block, in order."""
    counters = {v for v in registers if v not in program.params and _counts(program, v)}
    counters = counters if any(_meets_shared(program, block, registers) for block in program.blocks) else set()
    while counters:
        lost = {v for block in program.blocks for v in _Values(program, registers, counters).lost(block)}
        if not lost:
            break
        counters -= lost
    values = _Values(program, registers, counters)
    return [values.keys(block) if counters else () for block in program.blocks]


def _counts(program: StackProgram, name: str) -> bool:
    type_ = program.vars[name].type
    return type_ is not None and not type_.shape and type_.dtype.startswith(("int", "uint"))


def _meets_shared(program: StackProgram, block: StackBlock, registers: Collection[str]) -> bool:
    """Return whether a block indexes a shared array and has a product, so that it may have keys."""
    prims = [op for op in block.ops if isinstance(op, Prim) and isinstance(op.expr.fn, JaxprFn)]
    names = {eqn.primitive.name for op in prims for eqn in _equations(op.expr.fn.closed.jaxpr)}  # type: ignore[union-attr]
    return "dot_general" in names and not names.isdisjoint(("gather", "dynamic_slice", "select_n"))


def _equations(jaxpr: jex.Jaxpr) -> Iterator[jex.JaxprEqn]:
    for eqn in jaxpr.eqns:
        yield eqn
        if eqn.primitive.name in ("jit", "pjit"):
            yield from _equations(eqn.params["jaxpr"].jaxpr)


class _Values:
    """The counters that the values of a block depend on."""

    def __init__(self, program: StackProgram, registers: Collection[str], counters: Collection[str]) -> None:
        self.program, self.registers, self.counters = program, registers, counters
        self.found: set[str] = set()

    def lost(self, block: StackBlock) -> set[str]:
        """Return the counters that a block gives a value which depends on anything else."""
        return {v for v, keys in self._run(block).items() if v in self.counters and keys is None}

    def keys(self, block: StackBlock) -> tuple[str, ...]:
        """Return the counters that choose matrices of products, in order."""
        self.found = set()
        self._run(block)
        return tuple(v for v in self.program.vars if v in self.found)

    def _run(self, block: StackBlock) -> dict[str, Keys]:
        env: dict[str, Keys] = {}

        def look(v: str) -> Keys:
            if v in env:
                return env[v]
            if v in self.registers:
                return frozenset({v}) if v in self.counters else None
            return frozenset()  # shared

        for op in block.ops:
            match op:
                case Push(dst=dst, src=src):
                    if look(src) is None:  # as if it were assigned: a slot is popped into the register again
                        env[dst] = None
                case Pop(dst=dst):
                    env[dst] = None
                case Move(dst=dst, src=src):
                    env[dst] = look(src)
                case Select(dst=dst, on_true=on_true, on_false=on_false):  # it was a branch: which way does not matter
                    env[dst] = _union([look(on_true), look(on_false)])
                case Prim(expr=expr, dsts=dsts):
                    ins = [look(v) for v in expr.ins]
                    fn = expr.fn
                    outs = self._jaxpr(fn.closed.jaxpr, ins) if isinstance(fn, JaxprFn) else [_union(ins)] * len(dsts)
                    env |= dict(zip(dsts, outs, strict=True))
                case _:
                    env |= dict.fromkeys(writes(op))
        return env

    def _jaxpr(self, jaxpr: jex.Jaxpr, ins: Sequence[Keys]) -> list[Keys]:
        env: dict[jex.Var, Keys] = dict(zip(jaxpr.invars, ins, strict=True))

        def look(v: jex.Var | jex.Literal) -> Keys:
            return frozenset() if isinstance(v, jex.Literal) else env.get(v, frozenset())

        for eqn in jaxpr.eqns:
            of = [look(v) for v in eqn.invars]
            if eqn.primitive.name in ("jit", "pjit"):
                outs = self._jaxpr(eqn.params["jaxpr"].jaxpr, of)
            else:
                outs = [_union(of)] * len(eqn.outvars)
            if eqn.primitive.name == "dot_general" and outs[0] is None:
                large = [
                    keys
                    for v, keys in zip(eqn.invars, of, strict=True)
                    if math.prod(getattr(v.aval, "shape", ())) >= MIN_SIZE
                ]
                self.found |= {v for keys in large if keys for v in keys}
            env |= dict(zip(eqn.outvars, outs, strict=True))
        return [look(v) for v in jaxpr.outvars]


def _union(keys: Sequence[Keys]) -> Keys:
    known = [some for some in keys if some is not None]
    return frozenset().union(*known) if len(known) == len(keys) else None
