"""Messages of `print` and of exceptions, made of their arguments: constant text and the lane's values.

    f"step {h:.3f} of {n}"      ==>      "step ", h:(".3f"), " of ", n

Text is put together on the host from the values of each lane, so an f-string is split into its parts here; inside a
primitive it could only show JAX's tracers.
"""

from __future__ import annotations

import string

import gast

from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.build.expressions import variable
from pcbatch.frontend.source.tree import Node, is_constant
from pcbatch.ir.message import Field, Message, joined

CONVERSIONS = {-1: "", 115: "s", 114: "r", 97: "a"}  # as the tree writes `!s`, `!r`, `!a`

Slot = tuple[str, str, str]  # argument (its position or name), conversion, spec
Template = tuple[str | Slot, ...]


def message(b: Builder, node: Node) -> Message:
    """The message that shows what `str(node)` would."""
    if is_constant(node):
        return joined((str(node.value),))
    if isinstance(node, gast.JoinedStr):
        return joined(tuple(part for value in node.values for part in _piece(b, value)))
    if is_format_call(node):
        return filled(b, template(node.func.value.value), node)
    return (Field(variable(b, node)),)


def _piece(b: Builder, node: Node) -> Message:
    if not isinstance(node, gast.FormattedValue):
        return message(b, node)
    value = variable(b, node.value)
    spec = () if node.format_spec is None else message(b, node.format_spec)
    return (Field(value, CONVERSIONS[node.conversion], spec),)


def is_format_call(node: Node) -> bool:
    """Whether a node is `"literal".format(...)` with a literal that `fits` its arguments."""
    if not isinstance(node, gast.Call) or not isinstance(node.func, gast.Attribute) or node.func.attr != "format":
        return False
    text = node.func.value
    return is_constant(text) and isinstance(text.value, str) and fits(text.value, node.args, node.keywords)


def fits(text: str, args: list[Node], keywords: list[Node]) -> bool:
    """Whether a format shows only whole arguments, all of which are given: then it can be a message."""
    try:
        slots = [part for part in template(text) if not isinstance(part, str)]
    except ValueError:
        return False
    names = {*map(str, range(len(args))), *(keyword.arg for keyword in keywords)}
    plain = not any(isinstance(arg, gast.Starred) for arg in args) and None not in names
    return plain and all(name in names for name, _, _ in slots)


def template(text: str) -> Template:
    """Split a format string into texts and slots. Raises ValueError if it is malformed or shows parts of arguments."""
    parts: list[str | Slot] = []
    count = 0
    for literal, name, spec, conversion in string.Formatter().parse(text):
        parts.append(literal)
        if name is None:
            continue
        if name == "":
            name, count = str(count), count + 1
        if not (name.isdigit() or name.isidentifier()) or "{" in (spec or ""):
            raise ValueError(f"not a whole argument: {name}")
        parts.append((name, conversion or "", spec or ""))
    return tuple(parts)


def filled(b: Builder, parts: Template, call: Node, skip: int = 0) -> Message:
    """The message of a template and the arguments of a call, the first `skip` of them left out."""
    args = {str(k): arg for k, arg in enumerate(call.args[skip:])}
    args |= {keyword.arg: keyword.value for keyword in call.keywords}
    slots = dict.fromkeys(part for part in parts if not isinstance(part, str))
    shown = {slot: _formatted(b, args[slot[0]], slot) for slot in slots}
    return joined(tuple(p for part in parts for p in ((part,) if isinstance(part, str) else shown[part])))


def _formatted(b: Builder, node: Node, slot: Slot) -> Message:
    _, conversion, spec = slot
    if not conversion and not spec:
        return message(b, node)
    return (Field(variable(b, node), conversion, joined((spec,))),)
