"""The methods of the user's that a call in the source may mean."""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType
from typing import Any

import gast

from pcbatch.data.functions import drafts
from pcbatch.data.object_parts import is_users
from pcbatch.data.objects.function_values import FunctionValue
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.generators import generator
from pcbatch.frontend.source.locate import locate
from pcbatch.frontend.source.own_classes import own_methods
from pcbatch.frontend.source.places import is_mutating_method, place_of
from pcbatch.frontend.source.resolve import MISSING, resolve
from pcbatch.frontend.source.tree import Node, attribute, call, constant, load, supported


def methods_named(unit: Unit, name: str) -> list[Node]:
    """The methods of a name that classes of the user's have, each once, by the class."""
    found: dict[int, Node] = {}
    for key, cls in unit.classes.items():
        for function in own_methods([cls], name):
            found.setdefault(id(function), attribute(load(key, unit.node), name, unit.node))
    return list(found.values())


def is_trivial(method: FunctionType) -> bool:
    """Return whether a method does nothing but return its object."""
    names = {one.opname for one in dis.get_instructions(method.__code__)}
    return returns_self(method) and all(name.startswith(("RESUME", "LOAD_FAST", "RETURN_VALUE")) for name in names)


def returns_self(method: FunctionType) -> bool:
    """Return whether a method gives its object, whatever it does before."""
    code = list(dis.get_instructions(method.__code__))
    pairs = zip(code, code[1:], strict=False)
    returned = [before for before, after in pairs if after.opname.startswith("RETURN_")]
    own = method.__code__.co_varnames[:1]
    return all(one.opname.startswith("LOAD_FAST") and own == (one.argval,) for one in returned)


def is_simple(unit: Unit, node: Node) -> bool:
    """Whether an expression may be written several times: a variable, or a part of one at simple keys."""
    place = place_of(unit, node)
    return place is not None and all(isinstance(part, gast.Name | gast.Constant) for part in place.operands)


def is_super(node: Node) -> bool:
    return isinstance(node, gast.Call) and isinstance(node.func, gast.Name) and node.func.id == "super"


def call_of_base(unit: Unit, node: Node) -> Node | None:
    """Return the call of the function that `super().method(...)` means; None if that depends on the class of the
    object, or it is no function of the user's."""
    name = node.func.attr
    found = _base(unit, node.func.value, name)
    if found is None:
        return None
    owner, key, first = found
    function = inspect.getattr_static(owner, name, None)
    if owner is object:  # its `__init__` does nothing
        return constant(None, node) if name == "__init__" and not node.args and not node.keywords else None
    if not isinstance(function, FunctionType | staticmethod):
        return None
    own = [] if isinstance(function, staticmethod) else [first]
    func = attribute(load(key, node), name, node.func)
    return gast.copy_location(gast.Call(func=func, args=[*own, *node.args], keywords=node.keywords), node)


def read_of_base(unit: Unit, node: Node) -> Node | None:
    """Return what `super().name` reads: a property of a base class, or a constant of it."""
    found = _base(unit, node.value, node.attr)
    if found is None or found[0] is object:
        return None
    owner, key, first = found
    value = attribute(load(key, node), node.attr, node)
    known = inspect.getattr_static(owner, node.attr, None)
    if isinstance(known, property):
        return call(attribute(value, "fget", node), [first], node)
    return None if callable(known) or isinstance(known, staticmethod | classmethod) else value


def _base(unit: Unit, value: Node, name: str) -> tuple[type, str, Node] | None:
    """The class in which `super()` finds a name, how it is named, and the object; None if classes of the object differ
    in that."""
    given = _of_super(unit, value)
    cls = None if given is None else resolve(unit, given[0])
    if given is None or not isinstance(cls, type):
        return None
    owners = {_behind(cls, one.__mro__, name) for one in (cls, *_subclasses(cls))}
    owner = owners.pop()
    key = next((key for key, one in unit.classes.items() if one is owner), "object" if owner is object else None)
    return None if owners or owner is None or key is None else (owner, key, given[1])


def traced_super(unit: Unit, node: Node) -> Node | None:
    """Return what takes the place of `super()` in a helper, whose object may be a record of the lane."""
    given = _of_super(unit, node) if is_super(node) and resolve(unit, node.func) is super else None
    return None if given is None else supported(drafts.super_, list(given), node)


def _of_super(unit: Unit, node: Node) -> tuple[Node, Node] | None:
    """The class and the object that `super()` means, which may be left out; None if it is not the method's own."""
    first = unit.params[0] if unit.params else ""
    match node.args:
        case []:
            cls = load("__class__", node)
        case [named, gast.Name(id=name)] if name == first:
            cls = named
        case _:
            return None
    return None if unit.bound.get(first, (node,)) else (cls, load(first, node))


def _behind(cls: type, classes: tuple[type, ...], name: str) -> type | None:
    """The first class behind `cls` that has a name of its own."""
    return next((one for one in classes[classes.index(cls) + 1 :] if name in vars(one)), None)


def candidates(unit: Unit, *names: str) -> Iterator[Node]:
    """Yield the attributes of the user's classes that a call by a name may mean: functions that are compiled along, and
    static ones of others; where there are several names, Python asks for the first that the class has."""
    found: list[object] = []
    for k, name in enumerate(names):
        having = {key: cls for key, cls in unit.classes.items() if any(name in vars(one) for one in cls.__mro__[:-1])}
        for cls in having.values():
            found += own_methods([cls] if any(any(own_methods([cls], before)) for before in names[:k]) else [], name)
        for key, cls in having.items():
            meaning = drafts.meaning(cls, name)
            if _is_called(unit, inspect.getattr_static(cls, name), name) and not any(meaning is one for one in found):
                found.append(meaning)
                yield attribute(load(key, unit.node), name, unit.node)


def _is_called(unit: Unit, value: Any, name: str) -> bool:
    """Whether a call by the class may take the place of one by an object, where the class has this under a name."""
    function = value.__func__ if isinstance(value, staticmethod | classmethod) else value
    if isinstance(function, FunctionType) and is_users(function.__module__ or ""):
        return unit.batched(function) is not None
    return isinstance(value, staticmethod | BuiltinFunctionType | type) and not name.startswith("__")


def classes(unit: Unit, value: Node) -> list[Node]:
    """Return the classes of the user's that an object may be of, each as what `__class__` of its objects is; none for
    an object that would have to be kept in a variable to be asked twice."""
    if not is_simple(unit, value) or resolve(unit, value) is not MISSING:
        return []
    owner = class_of(unit, value.id, value) if isinstance(value, gast.Name) else None
    below, apart = object if owner is None else owner[0], (BaseException, FunctionValue)
    found = [key for key, cls in unit.classes.items() if issubclass(cls, below) and not issubclass(cls, apart)]
    return [attribute(load(key, unit.node), "__class__", unit.node) for key in found]


def takes_object(unit: Unit, function: Node) -> bool:
    """Return whether what a class has under a name gets the object before the arguments of a call."""
    found = inspect.getattr_static(resolve(unit, function.value), function.attr, None)
    return isinstance(found, FunctionType | property)


def properties(unit: Unit, name: str, setters: bool = False) -> Iterator[Node]:
    """The properties of a name that classes of the user's have and whose functions are compiled along, each once: those
    that read it, or those that set it."""
    found: list[property] = []
    if any(key[2] == name for key in unit.decisions.helpers):
        for key, cls in unit.classes.items():
            value = inspect.getattr_static(cls, name, None)
            if not isinstance(value, property) or any(value is one for one in found):
                continue
            if unit.batched(value.fset if setters else value) is not None:
                found.append(value)
                yield attribute(load(key, unit.node), name, unit.node)


def generator_methods(unit: Unit, node: Node) -> list[Node]:
    """Return the generators of classes of the user's that a call of a method of an object may mean."""
    match node:
        case gast.Call(func=gast.Attribute(value=value, attr=name)) if resolve(unit, value) is MISSING:
            functions = methods_named(unit, name)
            return [one for one in functions if inspect.isgeneratorfunction(resolve(unit, one))]
    return []


def may_be_listed(unit: Unit, functions: list[Node]) -> bool:
    """Return whether nobody sees that all elements of generators are made before the first one is used.

    They end and change no object.
    """
    methods = (resolve(unit, function) for function in functions)
    return all(ends_unseen(locate(method).node) for method in methods if inspect.isgeneratorfunction(method))


def ends_unseen(generator: Node) -> bool:
    """Return whether a generator function ends and changes no object, as far as the text of its definition tells."""
    for part in gast.walk(generator):
        match part:
            case gast.While(test=gast.Constant()):
                return False
            case gast.Attribute(ctx=gast.Store() | gast.Del()) | gast.Subscript(ctx=gast.Store() | gast.Del()):
                return False
            case gast.Call(func=gast.Attribute() as func) if is_mutating_method(func, statement=True):
                return False
    return True


def function_of(unit: Unit, owner: tuple[type, Node], node: Node) -> tuple[Node, bool] | None:
    """An expression for the class whose function a method call means, and whether that is static; None if it is none of
    the program, and no generator."""
    cls, expression = owner
    function = inspect.getattr_static(cls, node.func.attr, None)
    overridden = any(inspect.getattr_static(sub, node.func.attr, None) is not function for sub in _subclasses(cls))
    exact = node.func.value.id not in unit.params  # an object that was made here is of no subclass
    static = isinstance(function, staticmethod)
    inner = function.__func__ if isinstance(function, staticmethod) else function
    if not isinstance(inner, FunctionType) or (overridden and not exact):
        return None
    if unit.batched(inner) is None and not (is_users(inner.__module__ or "") and inspect.isgeneratorfunction(inner)):
        return None
    return expression, static


def class_of(unit: Unit, name: str, at: Node) -> tuple[type, Node] | None:
    """The class of the objects that a variable holds, and an expression for it."""
    if name in unit.statics or name not in unit.variables:
        return None
    if name in unit.params:
        cls = owner_of(unit.fn)
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
    plain = isinstance(cls, type) and type(cls).__call__ is type.__call__
    return (cls, value.func) if plain else None


def yielded(unit: Unit, node: Node) -> Node | None:
    """Return the call of the generator `__iter__` of the object that an expression gives, if its class is known; a call
    of a generator as it is."""
    if generator(unit, node) is not None:
        return node
    owner = class_of(unit, node.id, node) if isinstance(node, gast.Name) else _constructed(unit, node)
    function = None if owner is None else inspect.getattr_static(owner[0], "__iter__", None)
    if owner is None or not isinstance(function, FunctionType) or not inspect.isgeneratorfunction(function):
        return None
    method = attribute(owner[1], "__iter__", node)
    return call(method, [node], node)


def owner_of(fn: FunctionType) -> type | None:
    """Return the class that a function is a method of, if its module has it by its name."""
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
