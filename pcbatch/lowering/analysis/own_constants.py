"""Functions that each of their calls gives large values of its own, none of which ever changes.

before:  a = call @rnn(w.forward, xs)                  In one body for both calls, every lane would hold a copy of the
         b = call @rnn(w.backward, ys)                 weights that it runs with, and products would be of two batches.

A copy of the body for each call reads the weights where they are, which is what lanes that share them need.
"""

from __future__ import annotations

from collections import defaultdict
from math import prod

from pcbatch.ir.cfg import Call, CfgProgram, Function
from pcbatch.ir.roles import writes

MOST_SITES = 4  # calls of a function that is copied to each of them
LARGE = 1024  # numbers of one example that would be copied for a call

Sites = dict[str, list[tuple[Function, Call]]]


def functions(program: CfgProgram) -> frozenset[str]:
    """Return the functions to be copied to each of their calls."""
    sites: Sites = defaultdict(list)
    for function in program.functions:
        for block in function.blocks:
            for op in block.ops:
                if isinstance(op, Call):
                    sites[op.func].append((function, op))
    return frozenset(
        name
        for name, calls in sites.items()
        if 1 < len(calls) <= MOST_SITES and _own_numbers(program, sites, name) >= LARGE
    )


def _own_numbers(program: CfgProgram, sites: Sites, name: str) -> int:
    """Count the numbers of the arguments that differ from call to call, and are parameters of the entry in each."""
    callee, total = program.function(name), 0
    for k, param in enumerate(callee.params):
        sources = [_source(program, sites, caller, call.args[k]) for caller, call in sites[name]]
        type_ = callee.types[param]
        if type_ is not None and None not in sources and len(set(sources)) > 1:
            total += prod(type_.shape)
    return total


def _source(program: CfgProgram, sites: Sites, function: Function, name: str) -> str | None:
    """The parameter of the entry that a variable is, if it is one and is never assigned."""
    for _ in program.functions:  # callers, of which each is called once
        if name not in function.params or _assigned(function, name):
            return None
        if function.name == program.entry:
            return name
        if len(sites[function.name]) != 1:
            return None
        caller, call = sites[function.name][0]
        function, name = caller, call.args[function.params.index(name)]
    return None


def _assigned(function: Function, name: str) -> bool:
    return any(name in writes(op) for block in function.blocks for op in block.ops)
