"""Put a new entry before the entry function, which only calls it.

before:  entry @f(xs)                      after:  entry @f.entry(xs)
                                                   bb0: r = call @f(xs); return

The parameters of the new entry have the types of the call's arguments. Those of the function itself may be wider.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pcbatch.ir.cfg import Block, Call, CfgProgram, Function
from pcbatch.ir.ops import Expr, Prim, Return
from pcbatch.lowering.typing.abstract_values import Abstract
from pcbatch.lowering.typing.made_records import holds_objects
from pcbatch.records.made import made_schema
from pcbatch.records.tables import TABLES

ENTRY = ".entry"  # behind the name of the function


def run(program: CfgProgram) -> CfgProgram:
    """Return the program with a new entry."""
    return _wrapped(program, ())


def with_records(program: CfgProgram, args: Mapping[str, Abstract]) -> CfgProgram:
    """Return the program with a new entry, which stores the objects among the arguments of classes made in lanes."""
    classes = {one.cls for one in made_schema().classes}
    stored = [name for name, value in args.items() if name != TABLES and holds_objects(value, classes)]
    return _wrapped(program, stored)


def _wrapped(program: CfgProgram, stored: Sequence[str]) -> CfgProgram:
    old = program.function(program.entry)
    name = old.name + ENTRY
    inner = {param: f"{param}.record" for param in stored}
    prims = [Prim((new,), Expr(param, (param,), lambda value: value), old.loc) for param, new in inner.items()]
    call = Call(old.results, old.name, tuple(inner.get(param, param) for param in old.params), old.loc)
    types = dict.fromkeys((*old.params, *inner.values(), *old.results))
    new = Function(name, old.params, old.results, (Block("bb0", (*prims, call), Return()),), types, old.loc)
    return replace(program, entry=name, functions=(new, *program.functions))
