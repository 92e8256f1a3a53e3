"""Objects of the user's classes in a points-to analysis: attributes are parts, and methods are looked at."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from types import FunctionType, MemberDescriptorType
from typing import TYPE_CHECKING

import gast

from pcbatch.frontend.source.rewrites.boxes.objects import Attribute, Object
from pcbatch.frontend.source.rewrites.boxes.program import Scope, is_written, methods_of
from pcbatch.frontend.source.scope import parameters
from pcbatch.frontend.source.tree import Node

if TYPE_CHECKING:
    from pcbatch.frontend.source.rewrites.boxes.flow import Flow

SCALARS = (int, float, bool, str, complex, type(None))
FACTORIES: dict[object, Callable[[], Node]] = {
    list: lambda: gast.List(elts=[], ctx=gast.Load()),
    dict: lambda: gast.Dict(keys=[], values=[]),
}


def attribute(flow: Flow, value: Object, name: str) -> Object:
    """Return what an attribute may be."""
    part = value.part(Attribute(name))
    for cls in list(value.found().classes):
        static = inspect.getattr_static(cls, name, None)
        if isinstance(static, property) and isinstance(static.fget, FunctionType):
            part.unite(flow.body(static.fget, cls).returned)
        elif static is not None and not isinstance(static, MemberDescriptorType) and type(static) not in SCALARS:
            part.leave()
    return part.found()


def _instance(flow: Flow, cls: type) -> Object:
    """The objects of a class; its methods are looked at."""
    if cls not in flow.instances:
        made = flow.instances[cls] = Object()
        made.classes.add(cls)
        for name, method in methods_of(cls):
            body = flow.body(method, cls)
            given = parameters(body.tree.args)
            if given:
                body.scope.variables[given[0]].unite(made)
            if name.startswith("__") and name != "__init__" and name != "__post_init__":
                for other in given[1:]:
                    body.scope.variables[other].leave()
                body.returned.leave()
    return flow.instances[cls].found()


def constructed(flow: Flow, cls: type, node: Node, scope: Scope) -> Object:
    """Return what a call of a class of the user's gives."""
    made = _instance(flow, cls)
    init = inspect.getattr_static(cls, "__init__", None)
    if is_written(init):
        flow.called([flow.body(init, cls)], node, scope, skipped=1)
    elif dataclasses.is_dataclass(cls):
        _fields(flow, cls, made, node, scope)
    else:
        flow.leaving(node, scope)
    return made.found()


def _fields(flow: Flow, cls: type, made: Object, node: Node, scope: Scope) -> None:
    """The fields of a dataclass, which a call of it gives, or a default."""
    fields = [one for one in dataclasses.fields(cls) if one.init]
    given = {one.arg: one.value for one in node.keywords}
    given |= dict(zip((one.name for one in fields), node.args, strict=False))
    for name, value in given.items():
        made.part(Attribute(name)).unite(flow.value(value, scope))
    for one in dataclasses.fields(cls):
        part = made.part(Attribute(one.name))
        if one.init and one.name in given:
            continue
        if one.init and one.default_factory in FACTORIES:
            site = gast.copy_location(FACTORIES[one.default_factory](), node)
            flow.new(site, part)
            flow.factories.setdefault(id(node), []).append((one.name, part, site))
        elif one.default is None:
            part.found().absent = True
        elif type(one.default) not in SCALARS:
            part.leave()


def of_user(flow: Flow, receiver: Object, classes: Iterable[type], node: Node, scope: Scope) -> Object:
    """Return what a call of a method of the user's gives."""
    result = Object()
    for cls in sorted(classes, key=lambda one: one.__qualname__):
        static = inspect.getattr_static(cls, node.func.attr, None)
        if is_written(static):
            result.unite(flow.called([flow.body(static, cls)], node, scope, skipped=1))
        elif isinstance(static, staticmethod) and is_written(static.__func__):
            result.unite(flow.called([flow.body(static.__func__, cls)], node, scope))
        else:
            receiver.leave()
            result.unite(flow.leaving(node, scope))
    return result.found()


def of_super(flow: Flow, node: Node, scope: Scope) -> Object:
    """Return what a call of a method of a base class gives."""
    owners = {body.owner for body in flow.bodies.values() if body.scope is scope or body.scope is scope.around}
    (owner,) = owners if len(owners) == 1 else (None,)
    for base in () if owner is None else owner.__mro__[1:]:
        static = vars(base).get(node.func.attr)
        if is_written(static):
            return flow.called([flow.body(static, base)], node, scope, skipped=1)
    return Object() if node.func.attr == "__init__" and not node.args else flow.leaving(node, scope)
