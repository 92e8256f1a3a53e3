"""Who calls whom in a CFG program, and what follows from it: recursion, depth, and what a call may write."""

from __future__ import annotations

from pcbatch.ir.cfg import Call, CfgProgram, Function
from pcbatch.ir.dataflow import components, reachable, solve
from pcbatch.ir.def_use import block_writes

Place = tuple[str, str]
"""A function and one of its variables (names are unique per function only)."""


def calls(program: CfgProgram) -> dict[str, frozenset[str]]:
    """For every function, the functions that it calls directly."""
    return {function.name: frozenset(_callees(function)) for function in program.functions}


def sccs(program: CfgProgram) -> tuple[tuple[str, ...], ...]:
    """Strongly connected components of the call graph, callees before callers."""
    return tuple(tuple(component) for component in components(_ordered_calls(program)))


def recursive(program: CfgProgram) -> frozenset[str]:
    """The functions that may call themselves, directly or through others."""
    edges = calls(program)
    cycles = [c for c in components(_ordered_calls(program)) if len(c) > 1 or c[0] in edges[c[0]]]
    return frozenset(name for cycle in cycles for name in cycle)


def may_write(program: CfgProgram) -> dict[str, frozenset[Place]]:
    """For every function, all that a call of it may write: its parameters, its variables, and its callees'."""
    own = {function.name: frozenset(_writes(function)) for function in program.functions}
    solution = solve(
        {name: tuple(callees) for name, callees in _ordered_calls(program).items()},
        join=lambda _, values: frozenset[Place]().union(*values),
        transfer=lambda name, below: own[name] | below,
        start=frozenset[Place](),
    )
    return {name: solution.leaving[name] for name in own}


def static_depth(program: CfgProgram) -> int | None:
    """The deepest nesting of calls below the entry; None when recursion leaves it open."""
    edges = calls(program)
    alive = reachable([program.entry], edges)
    if alive & recursive(program):
        return None
    depth: dict[str, int] = {}
    for component in sccs(program):
        for name in alive.intersection(component):  # at most one: nothing alive is recursive
            depth[name] = max((depth[callee] + 1 for callee in edges[name]), default=0)
    return depth[program.entry]


def _callees(function: Function) -> dict[str, None]:
    return {op.func: None for block in function.blocks for op in block.ops if isinstance(op, Call)}


def _ordered_calls(program: CfgProgram) -> dict[str, tuple[str, ...]]:
    return {function.name: tuple(_callees(function)) for function in program.functions}


def _writes(function: Function) -> set[Place]:
    names = set(function.params).union(*(block_writes(block) for block in function.blocks))
    return {(function.name, name) for name in names}
