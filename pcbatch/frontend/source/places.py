"""Places: variables and parts of them, `grid[i].rows`, and the expressions that change what is there.

Python changes lists, dicts, arrays and objects in place. Lanes hold values, so a change of a place becomes an
assignment to the variable at its root.
"""

from __future__ import annotations

import collections
import inspect
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType
from weakref import WeakKeyDictionary

import gast

from pcbatch.data.catalogue import FUNCTIONS, NEXT, facts
from pcbatch.data.object_parts import is_user_code
from pcbatch.frontend.source.changing_methods import changes_object
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.own_classes import own_methods
from pcbatch.frontend.source.resolve import resolve
from pcbatch.frontend.source.tree import Node

DISPLAYS = (gast.List, gast.Dict, gast.Set, gast.ListComp, gast.DictComp, gast.SetComp)
LOOKING = (len, sum, max, min, any, all, sorted, list, tuple, set, dict, frozenset, print, str, repr, bool)
"""Functions that give none of the containers that they get."""
MAKING = (list, dict, set, sorted, bytearray, collections.deque, defaultdict, collections.Counter)
ITERATING = (enumerate, zip, reversed)


@dataclass(frozen=True, slots=True)
class Place:
    """A variable, `root`, or a part of it; `keys` are the subscriptions and attributes on the way, from the root on."""

    root: Node
    keys: tuple[Node, ...] = ()

    @property
    def name(self) -> str:
        """The name of the variable."""
        name: str = self.root.id
        return name

    @property
    def operands(self) -> tuple[Node, ...]:
        """The expressions inside the keys, in the order in which Python evaluates them."""
        subscripts = (key.slice for key in self.keys if isinstance(key, gast.Subscript))
        return tuple(part for index in subscripts for part in index_parts(index))


@dataclass(frozen=True, slots=True)
class Mutation:
    """A call that changes a place: `method` is its name, `module.name` for a function; `names` are those of keywords,
    whose values stand last in `args`."""

    place: Place
    method: str
    args: tuple[Node, ...]
    names: tuple[str, ...]


def index_parts(index: Node) -> Iterator[Node]:
    """The expressions of an index: the bounds of slices, the elements of a tuple, or the index itself."""
    if isinstance(index, gast.Slice):
        yield from (part for part in (index.lower, index.upper, index.step) if part is not None)
    elif isinstance(index, gast.Tuple):
        for element in index.elts:
            yield from index_parts(element)
    else:
        yield index


def place_of(unit: Unit, node: Node) -> Place | None:
    """The place that a node names; None if its root is no variable of the lane, or it is `x.at[i]`."""
    keys: list[Node] = []
    while isinstance(node, gast.Subscript | gast.Attribute):
        if isinstance(node, gast.Attribute) and node.attr == "at" and keys and isinstance(keys[-1], gast.Subscript):
            return None  # JAX's arrays: what follows makes a new value
        keys.append(node)
        node = node.value
    if not isinstance(node, gast.Name) or node.id not in unit.variables or node.id in unit.statics:
        return None
    return Place(node, tuple(reversed(keys)))


def mutation(unit: Unit, node: Node, *, statement: bool = False, effect: bool = False) -> Mutation | None:
    """The change that a call makes.

    `statement`: the call is a statement, so that its value is not used; `effect`: a method of a class of the user's
    counts as one that changes its object, whatever it does. Reading a `defaultdict` is a call, too: it stores what is
    missing.
    """
    if isinstance(node, gast.Subscript):
        return _read_of_default(unit, node)
    if not isinstance(node, gast.Call) or any(isinstance(arg, gast.Starred) for arg in node.args):
        return None
    names = tuple(keyword.arg for keyword in node.keywords)
    if None in names:
        return None
    values = tuple(keyword.value for keyword in node.keywords)
    function = _function(unit, node.func)
    if function is not None and node.args:
        place = place_of(unit, node.args[0])
        return None if place is None else Mutation(place, function, (*node.args[1:], *values), names)
    if is_function_of_class(unit, node.func):
        return None
    bare = not node.args and isinstance(node.func, gast.Attribute) and facts(node.func.attr).changes_bare
    if (
        not bare
        and not is_mutating_method(node.func, statement=statement)
        and not _of_own_class(unit, node.func, effect)
    ):
        return None
    place = place_of(unit, node.func.value)
    return None if place is None else Mutation(place, node.func.attr, (*node.args, *values), names)


def _read_of_default(unit: Unit, node: Node) -> Mutation | None:
    place = place_of(unit, node.value) if isinstance(node.ctx, gast.Load) else None
    if place is None or isinstance(node.slice, gast.Slice):
        return None
    if len(place.keys) >= _with_defaults(unit).get(place.name, 0) and not unit.decisions.stores(unit.source.loc(node)):
        return None
    return Mutation(place, "__getitem__", (node.slice,), ())


_defaults: WeakKeyDictionary[Node, dict[str, int]] = WeakKeyDictionary()


def _with_defaults(unit: Unit) -> dict[str, int]:
    """The variables to which the function assigns a `defaultdict`, with how many are in one another."""
    if unit.node not in _defaults:
        made = (node for node in gast.walk(unit.node) if isinstance(node, gast.Assign | gast.AnnAssign))
        _defaults[unit.node] = {
            target.id: depth
            for node in made
            if (depth := _depth(unit, node.value))
            for target in (node.targets if isinstance(node, gast.Assign) else [node.target])
            if isinstance(target, gast.Name)
        }
    return _defaults[unit.node]


def _depth(unit: Unit, node: Node) -> int:
    """The number of `defaultdict` that an expression makes in one another, each the default of the one around it."""
    match node:
        case gast.Call(func=func, args=args) if resolve(unit, func) is defaultdict:
            return 1 + (_depth(unit, args[0].body) if args and isinstance(args[0], gast.Lambda) else 0)
    return 0


def is_mutating_method(func: Node, *, statement: bool) -> bool:
    """Whether a callee is a method that changes its object, by its name."""
    known = facts(func.attr if isinstance(func, gast.Attribute) else "")
    return known.changes and (statement or not known.ambiguous)


def _of_own_class(unit: Unit, func: Node, effect: bool) -> bool:
    """Whether a callee may be a method of a class of the user's that changes its object, by the name of the method."""
    if not isinstance(func, gast.Attribute) or place_of(unit, func.value) is None:
        return False
    return changes_object(unit, func.attr) or (effect and any(own_methods(unit.classes.values(), func.attr)))


def is_function_of_class(unit: Unit, func: Node) -> bool:
    """Whether an expression is a method of the user's as a function, `Base.method`, which gets the object that it
    changes."""
    if not isinstance(func, gast.Attribute) or not isinstance(owner := resolve(unit, func.value), type):
        return False
    function = inspect.getattr_static(owner, func.attr, None)
    return isinstance(function, FunctionType) and is_user_code(function.__code__)


def _function(unit: Unit, func: Node) -> str | None:
    """The name, with the module, of a function that changes its first argument."""
    function = resolve(unit, func)
    if function is next:
        return NEXT
    return next((name for name, (plain, _) in FUNCTIONS.items() if plain is function), None)


def is_own(unit: Unit, name: str) -> bool:
    """Whether the container of a variable has no other name: only displays and the like are assigned to it, and nothing
    but its parts, its elements and its methods is used."""
    if name in unit.params or name not in unit.variables:
        return False
    bound, harmless = set[int](), set[int]()
    for part in gast.walk(unit.node):
        bound |= {id(target) for target, value in values_given(part) if _makes_new(unit, value)}
        match part:
            case gast.AugAssign(target=target, value=value):
                bound.add(id(target))
                harmless.add(id(value))
            case gast.Call(func=gast.Attribute(value=value, attr=attr)) if not facts(attr).views:
                harmless.add(id(value))
            case gast.Subscript(value=value) | gast.Starred(value=value) | gast.FormattedValue(value=value):
                harmless.add(id(value))
            case gast.Call(func=func, args=args) if any(resolve(unit, func) is one for one in LOOKING):
                harmless |= set(map(id, args))
            case gast.Compare(left=left, comparators=others):
                harmless |= set(map(id, (left, *others)))
            case gast.BinOp(left=left, right=right):
                harmless |= {id(left), id(right)}
            case gast.UnaryOp(operand=value) | gast.If(test=value) | gast.While(test=value):
                harmless.add(id(value))
            case gast.For(iter=value) | gast.comprehension(iter=value):
                whole = isinstance(value, gast.Call) and any(resolve(unit, value.func) is one for one in ITERATING)
                harmless |= {id(value), *(id(arg) for arg in (value.args if whole else ()))}
            case gast.Return(value=gast.Tuple(elts=parts) | gast.List(elts=parts)):
                harmless |= set(map(id, parts))
            case gast.Return(value=value):
                harmless.add(id(value))
    named = [part for part in gast.walk(unit.node) if isinstance(part, gast.Name) and part.id == name]
    return all(id(part) in (harmless if isinstance(part.ctx, gast.Load) else bound) for part in named)


def values_given(part: Node) -> Iterator[tuple[Node, Node]]:
    """Yield the targets of an assignment or a loop with the expressions whose values, or parts of them, they get."""
    match part:
        case gast.Assign(targets=[gast.Tuple(elts=targets)], value=gast.Tuple(elts=values)) if len(targets) == len(
            values
        ):
            yield from zip(targets, values, strict=True)
        case gast.Assign(targets=targets, value=value):
            whole = value if len(targets) == 1 else gast.copy_location(gast.Tuple(elts=[value], ctx=gast.Load()), value)
            yield from ((target, whole) for target in targets)
        case gast.For(target=target, iter=value) | gast.comprehension(target=target, iter=value):
            yield target, gast.copy_location(gast.Starred(value=value, ctx=gast.Load()), value)
        case gast.AnnAssign(target=target, value=value) | gast.NamedExpr(target=target, value=value) if (
            value is not None
        ):
            yield target, value


def _makes_new(unit: Unit, node: Node) -> bool:
    """Whether an expression makes a container that nothing else has, or a number."""
    match node:
        case gast.Constant():
            return True
        case gast.BinOp(left=left, right=right):
            return _makes_new(unit, left) or _makes_new(unit, right)
        case gast.Call(func=func):
            return any(resolve(unit, func) is one for one in MAKING)
    return isinstance(node, DISPLAYS)
