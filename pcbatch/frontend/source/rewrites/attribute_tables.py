"""Tables of functions that an object keeps in an attribute, as tables of its class.

    self.ops = {"push": self.push, "dup": lambda k: self.push(self.top)}      # in `__init__`, once
    self.ops[op](k)          ==>          {"push": self.push, "dup": C.dup}[op](k), with `self` before `k` for `C.dup`

That is so where the attribute is assigned nowhere else and all that is asked of it is a look-up by the object itself,
so that what the functions have captured is the object that calls them. What is left is a table as `function_tables` has
it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType

import gast

from pcbatch.data.objects.function_values import FunctionValue
from pcbatch.errors import CompileError
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.locate import Located, locate
from pcbatch.frontend.source.resolve import resolve
from pcbatch.frontend.source.rewrites.function_classes import method_class
from pcbatch.frontend.source.rewrites.method_lookup import owner_of
from pcbatch.frontend.source.scope import bindings, free_names, parameters
from pcbatch.frontend.source.tree import Node, attribute, is_constant, load

DISPLAYS = (gast.Dict, gast.List, gast.Tuple)


def table_of(unit: Unit, node: Node) -> Node | None:
    """Return the display of the table that `self.name` means; None for other expressions."""
    match node:
        case gast.Attribute(value=gast.Name(id=own), attr=name) if (own,) == unit.params[:1] and not unit.bound[own]:
            found = _table(unit, name)
            if found is None or found[1].__globals__ is not unit.fn.__globals__:
                return None
            located, init, made, _ = found
            here = load(own, node)
            values = [_value(unit, located, init, one, here) for one in _values(made)]
            if any(value is None for value in values):
                return None
            if isinstance(made, gast.Dict):
                return gast.copy_location(gast.Dict(keys=made.keys, values=values), node)
            return gast.copy_location(gast.Tuple(elts=values, ctx=gast.Load()), node)
    return None


def is_table(unit: Unit, statement: Node) -> bool:
    """Return whether a statement of an `__init__` makes such a table; who asks for it is to be compiled along."""
    match statement:
        case gast.Assign(targets=[gast.Attribute(attr=name)], value=value) if isinstance(value, DISPLAYS):
            found = _table(unit, name)
            if found is None or found[1] is not unit.fn:
                return False
            for user in found[3]:  # the object has no such attribute where it is traced
                unit.want(user.__code__, statement, "it asks for a function of a table of its object")
            return True
    return False


def is_of_owner(unit: Unit, function: Node) -> bool:
    """Return whether a function of a table takes the object before its arguments."""
    owner = resolve(unit, function.value) if isinstance(function, gast.Attribute) else None
    return isinstance(owner, type) and issubclass(owner, FunctionValue) and not owner.pcbatch_recorded


def _table(unit: Unit, name: str) -> tuple[Located, FunctionType, Node, list[FunctionType]] | None:
    """The `__init__` that makes the table of an attribute, its display, and the functions that name the attribute."""
    owner = owner_of(unit.fn)
    init = None if owner is None else inspect.getattr_static(owner, "__init__", None)
    if not unit.decisions.functions or not isinstance(init, FunctionType) or owner_of(init) is None:
        return None
    spaces = [init.__globals__, *(vars(cls) for cls in unit.classes.values())]
    functions = {id(one): one for space in spaces for one in space.values() if isinstance(one, FunctionType)}
    users = [one for one in functions.values() if any(name in code.co_names for code in _codes(one.__code__))]
    try:
        located = [locate(one) for one in users]
    except CompileError:
        return None
    made = None
    for fn, found in zip(users, located, strict=True):
        own = parameters(found.node.args)[:1]
        for part in gast.walk(found.node):
            for child in gast.iter_child_nodes(part):
                if not isinstance(child, gast.Attribute) or child.attr != name:
                    continue
                if fn is init and isinstance(part, gast.Assign) and part in found.node.body and made is None:
                    made = (found, init, part.value) if isinstance(part.value, DISPLAYS) else None
                    if made is None or len(part.targets) != 1:
                        return None
                elif not (isinstance(child.value, gast.Name) and (child.value.id,) == own and _asks(part, child)):
                    return None
    if made is None or not _is_fixed(made[0].node, made[2], owner):
        return None
    return *made, users


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _codes(part)


def _asks(parent: Node, table: Node) -> bool:
    """Whether a table is only asked for an element, or for what it has."""
    match parent:
        case gast.Subscript(ctx=gast.Load(), value=value):
            return value is table
        case gast.Attribute(attr="get"):
            return True
        case gast.Compare(ops=[gast.In() | gast.NotIn()], comparators=[right]):
            return right is table
    return False


def _values(made: Node) -> list[Node]:
    values: list[Node] = made.values if isinstance(made, gast.Dict) else made.elts
    return values


def _is_fixed(init: Node, made: Node, owner: type | None) -> bool:
    """Whether the functions of a table capture nothing but the object."""
    own, *_ = parameters(init.args)
    hidden = {*parameters(init.args), *(name for name, _ in bindings(init.body))} - {own}
    keys = made.keys if isinstance(made, gast.Dict) else []
    if not all(key is not None and is_constant(key) for key in keys) or any(n == own for n, _ in bindings(init.body)):
        return False
    for value in _values(made):
        match value:
            case gast.Attribute(value=gast.Name(id=name), attr=attr) if name == own:
                if not isinstance(inspect.getattr_static(owner, attr, None), FunctionType):
                    return False
            case gast.Lambda() | gast.Name() | gast.Attribute():
                if not hidden.isdisjoint(free_names(value)) or (own in free_names(value)) > isinstance(
                    value, gast.Lambda
                ):
                    return False
                if isinstance(value, gast.Lambda) and (value.args.defaults or value.args.kwonlyargs):
                    return False
            case _:
                return False
    return bool(_values(made))


def _value(unit: Unit, located: Located, init: FunctionType, value: Node, here: Node) -> Node | None:
    """The function of a table as another method of the object names it."""
    match value:
        case gast.Lambda():
            key = method_class(unit, located, init, value)
            return None if key is None else attribute(load(key, here), "__call__", here)
        case gast.Attribute(value=gast.Name(id=name), attr=attr) if name == parameters(located.node.args)[0]:
            return attribute(here, attr, here)
    return None if any(name in unit.bound for name in free_names(value)) else value
