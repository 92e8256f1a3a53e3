"""Displays of tuples that are kept, written as records of a lane where the tuples are parts of trees.

    return ("neg", x)      ==>      return of_display(C, "neg", x)           C: the class of ("neg", ·)

Where compiling has found that tuples meet what has another structure, it starts again and notes which tuples the
displays make (`displayed`), and once more with records in place of those that are joined so.
"""

from __future__ import annotations

import gast

from pcbatch.data.objects.tuples.classes import name_of_class
from pcbatch.data.objects.tuples.displays import displayed, of_display
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.resolve import resolve
from pcbatch.frontend.source.tree import Node, constant, display, is_supported, load, rebuild, supported

ASKED = (isinstance, issubclass, print)
ASKED_METHODS = ("startswith", "endswith", "format")


def write_tuples(unit: Unit) -> Node:
    """Return the tree of a function with such displays written so; the tree itself where there are none."""
    if not unit.decisions.displays and not unit.decisions.tuples:
        return unit.node
    return _Writer(unit).rewritten(unit.node)


class _Writer:
    def __init__(self, unit: Unit) -> None:
        self.unit = unit

    def rewritten(self, node: Node) -> Node:
        """Rewrite a node whose value is not kept itself."""
        parts = self.kept_parts(node)
        return rebuild(
            node, lambda child: self.value(child) if any(child is one for one in parts) else self.rewritten(child)
        )

    def kept_parts(self, node: Node) -> list[Node]:
        """The parts of a node whose values are kept."""
        match node:
            case gast.Assign(targets=[gast.Tuple() | gast.List()], value=gast.Tuple()):
                return list(node.value.elts)
            case gast.Assign() | gast.AnnAssign() | gast.NamedExpr() | gast.Return() | gast.Yield():
                return [node.value]
            case gast.Set() | gast.List(ctx=gast.Load()) | gast.Tuple(ctx=gast.Load()):
                return list(node.elts)
            case gast.Dict():
                return list(node.values)
            case gast.ListComp() | gast.SetComp() | gast.GeneratorExp():
                return [node.elt]
            case gast.DictComp():
                return [node.value]
            case gast.Compare(ops=ops) if all(isinstance(op, gast.Eq | gast.NotEq) for op in ops):
                return [node.left, *node.comparators]
            case gast.Call(func=gast.Attribute(attr=name)) if name in ASKED_METHODS:
                return []
            case gast.Call() if is_supported(node, displayed) or any(resolve(self.unit, node.func) is f for f in ASKED):
                return []
            case gast.Call():
                return [*node.args, *(keyword.value for keyword in node.keywords)]
        return []

    def value(self, node: Node) -> Node:
        """Rewrite an expression whose value is kept."""
        match node:
            case gast.IfExp(test=test):
                return rebuild(node, lambda child: self.rewritten(child) if child is test else self.value(child))
            case gast.BoolOp():
                return rebuild(node, self.value)
            case gast.Tuple(elts=[_, *_] as items, ctx=gast.Load()):
                return self.display(node, [self.value(item) for item in items])
        return self.rewritten(node)

    def display(self, node: Node, items: list[Node]) -> Node:
        """The expression of the tuple of a display."""
        loc = self.unit.source.loc(node)
        place = f"{loc}-{loc.end_line}:{loc.end_col}"
        cls = self.unit.decisions.tuples.get(place)
        if cls is not None:
            return supported(of_display, [load(name_of_class(cls), node), *items], node)
        if not self.unit.decisions.displays:
            return display(items, node)
        first = node.elts[0]
        tag = first.value if isinstance(first, gast.Constant) and isinstance(first.value, str) else None
        return supported(displayed, [constant(place, node), constant(tag, node), *items], node)
