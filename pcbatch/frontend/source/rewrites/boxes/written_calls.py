"""Calls in functions with boxes: functions of Python's own get what is in the boxes, those of the program get these."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import gast

from pcbatch.data.objects.boxes.values import unboxed
from pcbatch.frontend.source.resolve import MISSING
from pcbatch.frontend.source.rewrites.boxes import known_calls as known
from pcbatch.frontend.source.rewrites.boxes import late_keys
from pcbatch.frontend.source.rewrites.boxes.box_facts import CannotBox, is_display, is_quiet, is_simple
from pcbatch.frontend.source.rewrites.boxes.objects import Object
from pcbatch.frontend.source.rewrites.boxes.program import is_super, meaning
from pcbatch.frontend.source.tree import (
    Node,
    attribute,
    constant,
    display,
    is_none,
    load,
    no_parameters,
    subscript,
    supported,
    target_of,
    with_fields,
)
from pcbatch.frontend.source.tree import (
    call as call_of,
)

if TYPE_CHECKING:
    from pcbatch.frontend.source.rewrites.boxes.writer import Writer

SHALLOW: frozenset[object] = frozenset((copy.copy, len, range, enumerate, zip, map, filter, next, bool, dict))
SHALLOW |= known.COPYING - {set, frozenset, sorted}
"""Functions that look at none of the elements that they get."""

LOOKING = frozenset((copy.deepcopy, str, repr, print, format))
"""Functions that look at all that is in what they get, and give none of it."""

AT_ONCE: frozenset[object] = frozenset((dict, len, list, tuple, bool, set, frozenset))
"""Functions that ask for all that they get before anything can change."""

OF_CLASSES = frozenset((isinstance, issubclass, type, id, callable))


def plain(w: Writer, node: Node, *, members: bool = False) -> Node:
    """Write an expression of which all that is in it is asked, or only whether it has one of some `members`: as a value
    without boxes."""
    value = w.object_of(node)
    by_name = w.box_of(node) in w.names
    w.refuse_late_keys(value)
    if not by_name and not w.holds(value, itself=False):
        return w.read(node)
    w.refuse_what_has_no_value(value)
    written = w.value(node) if by_name else w.read(node)
    if members and isinstance(node, gast.Call):  # it may be a view of a dict
        written = display([gast.copy_location(gast.Starred(value=written, ctx=gast.Load()), node)], node)
    return supported(unboxed, [written], node)


def call(w: Writer, node: Node) -> Node:
    """Write a call."""
    scope = w.flow.scopes.get(id(node))
    function = MISSING if scope is None else meaning(node.func, scope)
    if isinstance(node.func, gast.Attribute) and function is MISSING:
        return _method(w, node)
    if function is MISSING or w.flow.looks_at(function):
        return _rest(w, node, w.value)
    try:
        return _of_python(w, node, function)
    except TypeError:  # it cannot be hashed
        return _rest(w, node, w.value)


def _of_python(w: Writer, node: Node, function: object) -> Node:
    if function in w.flow.instances:
        return _constructed(w, node)
    if getattr(function, "__name__", "") == "defaultdict" and node.args:
        return _defaultdict(w, node)
    if function in known.HEAPS:
        for arg in node.args[1:]:
            w.refuse_boxes(arg)
        w.refuse_boxes_in(node.args[0])
    elif function in (map, filter) and len(node.args) > 1:
        elements = list(map(w.given_by, node.args[1:]))
        called = _applied(w, node.args[0], elements)
        if any(map(w.holds, elements)):
            return _one_by_one(w, node, called, function is filter)
        return with_fields(node, args=[called, *map(w.read, node.args[1:])])
    elif function in OF_CLASSES:
        for arg in node.args:
            w.refuse_box(arg)
        return _rest(w, node, w.value)
    elif function in (sorted, min, max, *known.SELECTED):
        return _ordered(w, node, function)
    elif function in LOOKING:
        return _rest(w, node, lambda one: plain(w, one))
    elif function not in SHALLOW:
        for arg in (*node.args, *(one.value for one in node.keywords)):
            w.refuse_boxes_in(arg)
    if function in AT_ONCE:
        return _rest(w, node, w.looked_at)
    return _rest(w, node, w.value if function is next else w.read)


def _constructed(w: Writer, node: Node) -> Node:
    """A call of a class of the user's; what it makes for the fields of a dataclass is boxed."""
    written = _rest(w, node, w.value)
    made = [
        gast.keyword(arg=name, value=w.boxed(part.found(), site, node))
        for name, part, site in w.flow.factories.get(id(node), ())
        if part.found() in w.classes
    ]
    return with_fields(written, keywords=[*written.keywords, *made])


def _defaultdict(w: Writer, node: Node) -> Node:
    """A `defaultdict` of boxes is a plain dict, of which a subscript makes what is not there."""
    if not w.holds(w.object_of(node), itself=False):
        return _rest(w, node, w.value)
    if len(node.args) > 1 or node.keywords:
        raise CannotBox(node)
    return gast.copy_location(gast.Dict(keys=[], values=[]), node)


def _one_by_one(w: Writer, node: Node, function: Node, filters: bool) -> Node:
    """A `map` or a `filter` over boxes as a generator expression: each element is what it is when it is asked for."""
    names = [w.new_name("element") for _ in node.args[1:]]
    values = [load(name, node) for name in names]
    targets, sources = [target_of(name, node) for name in names], list(map(w.read, node.args[1:]))
    target, source = targets[0], sources[0]
    if len(names) > 1:
        target = gast.copy_location(gast.Tuple(elts=targets, ctx=gast.Store()), node)
        source = call_of(load("zip", node), sources, node)
    applied = call_of(function, values, node)
    inner = gast.comprehension(target=target, iter=source, ifs=[applied] if filters else [], is_async=0)
    made = gast.GeneratorExp(elt=values[0] if filters else applied, generators=[inner])
    return gast.copy_location(made, node)


def _ordered(w: Writer, node: Node, function: object) -> Node:
    """A call that puts elements in an order, or takes the first."""
    keys = [one.value for one in node.keywords if one.arg == "key" and not is_none(one.value)]
    if function in (min, max) and len(node.args) > 1:
        if not keys:
            for arg in node.args:
                w.refuse_boxes(arg)
        return _rest(w, node, w.value, _applied(w, keys[0], list(map(w.object_of, node.args))) if keys else None)
    if keys:
        return _rest(w, node, w.read, _applied(w, keys[0], [w.given_by(node.args[-1])]))
    if function is sorted and _is_items(node.args[0]) and w.holds(w.object_of(node.args[0])):
        first = gast.keyword(arg="key", value=_first_part(w, node))  # no two pairs have one key
        return with_fields(_rest(w, node, w.read), keywords=[*node.keywords, first])
    if (given := w.given_by(node.args[-1])) in w.classes:
        held = gast.keyword(arg="key", value=_inside(w, given, node))
        return with_fields(_rest(w, node, w.read), keywords=[*node.keywords, held])
    if w.holds(given):
        raise CannotBox(node)
    return _rest(w, node, w.read)


def _inside(w: Writer, box: Object | None, at: Node) -> Node:
    """The function that gives what is in a box, by which boxes are ordered."""
    if w.holds(box, itself=False) or box in w.names:
        raise CannotBox(at)
    name = w.new_name("item")
    return _function(name, attribute(load(name, at), "value", at), at)


def _is_items(node: Node) -> bool:
    """Whether an expression is `d.items()`."""
    match node:
        case gast.Call(func=gast.Attribute(attr="items"), args=[]):
            return True
    return False


def _first_part(w: Writer, at: Node) -> Node:
    name = w.new_name("pair")
    return _function(name, subscript(load(name, at), constant(0, at), at), at)


def _function(name: str, body: Node, at: Node) -> Node:
    parameter = gast.copy_location(gast.Name(id=name, ctx=gast.Param(), annotation=None, type_comment=None), at)
    arguments = with_fields(no_parameters(), args=[parameter])
    return gast.copy_location(gast.Lambda(args=arguments, body=body), at)


def _applied(w: Writer, function: Node, elements: Sequence[Object | None]) -> Node:
    """A function that Python's own code applies to elements: one that takes no boxes gets what is in them."""
    boxes = [one in w.classes for one in elements]
    if not any(boxes) or w.is_looked_at(function) or w.flow.looks_at(_named(w, function)):
        return w.value(function)
    deep = any(w.holds(one, itself=False) for one in elements) and _named(w, function) not in (len, bool)
    if not all(boxes) or deep or any(one in w.names for one in elements) or len(boxes) > 1:
        raise CannotBox(function)
    if is_none(function):
        raise CannotBox(function)
    name = w.new_name("item")
    return _function(name, call_of(function, [attribute(load(name, function), "value", function)], function), function)


def _named(w: Writer, function: Node) -> object:
    """The function of Python's or of the user's that an expression names; MISSING where it names none."""
    scopes = list(w.flow.scopes.values())
    return meaning(function, scopes[0]) if scopes and isinstance(function, gast.Name | gast.Attribute) else MISSING


def _method(w: Writer, node: Node) -> Node:
    receiver = node.func.value
    if w.flow.earlier.methods.get(id(node)) or is_super(receiver):
        w.refuse_box(receiver)
        return _rest(w, node, w.value)
    if not all(is_quiet(each) for each in (*node.args, *(one.value for one in node.keywords))):
        w.refuse_boxes_on_way(receiver)
    if node.func.attr in ("index", "count") and w.holds(w.object_of(receiver), itself=False):
        func = with_fields(node.func, value=plain(w, receiver))
        return with_fields(node, func=func, args=[plain(w, arg) for arg in node.args])
    if node.func.attr == "fromkeys":
        return with_fields(node, args=[w.read(node.args[0]), *map(w.value, node.args[1:])])
    if node.func.attr == "get" and (row := late_keys.row_of(w, receiver)) is not None:
        return late_keys.got(w, row, node)
    read = w.looked_at if node.func.attr in ("get", "copy") else w.read
    return method(w, node, with_fields(node.func, value=read(receiver)))


def method(w: Writer, node: Node, func: Node) -> Node:
    """Write a call of a method of a container of Python's, as the method `func`."""
    name, receiver = node.func.attr, node.func.value
    if name in known.LOOKING:
        w.refuse_boxes_in(receiver)
    if name == "sort":
        return _sort(w, node, func)
    if name in ("get", "setdefault", "pop") and len(node.args) == 2:
        key, default = map(w.value, node.args)
        late = is_simple(func.value) and is_simple(key) and is_display(node.args[1])
        if name == "setdefault" and w.is_boxed(node) and late:
            return w.or_stored(func.value, key, default, node)
        return with_fields(node, func=func, args=[key, default])
    if name in known.STORING:
        return with_fields(node, func=func, args=[w.value(arg) for arg in node.args])
    for arg in node.args:
        if name not in known.EXTENDING:
            w.refuse_boxes_in(arg)
    keywords = [with_fields(one, value=w.read(one.value)) for one in node.keywords]
    return with_fields(node, func=func, args=[w.read(arg) for arg in node.args], keywords=keywords)


def _sort(w: Writer, node: Node, func: Node) -> Node:
    given = w.given_by(node.func.value)
    if not any(one.arg == "key" and not is_none(one.value) for one in node.keywords) and w.holds(given):
        if given not in w.classes:
            raise CannotBox(node)
        held = gast.keyword(arg="key", value=_inside(w, given, node))
        return with_fields(node, func=func, keywords=[*node.keywords, held])
    keywords = [
        with_fields(one, value=_applied(w, one.value, [given])) if one.arg == "key" else one for one in node.keywords
    ]
    return with_fields(node, func=func, keywords=keywords)


def _rest(w: Writer, node: Node, write: Callable[[Node], Node], key: Node = None) -> Node:
    """A call whose arguments are written in one way, but for the one with the name `key`."""
    keywords = [
        with_fields(one, value=key if key is not None and one.arg == "key" else write(one.value))
        for one in node.keywords
    ]
    func = node.func if isinstance(node.func, gast.Name) else w.value(node.func)
    return with_fields(node, func=func, args=[write(arg) for arg in node.args], keywords=keywords)
