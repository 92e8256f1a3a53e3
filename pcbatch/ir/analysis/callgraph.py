"""The call graph of a CFG program: callees, recursion and the depth of calls."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from pcbatch.ir.analysis.dataflow import components, reachable
from pcbatch.ir.cfg import Call, CfgProgram, Function


def calls(program: CfgProgram) -> dict[str, frozenset[str]]:
    """The functions that each function calls directly."""
    return {function.name: frozenset(_callees(function)) for function in program.functions}


def sccs(program: CfgProgram) -> tuple[tuple[str, ...], ...]:
    """The strongly connected components of the call graph, callees before callers."""
    return tuple(tuple(component) for component in components(_ordered_calls(program)))


def recursive(program: CfgProgram) -> frozenset[str]:
    """The functions that may call themselves, directly or through others."""
    edges = calls(program)
    cycles = [c for c in components(_ordered_calls(program)) if len(c) > 1 or c[0] in edges[c[0]]]
    return frozenset(name for cycle in cycles for name in cycle)


def static_depth(program: CfgProgram) -> int | None:
    """The deepest nesting of calls below the entry; None if recursion leaves it open."""
    edges = calls(program)
    called = reachable([program.entry], edges)
    if called & recursive(program):
        return None
    depth: dict[str, int] = {}
    for component in sccs(program):
        for name in called.intersection(component):  # at most one, since none of them is recursive
            depth[name] = max((depth[callee] + 1 for callee in edges[name]), default=0)
    return depth[program.entry]


def call_counts(program: CfgProgram) -> Counter[str]:
    """The number of calls of each function."""
    return Counter(op.func for function in program.functions for op in function.ops if isinstance(op, Call))


def without_uncalled(program: CfgProgram) -> CfgProgram:
    """The program without the functions that nothing calls."""
    alive = reachable([program.entry], calls(program))
    return replace(program, functions=tuple(f for f in program.functions if f.name in alive))


def _callees(function: Function) -> dict[str, None]:
    return {op.func: None for op in function.ops if isinstance(op, Call)}


def _ordered_calls(program: CfgProgram) -> dict[str, tuple[str, ...]]:
    return {function.name: tuple(_callees(function)) for function in program.functions}
