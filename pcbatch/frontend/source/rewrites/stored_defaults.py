"""Objects that `setdefault` gives, written as the parts of the dicts that hold them where they are changed or named.

d.setdefault(k, []).append(x)    ==>      d[(d.setdefault(k, []), k)[-1]].append(x)

xs = d.setdefault(k, [])         ==>      d.setdefault(k, []); xs = d[k]

Factories of a `defaultdict` get the values of variables that stay what they are.

d = defaultdict(lambda: start)   ==>      d = defaultdict(lambda start=start: start)
"""

from __future__ import annotations

from collections import defaultdict

import gast

from pcbatch.frontend.source.captured import keeps_its_value
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.own_classes import own_methods
from pcbatch.frontend.source.places import mutation, place_of
from pcbatch.frontend.source.resolve import resolve
from pcbatch.frontend.source.scope import free_names, parameters
from pcbatch.frontend.source.tree import (
    FUNCTIONS,
    Node,
    attribute,
    call,
    constant,
    display,
    load,
    rebuild,
    rebuild_bodies,
    subscript,
    target_of,
    with_defaults,
)

OWN_SCOPES = (*FUNCTIONS, gast.ClassDef, gast.Lambda)
MADE = (gast.List, gast.Dict, gast.Set, gast.ListComp, gast.SetComp, gast.DictComp, gast.Call)


def write_stored_defaults(unit: Unit) -> Node:
    """Return the tree of a function with such calls written out; the tree itself where there are none."""
    if any(own_methods(unit.classes.values(), "setdefault")):
        return unit.node
    writer = _Writer(unit)
    return rebuild_bodies(rebuild(unit.node, writer.rewritten), writer.statements)


class _Writer:
    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.again: dict[int, tuple[Node, Node]] = {}  # by identity: a key, and what gives its value once more

    def rewritten(self, node: Node) -> Node:
        """Rewrite a node, inner parts first."""
        if isinstance(node, OWN_SCOPES):
            return node
        node = rebuild(node, self.rewritten)
        match node:
            case gast.Call(args=[gast.Lambda() as factory]) if resolve(self.unit, node.func) is defaultdict:
                return rebuild(node, lambda child: self.bound(factory) if child is factory else child)
            case gast.Subscript(ctx=gast.Store() | gast.Del()) | gast.Attribute(ctx=gast.Store() | gast.Del()):
                return self.placed(node)
            case gast.Call(func=gast.Attribute() as func):
                new = rebuild(node, lambda child: self.placed(child) if child is func else child)
                return new if mutation(self.unit, new, statement=True) is not None else node
        return node

    def bound(self, node: Node) -> Node:
        """An expression in which factories get the variables that stay what they are by defaults of parameters."""
        new = rebuild(node, self.bound)
        if not isinstance(new, gast.Lambda) or parameters(new.args):
            return new
        names = [name for name in free_names(new) if name in self.unit.variables]
        kept = [name for name in names if keeps_its_value(self.unit, name, node.lineno)]
        return with_defaults({name: load(name, new) for name in kept}, new.body, new) if kept else new

    def statements(self, body: list[Node]) -> list[Node]:
        """Statements, of which each that gives an object in a dict a name becomes two."""
        new: list[Node] = []
        for node in body:
            named = isinstance(node, gast.Assign) and isinstance(node.targets[0], gast.Name)
            value: Node = node.value if named else node
            parts = self.parts(value, value.func) if isinstance(value, gast.Call) else None
            if parts is not None and isinstance(value.args[-1], MADE):
                first, again, key, stored = parts
                method = attribute(first, "setdefault", value.func)
                whole = call(method, stored.args, value)
                new.append(gast.copy_location(gast.Expr(value=whole), node))
                part = subscript(again, key, value)
                node = gast.copy_location(gast.Assign(targets=node.targets, value=part, type_comment=None), node)
            new.append(node)
        return new

    def placed(self, node: Node) -> Node:
        """A part of an object with the calls of `setdefault` in it written out."""
        if isinstance(node, gast.Subscript | gast.Attribute):
            return rebuild(node, lambda child: self.placed(child) if child is node.value else child)
        parts = self.parts(node, node.func) if isinstance(node, gast.Call) else None
        if parts is None:
            return node
        first, _, key, stored = parts
        index = subscript(display([stored, key], node), constant(-1, node), node)
        self.again[id(index)] = index, key
        return subscript(first, index, node)

    def parts(self, node: Node, func: Node) -> tuple[Node, Node, Node, Node] | None:
        """Return the parts of a call `d.setdefault(k, v)`: `d`, `d` once more, `k` once more, and the call after the
        first; None for other calls."""
        match node:
            case gast.Call(func=gast.Attribute(value=value, attr="setdefault"), args=[key, *rest], keywords=[]):
                wrong = len(rest) > 1 or any(isinstance(arg, gast.Starred) for arg in node.args)
                if not wrong and place_of(self.unit, value) is not None:
                    first, again = self.twice(value)
                    named, key = self.named(key)
                    rest = [self.named(arg)[0] if isinstance(arg, gast.Call) else arg for arg in rest]
                    method = attribute(again, "setdefault", func)
                    return first, again, key, call(method, [named, *rest], node)
        return None

    def twice(self, place: Node) -> tuple[Node, Node]:
        """A place, and the same with the values that its keys have had."""
        match place:
            case gast.Attribute(value=value, attr=attr, ctx=ctx):
                pair = self.twice(value)
                made = [gast.copy_location(gast.Attribute(value=one, attr=attr, ctx=ctx), place) for one in pair]
                return made[0], made[1]
            case gast.Subscript(value=value, slice=index):
                first, again = self.twice(value)
                named, key = self.named(index)
                return subscript(first, named, place), subscript(again, key, place)
        return place, place

    def named(self, key: Node) -> tuple[Node, Node]:
        """An expression that gives a key a name, and the name; the key itself if it is a literal or has been named."""
        if isinstance(key, gast.Constant | gast.Slice) or id(key) in self.again:
            return key, self.again.get(id(key), (key, key))[1]
        name = f"default_{len(self.again)}_{key.lineno}_{key.col_offset}"
        named = gast.copy_location(gast.NamedExpr(target=target_of(name, key), value=key), key)
        self.again[id(named)] = named, load(name, key)
        return self.again[id(named)]
