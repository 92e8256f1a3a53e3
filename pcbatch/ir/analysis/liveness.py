"""Liveness: the variables whose current value may still be read, by a backward union over loops and calls.

In the CFG IR liveness is a matter of one function, whose results are read when it returns. In the stack IR it crosses
calls, because all functions share their variables, so that a value which only the caller reads lives through the
callee. Only paths count on which each return goes to the return point of its own call: by summaries of what the rest of
an activation reads and writes, first, and then what lives after each activation (the functional approach of Sharir and
Pnueli, "Two approaches to interprocedural data flow analysis", 1981, section 7-3). Were a return one to all callers, a
helper that all functions call would keep the variables of all of them alive at once.

A `Pop` overwrites its variable from a slot of the frame, so no earlier value lives through it; slots themselves are not
variables, and have an analysis of their own, inside one activation.

Shared (prologue) variables are ordinary names. What a `fail` shows is live at the bottom of its block: it is read when
all lanes have ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from pcbatch.ir.analysis.dataflow import Solution, backward, block_edges, postorder, reachable, solve
from pcbatch.ir.analysis.def_use import (
    AnyBlock,
    AnyOp,
    block_uses,
    block_writes,
    calls,
    edges,
    kept,
    may_return,
    pops,
    pushes,
    targets,
    terminator_reads,
)
from pcbatch.ir.cfg import Function
from pcbatch.ir.ops import Fail, Jump, Return
from pcbatch.ir.roles import reads, writes
from pcbatch.ir.stack import PushJump, StackProgram

Names = frozenset[str]
_RECENT: deque[tuple[Function | StackProgram, Liveness]] = deque(maxlen=8)
NOTHING: Names = frozenset()


def live_in(code: Function | StackProgram) -> dict[str, Names]:
    """The variables live at the top of each block."""
    return Liveness.of(code).tops()


def live_out(code: Function | StackProgram) -> dict[str, Names]:
    """The variables live at the bottom of each block, after the terminator has read its own."""
    return Liveness.of(code).bottoms()


def live_after(code: Function | StackProgram) -> dict[str, tuple[Names, ...]]:
    """The variables live after each operation of each block."""
    bottoms = live_out(code)
    return {
        block.label: _backwards(block.ops, bottoms[block.label] | set(terminator_reads(block.terminator)))
        for block in code.blocks
    }


def doubtful(program: StackProgram) -> Names:
    """The variables that may be read before they are written where a return may go to any caller: a superset, also of
    those that an analysis which does not tell callers apart takes for such. Every other variable is written first."""
    points, results = return_points(program), frozenset(program.results)
    uses = {block.label: frozenset(block_uses(block)) for block in program.blocks}
    kills = {block.label: frozenset(block_writes(block)) for block in program.blocks}
    outermost = points.keys() & activation(program, program.entry)
    jumps = {
        block.label: tuple(edge.target for edge in edges(block.terminator) if isinstance(edge, Jump | PushJump))
        for block in reversed(program.blocks)
    }
    live = solve(
        {label: targets + points.get(label, ()) for label, targets in jumps.items()},
        join=lambda label, tops: NOTHING.union(*tops, results if label in outermost else ()),
        transfer=lambda label, bottom: uses[label] | (bottom - kills[label]),
        start=NOTHING,
    )
    shared = (name for op in program.prologue for name in writes(op))
    return live.leaving[program.entry].difference(program.params, shared)


def slots_live_in(program: StackProgram) -> dict[str, Names]:
    """The slots of the frame, at the top of each block, that its activation may pop before it pushes them."""
    solution = _solve_slots(program)
    return {block.label: solution.leaving[block.label] for block in program.blocks}


def slots_live_out(program: StackProgram) -> dict[str, Names]:
    """The slots of the frame that may be popped after each block."""
    solution = _solve_slots(program)
    return {block.label: solution.entering[block.label] for block in program.blocks}


def _solve_slots(program: StackProgram) -> Solution[str, Names]:
    popped = {block.label: frozenset(op.dst for op in pops(block)) for block in program.blocks}
    pushed = {block.label: frozenset(op.dst for op in pushes(block)) for block in program.blocks}
    return backward(
        program.blocks,
        join=lambda _, values: NOTHING.union(*values),
        transfer=lambda label, live: popped[label] | (live - pushed[label]),
        start=NOTHING,
    )


def activation(program: StackProgram, entry: str) -> Names:
    """The labels of the blocks that one activation from `entry` may run.

    A `PushJump` leads to its return point, past the call; a tail call is a jump, so the blocks of the function that it
    enters belong to the same activation.
    """
    return reachable([entry], block_edges(program.blocks))


def return_points(program: StackProgram) -> dict[str, tuple[str, ...]]:
    """The labels where a lane may continue after each block that may return; none if that only ends the run."""
    out: dict[str, dict[str, None]] = {b.label: {} for b in program.blocks if may_return(b.terminator)}
    steps = block_edges(program.blocks)
    ends: dict[str, list[str]] = {}
    for target, ret in _calls(program):
        if target not in ends:
            ends[target] = [label for label in postorder([target], steps) if label in out]
        for label in ends[target]:
            out[label][ret] = None
    return {label: tuple(points) for label, points in out.items()}


def _calls(program: StackProgram) -> tuple[tuple[str, str], ...]:
    return tuple((call.target, call.ret) for block in program.blocks for call in calls(block.terminator))


@dataclass(frozen=True, slots=True)
class _Rest:
    """The variables that the rest of an activation, from some place on, may read before it writes them, and those that
    it writes on all paths to its return; None where no path returns."""

    reads: Names
    writes: Names | None

    def then(self, live: Names) -> Names:
        """The variables that are live at the place, where `live` are after the return."""
        return self.reads if self.writes is None else self.reads | (live - self.writes)


@dataclass(frozen=True, slots=True)
class Liveness:
    """The liveness of the variables of a program, or of a function.

    Attributes:
        top: the rests of activations at the tops of blocks.
        bottom: the same at their bottoms.
        after: for each entry of an activation, the variables live after its return.
        entries: for each block, the entries whose activations may run it.
    """

    top: Mapping[str, _Rest]
    bottom: Mapping[str, _Rest]
    after: Mapping[str, Names]
    entries: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, code: Function | StackProgram) -> Liveness:
        """Analyse a program, or a function, whose calls are operations like others.

        The last ones are kept: the verifier asks for what the next pass asks for again.
        """
        for seen, found in list(_RECENT):
            if seen is code:
                return found
        found = cls._of(code)
        _RECENT.append((code, found))
        return found

    @classmethod
    def _of(cls, code: Function | StackProgram) -> Liveness:
        blocks = tuple[AnyBlock, ...](code.blocks)
        solution = _rests(blocks)
        if isinstance(code, Function):
            here = (code.blocks[0].label,)
            ends = {here[0]: frozenset(code.results)}
            return cls(solution.leaving, solution.entering, ends, {block.label: here for block in blocks})
        steps = block_edges(blocks)
        inside = {
            entry: reachable([entry], steps) for entry in dict.fromkeys((code.entry, *(to for to, _ in _calls(code))))
        }
        after = _after(code, inside, solution.leaving)
        entries = {block.label: tuple(entry for entry in inside if block.label in inside[entry]) for block in blocks}
        return cls(solution.leaving, solution.entering, after, entries)

    def tops(self) -> dict[str, Names]:
        """The variables live at the top of each block."""
        return self._live(self.top)

    def bottoms(self) -> dict[str, Names]:
        """The variables live at the bottom of each block."""
        return self._live(self.bottom)

    def returned(self, label: str) -> Names:
        """The variables live after a return of a block: those live at any of its return points."""
        return NOTHING.union(*(self.after[entry] for entry in self.entries[label]))

    def called(self, call: PushJump) -> Names:
        """The variables live once a call is made, which need not be one of the program."""
        callee, back = self.top[call.target], self.top[call.ret]
        live = NOTHING.union(*(back.then(self.after[entry]) for entry in self.entries[call.ret]), back.reads)
        return callee.then(live)

    def _live(self, rests: Mapping[str, _Rest]) -> dict[str, Names]:
        return {
            label: rests[label].reads.union(*(rests[label].then(self.after[entry]) for entry in entries))
            for label, entries in self.entries.items()
        }


def _rests(blocks: Sequence[AnyBlock]) -> Solution[str, _Rest]:
    """The rests at the bottoms of blocks (`entering`) and at their tops (`leaving`)."""
    uses = {block.label: frozenset(block_uses(block)) for block in blocks}
    kills = {block.label: frozenset(block_writes(block)) for block in blocks}
    terminators = {block.label: block.terminator for block in blocks}

    def join(label: str, tops: list[_Rest]) -> _Rest:
        following = iter(tops)
        return _any_of([_along(edge, following) for edge in edges(terminators[label])])

    def transfer(label: str, bottom: _Rest) -> _Rest:
        writes = None if bottom.writes is None else bottom.writes | kills[label]
        return _Rest(uses[label] | (bottom.reads - kills[label]), writes)

    # Callers list the blocks in the order of the program, the solver in reverse.
    nodes = {block.label: targets(block.terminator) for block in reversed(blocks)}
    solution = solve(nodes, join=join, transfer=transfer, start=_Rest(NOTHING, None))
    labels = [block.label for block in blocks]
    return Solution(*({label: rests[label] for label in labels} for rests in (solution.entering, solution.leaving)))


def _along(edge: Jump | PushJump | Return | Fail, tops: Iterator[_Rest]) -> _Rest:
    """The rest from an edge on, given those at the tops of its targets."""
    match edge:
        case Jump():
            return next(tops)
        case PushJump():
            callee, back = next(tops), next(tops)
            if callee.writes is None:
                return callee
            writes = None if back.writes is None else callee.writes | back.writes
            return _Rest(callee.then(back.reads), writes)
        case Return():
            return _Rest(NOTHING, NOTHING)
        case Fail():
            return _Rest(frozenset(kept(edge)), None)
        case _:
            assert_never(edge)


def _any_of(rests: Sequence[_Rest]) -> _Rest:
    """The rest where any of several may follow."""
    reads = NOTHING.union(*(rest.reads for rest in rests))
    written = [rest.writes for rest in rests if rest.writes is not None]
    return _Rest(reads, written[0].intersection(*written[1:]) if written else None)


def _after(program: StackProgram, inside: Mapping[str, Names], tops: Mapping[str, _Rest]) -> Mapping[str, Names]:
    """The variables live after the return of the activation from each entry."""
    points: dict[str, dict[str, list[_Rest]]] = {entry: {} for entry in inside}  # of an entry, by that of its caller
    for block in program.blocks:
        for call in calls(block.terminator):
            for caller, labels in inside.items():
                if block.label in labels:
                    points[call.target].setdefault(caller, []).append(tops[call.ret])
    ends = {entry: frozenset(program.results if entry == program.entry else ()) for entry in inside}

    def join(entry: str, live: list[Names]) -> Names:
        callers = zip(points[entry].values(), live, strict=True)
        return ends[entry].union(*(rest.then(after) for rests, after in callers for rest in rests))

    sources = {entry: tuple(callers) for entry, callers in points.items()}
    return solve(sources, join=join, transfer=lambda _, live: live, start=NOTHING).leaving


def _backwards(ops: tuple[AnyOp, ...], live: Names) -> tuple[Names, ...]:
    out: list[Names] = []
    for op in reversed(ops):
        out.append(live)
        live = (live - frozenset(writes(op))) | frozenset(reads(op))
    return tuple(reversed(out))
