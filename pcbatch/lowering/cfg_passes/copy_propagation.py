"""Copy propagation: read the source of a move instead of its copy.

before:  left = r; push left; ...          after:  left = r; push left = r; ...   (left may then be dead)

A forward intersection over jumps: a copy holds where it was made on every path and neither side has changed since.
Nothing is known at the entry of a function nor after a call. Works on both program types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pcbatch.ir.analysis import liveness
from pcbatch.ir.analysis.dataflow import agreed, block_edges, invert, solve
from pcbatch.ir.analysis.def_use import AnyOp, BlockT, calls
from pcbatch.ir.cfg import CfgProgram, Function
from pcbatch.ir.ops import Move
from pcbatch.ir.roles import rename_reads, writes
from pcbatch.ir.stack import Pop, StackProgram

Copies = dict[str, str]  # copy -> source


def run(program: CfgProgram) -> CfgProgram:
    """Propagate copies inside every function."""
    return replace(program, functions=tuple(_function(function) for function in program.functions))


def run_stack(program: StackProgram) -> StackProgram:
    """Propagate copies in the merged program, between calls."""
    entered = {label for b in program.blocks for call in calls(b.terminator) for label in (call.target, call.ret)}
    live = liveness.live_out(program)
    return replace(program, blocks=_propagate(program.blocks, {program.entry} | entered, live))


def _function(function: Function) -> Function:
    blocks = _propagate(function.blocks, {function.blocks[0].label}, liveness.live_out(function))
    return replace(function, blocks=blocks)


def _propagate(blocks: tuple[BlockT, ...], starts: set[str], live: Mapping[str, frozenset[str]]) -> tuple[BlockT, ...]:
    by_label = {block.label: block for block in blocks}

    def join(label: str, values: list[Copies | None]) -> Copies | None:
        return {} if label in starts else agreed(values)

    def transfer(label: str, copies: Copies | None) -> Copies | None:
        if copies is None:
            return None
        after = _through(by_label[label], copies)[1]
        return {
            dst: src for dst, src in after.items() if dst in live[label]
        }  # dead copies would only slow down the joins

    solution = solve(invert(block_edges(blocks)), join=join, transfer=transfer, start=None)
    return tuple(_through(block, solution.entering[block.label] or {})[0] for block in blocks)


def _through(block: BlockT, copies: Copies) -> tuple[BlockT, Copies]:
    copies = dict(copies)

    def source(v: str) -> str:
        return copies.get(v, v)

    ops: list[AnyOp] = []
    for op in block.ops:
        new = op if isinstance(op, Pop) else rename_reads(op, source)
        for written in writes(new):
            copies.pop(written, None)
            copies = {dst: src for dst, src in copies.items() if src != written}
        if isinstance(new, Move):
            if new.dst == new.src:
                continue
            copies[new.dst] = new.src
        ops.append(new)
    terminator = rename_reads(block.terminator, source)
    return replace(block, ops=tuple(ops), terminator=terminator), copies  # type: ignore[arg-type]
