"""The reads of variables that some reachable path does not assign: definite assignment, a forward intersection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.ir.analysis.dataflow import reachable
from pcbatch.ir.analysis.def_use import block_writes, may_return, predecessors, terminator_reads
from pcbatch.ir.analysis.liveness import live_in
from pcbatch.ir.analysis.must_assign import on_all_paths
from pcbatch.ir.cfg import Call, Function
from pcbatch.ir.ops import Branch, Fail
from pcbatch.ir.roles import reads, writes
from pcbatch.lowering.typing.inferred import Inferred, branch_targets


@dataclass(frozen=True, slots=True)
class UnboundRead:
    """A read of a variable without a value on some path, by operation `index` of a block (or its terminator).

    `assigned_before`: whether some other path to the block assigns it.
    """

    label: str
    index: int
    name: str
    loc: Loc | None
    assigned_before: bool


def unbound_reads(function: Function, inferred: Inferred) -> list[UnboundRead]:
    """Return the reads of a function that may find no value; an empty `Inferred` counts all edges as possible."""
    if live_in(function)[function.blocks[0].label].issubset(function.params):
        return []  # not even on paths that are never taken
    labels = inferred.reachable[function.name]
    blocks = [block for block in function.blocks if block.label in labels]
    edges = _reachable_edges(function, inferred)
    written = {block.label: frozenset(block_writes(block)) for block in blocks}
    start = {function.blocks[0].label: frozenset(function.params)}
    jumps = ((source, label, frozenset[str]()) for label, sources in edges.items() for source in sources)
    assigned = on_all_paths(start, jumps, written)
    found = []

    def unbound(label: str, index: int, v: str, loc: Loc | None) -> UnboundRead:
        before = reachable(edges[label], edges)
        return UnboundRead(label, index, v, loc, any(v in written[b] for b in before))

    for block in (block for block in blocks if block.label in assigned):
        bound = set(assigned[block.label])
        for k, op in enumerate(block.ops):
            found += [unbound(block.label, k, v, op.loc) for v in reads(op) if v not in bound]
            bound.update(writes(op))
        loc = block.terminator.loc if isinstance(block.terminator, Branch | Fail) else function.loc
        end = terminator_reads(block.terminator)
        end += function.results if may_return(block.terminator) else ()
        found += [unbound(block.label, len(block.ops), v, loc) for v in end if v not in bound]
    return found


def _reachable_edges(function: Function, inferred: Inferred) -> Mapping[str, tuple[str, ...]]:
    """The predecessors of each reachable block, along edges that inference found possible."""
    labels = inferred.reachable[function.name]
    preds = predecessors(function.blocks)
    blocks = {block.label: block for block in function.blocks}

    def possible(source: str, target: str) -> bool:
        if inferred.types and any(isinstance(op, Call) and not inferred.returns(op) for op in blocks[source].ops):
            return False
        terminator = blocks[source].terminator
        if isinstance(terminator, Branch) and inferred.types:
            return target in branch_targets(terminator, inferred.types.get((function.name, terminator.cond)))
        return True

    return {
        label: tuple(p for p in preds[label] if p in labels and possible(p, label))
        for label in blocks
        if label in labels
    }
