"""Let variables that a move or a store connects share one register, when their values never live at the same time.

before:  update walker.q = r.q; pushjump ...         after:  pushjump ...          (walker.q and r.q are one register)
         ys = { xs.at[i].set(v) }                            xs = { xs.at[i].set(v) }

The parameters and results of a callee, and the variables of its caller that they come from and go to, then stay in
place instead of being copied, under a mask and for all lanes, at every call.

This is coalescing (Chaitin et al., "Register allocation via coloring", Computer Languages 6, 1981): two variables
interfere if one is written while the other is live. Liveness crosses calls here, so a value that only a caller needs is
seen. At most one of the two may have frames, because slots are named by variable.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from pcbatch.ir.analysis.def_use import rename_block
from pcbatch.ir.analysis.liveness import live_after, live_in
from pcbatch.ir.analysis.union_find import UnionFind
from pcbatch.ir.ops import Move
from pcbatch.ir.roles import writes
from pcbatch.ir.stack import StackProgram, Storage, Var
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.stack_passes.stored_into import stored_into

Interference = dict[str, set[str]]


def run(program: StackProgram) -> StackProgram:
    """Merge registers along moves; storage classes must be known."""
    return _run(program, _moves(program))


def run_stores(program: StackProgram) -> StackProgram:
    """Merge registers along moves, and arrays before and after a store into them.

    An operation that stores in place can no longer run for lanes that do not need it, so this comes after the passes
    that make such copies.
    """
    return _run(program, [*_moves(program), *_stores(program)])


def _run(program: StackProgram, candidates: Iterable[tuple[str, str]]) -> StackProgram:
    conflicts = _interference(program)
    merged = UnionFind[str]()  # the first declared of its variables stands for a register
    order = {v: k for k, v in enumerate(program.vars)}
    params = set(program.params)
    framed = {v for v, var in program.vars.items() if var.storage is Storage.REG_STACK}
    kept = {v for v, var in program.vars.items() if _have_registers(var)}
    for dst, src in candidates:
        a, b = sorted((merged.find(dst), merged.find(src)), key=lambda v: order[v])
        if merged.find(src) not in kept or a == b or b in conflicts[a] or {a, b} <= framed or {a, b} <= params:
            continue
        merged.union((a, b))
        framed |= {a} if b in framed else set()
        kept |= {a}
        params |= {a} if b in params else set()
        # The merged register interferes with all that either of the two interfered with.
        for c in conflicts.pop(b, set()):
            conflicts[c].discard(b)
            conflicts[c].add(a)
            conflicts[a].add(c)
    return _apply(program, {v: merged.find(v) for v in program.vars})


def _moves(program: StackProgram) -> Iterator[tuple[str, str]]:
    for op in program.ops:
        if isinstance(op, Move) and _mergeable(program.vars.get(op.dst), program.vars.get(op.src)):
            yield op.dst, op.src


def _stores(program: StackProgram) -> Iterator[tuple[str, str]]:
    for dst, src in (pair for op in program.ops for pair in stored_into(op)):
        old, new = program.vars.get(src), program.vars.get(dst)
        if old is not None and new is not None and _same_type(old, new):
            yield dst, src


def _mergeable(dst: Var | None, src: Var | None) -> bool:
    if dst is None or src is None:
        return False
    return _have_registers(dst, src) and _same_type(dst, src)


def _have_registers(*vars: Var) -> bool:
    return all(var.has_register for var in vars)


def _same_type(dst: Var, src: Var) -> bool:
    a, b = dst.type, src.type
    return isinstance(a, ArrayType) and isinstance(b, ArrayType) and (a.dtype, a.shape) == (b.dtype, b.shape)


def _interference(program: StackProgram) -> Interference:
    """Pairs of variables of which one is written (not as a copy of the other) while the other is live."""
    live = live_after(program)
    conflicts: Interference = defaultdict(set)

    def clash(v: str, others: set[str]) -> None:
        conflicts[v] |= others
        for other in others:
            conflicts[other].add(v)

    for block in program.blocks:
        for op, after in zip(block.ops, live[block.label], strict=True):
            for v in writes(op):
                clash(v, (set(after) | set(writes(op))) - {v, op.src if isinstance(op, Move) else v})
    at_entry = set(live_in(program)[program.entry])
    for v in program.params:  # which are written together, before the first block
        clash(v, at_entry - {v})
    return conflicts


def _apply(program: StackProgram, name: dict[str, str]) -> StackProgram:
    blocks = []
    for block in program.blocks:
        new = rename_block(block, name.__getitem__)
        ops = tuple(op for op in new.ops if not (isinstance(op, Move) and op.dst == op.src))
        blocks.append(replace(new, ops=ops))
    vars = {v: var for v, var in program.vars.items() if name[v] == v}
    params, results = (tuple(name[v] for v in names) for names in (program.params, program.results))
    return replace(program, params=params, results=results, vars=vars, blocks=tuple(blocks))
