"""Put a new entry before the entry function, which only calls it.

before:  entry @f(xs)                      after:  entry @f.entry(xs)
                                                   bb0: r = call @f(xs); return

The parameters of the new entry have the types of the call's arguments. Those of the function itself may be wider.
"""

from __future__ import annotations

from dataclasses import replace

from pcbatch.ir.cfg import Block, Call, CfgProgram, Function
from pcbatch.ir.ops import Return

ENTRY = ".entry"  # behind the name of the function


def run(program: CfgProgram) -> CfgProgram:
    """Return the program with a new entry."""
    old = program.function(program.entry)
    name = old.name + ENTRY
    call = Call(old.results, old.name, old.params, old.loc)
    types = dict.fromkeys((*old.params, *old.results))
    new = Function(name, old.params, old.results, (Block("bb0", (call,), Return()),), types, old.loc)
    return replace(program, entry=name, functions=(new, *program.functions))
