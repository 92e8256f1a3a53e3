"""Replace checks by branches, one for all checks of a block.

before:  bb0: x = { xs[i] }; check bad, error IndexError("..."); y = { x + 1 }; jump bb1
after:   bb0: x = { xs[i] }; y = { x + 1 }; branch bad, bb2, bb1          bb2: fail error IndexError("...")

A lane that fails has no further use for what the rest of its block computes, so the checks of a block are looked at
together when it ends, or before an operation with an effect. The first that failed decides. Where there are several,
the lane goes to blocks that find it, which no other lane enters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp

from pcbatch.ir.cfg import Block, Call, CfgProgram, Function, Op
from pcbatch.ir.names import TypedFresh
from pcbatch.ir.ops import RETURN, Branch, Check, EffectOp, Expr, Fail, Move, Prim, Return
from pcbatch.ir.roles import reads, rename_reads, writes
from pcbatch.ir.types import BOOL
from pcbatch.lowering.typing.jax_types import to_aval
from pcbatch.lowering.typing.trace import JaxprFn


def run(program: CfgProgram) -> CfgProgram:
    """Replace all checks of a program; functions without any stay as they are."""
    return replace(program, functions=tuple(_function(function) for function in program.functions))


def _function(function: Function) -> Function:
    if not any(isinstance(op, Check) for op in function.ops):
        return function
    lowering = _Lowering(function)
    for block in function.blocks:
        lowering.block(block)
    return replace(function, blocks=(*lowering.blocks, *lowering.failing), types=lowering.new.types)


class _Lowering:
    """A function while its checks are replaced; blocks that fail are put behind the others."""

    def __init__(self, function: Function) -> None:
        self.blocks: list[Block] = []
        self.failing: list[Block] = []
        self.known: dict[tuple[object, ...], str] = {}  # failure -> the label of its block
        self.new = TypedFresh(function.types)
        self.number = function.last_label

    def label(self) -> str:
        self.number += 1
        return f"bb{self.number}"

    def block(self, block: Block) -> None:
        """Append a block, cut where lanes that have failed must not go on."""
        label, ops, checks = block.label, list[Op](), list[Check]()
        for op in block.ops:
            if isinstance(op, Check):
                checks.append(op)
                continue
            if isinstance(op, Call | EffectOp) and checks:
                after = self.label()
                self.end(label, ops, checks, after)
                label, ops, checks = after, [], []
            elif checks:
                self.protect(checks, op, ops)
            ops.append(op)
        if not checks:
            self.blocks.append(Block(label, tuple(ops), block.terminator))
        elif isinstance(block.terminator, Return):
            self.end(label, ops, checks, RETURN)
        else:
            after = self.label()
            self.end(label, ops, checks, after)
            self.blocks.append(Block(after, (), block.terminator))

    def protect(self, checks: list[Check], op: Op, ops: list[Op]) -> None:
        """Save what pending checks read before an operation overwrites it."""
        written = set(writes(op))
        for k, check in enumerate(checks):
            copies: dict[str, str] = {}
            for name in reads(check):
                if name in written and name not in copies:
                    copies[name] = self.copy(name, ops, check)
            if copies:
                checks[k] = rename_reads(check, lambda v, copies=copies: copies.get(v, v))  # type: ignore[misc]

    def copy(self, name: str, ops: list[Op], check: Check) -> str:
        temp = self.new(name)
        ops.append(Move(temp, name, check.loc))
        return temp

    def end(self, label: str, ops: list[Op], checks: Sequence[Check], after: str) -> None:
        """End a block: lanes for which all checks hold go on at `after`."""
        names = list(dict.fromkeys(check.failed for check in checks))
        loc = checks[0].loc
        failed = names[0]
        if len(names) > 1:
            failed = self.new("failed", BOOL)
            ops.append(Prim((failed,), _any(names), loc))
        self.blocks.append(Block(label, tuple(ops), Branch(failed, self.cold(checks), after, loc)))

    def cold(self, checks: Sequence[Check]) -> str:
        """Return the label where lanes go of which a check has failed: the first that did is found there."""
        check, *rest = checks
        if all(_failure(one) == _failure(check) for one in rest):
            return self.fail(check)
        label = self.label()
        self.failing.append(Block(label, (), Branch(check.failed, self.fail(check), self.cold(rest), check.loc)))
        return label

    def fail(self, check: Check) -> str:
        """Return the label of the block that fails as a check does."""
        key = _failure(check)
        if key not in self.known:
            self.known[key] = self.label()
            fail = Fail(check.kind, check.name, check.message, check.loc)
            self.failing.append(Block(self.known[key], (), fail))
        return self.known[key]


def _failure(check: Check) -> tuple[object, ...]:
    return (check.kind, check.name, check.message, check.loc)


def _any(names: Sequence[str]) -> Expr:
    def fn(*failed: jax.Array) -> jax.Array:
        result = failed[0]
        for one in failed[1:]:
            result = jnp.logical_or(result, one)
        return result

    closed = jax.make_jaxpr(fn)(*[to_aval(BOOL)] * len(names))
    return Expr(" or ".join(names), tuple(names), JaxprFn(closed, [None]))
