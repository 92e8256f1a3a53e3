"""Functions that each of their calls gives large values of its own, none of which ever changes.

before:  a = call @rnn(w.forward, xs)                  In one body for both calls, every lane would hold a copy of the
         b = call @rnn(w.backward, ys)                 weights that it runs with, and products would be of two batches.

A copy of the body for each call reads the weights where they are, which is what lanes that share them need.
"""

from __future__ import annotations

from collections import defaultdict
from math import prod

from pcbatch.ir.cfg import Call, CfgProgram, Function
from pcbatch.lowering.analysis.constants import constants

MOST_SITES = 4  # calls of a function that is copied to each of them
LARGE = 1024  # numbers of one example that would be copied for a call


def functions(program: CfgProgram) -> frozenset[str]:
    """Return the functions to be copied to each of their calls."""
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
