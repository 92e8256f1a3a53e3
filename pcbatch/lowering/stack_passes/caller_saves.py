"""Choose the variables that each call pushes before and pops after: the fewest that keep every value.

before:  a = call @f(x); b = call @f(y); return     (y, a live)     after:  push y, call, pop y; push a, call, pop a

A value needs saving when it is live after the call AND the call may write its variable at another depth. Then, per
function, two data-flow problems cancel pops against pushes (section 3.2 of Radul et al., with one stack pointer):

- forward, intersection: a slot that already holds the variable's value need not be pushed again;
- backward, union: a value that is next needed after another call, which pops it itself, need not be popped here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pcbatch.ir.analysis.dataflow import backward, forward, solve
from pcbatch.ir.analysis.def_use import may_return, terminator_reads
from pcbatch.ir.analysis.liveness import live_after
from pcbatch.ir.cfg import Call, CfgProgram, Function
from pcbatch.ir.roles import reads, writes

Names = frozenset[str]
Site = tuple[str, int]  # block label, index of the call
Qualify = Mapping[tuple[str, str], str]  # (function, variable) -> name in the merged program


@dataclass(frozen=True, slots=True)
class Saves:
    """The variables that one call pushes before it and pops after it, in the order of their declaration."""

    pushes: tuple[str, ...]
    pops: tuple[str, ...]


def plan(program: CfgProgram, qualified: Qualify) -> dict[str, dict[Site, Saves]]:
    """Return the saves of every call: function -> site -> `Saves`, by local variable names.

    `qualified` gives the names in the merged program, where two functions may share a variable.
    """
    written = _written(program, qualified)
    functions = {f.name: f for f in program.functions}
    return {f.name: _plan(functions, f, written, qualified) for f in program.functions}


def _written(program: CfgProgram, qualified: Qualify) -> dict[str, Names]:
    """The variables that a call of each function may write, in its callees too, without the parameters of the function
    itself, which the caller writes."""
    functions = {f.name: f for f in program.functions}
    own = {f.name: frozenset(qualified[f.name, v] for op in f.ops for v in writes(op)) for f in program.functions}
    calls = {f.name: [op for op in f.ops if isinstance(op, Call)] for f in program.functions}
    passed = {
        name: frozenset(v for op in ops for v in _passed(name, functions[op.func], op, qualified))
        for name, ops in calls.items()
    }
    solution = solve(
        {name: tuple(dict.fromkeys(op.func for op in ops)) for name, ops in calls.items()},
        join=lambda _, values: frozenset[str]().union(*values),
        transfer=lambda name, below: own[name] | passed[name] | below,
        start=frozenset[str](),
    )
    return {name: solution.leaving[name] for name in functions}


def _passed(caller: str, callee: Function, call: Call, qualified: Qualify) -> Names:
    """Parameters that the call itself writes: not those that a recursive call passes on unchanged."""
    return frozenset(
        qualified[callee.name, p]
        for p, a in zip(callee.params, call.args, strict=True)
        if qualified[callee.name, p] != qualified[caller, a]
    )


def _plan(
    functions: Mapping[str, Function], function: Function, written: Mapping[str, Names], qualified: Qualify
) -> dict[Site, Saves]:
    live = live_after(function)
    saved: dict[Site, Names] = {}
    for block in function.blocks:
        for k, op in enumerate(block.ops):
            if isinstance(op, Call):
                # What the callee writes, and its parameters, unless a recursive call passes them on unchanged.
                clobbered = written[op.func] | _passed(function.name, functions[op.func], op, qualified)
                alive = live[block.label][k] - frozenset(op.dsts)
                saved[block.label, k] = frozenset(v for v in alive if qualified[function.name, v] in clobbered)
    pushes = _needed_pushes(function, saved)
    pops = _needed_pops(function, saved, pushes)
    order = {v: k for k, v in enumerate(function.types)}
    return {
        site: Saves(
            tuple(sorted(pushes[site], key=lambda v: order[v])), tuple(sorted(pops[site], key=lambda v: order[v]))
        )
        for site in saved
    }


def _needed_pushes(function: Function, saved: Mapping[Site, Names]) -> dict[Site, Names]:
    blocks = {block.label: block for block in function.blocks}
    everything = frozenset(function.types)
    pushes: dict[Site, Names] = {}

    def through(label: str, valid: Names) -> Names:
        """`valid`: variables whose slot holds their value."""
        for k, op in enumerate(blocks[label].ops):
            if isinstance(op, Call):
                pushes[label, k] = saved[label, k] - valid
                valid |= saved[label, k]
            valid -= frozenset(writes(op))
        return valid

    entry = function.blocks[0].label
    solution = forward(
        function.blocks,
        join=lambda label, values: frozenset() if label == entry else everything.intersection(*values),
        transfer=through,
        start=everything,
    )
    for label, valid in solution.entering.items():
        through(label, valid)  # once more, at the solution, to leave the final pushes
    return pushes


def _needed_pops(function: Function, saved: Mapping[Site, Names], pushes: Mapping[Site, Names]) -> dict[Site, Names]:
    blocks = {block.label: block for block in function.blocks}
    pops: dict[Site, Names] = {}

    def through(label: str, need: Names) -> Names:
        """`need`: variables whose register must hold their value."""
        block = blocks[label]
        need |= frozenset(terminator_reads(block.terminator))
        need |= frozenset(function.results) if may_return(block.terminator) else frozenset()
        for k, op in reversed(list(enumerate(block.ops))):
            need -= frozenset(writes(op))
            if isinstance(op, Call):
                pops[label, k] = saved[label, k] & need
                need = (need - saved[label, k]) | pushes[label, k]
            need |= frozenset(reads(op))
        return need

    solution = backward(
        function.blocks,
        join=lambda _, values: frozenset[str]().union(*values),
        transfer=through,
        start=frozenset[str](),
    )
    for label, need in solution.entering.items():
        through(label, need)
    return pops
