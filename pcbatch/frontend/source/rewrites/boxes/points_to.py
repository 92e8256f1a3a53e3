"""The points-to analysis of a program, repeated until it knows what is a dict, and of which classes objects are."""

from __future__ import annotations

from types import FunctionType

import gast

from pcbatch.errors import CompileError
from pcbatch.frontend.source.rewrites.boxes.flow import Flow
from pcbatch.frontend.source.rewrites.boxes.program import Found, Known
from pcbatch.frontend.source.tree import Node

MOST_LOOKS = 8


def analysed(entry: FunctionType, found: Found) -> Flow | None:
    """Return the objects of the expressions of a program; None where the source of a function is not at hand."""
    known_now = Known()
    try:
        for _ in range(MOST_LOOKS):
            flow = Flow(entry, found, known_now)
            mappings = {place for place, value in flow.iterated if any(map(_makes_dict, value.found().sites))}
            methods = {place: frozenset(value.found().classes) for place, value in flow.receivers.items()}
            methods |= {
                place: classes | known_now.methods.get(place, frozenset()) for place, classes in methods.items()
            }
            methods = {**known_now.methods, **{place: classes for place, classes in methods.items() if classes}}
            found_now = Known(known_now.mappings | mappings, methods)
            if found_now == known_now:
                return flow
            known_now = found_now
    except (CompileError, RecursionError):
        return None
    return None


def _makes_dict(site: Node) -> bool:
    match site:
        case gast.Dict() | gast.DictComp():
            return True
        case gast.Call(func=gast.Name(id=name)) | gast.Call(func=gast.Attribute(attr=name)):
            return name in ("dict", "defaultdict", "Counter", "OrderedDict", "fromkeys")
        case gast.Name(id="dict"):  # what a `defaultdict` makes
            return True
    return False
