"""Inline functions that are called once, and small ones: no frame and no trip for the call.

before:  func @f(x): y = call @half(x); return        after:  func @f(x): half.x = x; half.r = { half.x / 2 }
         func @half(x): r = { x / 2 }; return                             y = half.r; return

Functions that are recursive, directly or through others, stay: for their calls a lane has a stack. Callees come first,
so that a function is judged together with what was inlined into it. A body that is called once moves. One that is
called more often is copied only if it costs less than a trip, because lanes in two copies of it do not run together; or
if each call gives it large constants of its own.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from math import prod

from pcbatch.ir.analysis.callgraph import call_counts, recursive, sccs
from pcbatch.ir.analysis.loops import loops
from pcbatch.ir.cfg import Call, CfgProgram, Function
from pcbatch.lowering.analysis.constants import constants
from pcbatch.lowering.analysis.cost import op_cost
from pcbatch.lowering.cfg_passes.inline import Inliner
from pcbatch.lowering.cfg_passes.simplify_cfg import drop_unreachable

MAX_COST = 64.0  # of a body that is copied, per lane, about one arithmetic operation each
MAX_BLOCKS = 4  # of a body that is copied
MOST_SITES = 4  # calls of a function that is copied for its constants
LARGE = 1024  # numbers of one example that would be copied for a call
MAX_COPIED = 64  # operations that all copies of one body may have together


def run(program: CfgProgram) -> CfgProgram:
    """Inline calls in every function that is left."""
    never_inlined = recursive(program) | {program.entry}
    sites = call_counts(program)
    functions = {f.name: f for f in program.functions}
    copied = _with_own_constants(program) - never_inlined
    inlined: dict[str, Function] = {}
    grown: dict[str, Function] = {}
    for name in (name for component in sccs(program) for name in component):
        function = functions[name]
        if name not in never_inlined and sites[name] == 1:
            inlined[name] = function  # its own callees are inlined where it is put, so that nothing is copied twice
            continue
        new = Inliner(function, inlined).run()
        grown[name] = replace(new, blocks=drop_unreachable(new.blocks))  # a callee may never return
        if name in copied or (name not in never_inlined and _small(grown[name], sites[name])):
            inlined[name] = grown[name]
    remaining = tuple(grown[f.name] for f in program.functions if f.name not in inlined)
    return program if remaining == program.functions else replace(program, functions=remaining)


def _small(function: Function, sites: int) -> bool:
    """Whether a function may be copied to each of its `sites`. A call in it costs infinity, and a loop stays in one
    place, where lanes meet."""
    ops = [*function.ops]
    if len(function.blocks) > MAX_BLOCKS or len(ops) * sites > MAX_COPIED or loops(function):
        return False
    return sum(op_cost(op, function.types) for op in ops) <= MAX_COST


def _with_own_constants(program: CfgProgram) -> frozenset[str]:
    """Return the functions to be copied to each of their calls, which gives them large values that never change.

    before:  a = call @rnn(w.forward, xs)              In one body for both calls, every lane would hold a copy of the
             b = call @rnn(w.backward, ys)             weights that it runs with, and products would be of two batches.

    A copy of the body for each call reads the weights where they are, which is what lanes that share them need.
    """
    sites: dict[str, list[tuple[Function, Call]]] = defaultdict(list)
    for function in program.functions:
        for op in function.ops:
            if isinstance(op, Call):
                sites[op.func].append((function, op))
    again = [name for name, calls in sites.items() if len(calls) > 1]
    few = [name for name in again if len(sites[name]) <= MOST_SITES]
    if not few:
        return frozenset()
    inner = [program.function(name) for name in again if name != program.entry]
    roots = constants(program, varying=((f.name, p) for f in inner for p in f.params))

    def own_numbers(callee: Function) -> int:
        """Count the numbers of the arguments that differ from call to call, and are parameters of the entry in each."""
        total = 0
        for k, param in enumerate(callee.params):
            sources = {roots.get((caller.name, call.args[k])) for caller, call in sites[callee.name]}
            type_ = callee.types[param]
            if type_ is not None and None not in sources and len(sources) > 1:
                total += prod(type_.shape)
        return total

    return frozenset(name for name in few if own_numbers(program.function(name)) >= LARGE)
