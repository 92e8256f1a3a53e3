"""Calls of methods of objects that the function has made, written as calls of functions of their class.

    p = Point(n)                                 p = Point(n)
    p.move(3)                           ==>      Point.move(p, 3)

A method that branches on values of the lane is compiled along, like any helper, and for that its function must be known
before anything runs. The class of a variable is known if all that is ever assigned to it are calls of one class; that
of `self` is the class that the method is defined in, unless a subclass has another method of that name.
"""

from __future__ import annotations

import inspect
import sys
from types import FunctionType
from typing import Any

import gast

from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.resolve import resolve
from pcbatch.frontend.source.tree import Node, load, rewrite_calls


def write_out_methods(unit: Unit) -> Node:
    """Return the tree of a function with such calls written out; the tree itself where there are none."""
    return rewrite_calls(unit.node, lambda node: _written(unit, node))


def _written(unit: Unit, node: Node) -> Node | None:
    """The call of a function of the class that takes the place of a call of a method."""
    found = _function(unit, node)
    if found is None:
        return None
    method = gast.copy_location(gast.Attribute(value=found, attr=node.func.attr, ctx=gast.Load()), node.func)
    args = [node.func.value, *node.args]
    return gast.copy_location(gast.Call(func=method, args=args, keywords=node.keywords), node)


def _function(unit: Unit, node: Node) -> Node | None:
    """An expression for the class whose function a method call means; None if that is none of the program."""
    if not isinstance(node.func, gast.Attribute) or not isinstance(node.func.value, gast.Name):
        return None
    owner = _class_of(unit, node.func.value.id, node)
    if owner is None:
        return None
    cls, expression = owner
    function = inspect.getattr_static(cls, node.func.attr, None)
    overridden = any(inspect.getattr_static(sub, node.func.attr, None) is not function for sub in _subclasses(cls))
    exact = node.func.value.id not in unit.params  # an object that was made here is of no subclass
    if not isinstance(function, FunctionType) or (overridden and not exact) or unit.batched(function) is None:
        return None
    return expression


def _class_of(unit: Unit, name: str, at: Node) -> tuple[type, Node] | None:
    """The class of the objects that a variable holds, and an expression for it."""
    if name in unit.statics or name not in unit.variables:
        return None
    if name in unit.params:
        cls = _owner(unit.fn)
        first = unit.params[:1] == (name,) and len(unit.bound[name]) <= 0
        known = cls is not None and first and resolve(unit, load(cls.__name__, at)) is cls
        return (cls, load(cls.__name__, at)) if cls is not None and known else None
    made = [_constructed(unit, part) for part in _assigned(unit, name)]
    if not made or len(made) != len(unit.bound[name]) or any(one is None for one in made):
        return None
    classes = {id(one[0]) for one in made if one is not None}
    return made[0] if len(classes) == 1 else None


def _assigned(unit: Unit, name: str) -> list[Node]:
    """The values of the assignments `name = value`."""
    found = [part for part in gast.walk(unit.node) if isinstance(part, gast.Assign) and len(part.targets) == 1]
    return [part.value for part in found if isinstance(part.targets[0], gast.Name) and part.targets[0].id == name]


def _constructed(unit: Unit, value: Node) -> tuple[type, Node] | None:
    cls: Any = resolve(unit, value.func) if isinstance(value, gast.Call) else None
    plain = isinstance(cls, type) and isinstance(value.func, gast.Name) and type(cls) is type
    return (cls, value.func) if plain else None


def _owner(fn: FunctionType) -> type | None:
    """The class that a function is a method of, if its module has it by its name."""
    qualified, _, name = fn.__qualname__.rpartition(".")
    cls: Any = getattr(sys.modules.get(fn.__module__), qualified, None) if qualified.isidentifier() else None
    if cls is None:
        cls = fn.__globals__.get(qualified)
    return cls if isinstance(cls, type) and vars(cls).get(name) is fn else None


def _subclasses(cls: type) -> list[type]:
    found: list[type] = []
    below: list[type] = cls.__subclasses__()
    for subclass in below:
        found += [subclass, *_subclasses(subclass)]
    return found
