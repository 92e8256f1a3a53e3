"""The refusal of changes in place of objects that do not belong to a lane: captured ones, and those without a name."""

from __future__ import annotations

from types import FunctionType

import gast

from pcbatch.frontend.source.function_unit import Faults, Unit
from pcbatch.frontend.source.places import place_of
from pcbatch.frontend.source.resolve import resolve
from pcbatch.frontend.source.tree import Node, one_line

SHARED = "all lanes, and all later calls, would share the change"
NAMELESS = "no variable holds the object that this changes"


def refuse_change(unit: Unit, faults: Faults, node: Node, changed: Node) -> None:
    """Record that `node` changes the object `changed`, which is no part of a variable of the lane."""
    helps: tuple[str, ...]
    root = changed
    while isinstance(root, gast.Subscript | gast.Attribute):
        root = root.value
    if isinstance(root, gast.Name) and root.id not in unit.nested:
        name = root.id
        title, label = f"`{name}` does not belong to a lane, so a lane cannot change it", SHARED
        known = name in unit.statics
        if isinstance(resolve(unit, root), type | FunctionType):
            helps = (f"keep the value in a variable of the function, and return it: `{name}` is one for all lanes",)
            faults.add("PCB117", title, node, label, helps=helps)
            return
        helps = (
            (f"pass the values of `{name}` that change as arguments, and return them",)
            if known
            else (f"make a copy in the function, `own = {name}.copy()`, or pass `{name}` as an argument and return it",)
        )
    elif (found := _taken_from_dict(unit, root)) is not None:
        place, key = found
        title, label = f"a change of what `{place}.get` gives", "the object in the dict, or another one"
        by_key = f"change it by its key where that is there, `if {key} in {place}:` and then `{place}[{key}]`"
        stored = f"`{place}.setdefault` stores the default as well, and then `{place}[{key}]` is there"
        helps = (by_key, stored) if len(root.args) == 2 else (by_key,)
    else:
        title, label = "a change of an object without a name", NAMELESS
        helps = (f"assign it to a variable first: `value = {one_line(root)}`",)
    faults.add("PCB117", title, node, label, helps=helps)


def _taken_from_dict(unit: Unit, node: Node) -> tuple[str, str] | None:
    """The text of the dict and of the key of `d.get(k)` or `d.get(k, default)`; None for other expressions."""
    match node:
        case gast.Call(func=gast.Attribute(value=value, attr="get"), args=[key, *_], keywords=[]):
            return None if place_of(unit, value) is None else (one_line(value), one_line(key))
    return None
