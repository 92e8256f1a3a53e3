"""The variables, and parts of them, whose objects the body of a loop may change, which an iterator of Python sees."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from types import FunctionType

import gast

from pcbatch.data.catalogue import facts
from pcbatch.data.object_parts import is_users
from pcbatch.frontend.source.callable_objects import callee_of
from pcbatch.frontend.source.callee import Target
from pcbatch.frontend.source.changing_methods import CHANGING as CHANGING_FUNCTIONS
from pcbatch.frontend.source.changing_methods import changes_arguments
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.generators import own_yields
from pcbatch.frontend.source.own_classes import own_methods, stores
from pcbatch.frontend.source.places import DISPLAYS, is_own, mutation, place_of
from pcbatch.frontend.source.resolve import MISSING, resolve
from pcbatch.frontend.source.rewrites.nested import function_of
from pcbatch.frontend.source.scope import bindings, free_names
from pcbatch.frontend.source.streams import CALLING, NESTED, counts, groups, in_turns, is_special, is_stream, lazy
from pcbatch.frontend.source.tree import COMPREHENSIONS, Node, is_supported, one_line, rebuild

KINDS = {"removes": "only_stores", "stores": "only_drops"}  # each with what methods say that do the other alone
LAZY = ("enumerate", "zip", "reversed")
PARTS = (gast.Subscript, gast.Attribute)
CHANGING = (gast.BitOr, gast.BitAnd, gast.BitXor, gast.Sub, gast.Add, gast.Mult)


def changed_in(unit: Unit, loop: Node) -> frozenset[str]:
    """Return the text of variables, `d`, and parts, `box.counts`, whose objects the body of a `for` loop may change.

    The body does it itself, or in a call that is given them. A part of what the body assigns is left out: it stands for
    another object then.
    """
    inside = _parts(loop)
    changed = [place for part in with_nested(unit, inside) for place in _changed_by(unit, part)]
    if changed and unit.decisions.linked:  # what is changed may be another name of what the loop goes over
        changed += sources(loop.iter)
    assigned = set(map(one_line, _assigned(inside)))
    return frozenset(
        one_line(place)
        for place in changed
        if isinstance(place, gast.Name) or assigned.isdisjoint(map(one_line, _places_in(place)))
    )


def _places_in(place: Node) -> Iterator[Node]:
    """A place, those that it is a part of, and the variables of its keys."""
    return (part for part in gast.walk(place) if isinstance(part, (gast.Name, *PARTS)))


def assigned_in(loop: Node) -> frozenset[str]:
    """Return the variables that the body of a `for` loop assigns: they may stand for another object then.

    `d |= e` is none of these: it changes the object, or the object is one that no iterator sees changed.
    """
    return frozenset(part.id for part in _assigned(_parts(loop)) if isinstance(part, gast.Name))


def _assigned(parts: list[Node]) -> Iterator[Node]:
    in_place = {id(part.target) for part in parts if _is_in_place(part)}
    stored = (part for part in parts if isinstance(part, (gast.Name, *PARTS)) and isinstance(part.ctx, gast.Store))
    return (part for part in stored if id(part) not in in_place)


def refilled_in(unit: Unit, loop: Node) -> frozenset[str]:
    """Return the variables of a dict or set from which the body of a `for` loop may remove keys and store others: then
    its size does not tell that its keys have changed."""
    parts = with_nested(unit, _parts(loop))
    kinds = {kind: {name for part in parts for name in _taken_or_stored(unit, part, kind)} for kind in KINDS}
    if all(kinds.values()) and unit.decisions.linked:
        return frozenset(each.id for each in sources(loop.iter) if isinstance(each, gast.Name))
    return frozenset(kinds["stores"] & kinds["removes"])


def moved_in(unit: Unit, loop: Node) -> frozenset[str]:
    """Return the variables with methods of a deque that the body of a `for` loop calls, after which a loop raises."""
    calls = (part for part in with_nested(unit, _parts(loop)) if isinstance(part, gast.Call))
    found = (mutation(unit, part, statement=True) for part in calls)
    own = (one for one in found if one is not None and not one.place.keys)
    return frozenset(one.place.name for one in own if facts(one.method).moves)


def _parts(loop: Node) -> list[Node]:
    return [part for statement in loop.body for part in gast.walk(statement)]


def _taken_or_stored(unit: Unit, part: Node, kind: str) -> Iterator[str]:
    """Yield the variables from which a part of a loop's body takes keys, or in which it stores some."""
    if isinstance(part, gast.Call):
        found = mutation(unit, part, statement=True)
        if found is None:
            yield from (place.id for place in _changed_by(unit, part) if isinstance(place, gast.Name))
        elif not getattr(facts(found.method), KINDS[kind]):
            yield found.place.name
    elif isinstance(part, gast.Subscript):
        reads = isinstance(part.ctx, gast.Load)
        found = mutation(unit, part) if reads else None  # reading a `defaultdict` stores what is missing
        place = place_of(unit, part.value)
        if place is not None and not place.keys and (found is not None or not reads):
            if (kind == "removes") is isinstance(part.ctx, gast.Del):
                yield place.name
    elif isinstance(part, gast.AugAssign) and isinstance(part.target, gast.Name):
        yield part.target.id


def with_nested(unit: Unit, parts: list[Node]) -> list[Node]:
    """The parts, and those of the nested functions that they name."""
    found, named = list(parts), set[str]()
    for part in found:
        if isinstance(part, gast.Name) and part.id in unit.definitions and part.id not in named:
            named.add(part.id)
            found += gast.walk(unit.definitions[part.id])
    return found


def _changed_by(unit: Unit, part: Node) -> Iterator[Node]:
    if isinstance(part, gast.Call):
        found = mutation(unit, part, statement=True)
        if found is not None:
            yield found.place.keys[-1] if found.place.keys else found.place.root
        given = [*part.args, *(keyword.value for keyword in part.keywords)]
        yield from (value for value in given if place_of(unit, value) is not None)
    elif isinstance(part, gast.Subscript) and not isinstance(part.ctx, gast.Load):
        if place_of(unit, part.value) is not None:
            yield part.value
    elif _is_in_place(part) and place_of(unit, part.target) is not None:
        yield part.target


def _is_in_place(part: Node) -> bool:
    """Whether a part is an assignment such as `d |= e`, by which dicts, sets, lists and deques change in place."""
    return isinstance(part, gast.AugAssign) and isinstance(part.op, CHANGING)


def viewed(node: Node) -> tuple[Node, str] | None:
    """The dict and the method of `d.values()`, `box.counts.items()`; None for other expressions."""
    match node:
        case gast.Call(func=gast.Attribute(value=value, attr=attr), args=[], keywords=[]) if facts(attr).views:
            return (value, attr) if _is_place(value) else None
    return None


def _is_place(node: Node) -> bool:
    """Whether an expression is a variable, or a part of one at constant keys or those in variables."""
    while isinstance(node, PARTS):
        if isinstance(node, gast.Subscript) and not isinstance(node.slice, gast.Name | gast.Constant):
            return False
        node = node.value
    return isinstance(node, gast.Name)


def sources(node: Node) -> list[Node]:
    """The variables and parts that a loop goes over, also by views and inside of `enumerate`, `zip` and `reversed`."""
    match node:
        case gast.Name():
            return [node]
        case gast.Call(func=gast.Name(id=function), args=args) if function in LAZY:
            return [source for arg in args for source in sources(arg)]
        case gast.Subscript() | gast.Attribute() if _is_place(node):
            return [node]
    view = viewed(node)
    return [] if view is None else [view[0]]


def is_same_object(part: Node, loop: Node, changed: Container[str]) -> bool:
    """Whether a part of a variable is the same object all through a loop that changes these variables and parts."""
    targets = {one_line(each) for each in gast.walk(loop.target) if isinstance(each, gast.Name)}
    return targets.isdisjoint(_around(part)) and not any(each in changed for each in _around(part))


def is_fixed(part: Node, changed: Container[str]) -> bool:
    """Whether a part of a variable, which a loop goes over and may change, is the same object all through it: nothing
    assigns it, as a whole or as a part of another."""
    return one_line(part) in changed and not any(each in changed for each in _around(part))


def _around(part: Node) -> list[str]:
    """The text of what a part of a variable is a part of, and of the variables of its keys."""
    return [one_line(each) for each in _places_in(part) if each is not part]


def is_kept_attribute(unit: Unit, part: Node, loop: Node, changed: Container[str]) -> bool:
    """Whether a part is an attribute, `self.counts`, that only `__init__` assigns, of a variable that the body of a
    loop gives to a method or function which may change its objects."""
    if not isinstance(part, gast.Attribute) or not isinstance(part.value, gast.Name) or part.value.id not in changed:
        return False
    assigned = {*assigned_in(loop), *(each.id for each in gast.walk(loop.target) if isinstance(each, gast.Name))}
    return part.value.id not in assigned and not stores(unit.fn, unit.classes.values(), part.attr, "__init__")


def lists_read_anew(unit: Unit, loop: Node, changed: Container[str]) -> frozenset[str]:
    """Return the text of the attributes, `self.rows`, that a loop goes over and changes, and whose object stays.

    An iterator of Python reads each element of a list when it comes to it; of what the body calls, none is code of the
    user's, which might assign the attribute.
    """
    found = [each for each in sources(loop.iter) if isinstance(each, gast.Attribute) and one_line(each) in changed]
    calls = [part for part in _parts(loop) if isinstance(part, gast.Call)] if found else []
    if any(_may_be_users(unit, call.func) for call in calls):
        return frozenset()
    assigned = set(map(one_line, _assigned(_parts(loop))))
    return frozenset(
        one_line(each)
        for each in found
        if is_same_object(each, loop, changed) and assigned.isdisjoint(map(one_line, _places_in(each)))
    )


def _may_be_users(unit: Unit, func: Node) -> bool:
    """Whether what is called may be a function of the user's, or a method of a class of the user's."""
    function = resolve(unit, func)
    if function is not MISSING:
        return is_users(getattr(function, "__module__", None) or "")
    return not isinstance(func, gast.Attribute) or any(own_methods(unit.classes.values(), func.attr))


def reads_what_changes(unit: Unit, loop: Node) -> bool:
    """Whether the elements of a `for` loop depend on what its body changes: Python makes each when it is asked for."""
    changed = {name for name, _ in bindings([loop.target, *loop.body])}
    for statement in loop.body:
        found = [mutation(unit, part, statement=True) for part in gast.walk(statement) if isinstance(part, gast.Call)]
        changed |= {change.place.name for change in found if change is not None}
    if not changed.isdisjoint(read_for_each(unit, loop.iter)):
        return True
    return makes_elements(unit, loop.iter) and may_show(unit, loop)


def makes_elements(unit: Unit, node: Node) -> bool:
    """Whether the elements of a stream are made of others, or of parts of objects, where a loop asks for them."""
    if isinstance(node, gast.IfExp):
        return makes_elements(unit, node.body) or makes_elements(unit, node.orelse)
    name = lazy(unit, node)
    if name in (*LAZY, "iter"):
        return any(makes_elements(unit, arg) for arg in node.args)
    return is_stream(unit, node) and not (
        isinstance(node, gast.ListComp) or name == "range" or name in NESTED or counts(unit, node)
    )


def taken_in_turn(unit: Unit, node: Node) -> bool:
    """Whether the elements of a stream can be made one by one, each when the head of a loop asks for it."""
    together = [part.args[name == "map" :] for part in gast.walk(node) if (name := lazy(unit, part)) in ("map", "zip")]
    made = [sources for sources in together if len(sources) > 1 and any(is_special(unit, one) for one in sources)]
    grouped = [part.args[0] for part in gast.walk(node) if is_supported(part, groups)]
    in_turn = all(in_turns(unit, sources) for sources in made) and not any(is_special(unit, one) for one in grouped)
    return is_special(unit, node) and in_turn


def may_show(unit: Unit, loop: Node) -> bool:
    """Whether the body of a loop may change an object that what it goes over reads: it changes any but one that has no
    other name, and that the loop does not read."""
    if any(own_yields(loop.body)):  # what goes over this generator may change anything
        return True
    read = _within(unit, frozenset(free_names(loop.iter)))
    for changed, _ in changes(unit, _parts(loop)):
        if isinstance(changed, FunctionType):
            if changes_arguments(unit, changed):
                return True
        elif not isinstance(changed, gast.Name) or changed.id in read or not is_own(unit, changed.id):
            return True
    return False


def changes(unit: Unit, parts: list[Node]) -> Iterator[tuple[Node | FunctionType, str]]:
    """Yield the expressions of the objects that parts of a function change, each with the name of the attribute that
    is assigned, and the functions that may run there."""
    for part in with_nested(unit, parts):
        if isinstance(part, PARTS) and not isinstance(part.ctx, gast.Load):
            yield part.value, getattr(part, "attr", "")
        elif _is_in_place(part) and isinstance(part.target, gast.Name) and _adds_elements(unit, part):
            yield part.target, ""
        elif isinstance(part, gast.Call):
            yield from _changed_by_call(unit, part)
        elif isinstance(part, gast.Name | gast.Attribute) and isinstance(part.ctx, gast.Load):
            function = resolve(unit, part)
            found = function.fn if isinstance(function, Target) else callee_of(function)[0]
            if found is not None and is_users(found.__module__ or ""):
                yield found, ""
            if isinstance(function, Target) and function.returned:  # it changes variables of the function around it
                yield part, ""
            if isinstance(part, gast.Attribute) and function is MISSING:
                yield from ((method, "") for method in own_methods(unit.classes.values(), part.attr))


def _adds_elements(unit: Unit, node: Node) -> bool:
    """Whether `x += ...` is known to change an object."""
    known = unit.source.loc(node) in unit.decisions.in_place
    return known or isinstance(node.value, DISPLAYS) or is_stream(unit, node.value)


def _changed_by_call(unit: Unit, node: Node) -> Iterator[tuple[Node, str]]:
    function = resolve(unit, node.func)
    if function is MISSING and isinstance(node.func, gast.Attribute):
        known = facts(node.func.attr)
        if known.changes or (known.changes_bare and not node.args):
            yield node.func.value, ""
    elif function is MISSING and not (isinstance(node.func, gast.Name) and node.func.id in unit.definitions):
        yield node.func, ""  # a function that is a value
    elif any(function is one for one in CHANGING_FUNCTIONS) and node.args:
        yield node.args[0], ""


def read_for_each(unit: Unit, node: Node) -> frozenset[str]:
    """The names that the evaluation of each element of a stream reads."""
    if not is_stream(unit, node):
        return frozenset()
    if isinstance(node, COMPREHENSIONS):
        first = node.generators[0]
        again = rebuild(node, lambda child: rebuild(child, _without(first.iter)) if child is first else child)
        return _within(unit, frozenset(free_names(again))) | read_for_each(unit, first.iter)
    called = [node.func, *node.args[: lazy(unit, node) in CALLING]]
    called += [arg for arg in node.args if isinstance(arg, gast.Lambda)]
    names = frozenset(name for function in called for name in free_names(function))
    return _within(unit, names).union(*(read_for_each(unit, arg) for arg in node.args))


def _within(unit: Unit, names: frozenset[str]) -> frozenset[str]:
    """Names, with those that the functions among them read, which are defined in the same function."""
    found = names
    while True:
        inside = (free_names(function_of(unit.definitions[name])) for name in found if name in unit.definitions)
        if (more := found.union(*inside)) == found:
            return found
        found = more


def _without(part: Node) -> Callable[[Node], Node]:
    empty = gast.copy_location(gast.Constant(value=None, kind=None), part)
    return lambda child: empty if child is part else child
