"""Liveness: the variables whose current value may still be read, by a backward union over loops and calls.

In the CFG IR liveness is a matter of one function, whose results are read when it returns. In the stack IR it crosses
calls, because all functions share their variables: live at a return are all variables live at any return point of this
activation, so that a value which only the caller reads lives through the callee. A `Pop` overwrites its variable from a
slot of the frame, so no earlier value lives through it; slots themselves are not variables, and have an analysis of
their own, inside one activation.

Shared (prologue) variables are ordinary names. What a `fail` shows is live at the bottom of its block: it is read when
all lanes have ended.
"""

from __future__ import annotations

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
    terminator_reads,
)
from pcbatch.ir.cfg import Function
from pcbatch.ir.ops import Jump
from pcbatch.ir.roles import reads, writes
from pcbatch.ir.stack import PushJump, StackProgram

Names = frozenset[str]
NOTHING: Names = frozenset()


def live_in(code: Function | StackProgram) -> dict[str, Names]:
    """The variables live at the top of each block."""
    return _solution(code)[0]


def live_out(code: Function | StackProgram) -> dict[str, Names]:
    """The variables live at the bottom of each block, after the terminator has read its own."""
    return _solution(code)[1]


def live_after(code: Function | StackProgram) -> dict[str, tuple[Names, ...]]:
    """The variables live after each operation of each block."""
    bottoms = live_out(code)
    return {
        block.label: _backwards(block.ops, bottoms[block.label] | set(terminator_reads(block.terminator)))
        for block in code.blocks
    }


def doubtful(program: StackProgram) -> Names:
    """The variables that may be read before they are written, by liveness: a superset.

    Liveness takes a return for one to all callers, so a variable in the result need not be read too early; every other
    variable is written first.
    """
    shared = (name for op in program.prologue for name in writes(op))
    return live_in(program)[program.entry].difference(program.params, shared)


def live_at_return(program: StackProgram) -> dict[str, Names]:
    """The variables live after the return of each block that may return: those live at any of its return points."""
    tops, outermost = live_in(program), activation(program, program.entry)
    return {
        label: NOTHING.union(*(tops[p] for p in points), program.results if label in outermost else ())
        for label, points in return_points(program).items()
    }


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


def _solution(code: Function | StackProgram) -> tuple[dict[str, Names], dict[str, Names]]:
    """The variables live at the tops, and at the bottoms, of blocks."""
    if isinstance(code, Function):
        points = dict.fromkeys((b.label for b in code.blocks if may_return(b.terminator)), tuple[str, ...]())
        outermost = frozenset(points)
    else:
        points, outermost = return_points(code), activation(code, code.entry)
    results, blocks = frozenset(code.results), tuple[AnyBlock, ...](code.blocks)

    def end(block: AnyBlock) -> Names:
        """Return the names that are read when all lanes have ended: the results, or those that a failure shows."""
        return results if block.label in points and block.label in outermost else frozenset(kept(block.terminator))

    def follow(block: AnyBlock) -> tuple[str, ...]:
        jumps = [edge for edge in edges(block.terminator) if isinstance(edge, Jump | PushJump)]
        return tuple(jump.target for jump in jumps) + points.get(block.label, ())

    ends = {block.label: end(block) for block in blocks}
    uses = {block.label: frozenset(block_uses(block)) for block in blocks}
    kills = {block.label: frozenset(block_writes(block)) for block in blocks}
    solution = solve(
        {block.label: follow(block) for block in reversed(blocks)},
        join=lambda label, values: ends[label].union(*values),
        transfer=lambda label, live: uses[label] | (live - kills[label]),
        start=NOTHING,
    )
    # Callers list the blocks in the order of the program, the solver in reverse.
    tops = {block.label: solution.leaving[block.label] for block in blocks}
    return tops, {block.label: solution.entering[block.label] for block in blocks}


def _backwards(ops: tuple[AnyOp, ...], live: Names) -> tuple[Names, ...]:
    out: list[Names] = []
    for op in reversed(ops):
        out.append(live)
        live = (live - frozenset(writes(op))) | frozenset(reads(op))
    return tuple(reversed(out))
