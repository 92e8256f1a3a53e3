"""Put a new entry before the entry function, which only calls it.

before:  entry @f(xs)                      after:  entry @f.entry(xs)
                                                   bb0: r = call @f(xs); return

The parameters of the new entry have the types of the call's arguments. Those of the function itself may be wider.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pcbatch.data.objects.boxes.values import unboxed
from pcbatch.data.objects.made import made_schema
from pcbatch.data.objects.made_classes import MadeClass
from pcbatch.data.objects.made_results import WithHeap, absorbed, with_heap_in_result
from pcbatch.data.objects.tables import TABLES
from pcbatch.ir.cfg import Block, Call, CfgProgram, Function
from pcbatch.ir.ops import Expr, Prim, Return
from pcbatch.lowering.typing.abstract_values import Abstract
from pcbatch.lowering.typing.made_records import holds_objects

ENTRY = ".entry"  # behind the name of the function


def run(program: CfgProgram) -> CfgProgram:
    """Return the program with a new entry."""
    return _wrapped(program, ())


def with_records(program: CfgProgram, args: Mapping[str, Abstract]) -> CfgProgram:
    """Return the program with a new entry, which stores the objects among the arguments of classes made in lanes."""
    classes = {one.cls for one in made_schema().classes}
    with_heap = tuple(name for name, value in args.items() if holds_heap(value.tree))
    others = [(name,) for name, value in args.items() if name != TABLES and holds_objects(value, classes)]
    stored = [names for names in (with_heap, *others) if names and (names is with_heap or names[0] not in with_heap)]
    return _wrapped(program, stored, records=True)


def _wrapped(program: CfgProgram, stored: Sequence[tuple[str, ...]], records: bool = False) -> CfgProgram:
    old = program.function(program.entry)
    name = old.name + ENTRY
    inner = {param: f"{param}.record" for names in stored for param in names}
    prims = [
        Prim(tuple(inner[name] for name in names), Expr(", ".join(names), names, absorbed), old.loc) for names in stored
    ]
    call = Call(old.results, old.name, tuple(inner.get(param, param) for param in old.params), old.loc)
    types = dict.fromkeys((*old.params, *inner.values(), *old.results))
    after: tuple[Prim, ...] = ()
    if records:
        result = old.results[0]
        call = replace(call, dsts=(f"{result}.made", *call.dsts[1:]))
        after = (Prim((result,), Expr(result, (f"{result}.made",), _result), old.loc),)
        types[f"{result}.made"] = None
    new = Function(name, old.params, old.results, (Block("bb0", (*prims, call, *after), Return()),), types, old.loc)
    return replace(program, entry=name, functions=(new, *program.functions))


def _result(value: Any) -> Any:
    return with_heap_in_result(unboxed(value))


def holds_heap(tree: Any) -> bool:
    """Return whether a structure has a value with a heap of its own, a `Made` of another call."""
    node = tree.node_data()
    return (node is not None and node[0] is WithHeap) or any(map(holds_heap, tree.children()))


def classes_of_arguments(args: Mapping[str, Abstract]) -> frozenset[MadeClass]:
    """Return the classes of the records that come with arguments."""
    found: set[MadeClass] = set()

    def look(tree: Any) -> None:
        node = tree.node_data()
        if node is not None and node[0] is WithHeap:
            found.update(node[1].classes)
        for child in tree.children():
            look(child)

    for value in args.values():
        look(value.tree)
    return frozenset(found)
