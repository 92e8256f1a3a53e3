"""Calls of Python's functions and of methods in a points-to analysis: the objects that they give and store."""

from __future__ import annotations

import builtins
import copy
from collections.abc import Sequence
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING

import gast

from pcbatch.frontend.source.resolve import MISSING
from pcbatch.frontend.source.rewrites.boxes import known_calls as known
from pcbatch.frontend.source.rewrites.boxes import user_objects
from pcbatch.frontend.source.rewrites.boxes.objects import Object
from pcbatch.frontend.source.rewrites.boxes.program import Scope, is_super, is_user_class, meaning
from pcbatch.frontend.source.tree import Node

if TYPE_CHECKING:
    from pcbatch.frontend.source.rewrites.boxes.flow import Flow


def call(flow: Flow, node: Node, scope: Scope) -> Object:
    """Return what a call gives."""
    flow.scopes[id(node)] = scope
    if isinstance(node.func, gast.Attribute) and not isinstance(meaning(node.func.value, scope), ModuleType):
        return _method(flow, node, scope)
    function = meaning(node.func, scope)
    plain = [arg for arg in node.args if not isinstance(arg, gast.Starred)]
    named = {one.arg: flow.value(one.value, scope) for one in node.keywords}
    if len(plain) < len(node.args) or None in named:
        return flow.leaving(node, scope)
    if function is MISSING:
        return flow.called(flow.value(node.func, scope).functions, node, scope)
    try:
        return _of_python(flow, function, plain, named, node, scope)
    except TypeError:  # it cannot be hashed
        return flow.leaving(node, scope)


def _of_python(
    flow: Flow, function: object, args: Sequence[Node], named: dict[str | None, Object], node: Node, scope: Scope
) -> Object:
    values = [flow.value(arg, scope) for arg in args]
    if (user := flow.found(function)) is not None:
        return flow.called([flow.body(user)], node, scope)
    if isinstance(function, type) and is_user_class(function):
        return user_objects.constructed(flow, function, node, scope)
    if function in known.READING or (function is builtins.sum and len(args) == 1) or known.is_numeric(function):
        return Object()
    if function in (min, max) and len(args) == 1:
        _key(flow, node, [element := flow.elements(args[0], scope)], scope)
        if "default" in named:
            element.unite(named["default"])
        return element
    if function in (min, max):
        _key(flow, node, [whole := flow.either(args, scope)], scope)
        return whole
    if function in known.COPYING and len(args) < 2:
        elements = [flow.elements(arg, scope) for arg in args]
        _key(flow, node, elements, scope)
        return flow.new(node, known.listed(*elements) if elements else Object())
    if function in known.MAPPINGS:
        return _mapping(flow, function, args, named, node, scope)
    if function is enumerate:
        return known.listed(known.tuple_of([Object(), flow.elements(args[0], scope)]))
    if function is zip:
        return known.listed(known.tuple_of([flow.elements(arg, scope) for arg in args]))
    if function in (map, filter) and len(args) > 1:
        elements = [flow.elements(arg, scope) for arg in args[1:]]
        given = _applied(flow, values[0], elements, args[0], scope)
        return known.listed(given if function is map else elements[0])
    if function is next:
        element = values[0].elements()
        for default in values[1:]:
            element.unite(default)
        return element
    if function in known.HEAPS:
        return known.of_heap(function, values)
    if function in known.SELECTED:
        _key(flow, node, [element := flow.elements(args[1], scope)], scope)
        return flow.new(node, known.listed(element))
    if function in (copy.copy, copy.deepcopy):
        return flow.new(node, known.of_copy(function, values[0]))
    return flow.leaving(node, scope)


def _mapping(
    flow: Flow, function: object, args: Sequence[Node], named: dict[str | None, Object], node: Node, scope: Scope
) -> Object:
    made = flow.new(node, Object())
    made.elements()
    if function.__name__ == "defaultdict" and args:  # type: ignore[attr-defined]
        made.default, args = args[0], args[1:]
        factory = flow.value(made.default, scope)
        if isinstance(made.default, gast.Lambda):
            made.elements().unite(factory.functions[0].returned)
        elif meaning(made.default, scope) in (list, set, dict):
            flow.new(made.default, made.elements())
    for value in named.values():
        made.elements().unite(value)
    for arg in args:
        whole = flow.value(arg, scope)
        flow.iterated.append((id(arg), whole))
        if function.__name__ == "Counter":  # type: ignore[attr-defined]
            made.key().unite(flow.elements(arg, scope))
        elif id(arg) in flow.earlier.mappings:
            made.unite(known.copied(whole))
        else:
            made.unite(known.paired(whole.elements()))
    return made


def _method(flow: Flow, node: Node, scope: Scope) -> Object:
    """A call of a method, of a container of Python's as far as its name tells."""
    if is_super(node.func.value):
        return user_objects.of_super(flow, node, scope)
    name = node.func.attr
    if name == "fromkeys" and meaning(node.func.value, scope) is dict and not node.keywords:
        made = flow.new(node, Object())
        made.key().unite(flow.elements(node.args[0], scope))
        for arg in node.args[1:]:
            made.elements().unite(flow.value(arg, scope))
        return made.found()
    receiver = flow.value(node.func.value, scope)
    flow.receivers[id(node)] = receiver
    if classes := flow.earlier.methods.get(id(node)):
        return user_objects.of_user(flow, receiver, classes, node, scope)
    for key, value in (pairs := known.updates(node)).items():
        receiver.part(key).unite(flow.value(value, scope))
    if pairs:
        return Object()
    named = {one.arg: flow.value(one.value, scope) for one in node.keywords}
    args = [flow.value(arg, scope) for arg in node.args]
    if any(isinstance(arg, gast.Starred) for arg in node.args) or not named.keys() <= {
        "key",
        "reverse",
        "default",
        "last",
    }:
        receiver.leave()
        return flow.leaving(node, scope)
    if name in known.STORING and len(args) > known.STORING[name]:
        receiver.elements().unite(args[known.STORING[name]])
    elif name in known.EXTENDING:
        for value in args:
            receiver.elements().unite(value.elements())
            receiver.key().unite(value.key())
    elif name in known.TAKING or name in ("get", "setdefault", "__getitem__"):
        return _taken(flow, receiver, name, node, args, scope)
    elif name == "popitem":
        return known.tuple_of([receiver.key(), receiver.elements()])
    elif name == "items":
        return known.listed(known.tuple_of([receiver.key(), receiver.elements()]))
    elif name == "values":
        return known.listed(receiver.elements())
    elif name == "keys":
        return known.listed(receiver.key())
    elif name == "copy":
        return flow.new(node, known.copied(receiver))
    elif name in known.UNITED:
        made = flow.new(node, known.copied(receiver))
        for value in args:
            made.elements().unite(value.elements())
        return made
    elif name == "sort":
        flow.given[id(node.func.value)] = receiver.elements()
        _key(flow, node, [receiver.elements()], scope)
    elif name in known.TEXTS:
        return flow.new(node, Object())
    elif name not in known.PLAIN:
        receiver.leave()
        return flow.leaving(node, scope)
    return Object()


def _taken(flow: Flow, receiver: Object, name: str, node: Node, args: Sequence[Object], scope: Scope) -> Object:
    """The object that a method gives which looks an element up, or takes it out."""
    by_key = bool(node.args) and name != "popleft"
    found = flow.part(receiver, node.args[0], scope) if by_key else receiver.elements()
    for default in args[1:2]:
        found.unite(default)
    if name == "get" and len(args) < 2:
        found.found().absent = True
    if name == "setdefault":
        receiver.key().unite(args[0])
    return found.found()


def _key(flow: Flow, node: Node, elements: Sequence[Object], scope: Scope) -> None:
    """The function that gives what elements are ordered by gets them."""
    for one in node.keywords:
        if one.arg == "key":
            _applied(flow, flow.value(one.value, scope), elements, one.value, scope)


def _applied(flow: Flow, function: Object, args: Sequence[Object], node: Node, scope: Scope) -> Object:
    """The object that a function gives which Python's own code calls."""
    made = Object()
    bodies = list(function.functions)
    named = meaning(node, scope)
    if not bodies and isinstance(named, FunctionType):
        user = flow.found(named)
        bodies = [flow.body(user)] if user is not None else []
    for body in bodies:
        flow.give(body, args)
        made.unite(body.returned)
    return made
