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

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pcbatch.ir.cfg import Call, CfgProgram, Function, Op
from pcbatch.ir.dataflow import postorder
from pcbatch.ir.def_use import may_return, reads, successors, writes
from pcbatch.ir.ops import Branch, Fail, Prim
from pcbatch.lowering.typing.trace import JaxprFn, restrict

EXIT = ""
Ways = Mapping[str, tuple[str, ...]]


def same_results(program: CfgProgram, shared: frozenset[str]) -> tuple[bool, ...]:
    """Return for each result of the entry whether it is uniform; `shared` are the uniform parameters."""
    entry = program.function(program.entry)
    varying = _varying(_made(entry), entry, shared)
    return tuple(v not in varying for v in entry.results)


@dataclass(frozen=True, slots=True)
class _Made:
    """A definition of a variable: its operands (None for a call), its block, and whether it is the only one."""

    name: str
    of: tuple[str, ...] | None
    block: str
    once: bool


def _made(function: Function) -> list[_Made]:
    found = [(v, of, b.label) for b in function.blocks for op in b.ops for v, of in _definitions(op)]
    several = _repeated([*function.params, *(v for v, _, _ in found)])
    return [_Made(v, of, label, v not in several) for v, of, label in found]


def _definitions(op: Op) -> Iterator[tuple[str, tuple[str, ...] | None]]:
    """The variables that an operation writes, each with the operands that it is computed from (None for a call)."""
    for k, v in enumerate(writes(op)):
        if isinstance(op, Call):
            yield v, None
        elif isinstance(op, Prim) and len(op.dsts) > 1 and isinstance(op.expr.fn, JaxprFn):
            yield v, tuple(op.expr.ins[j] for j in restrict(op.expr.fn.closed, [k])[1])
        else:
            yield v, reads(op)


def _repeated(names: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    return {v for v in names if v in seen or seen.add(v)}  # type: ignore[func-returns-value]


def _varying(made: list[_Made], function: Function, shared: frozenset[str]) -> set[str]:
    fixed = _fixed(made, shared)
    ways = _ways(function)
    behind = _met_again(ways)
    found = {p for p in function.params if p not in shared}
    while True:
        apart = _apart(function, found, ways, behind)
        more = {m.name for m in made if _differs(m, m.block in apart, fixed, found)}
        if more <= found:
            return found
        found |= more


def _fixed(made: list[_Made], shared: frozenset[str]) -> set[str]:
    """The constants of the run: uniform parameters, and what is computed once and from constants alone."""
    fixed = set(shared - {m.name for m in made})
    once = [m for m in made if m.once]
    while ready := {m.name for m in once if m.of is not None and fixed.issuperset(m.of)} - fixed:
        fixed |= ready
    return fixed


def _differs(made: _Made, apart: bool, fixed: set[str], varying: set[str]) -> bool:
    if made.of is None or not varying.isdisjoint(made.of):
        return True
    return apart and not (made.once and fixed.issuperset(made.of))


def _ways(function: Function) -> Ways:
    """The control flow graph without failing blocks: the results of a lane that fails are not compared with others'."""
    failing = {block.label for block in function.blocks if isinstance(block.terminator, Fail)}
    return {EXIT: ()} | {
        block.label: (
            *(label for label in successors(block.terminator) if label not in failing),
            *([EXIT] if may_return(block.terminator) else []),
        )
        for block in function.blocks
        if block.label not in failing
    }


def _met_again(ways: Ways) -> dict[str, set[str]]:
    """The postdominators of each block: the blocks on all paths from it to the exit, without itself."""
    order = postorder(ways, ways)
    behind = {label: set(order) for label in order}
    behind[EXIT] = set()
    changed = True
    while changed:
        changed = False
        for label in order:
            ends = [behind[end] | {end} for end in ways[label]]
            new = set.intersection(*ends) if ends else behind[label]
            changed |= new != behind[label]
            behind[label] = new
    return behind


def _apart(function: Function, varying: set[str], ways: Ways, behind: Mapping[str, set[str]]) -> set[str]:
    """The influence regions of divergent branches: blocks that lanes may visit at different times, or not at all."""
    found: set[str] = set()
    for block in function.blocks:
        if isinstance(block.terminator, Branch) and block.terminator.cond in varying:
            met = behind[block.label]
            inner = {a: [b for b in ends if b not in met] for a, ends in ways.items()}
            found.update(postorder(inner[block.label], inner))
    return found
