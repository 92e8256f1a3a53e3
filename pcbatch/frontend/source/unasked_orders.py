"""The places where elements are taken of what may be a set, and nothing asks for the order in which they come.

    xs = [x for x, _ in cells]                 ==>      xs = [x for x, _ in any_order(cells)]
    return max(xs) - min(xs)
    counts = Counter(p for c in cells ...)     ==>      counts = Counter(p for c in any_order(cells) ...)
    return {p for p, k in counts.items()}               return of_any_order({p for p, k in counts.items()})

What is made of the elements is followed through expressions, variables and parameters of functions: each read of it has
to be one that gives the same for any order, such as `max`, `in`, `sorted` or `d[k]`. A set that is made of it may go
anywhere, as it says itself that its order is not known. Only where the order of a set has been refused
(`Decisions.ordered`), so that other programs stay as they are.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import FunctionType
from typing import Any

import gast

from pcbatch.data.functions import mappings
from pcbatch.errors import CompileError
from pcbatch.frontend.source.changing_methods import changes_arguments
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.generators import generator
from pcbatch.frontend.source.places import mutation
from pcbatch.frontend.source.resolve import MISSING, callee, resolve
from pcbatch.frontend.source.scope import parameters
from pcbatch.frontend.source.tree import COMPREHENSIONS, Node, is_constant, rebuild, supported

MakeUnit = Callable[[FunctionType], Unit]
PLACES = (gast.Name, gast.Attribute, gast.Subscript)


class Kind(Enum):
    """The kind of what has been made of elements that come in any order."""

    LIST, SET, DICT = range(3)


FORGETTING = (len, any, all, bool)
WITHOUT_KEY = (sum, min, max, sorted)
MADE: Mapping[Any, Kind] = {
    list: Kind.LIST,
    tuple: Kind.LIST,
    set: Kind.SET,
    frozenset: Kind.SET,
    collections.Counter: Kind.DICT,
}
METHODS: Mapping[Kind, Mapping[str, Kind | None]] = {
    Kind.LIST: {**dict.fromkeys(("append", "count", "extend")), "copy": Kind.LIST},
    Kind.SET: {
        **dict.fromkeys(("add", "discard", "remove", "update", "issubset", "issuperset", "isdisjoint")),
        **dict.fromkeys(("copy", "union", "intersection", "difference", "symmetric_difference"), Kind.SET),
    },
    Kind.DICT: {
        **dict.fromkeys(("get", "pop", "setdefault", "update")),
        **dict.fromkeys(("items", "keys", "values"), Kind.LIST),
        "copy": Kind.DICT,
    },
}
"""The methods whose results do not show the order of what they belong to, with the kinds of those that have it, too."""


def forget_orders(unit: Unit, make_unit: MakeUnit) -> Node:
    """Return the tree of a function that takes elements in any order where nothing asks for it."""
    if not unit.decisions.ordered:
        return unit.node
    parents = _parents(unit.node)
    taken, marked = set[int](), dict[int, None]()
    for part in gast.walk(unit.node):
        uses = _Uses(unit, parents, make_unit, {}, {}, {})
        if _is_taken(uses, part) and not uses.asked(part, Kind.SET):
            taken.add(id(part))
            marked |= uses.marked or {}

    def written(node: Node) -> Node:
        new = rebuild(node, written)
        if id(node) in taken:
            return supported(mappings.any_order, [new], node)
        return supported(mappings.of_any_order, [new], node) if id(node) in marked else new

    return written(unit.node) if taken else unit.node


def _parents(whole: Node) -> dict[int, Node]:
    """Return of each node, by its identity, the one that holds it; None where several do."""
    found: dict[int, Node] = {}
    for node in gast.walk(whole):
        for child in gast.iter_child_nodes(node):
            found[id(child)] = None if id(child) in found else node
    return found


def _is_taken(uses: _Uses, node: Node) -> bool:
    """Whether a comprehension goes over what a node gives, or a call makes a container of its elements."""
    called = callee(uses.unit, node) is not None and generator(uses.unit, node) is None
    is_place = isinstance(node, (*PLACES, gast.BinOp)) and isinstance(getattr(node, "ctx", gast.Load()), gast.Load)
    if not called and not is_place:
        return False
    parent: Node = uses.parents.get(id(node))
    if isinstance(parent, gast.comprehension):
        return parent.iter is node and (called or not uses.makes_set(uses.parents.get(id(parent))))
    made = MADE.get(uses.meaning(parent)) if isinstance(parent, gast.Call) else None
    return made is not None and made is not Kind.SET and parent.args == [node] and not parent.keywords


@dataclass(frozen=True, slots=True)
class _Uses:
    """The uses of one value in a function.

    Attributes:
        parents: of each node the one that holds it.
        visited: the variables that have been followed, in any function.
        others: the same of other functions, None where they have no source.
        marked: the sets of this function that have to say that their order is not known; None in other functions, where
            a set is followed as other values are.
    """

    unit: Unit
    parents: Mapping[int, Node]
    make_unit: MakeUnit
    visited: dict[tuple[object, str, Kind], None]
    others: dict[FunctionType, _Uses | None]
    marked: dict[int, None] | None = None

    def meaning(self, call: Node) -> Any:
        """Return what a call calls; None where that is not known."""
        found = resolve(self.unit, call.func)
        return None if found is MISSING else found

    def makes_set(self, whole: Node) -> bool:
        """Whether a comprehension gives the elements of a set, which says itself whether its order is known."""
        around = self.parents.get(id(whole))
        is_call = isinstance(around, gast.Call) and MADE.get(self.meaning(around)) is Kind.SET
        return isinstance(whole, gast.SetComp) or (is_call and isinstance(whole, gast.GeneratorExp))

    def asked(self, node: Node, kind: Kind) -> bool:
        """Whether the order of what an expression gives may be asked for, by what holds the expression."""
        parent = self.parents.get(id(node))
        match parent:
            case gast.Expr() | gast.UnaryOp(op=gast.Not()):
                return False
            case gast.If(test=test) | gast.While(test=test) if test is node:
                return False
            case gast.IfExp(test=test):
                return test is not node and self.asked(parent, kind)
            case gast.BoolOp():
                return self.asked(parent, kind)
            case gast.Compare(ops=[gast.In() | gast.NotIn()], comparators=[container]):
                return container is not node
            case gast.Compare():
                return kind is Kind.LIST
            case gast.BinOp(op=op):
                return (kind is Kind.LIST and not isinstance(op, gast.Add)) or self.asked(parent, kind)
            case gast.Subscript(value=value):
                return kind is not Kind.DICT or value is not node
            case gast.comprehension():
                return parent.iter is not node or self._by_comprehension(parent, kind)
            case gast.Call():
                return self._by_call(parent, node, kind)
            case gast.keyword():
                return self._by_argument(self.parents.get(id(parent)), node, kind)
            case gast.Attribute(attr=name):
                return self._by_method(parent, name, kind)
            case gast.Assign(targets=[gast.Name(id=name)]) | gast.AnnAssign(target=gast.Name(id=name)):
                return parent.value is not node or self.variable(name, kind, parent)
            case gast.Tuple(elts=values):
                return self._unpacked(parent, values, node, kind)
        return True

    def _made(self, node: Node, kind: Kind) -> bool:
        """Whether the order of what is made of elements in any order may be asked for."""
        if kind is Kind.SET and self.marked is not None:
            self.marked[id(node)] = None
            return False
        return self.asked(node, kind)

    def _by_comprehension(self, part: Node, kind: Kind) -> bool:
        whole = self.parents.get(id(part))
        if not isinstance(whole, COMPREHENSIONS) or self._has_effects(whole):
            return True
        if isinstance(whole, gast.DictComp):  # of equal keys the last one has the value
            first = kind is Kind.SET and len(whole.generators) == 1 and not isinstance(part.target, gast.Starred)
            return not (first and _reads(whole.key, part.target)) or self.asked(whole, Kind.DICT)
        return self._made(whole, Kind.SET if isinstance(whole, gast.SetComp) else Kind.LIST)

    def _has_effects(self, whole: Node) -> bool:
        """Whether an element may change a variable, or print: then the order of the elements is seen."""
        for part in gast.walk(whole):
            if isinstance(part, gast.NamedExpr | gast.Yield | gast.YieldFrom | gast.Await | gast.Lambda):
                return True
            if isinstance(part, gast.Name) and part.id in self.unit.definitions:
                return True
            if isinstance(part, gast.Call) and self._may_change(part):
                return True
        return False

    def _may_change(self, call: Node) -> bool:
        function = self.meaning(call)
        if mutation(self.unit, call) is not None or (function is None and isinstance(call.func, gast.Name)):
            return True
        if isinstance(function, FunctionType):
            return changes_arguments(self.unit, function)
        return any(function is one for one in (print, next))

    def _by_call(self, call: Node, node: Node, kind: Kind) -> bool:
        function = self.meaning(call)
        if function is None or node is call.func:
            return True
        if call.args == [node] and any(function is one for one in FORGETTING):
            return False
        if call.args == [node] and any(function is one for one in WITHOUT_KEY):
            return any(keyword.arg not in ("default", "reverse") for keyword in call.keywords)
        if call.args == [node] and not call.keywords and (made := MADE.get(function)) is not None:
            return self._made(call, made)
        return self._by_argument(call, node, kind)

    def _by_argument(self, call: Node, node: Node, kind: Kind) -> bool:
        """Whether a function of the user's may ask for the order of an argument."""
        function = self.meaning(call) if isinstance(call, gast.Call) else None
        if not isinstance(function, FunctionType) or any(isinstance(arg, gast.Starred) for arg in call.args):
            return True
        other = self._other(function)
        args: Node = None if other is None else other.unit.node.args
        if other is None or args.vararg is not None or args.kwarg is not None:
            return True
        names = parameters(args)
        place = next((k for k, arg in enumerate(call.args) if arg is node), None)
        named = next((keyword.arg for keyword in call.keywords if keyword.value is node), None)
        name = named if place is None else names[place] if place < len(names) else None
        return name not in names or other.variable(name, kind)

    def _other(self, function: FunctionType) -> _Uses | None:
        if function not in self.others:
            self.others[function] = None
            try:
                unit = self.make_unit(function)
            except CompileError:
                return None
            parents = _parents(unit.node)
            self.others[function] = _Uses(unit, parents, self.make_unit, self.visited, self.others)
        return self.others[function]

    def _by_method(self, attribute: Node, name: str, kind: Kind) -> bool:
        call = self.parents.get(id(attribute))
        if not isinstance(call, gast.Call) or call.func is not attribute or name not in METHODS[kind]:
            return True
        result = METHODS[kind][name]
        return result is not None and self.asked(call, result)

    def _unpacked(self, display: Node, values: list[Node], node: Node, kind: Kind) -> bool:
        """Whether the order is asked for of one of several values that are assigned to as many variables."""
        statement = self.parents.get(id(display))
        match statement:
            case gast.Assign(targets=[gast.Tuple(elts=targets)], value=value) if value is display:
                if len(targets) != len(values) or not all(isinstance(target, gast.Name) for target in targets):
                    return True
                place = next(k for k, value in enumerate(values) if value is node)
                return self.variable(targets[place].id, kind)
        return True

    def variable(self, name: str, kind: Kind, assigned: Node = None) -> bool:
        """Whether the order of a value of a variable may be asked for, by any read of it."""
        key = (self.unit.fn, name, kind)
        if key in self.visited:
            return False
        outside = any(
            isinstance(part, gast.Global | gast.Nonlocal) and name in part.names for part in gast.walk(self.unit.node)
        )
        if outside or name not in self.unit.bound or name in self.unit.returned:
            return True
        if _is_sorted(name, self.unit.body if assigned is None else self._following(assigned)):
            return False
        self.visited[key] = None
        return any(self.asked(read, kind) for read in self._reads_of(name))

    def _reads_of(self, name: str) -> Iterator[Node]:
        for part in gast.walk(self.unit.node):
            if isinstance(part, gast.Name) and part.id == name and isinstance(part.ctx, gast.Load):
                yield part

    def _following(self, statement: Node) -> list[Node]:
        """Return the statements behind one of the same body."""
        parent = self.parents.get(id(statement))
        for body in (getattr(parent, part, None) for part in ("body", "orelse", "finalbody")):
            if isinstance(body, list) and any(one is statement for one in body):
                return body[next(k for k, one in enumerate(body) if one is statement) + 1 :]
        return []


def _is_sorted(name: str, body: list[Node]) -> bool:
    """Whether the first of some statements sorts a list, so that nothing is left of its order."""
    match [one for one in body if not is_constant(getattr(one, "value", None))][:1]:
        case [gast.Expr(value=gast.Call(func=gast.Attribute(value=value, attr="sort"), args=[], keywords=[]))]:
            return isinstance(value, gast.Name) and bool(value.id == name)
    return False


def _reads(key: Node, target: Node) -> bool:
    """Whether an expression reads just what a target assigns."""
    match key, target:
        case gast.Name(id=a), gast.Name(id=b):
            return bool(a == b)
        case gast.Tuple(elts=a), gast.Tuple(elts=b):
            return len(a) == len(b) and all(_reads(one, other) for one, other in zip(a, b, strict=True))
    return False
