"""Handlers that read the exception they catch, written as reads of its parts.

except BankError as e:           ==>      except BankError as e:
    log(str(e), e.code)                       e.class = <class>; e.str = <str>; e.attr_code = <code>
                                              log(text_read(e.str), attribute_read(e.class, e.attr_code, "code"))

A lane keeps no object of what it has caught, only the parts that handlers read: what `str` and `repr` show, `args`, and
attributes. Questions of its class are answered by the number of that. Any other use of `e` stays, and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import gast

from pcbatch.data.exception_parts import ARGS, ATTRIBUTE, COUNT, HELD, SHOWN, TEXT
from pcbatch.data.functions import exceptions
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.resolve import is_builtin
from pcbatch.frontend.source.tree import (
    FUNCTIONS,
    Node,
    constant,
    is_supported,
    load,
    rebuild,
    supported,
    target_of,
    with_fields,
)

CLASS = "class"
"""Stands among the parts for the number of the exception, which every lane that raises has."""
INNER = (*FUNCTIONS, gast.Lambda, gast.ClassDef)


@dataclass(slots=True)
class _Caught:
    """The exception of one handler: its name, the prefix of the variables of its parts, and the parts read so far."""

    name: str
    prefix: str
    classes: Node
    parts: dict[str, None] = field(default_factory=dict)

    def read(self, part: str, at: Node) -> Node:
        """Make a read of the variable of a part."""
        self.parts[part] = None
        return load(f"{self.prefix}.{_name(part)}", at)

    def text(self, part: str, at: Node) -> Node:
        """Make a read of a text of the exception."""
        return supported(exceptions.text_read, [self.read(part, at), self.read(HELD, at)], at)

    def attribute(self, name: str, at: Node) -> Node:
        """Make a read of an attribute."""
        found, held = self.read(f"{ATTRIBUTE}{name}", at), self.read(HELD, at)
        given = [self.read(CLASS, at), found, constant(name, at), held, self.classes]
        return supported(exceptions.attribute_read, given, at)


def write_caught(unit: Unit) -> Node:
    """Return the tree of a function with the parts of caught exceptions in variables; the tree itself where none is."""
    count = iter(range(1, 10_000))

    def change(node: Node) -> Node:
        new = node if isinstance(node, INNER) else rebuild(node, change)
        if isinstance(new, gast.ExceptHandler) and new.name is not None and new.type is not None:
            return _written(unit, new, next(count))
        return new

    return rebuild(unit.node, change)


def _written(unit: Unit, handler: Node, number: int) -> Node:
    name = handler.name if isinstance(handler.name, str) else handler.name.id
    caught = _Caught(name, name if number == 1 else f"{name}{number}", handler.type)
    if any(
        isinstance(part, gast.Name) and part.id == name and not isinstance(part.ctx, gast.Load)
        for statement in handler.body
        for part in gast.walk(statement)
    ):
        return handler  # another value has the name
    body = [_replaced(unit, caught, statement) for statement in handler.body]
    first = handler.body[0]
    if _is_bound(unit, name):  # Python deletes the name in the end
        gone = gast.copy_location(gast.Name(id=name, ctx=gast.Del(), annotation=None, type_comment=None), handler)
        gone.made = True
        body = [gast.copy_location(gast.Delete(targets=[gone]), first), *body]
    elif not caught.parts and all(new is old for new, old in zip(body, handler.body, strict=True)):
        return handler
    read = [_assigned(f"{caught.prefix}.{_name(part)}", part, first) for part in caught.parts]
    return with_fields(handler, body=[*read, *body])


def _is_bound(unit: Unit, name: str) -> bool:
    """Whether a name is that of another variable, and not of caught exceptions alone."""
    handlers = [part for part in gast.walk(unit.node) if isinstance(part, gast.ExceptHandler)]
    own = {id(part) for handler in handlers for part in (handler, handler.name)}
    return name in unit.params or any(id(place) not in own for place in unit.bound.get(name, ()))


def _name(part: str) -> str:
    """The name of a part in that of its variable."""
    return part.replace(" ", "_").replace("[", "_").replace("]", "").replace("#", "_count")


def _assigned(name: str, part: str, at: Node) -> Node:
    value = supported(exceptions.caught, [constant(part, at)], at)
    return gast.copy_location(gast.Assign(targets=[target_of(name, at)], value=value, type_comment=None), at)


def parts_read(body: Sequence[Node]) -> tuple[str, ...]:
    """Return the parts of the exception that the body of a handler reads, after this rewriting."""
    parts = (part_assigned(node) for node in body)
    return tuple(part for part in parts if part is not None and part != CLASS)


def part_assigned(node: Node) -> str | None:
    """Return the part of a caught exception that a statement assigns to a variable; None for other statements."""
    if not isinstance(node, gast.Assign) or not is_supported(node.value, exceptions.caught):
        return None
    part: str = node.value.args[0].value
    return part


def raises_again(body: Sequence[Node]) -> bool:
    """Return whether a statement in the body of a handler raises what it has caught."""
    return any(isinstance(part, gast.Raise) and part.exc is None for statement in body for part in gast.walk(statement))


def _replaced(unit: Unit, caught: _Caught, node: Node, inside: bool = False) -> Node:
    """Return a node with reads of the parts of an exception; `inside` is whether another handler is around it."""
    if isinstance(node, INNER):
        return node
    if isinstance(node, gast.ExceptHandler):
        name = node.name if isinstance(node.name, str | None) else node.name.id
        if name == caught.name:
            return node
        inside = True
    if (new := _read(unit, caught, node)) is not None:
        return new
    if isinstance(node, gast.Raise):
        if _is_it(caught, node.exc) and not inside:
            return with_fields(node, exc=None, cause=None)
        if _is_it(caught, node.cause):  # it changes no value
            node = with_fields(node, cause=None)
    return rebuild(node, partial(_replaced, unit, caught, inside=inside))


def _is_it(caught: _Caught, node: Node) -> bool:
    return isinstance(node, gast.Name) and node.id == caught.name


def _read(unit: Unit, caught: _Caught, node: Node) -> Node | None:
    """Return what reads a part of an exception in place of a node; None where the node is no such read."""
    it = partial(_is_it, caught)
    match node:
        case gast.Call(func=gast.Name(id="str"), args=[value], keywords=[]) if it(value):
            return caught.text(TEXT, node) if is_builtin(unit, node.func, "str") else None
        case gast.Call(func=gast.Name(id="repr"), args=[value], keywords=[]) if it(value):
            return caught.text(SHOWN, node) if is_builtin(unit, node.func, "repr") else None
        case gast.Call(func=gast.Name(id="isinstance"), args=[value, classes], keywords=[]) if it(value):
            return supported(exceptions.is_caught, [caught.read(CLASS, node), classes], node)
        case gast.Call(func=gast.Name(id="print"), args=args) if any(map(it, args)):
            shown = [caught.text(TEXT, arg) if it(arg) else arg for arg in args]
            return (
                _replaced(unit, caught, with_fields(node, args=shown)) if is_builtin(unit, node.func, "print") else None
            )
        case gast.Call(func=gast.Attribute(value=gast.Constant(value=str() as text), attr="format"), args=args) if (
            any(map(it, args)) and "!" not in text
        ):
            shown = [caught.text(TEXT, arg) if it(arg) else arg for arg in args]
            return _replaced(unit, caught, with_fields(node, args=shown))
        case gast.FormattedValue(value=value, conversion=conversion, format_spec=spec) if it(value):
            if conversion != -1 or spec is None:
                part = SHOWN if conversion in (114, 97) else TEXT
                return with_fields(node, value=caught.text(part, value), conversion=-1)
        case gast.BinOp(left=gast.Constant(value=str() as text), op=gast.Mod(), right=right):
            shown_operand = _in_percent(caught, text, right)
            return None if shown_operand is None else _replaced(unit, caught, with_fields(node, right=shown_operand))
        case gast.Attribute(value=type_, attr="__name__" | "__qualname__") if _is_type(unit, caught, type_):
            return supported(exceptions.name_of, [caught.read(CLASS, node), caught.classes], node)
        case gast.Compare(left=type_, ops=[gast.Is() | gast.Eq() | gast.IsNot() | gast.NotEq()], comparators=[cls]) if (
            _is_type(unit, caught, type_)
        ):
            same = supported(exceptions.is_exactly, [caught.read(CLASS, node), cls], node)
            if isinstance(node.ops[0], gast.Is | gast.Eq):
                return same
            return gast.copy_location(gast.UnaryOp(op=gast.Not(), operand=same), node)
        case gast.Call(func=gast.Attribute(value=value) as method) if it(value):  # a method of the object stays
            return rebuild(node, lambda child: child if child is method else _replaced(unit, caught, child))
        case gast.Subscript(
            value=gast.Attribute(value=value, attr="args"), slice=gast.Constant(value=int() as k), ctx=gast.Load()
        ) if it(value) and k >= 0:
            count, argument = caught.read(COUNT, node), caught.read(f"{ARGS}[{k}]", node)
            return supported(exceptions.argument_read, [count, argument, constant(k, node)], node)
        case gast.Attribute(value=value, attr="args", ctx=gast.Load()) if it(value):
            return supported(exceptions.arguments_read, [caught.read(ARGS, node)], node)
        case gast.Attribute(value=value, attr=name, ctx=gast.Load()) if it(value) and not name.startswith("__"):
            return caught.attribute(name, node)
    return None


def _is_type(unit: Unit, caught: _Caught, node: Any) -> bool:
    """Whether a node is the class of the exception: `type(e)`, `e.__class__`."""
    match node:
        case gast.Call(func=gast.Name(id="type"), args=[value], keywords=[]):
            return _is_it(caught, value) and is_builtin(unit, node.func, "type")
        case gast.Attribute(value=value, attr="__class__"):
            return _is_it(caught, value)
    return False


def _in_percent(caught: _Caught, text: str, right: Node) -> Node | None:
    """Return the right side of `"..." % (e, n)` with the text of the exception; None where it does not stand there."""
    operands = right.elts if isinstance(right, gast.Tuple) else [right]
    if not any(_is_it(caught, each) for each in operands):
        return None
    kinds = text.replace("%%", "").split("%")[1:]
    if len(kinds) != len(operands):
        return None
    shown = [
        caught.text(SHOWN if kind[:1] == "r" else TEXT, each) if _is_it(caught, each) and kind[:1] in "sr" else each
        for kind, each in zip(kinds, operands, strict=True)
    ]
    return with_fields(right, elts=shown) if isinstance(right, gast.Tuple) else shown[0]
