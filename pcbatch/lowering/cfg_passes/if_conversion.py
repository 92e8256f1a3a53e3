"""If-conversion: turn branches around little work into selections, so that they cost no trip.

before:  bb0: t = { x > 4 }; branch t, bb1, bb2     after:  bb0: t = { x > 4 }; y.t0 = { x + 1 }
         bb1: y = { x + 1 }; jump bb2                            y = select t, y.t0, y; jump bb2
         bb2: ...

Shapes: an arm or two arms that meet again (or both return), and `a and b` (a block that only tests a second
condition). An arm qualifies when it is pure, does not fail, has one predecessor and costs less than a trip. It then
runs for all lanes, and its result is dropped for those of the other arm, as are its checks (Allen et al., "Conversion
of control dependence to data dependence", POPL 1983).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp

from pcbatch.ir.analysis import liveness
from pcbatch.ir.analysis.dataflow import Worklist
from pcbatch.ir.analysis.def_use import jump_to, predecessors, successors
from pcbatch.ir.cfg import Block, Call, CfgProgram, Function, Op
from pcbatch.ir.names import TypedFresh
from pcbatch.ir.ops import RETURN, Branch, Check, EffectOp, Expr, Jump, Move, Prim, Return, Select
from pcbatch.ir.roles import rename_reads, rename_writes, writes
from pcbatch.ir.types import BOOL, ArrayType
from pcbatch.lowering.analysis.cost import HOST, WRITES_PART, all_equations, op_cost
from pcbatch.lowering.typing.jax_types import to_aval
from pcbatch.lowering.typing.trace import JaxprFn

MAX_COST = 64.0  # per lane and arm, about one arithmetic operation each
NEVER_SPECULATED = {"while", "scan", "cond", *HOST}
MAX_SELECT = 1024  # elements per lane of a variable that may be selected
MAX_STORED = 16  # the same where an arm stores in a part of it, which costs less than to select all of it


def run(program: CfgProgram) -> CfgProgram:
    """Convert what qualifies in every function, innermost first."""
    return replace(program, functions=tuple(_function(function) for function in program.functions))


def _function(function: Function) -> Function:
    converter = _Converter(function)
    labels = [block.label for block in function.blocks]
    position = {label: k for k, label in enumerate(labels)}
    worklist = Worklist(range(len(labels)))
    for k in worklist:
        label = labels[k]
        block = converter.blocks.get(label)
        if block is None or not isinstance(block.terminator, Branch):
            continue
        if converter.at(block, block.terminator):
            # Only this block has another terminator now, so only it and its predecessors may qualify anew.
            for again in {label, *converter.preds[label]}:
                worklist.add(position[again])
    return converter.function()


class _Converter:
    """A function while it is converted.

    Liveness at the top of a block that stays does not change: the new block reads, and leaves unwritten, the same
    variables as the blocks that went into it together. So it is computed once.
    """

    def __init__(self, function: Function) -> None:
        self.source = function
        self.blocks = {block.label: block for block in function.blocks}
        self.preds = {label: set(sources) for label, sources in predecessors(function.blocks).items()}
        self.live = liveness.live_in(function)
        self.new = TypedFresh(function.types)

    def function(self) -> Function:
        """The function as converted so far."""
        return replace(self.source, blocks=tuple(self.blocks.values()), types=self.new.types)

    def at(self, block: Block, branch: Branch) -> bool:
        """Convert the branch that ends `block`, if it qualifies."""
        true, false = self.arm(branch.on_true), self.arm(branch.on_false)
        if true and false and _after(true) == _after(false) is not None:
            return self.meet(block, branch, true, false)
        if true and _after(true) == branch.on_false:
            return self.meet(block, branch, true, None)
        if false and _after(false) == branch.on_true:
            return self.meet(block, branch, None, false)
        for arm, taken in ((true, True), (false, False)):
            if arm and isinstance(arm.terminator, Branch) and self.short_circuit(block, branch, arm, taken):
                return True
        return False

    def arm(self, label: str) -> Block | None:
        """The block of this label, if it may run for lanes of the other arm; None if not."""
        block = self.blocks.get(label)
        if block is None or len(self.preds[label]) != 1 or label == self.source.blocks[0].label:
            return None
        if any(isinstance(op, Call | EffectOp) or not is_speculable(op) for op in block.ops):
            return None
        return block if sum(op_cost(op, self.new.types) for op in block.ops) <= MAX_COST else None

    def live_at(self, label: str) -> frozenset[str]:
        return frozenset(self.source.results) if label == RETURN else self.live[label]

    def speculate(self, block: Block) -> tuple[list[Op], dict[str, str]]:
        """The operations of a block with fresh variables written, and the fresh name of each variable."""
        current: dict[str, str] = {}
        ops: list[Op] = []
        for op in block.ops:
            new = rename_reads(op, lambda v: current.get(v, v))
            for v in writes(op):
                current[v] = self.new(v)
            ops.append(rename_writes(new, lambda v: current[v]))
        return ops, current

    def masked(self, ops: Sequence[Op], cond: str, taken: bool) -> list[Op]:
        """Return operations of an arm whose checks hold for the lanes of the other arm."""
        out: list[Op] = []
        for op in ops:
            if isinstance(op, Check):
                failed = self.new(op.failed)
                out.append(Prim((failed,), both(cond, taken, op.failed, True), op.loc))
                op = replace(op, failed=failed)
            out.append(op)
        return out

    def meet(self, block: Block, branch: Branch, true: Block | None, false: Block | None) -> bool:
        """Convert a branch whose arms (None: an empty arm) go to one block, unless a variable is too large."""
        target = _after(true or false)  # type: ignore[arg-type]
        assert target is not None
        live = self.live_at(target)
        ops: list[Op] = list(block.ops)
        ends: list[Mapping[str, str]] = []
        for arm in (true, false):
            more, current = self.speculate(arm) if arm else ([], {})
            ops += self.masked(more, branch.cond, arm is true)
            ends.append(current)
        assigned = [v for v in dict.fromkeys([*ends[0], *ends[1]]) if v in live]
        stored = _stored(true, false)
        if not all(_selectable(self.new.types.get(v), MAX_STORED if v in stored else MAX_SELECT) for v in assigned):
            return False
        # The arms may write the condition, which all selections read: its own comes last.
        in_order = sorted(assigned, key=lambda v: v == branch.cond)
        ops += [Select(v, branch.cond, ends[0].get(v, v), ends[1].get(v, v), branch.loc) for v in in_order]
        self.replace(replace(block, ops=tuple(ops), terminator=jump_to(target)), true, false)
        return True

    def short_circuit(self, block: Block, branch: Branch, arm: Block, taken: bool) -> bool:
        """Convert `if a and b` and its variants: the arm only tests a second condition, and one of its exits is that of
        the lanes that skip it."""
        inner = arm.terminator
        assert isinstance(inner, Branch)
        shared_exit = branch.on_false if taken else branch.on_true
        if shared_exit not in (inner.on_true, inner.on_false) or inner.on_true == inner.on_false:
            return False
        inner_taken = inner.on_false == shared_exit  # the value of the second condition that leads to `other_exit`
        other_exit = inner.on_true if inner_taken else inner.on_false
        # Lanes that skip the arm arrive at the shared exit with the old values.
        if any(v in self.live_at(shared_exit) for op in arm.ops for v in writes(op)):
            return False
        ops, current = self.speculate(arm)
        cond = self.new("both", BOOL)
        test = both(branch.cond, taken, current.get(inner.cond, inner.cond), inner_taken)
        renames: list[Op] = [Move(v, current[v], inner.loc) for v in current if v in self.live_at(other_exit)]
        ops = self.masked(ops, branch.cond, taken)
        new_ops = (*block.ops, *ops, Prim((cond,), test, inner.loc), *renames)
        new = replace(block, ops=new_ops, terminator=Branch(cond, other_exit, shared_exit, inner.loc))
        self.replace(new, arm)
        return True

    def replace(self, block: Block, *gone: Block | None) -> None:
        """Put a new block in the place of the old one of its label, and drop the arms that it has taken in."""
        for old in (self.blocks[block.label], *gone):
            if old is not None:
                for label in successors(old.terminator):
                    self.preds[label].discard(old.label)
        for arm in gone:
            if arm is not None:
                del self.blocks[arm.label], self.preds[arm.label]
        self.blocks[block.label] = block
        for label in successors(block.terminator):
            self.preds[label].add(block.label)


def _after(arm: Block) -> str | None:
    match arm.terminator:
        case Jump(target=target):
            return target
        case Return():
            return RETURN
        case _:
            return None


def _selectable(type_: ArrayType | None, most: int) -> bool:
    return type_ is not None and type_.size <= most


def _stored(*arms: Block | None) -> set[str]:
    """The variables that arms write by storing in a part of an array."""
    stored: set[str] = set()
    for op in (op for arm in arms if arm for op in arm.ops):
        if isinstance(op, Move):
            stored |= {op.dst} if op.src in stored else set()
        elif isinstance(op, Prim) and isinstance(op.expr.fn, JaxprFn):
            equations = all_equations(op.expr.fn.closed.jaxpr)
            stored |= set(writes(op)) if any(eqn.primitive.name in WRITES_PART for eqn in equations) else set()
    return stored


def is_speculable(op: object) -> bool:
    """Return whether an operation may run for lanes that do not need it.

    More than `may_not_end` is refused: a `scan` or a `cond` ends for all values, but all of its iterations, or
    both of its arms, would be paid.
    """
    if not isinstance(op, Prim):
        return True
    return isinstance(op.expr.fn, JaxprFn) and not _never_speculated(op.expr.fn.closed.jaxpr)


def _never_speculated(jaxpr: object) -> bool:
    return any(e.primitive.name in NEVER_SPECULATED for e in all_equations(jaxpr))


def both(first: str, first_sign: bool, second: str, second_sign: bool) -> Expr:
    """Return an expression that is true where the variable `first` is `first_sign` and `second` is `second_sign`."""

    def fn(a: object, b: object) -> object:
        a = a if first_sign else jnp.logical_not(a)  # type: ignore[arg-type]
        b = b if second_sign else jnp.logical_not(b)  # type: ignore[arg-type]
        return jnp.logical_and(a, b)  # type: ignore[arg-type]

    sides = [v if sign else f"not {v}" for v, sign in ((first, first_sign), (second, second_sign))]
    closed = jax.make_jaxpr(fn)(to_aval(BOOL), to_aval(BOOL))
    return Expr(" and ".join(sides), (first, second), JaxprFn(closed, [None]))
