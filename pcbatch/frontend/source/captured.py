"""Variables that functions which are values capture: the cells that stand for them, and whether they change."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import gast

from pcbatch.data.objects.function_values import field_of
from pcbatch.diagnostics.diagnostic import Diagnostic, Label
from pcbatch.errors import CompileError
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.places import is_mutating_method, mutation, place_of
from pcbatch.frontend.source.rewrites.nested import function_of, nonlocals
from pcbatch.frontend.source.scope import hidden_inside, parameters
from pcbatch.frontend.source.tree import Node, load, rebuild

CELL = "pcbatch_cell_"
HELPS = (
    "give the function the value that it has now, by a default: `lambda x, i=i: ...` (else it is that of the call)",
    "make the function in a function of its own, which gets the value as an argument",
)


READS_HELP = "give the function that is called the values that it reads as arguments, in place of a function"


def cell_of(name: str) -> str:
    """Return the name of the variable that holds the cell of another one (`rewrites/cells.py`)."""
    return f"{CELL}{name}"


def read_by_cell(node: Node, names: Collection[str]) -> Node:
    """Return a tree in which the cells of variables stand for them, where no inner scope has others of the names."""
    match node:
        case gast.Name(id=name, ctx=ctx) if name in names:
            return gast.copy_location(gast.Attribute(load(cell_of(name), node), field_of(0), ctx), node)
        case gast.Nonlocal(names=declared) if not set(names).isdisjoint(declared):
            left = [name for name in declared if name not in names]
            return gast.copy_location(gast.Nonlocal(names=left) if left else gast.Pass(), node)
        case gast.Lambda() | gast.FunctionDef():
            own = hidden_inside(node) - nonlocals(node)
            names = [name for name in names if name not in own]
        case gast.ListComp() | gast.SetComp() | gast.GeneratorExp() | gast.DictComp():
            names = [name for name in names if name not in hidden_inside(node)]
    return rebuild(node, lambda child: read_by_cell(child, names)) if names else node


def changed_in_place(unit: Unit, node: Node, names: Collection[str]) -> Iterator[str]:
    """Yield the variables among some names whose lists, dicts and sets a function changes."""
    for part in gast.walk(node):
        found = mutation(unit, part, statement=True) if isinstance(part, gast.Call) else None
        stored = isinstance(part, gast.Subscript) and not isinstance(part.ctx, gast.Load)
        place = place_of(unit, part.value) if stored else None if found is None else found.place
        if place is not None and not place.keys and place.name in names:
            if found is None or "." in found.method or is_mutating_method(part.func, statement=True):
                yield place.name


def assigned_once(unit: Unit, name: str) -> bool:
    """Return whether a local variable of a function gets a value in one place alone, outside of loops."""
    loops = [part for part in gast.walk(unit.node) if isinstance(part, gast.For | gast.While)]
    looped = {id(part) for loop in loops for part in gast.walk(loop)}
    elsewhere = {each for definition in unit.definitions.values() for each in nonlocals(function_of(definition))}
    places = unit.bound[name]
    once = len(places) == (name not in parameters(unit.node.args)) and not any(id(one) in looped for one in places)
    return once and name not in elsewhere


def keeps_its_value(unit: Unit, name: str, line: int) -> bool:
    """Return whether a variable has got its only value before a line of a function, and its object does not change."""
    target = unit.lifted.get(getattr(unit.node, "name", ""))
    around = target is not None and target.nested.node is unit.node and name not in parameters(unit.node.args)
    if target is not None and around and name in unit.params:
        return keeps_its_value(target.nested.outer, name, line)
    once = name in unit.bound and assigned_once(unit, name) and all(one.lineno < line for one in unit.bound[name])
    return once and not any(changed_in_place(unit, unit.node, [name]))


def changed(unit: Unit, name: str, at: Node, change: Node) -> CompileError:
    """Return the error that a variable changes which a function that is a value has captured."""
    title = f"`{name}` may change after a function that is a value of the lane has captured it"
    second = () if change is None else (Label(unit.source.loc(change), "changed here"),)
    return CompileError(Diagnostic("PCB207", title, Label(unit.source.loc(at), "captured here"), second, helps=HELPS))


def require_known(outer: Unit, node: Node, reads: Collection[str], known: Collection[str]) -> None:
    """Refuse a function defined in `outer` and handed on, if it reads what the function that gets it does not know."""
    for name in reads:
        if name not in known:
            title = f"a function that is handed on reads `{name}`, which the function that gets it does not know"
            label = Label(outer.source.loc(node), "handed on from here")
            raise CompileError(Diagnostic("PCB207", title, label, helps=(READS_HELP,)))
