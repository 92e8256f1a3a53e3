"""The variables whose items the body of a loop assigns, and of which it does nothing else that a loop over them sees.

for i, x in enumerate(xs):
    xs[i] = 2 * x               `xs` is as long as before, and the next element is read after this store
"""

from __future__ import annotations

import gast

from pcbatch.frontend.source.tree import Node


def stored_into(loop: Node) -> frozenset[str]:
    """Return the variables that the body of a `for` loop assigns items of, and otherwise only indexes or measures."""
    names: dict[str, bool] = {}
    parts = [part for statement in loop.body for part in gast.walk(statement)]
    harmless = {id(part.value) for part in parts if isinstance(part, gast.Subscript)}
    for part in parts:
        if isinstance(part, gast.Call) and isinstance(part.func, gast.Name) and part.func.id == "len":
            harmless |= {id(arg) for arg in part.args}
    stores = {
        part.value.id
        for part in parts
        if isinstance(part, gast.Subscript) and isinstance(part.ctx, gast.Store) and isinstance(part.value, gast.Name)
        if not isinstance(part.slice, gast.Slice)
    }
    for part in parts:
        if isinstance(part, gast.Name) and part.id in stores:
            names[part.id] = names.get(part.id, True) and id(part) in harmless
        if isinstance(part, gast.Delete):
            names |= {name.id: False for name in gast.walk(part) if isinstance(name, gast.Name)}
        if isinstance(part, gast.Subscript) and isinstance(part.slice, gast.Slice) and isinstance(part.ctx, gast.Store):
            names |= {name.id: False for name in gast.walk(part.value) if isinstance(name, gast.Name)}
    return frozenset(name for name, alone in names.items() if alone)
