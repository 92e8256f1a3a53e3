"""Remove checks that cannot fail: the field of a record is read where a test before has found that it is no None, and a
sum of integers fits where a loop has compared one of them.

before:  t = { x is None }; branch t, bb1, bb2        after:  bb2: y = { x.left }
         bb2: y, bad = { x.left }; check bad ...

A forward analysis over the blocks of all functions at once: what holds for the arguments of all calls of a function
holds for its parameters. Only programs with records, or with checks of integers, have such checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import jax.extend.core as jex

from pcbatch.data.objects.made import HEAP
from pcbatch.data.objects.tables import TABLES
from pcbatch.ir.analysis.dataflow import Worklist, postorder
from pcbatch.ir.analysis.def_use import successors, terminator_reads
from pcbatch.ir.analysis.liveness import live_in
from pcbatch.ir.cfg import Block, Call, CfgProgram, Function, Op
from pcbatch.ir.ops import Branch, Check, Move, Prim
from pcbatch.ir.roles import reads, writes
from pcbatch.lowering.analysis.intervals import ANY, Interval, widened
from pcbatch.lowering.analysis.reference_facts import (
    Expression,
    Facts,
    expressions,
    holds,
    interval,
    learned,
    mentioned,
    met,
)
from pcbatch.lowering.jaxpr_passes.integer_marks import has_marks
from pcbatch.lowering.typing.trace import JaxprFn, restrict

BlockKey = tuple[str, str]  # function, label


def run(program: CfgProgram) -> CfgProgram:
    """Return the program without checks that are known to hold."""
    entry = program.function(program.entry)
    if not (any(v.startswith((TABLES, HEAP)) for v in (*entry.params, *entry.types)) or has_marks(program)):
        return program
    proofs = _Proofs(program)
    proofs.solve()
    return replace(program, functions=tuple(proofs.rewritten(f) for f in program.functions))


PATIENCE = 3  # times that facts flow into the head of a loop; then ends of intervals that still move are given up


class _Proofs:
    def __init__(self, program: CfgProgram) -> None:
        self.program = program
        self.functions = {f.name: f for f in program.functions}
        self.entering: dict[BlockKey, Facts] = {}
        self.order = _order(program)  # a block comes behind those that lead to it, and is then seen once, but in loops
        self.position = {place: k for k, place in enumerate(self.order)}
        self.due = Worklist(())
        self.live = {f.name: live_in(f) for f in program.functions}
        self.visits: dict[BlockKey, int] = {}
        self.known: dict[int, tuple[Expression | None, ...]] = {}
        self.heads = set(_heads(program))

    def solve(self) -> None:
        """Find the facts that hold where each block begins."""
        entry = self.functions[self.program.entry]
        self.flow((entry.name, entry.blocks[0].label), {})
        for k in self.due:
            name, label = self.order[k]
            self.walk(self.functions[name], self.functions[name].block(label), True)

    def flow(self, place: BlockKey, facts: Facts) -> None:
        old, live = self.entering.get(place), self.live[place[0]][place[1]]
        new = met(old, {e: limits for e, limits in facts.items() if live.issuperset(mentioned(e))})
        self.visits[place] = self.visits.get(place, 0) + 1
        if old is not None and self.visits[place] > PATIENCE and place in self.heads:
            new = {e: widened(old[e], limits) for e, limits in new.items()}
            new = {e: limits for e, limits in new.items() if limits != ANY}
        if old is None or new != old:
            self.entering[place] = new
            self.due.add(self.position[place])

    def walk(self, function: Function, block: Block, flowing: bool) -> list[Op]:
        """Go through a block. Its facts flow on if `flowing`. Returns the operations that are left."""
        facts = dict(self.entering[function.name, block.label])
        conditions: dict[str, Expression] = {}
        left: list[Op] = []
        for op in block.ops:
            match op:
                case Check(failed=failed) if failed in conditions:
                    if holds(conditions[failed], facts) is False:
                        continue
                    learned(conditions[failed], False, facts)
                case Prim():
                    self.assign(op.dsts, self.of(op), facts, conditions)
                case Move(dst=dst, src=src):
                    self.assign((dst,), (conditions.get(src, ("var", src)),), facts, conditions)
                case _:
                    if isinstance(op, Call) and flowing:
                        self.call(op, facts)
                    self.assign(writes(op), (None,) * len(writes(op)), facts, conditions)
            left.append(op)
        if flowing:
            self.leave(function, block, facts, conditions)
        return left

    def of(self, op: Prim) -> tuple[Expression | None, ...]:
        """The expressions of a primitive's results."""
        if id(op) not in self.known:
            self.known[id(op)] = expressions(op)
        return self.known[id(op)]

    def assign(
        self,
        dsts: Sequence[str],
        values: Sequence[Expression | None],
        facts: dict[Expression, Interval],
        conditions: dict[str, Expression],
    ) -> None:
        """Let variables have new values: what is known of them is what was known of these."""
        limits = [ANY if value is None else interval(value, facts) for value in values]
        # A primitive may write a variable that its own checks read: they are decided by what was known before.
        decided = [None if value is None else holds(value, facts) for value in values]
        written = set(dsts)
        for expression in [e for e in facts if not written.isdisjoint(mentioned(e))]:
            del facts[expression]
        for name in [n for n, e in conditions.items() if n in written or not written.isdisjoint(mentioned(e))]:
            del conditions[name]
        for dst, value, limit, known in zip(dsts, values, limits, decided, strict=True):
            if limit != ANY:
                facts["var", dst] = limit
            if known is not None:
                conditions[dst] = ("lit", known)
            elif value is not None and value[0] not in ("var", "lit") and written.isdisjoint(mentioned(value)):
                conditions[dst] = value

    def call(self, op: Call, facts: Facts) -> None:
        callee = self.functions[op.func]
        limits = {("var", p): interval(("var", a), facts) for p, a in zip(callee.params, op.args, strict=True)}
        start = (callee.name, callee.blocks[0].label)
        self.flow(start, {e: limit for e, limit in limits.items() if limit != ANY})

    def leave(
        self, function: Function, block: Block, facts: dict[Expression, Interval], conditions: dict[str, Expression]
    ) -> None:
        terminator = block.terminator
        if not isinstance(terminator, Branch):
            for label in successors(terminator):
                self.flow((function.name, label), facts)
            return
        labels = {b.label for b in function.blocks}
        for label, value in ((terminator.on_true, True), (terminator.on_false, False)):
            if label in labels:
                known, condition = dict(facts), conditions.get(terminator.cond)
                if condition is not None:
                    if holds(condition, facts) is (not value):
                        continue  # no lane takes this way
                    learned(condition, value, known)
                self.flow((function.name, label), known)

    def rewritten(self, function: Function) -> Function:
        """The function without checks that are known to hold, and without what only these read."""
        blocks = [
            replace(
                b, ops=tuple(self.walk(function, b, False) if (function.name, b.label) in self.entering else _bare(b))
            )
            for b in function.blocks
        ]
        if blocks == list(function.blocks):
            return function
        before = {op.failed for op in function.ops if isinstance(op, Check)}
        read = {v for b in blocks for op in b.ops for v in reads(op)}
        read |= {v for b in blocks for v in terminator_reads(b.terminator)} | set(function.results)
        return replace(function, blocks=tuple(without_results(b, before - read) for b in blocks))


def _order(program: CfgProgram) -> list[BlockKey]:
    """The blocks that control may reach, in reverse postorder, callees behind the blocks that call them."""
    first = {f.name: (f.name, f.blocks[0].label) for f in program.functions}
    edges: dict[BlockKey, list[BlockKey]] = {}
    for f in program.functions:
        for block in f.blocks:
            called = [first[op.func] for op in block.ops if isinstance(op, Call)]
            edges[f.name, block.label] = [*((f.name, label) for label in successors(block.terminator)), *called]
    return postorder([first[program.entry]], edges)[::-1]


def _heads(program: CfgProgram) -> Iterator[BlockKey]:
    """The blocks at which every cycle of a program passes: the first of functions, and the targets of jumps back."""
    for function in program.functions:
        position = {block.label: k for k, block in enumerate(function.blocks)}
        yield function.name, function.blocks[0].label
        for k, block in enumerate(function.blocks):
            for label in successors(block.terminator):
                if position.get(label, len(position)) <= k:
                    yield function.name, label


def _bare(block: Block) -> list[Op]:
    """The operations of a block that no lane enters, without its checks."""
    return [op for op in block.ops if not isinstance(op, Check)]


def without_results(block: Block, dead: set[str]) -> Block:
    """Return a block whose primitives do not give these results, as far as others are left."""
    return replace(block, ops=tuple(_shrunk(op, dead) if isinstance(op, Prim) else op for op in block.ops))


def _shrunk(op: Prim, dead: set[str]) -> Prim:
    """A primitive without results that nothing reads, as long as one is left."""
    kept = [k for k, dst in enumerate(op.dsts) if dst not in dead]
    if not kept or len(kept) == len(op.dsts) or not isinstance(op.expr.fn, JaxprFn):
        return op
    closed, used = restrict(op.expr.fn.closed, kept)
    fn = JaxprFn(jex.ClosedJaxpr(closed.jaxpr, closed.consts), [op.expr.fn.casts[k] for k in kept])
    return replace(
        op, dsts=tuple(op.dsts[k] for k in kept), expr=replace(op.expr, ins=tuple(op.expr.ins[k] for k in used), fn=fn)
    )
