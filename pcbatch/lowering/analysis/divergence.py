"""Divergence analysis: find the results of the entry that are uniform, equal for all lanes whatever path they take.

before:  (x per lane, w shared)  y = { x * 2 }; r0 = { y }; r1 = w; return        after:  r1

A variable is divergent (Coutinho et al., "Divergence analysis and optimizations", PACT 2011)

- if it is computed from a divergent one, or by a call (data dependence);
- if it is assigned in the influence region of a divergent branch, between the branch and the point where all its paths
  meet again, which lanes visit at different times or not at all (control dependence). Exempt are constants of the
  run, assigned once and computed from constants of the run alone.

Everything else lanes do alike, loops included; `jax.vmap` finds the same. `hoist_uniform` asks another question: values
that are equal for all lanes *and* never change, on the program with calls lowered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pcbatch.ir.analysis.dataflow import postorder, solve
from pcbatch.ir.analysis.def_use import may_return, successors
from pcbatch.ir.cfg import Call, CfgProgram, Function, Op
from pcbatch.ir.ops import Branch, Fail, Prim
from pcbatch.ir.roles import reads, writes
from pcbatch.lowering.analysis.constants import Definition, roots
from pcbatch.lowering.typing.trace import JaxprFn, restrict

EXIT = ""  # the node that all returns lead to
Graph = Mapping[str, tuple[str, ...]]


def same_results(program: CfgProgram, shared: frozenset[str]) -> tuple[bool, ...]:
    """Return for each result of the entry whether it is uniform; `shared` are the uniform parameters."""
    entry = program.function(program.entry)
    divergent = _divergent(entry, shared)
    return tuple(v not in divergent for v in entry.results)


def _definitions(function: Function) -> list[tuple[Definition[str], str]]:
    """The definitions of each variable, with their blocks."""
    return [
        (Definition((v,), operands, op), block.label)
        for block in function.blocks
        for op in block.ops
        for v, operands in _operands(op)
    ]


def _operands(op: Op) -> Iterator[tuple[str, tuple[str, ...] | None]]:
    """The variables that an operation writes, each with the operands that it is computed from (None for a call)."""
    for k, v in enumerate(writes(op)):
        if isinstance(op, Call):
            yield v, None
        elif isinstance(op, Prim) and len(op.dsts) > 1 and isinstance(op.expr.fn, JaxprFn):
            # One component of a tuple may be uniform though another one is not.
            yield v, tuple(op.expr.ins[j] for j in restrict(op.expr.fn.closed, [k])[1])
        else:
            yield v, reads(op)


def _divergent(function: Function, shared: frozenset[str]) -> set[str]:
    """The divergent variables: a least fixpoint, because more of them make more branches divergent."""
    definitions = _definitions(function)
    given = {p: p if p in shared else None for p in function.params}
    constants = roots((definition for definition, _ in definitions), given)  # of the run
    graph = _flow(function)
    postdominators = _postdominators(graph)
    divergent = {p for p in function.params if p not in shared}
    while True:
        influenced = _influence_regions(function, divergent, graph, postdominators)
        more = {
            v
            for definition, block in definitions
            for v in definition.targets
            if definition.operands is None
            or not divergent.isdisjoint(definition.operands)
            or (block in influenced and v not in constants)
        }
        if more <= divergent:
            return divergent
        divergent |= more


def _flow(function: Function) -> Graph:
    """The control flow graph without failing blocks: a lane that fails has no results to compare with others'."""
    failing = {block.label for block in function.blocks if isinstance(block.terminator, Fail)}
    return {EXIT: ()} | {
        block.label: (
            *(label for label in successors(block.terminator) if label not in failing),
            *([EXIT] if may_return(block.terminator) else []),
        )
        for block in function.blocks
        if block.label not in failing
    }


def _postdominators(graph: Graph) -> Mapping[str, frozenset[str]]:
    """The postdominators of each block: the blocks on all paths from it to the exit, without itself."""
    everything = frozenset(graph)
    return solve(
        graph,
        join=lambda label, after: frozenset() if label == EXIT else everything.intersection(*after),
        transfer=lambda label, after: after | {label},
        start=everything,
    ).entering


def _influence_regions(
    function: Function, divergent: set[str], graph: Graph, postdominators: Mapping[str, frozenset[str]]
) -> set[str]:
    """The influence regions of divergent branches: blocks that lanes may visit at different times, or not at all."""
    influenced: set[str] = set()
    for block in function.blocks:
        if isinstance(block.terminator, Branch) and block.terminator.cond in divergent:
            met = postdominators[block.label]  # where all lanes arrive again, whichever path they take
            inner = {label: [to for to in ends if to not in met] for label, ends in graph.items()}
            influenced.update(postorder(inner[block.label], inner))
    return influenced
