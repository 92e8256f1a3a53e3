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

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pcbatch.ir.cfg import Call, CfgProgram, Function, Op
from pcbatch.ir.dataflow import postorder, solve
from pcbatch.ir.def_use import may_return, successors
from pcbatch.ir.ops import Branch, Fail, Prim
from pcbatch.ir.roles import reads, writes
from pcbatch.lowering.typing.trace import JaxprFn, restrict

EXIT = ""  # the node that all returns lead to
Graph = Mapping[str, tuple[str, ...]]


def same_results(program: CfgProgram, shared: frozenset[str]) -> tuple[bool, ...]:
    """Return for each result of the entry whether it is uniform; `shared` are the uniform parameters."""
    entry = program.function(program.entry)
    divergent = _divergent(_definitions(entry), entry, shared)
    return tuple(v not in divergent for v in entry.results)


@dataclass(frozen=True, slots=True)
class _Definition:
    """A definition of a variable: its operands (None for a call), its block, and whether it is the only one."""

    name: str
    operands: tuple[str, ...] | None
    block: str
    only: bool


def _definitions(function: Function) -> list[_Definition]:
    written = [(v, operands, b.label) for b in function.blocks for op in b.ops for v, operands in _operands(op)]
    count = Counter([*function.params, *(v for v, _, _ in written)])
    return [_Definition(v, operands, label, count[v] == 1) for v, operands, label in written]


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


def _divergent(definitions: list[_Definition], function: Function, shared: frozenset[str]) -> set[str]:
    """The divergent variables: a least fixpoint, because more of them make more branches divergent."""
    constants = _constants(definitions, shared)
    graph = _flow(function)
    postdominators = _postdominators(graph)
    divergent = {p for p in function.params if p not in shared}
    while True:
        influenced = _influence_regions(function, divergent, graph, postdominators)
        more = {d.name for d in definitions if _is_divergent(d, d.block in influenced, constants, divergent)}
        if more <= divergent:
            return divergent
        divergent |= more


def _constants(definitions: list[_Definition], shared: frozenset[str]) -> set[str]:
    """The constants of the run: uniform parameters, and what is computed once and from constants alone."""
    constants = set(shared - {d.name for d in definitions})
    once = [d for d in definitions if d.only]
    while ready := {d.name for d in once if d.operands is not None and constants.issuperset(d.operands)} - constants:
        constants |= ready
    return constants


def _is_divergent(definition: _Definition, influenced: bool, constants: set[str], divergent: set[str]) -> bool:
    if definition.operands is None or not divergent.isdisjoint(definition.operands):
        return True
    return influenced and not (definition.only and constants.issuperset(definition.operands))


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
