"""The lowering of `assert`, `raise` and `print`: messages are constant text and the lane's values.

    f"step {h:.3f} of {n}"      ==>      "step ", h:(".3f"), " of ", n

Text is put together on the host from the values of each lane, so an f-string is split into its parts here; inside a
primitive it could only show JAX's tracers. Of a variable that holds a text, `text = f"bad {n}"` before `raise
ValueError(text)`, the values are copied where it is assigned, and the message is put together where it is shown.
"""

from __future__ import annotations

import inspect
import re
import string
from dataclasses import replace
from types import FunctionType
from typing import Any

import gast
import jax

from pcbatch.data.exception_parts import COUNT
from pcbatch.data.functions import builtins, exceptions
from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.build.exceptions import raise_again
from pcbatch.frontend.build.expressions import condition, lower, variable
from pcbatch.frontend.build.primitives import lane_reads
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.resolve import is_builtin, resolve
from pcbatch.frontend.source.tree import (
    Node,
    attempted,
    call,
    children,
    constant,
    is_constant,
    is_none,
    load,
    supported,
)
from pcbatch.ir.message import Field, Message, joined
from pcbatch.ir.ops import Move, Print

CONVERSIONS = {-1: "", 115: "s", 114: "r", 97: "a"}  # as the tree writes `!s`, `!r`, `!a`

Slot = tuple[str, str, str]  # argument (its position or name), conversion, spec
# Flags, width, precision and kind of a slot of `%` that has neither a name nor a star.
_PERCENT = re.compile(r"%([-+ #0]*)(\d*)((?:\.\d+)?)([sradiufFeEgGxXo%])")

Template = tuple[str | Slot, ...]


def message(b: Builder, node: Node) -> Message:
    """The message that shows what `str(node)` would."""
    if is_constant(node):
        return joined((str(node.value),))
    if isinstance(node, gast.JoinedStr):
        return joined(tuple(part for value in node.values for part in _piece(b, value)))
    if is_format_call(node):
        return filled(b, template(node.func.value.value), node)
    if isinstance(node, gast.Name) and node.id in b.texts:
        return b.texts[node.id]
    if isinstance(node, gast.BinOp) and is_text(b, node):
        if isinstance(node.op, gast.Add):
            return joined((*message(b, node.left), *message(b, node.right)))
        return _percent(b, node)
    conversion = _text_call(b, node)
    if conversion is not None:
        return _shown(b, node, conversion)
    return (Field(variable(b, node)),)


def is_text(b: Builder, node: Node) -> bool:
    """Whether an expression makes text that can be a message."""
    match node:
        case gast.Constant(value=str()) | gast.JoinedStr():
            return True
        case gast.Name(id=name):
            return name in b.texts
        case gast.BinOp(op=gast.Add()):
            return is_text(b, node.left) and is_text(b, node.right)
        case gast.BinOp(op=gast.Mod(), left=gast.Constant(value=str() as text)):
            slots = percent_slots(text)
            return slots is not None and sum(map(bool, slots)) == len(_operands(node.right))
    return is_format_call(node) or _text_call(b, node) is not None


def shows_lanes(b: Builder, node: Node) -> bool:
    """Whether a text may show values of a lane, so that it is no text known while compiling."""
    return bool(lane_reads(b.unit, node, b.variables))


def _text_call(b: Builder, node: Node) -> str | None:
    """The conversion that a call such as `str(x)` or `repr(x)` makes; None for any other node."""
    match node:
        case gast.Call(args=[gast.expr()], keywords=[]) if not isinstance(node.args[0], gast.Starred):
            names = {"str": "s", "repr": "r", "ascii": "a", "format": ""}
        case gast.Call(args=[gast.expr(), gast.Constant(value=str())], keywords=[]):
            names = {"format": ""}
        case _:
            return None
    return next((conversion for name, conversion in names.items() if is_builtin(b.unit, node.func, name)), None)


def _shown(b: Builder, node: Node, conversion: str) -> Message:
    spec = joined((node.args[1].value,)) if len(node.args) > 1 else ()
    if conversion == "s" and is_text(b, node.args[0]):
        return message(b, node.args[0])
    return (Field(variable(b, node.args[0]), conversion if conversion != "s" else "", spec),)


def percent_slots(text: str) -> tuple[str, ...] | None:
    """Split the left side of `%`: an empty text for constant text, else the slot; None if it cannot be a message."""
    slots = _PERCENT.findall(text)
    if "%" in _PERCENT.sub("", text):
        return None
    return tuple("" if kind == "%" else kind for *_, kind in slots)


def _operands(node: Node) -> list[Node]:
    return list(node.elts) if isinstance(node, gast.Tuple) else [node]


def _percent(b: Builder, node: Node) -> Message:
    """The message of `"..." % values`."""
    operands = iter(_operands(node.right))
    parts: list[str | Field] = []
    end = 0
    text = node.left.value
    for slot in _PERCENT.finditer(text):
        parts.append(text[end : slot.start()])
        end = slot.end()
        flags, width, precision, kind = slot.groups()
        if kind == "%":
            parts.append("%")
            continue
        parts += _percent_field(b, next(operands), flags, width, precision, kind)
    return joined((*parts, text[end:]))


def _percent_field(b: Builder, node: Node, flags: str, width: str, precision: str, kind: str) -> Message:
    """The field of one slot, with the format spec that means the same."""
    align = "<" if "-" in flags else ">" if width else ""
    sign = "+" if "+" in flags else " " if " " in flags else ""
    zero = "0" if "0" in flags and "-" not in flags else ""
    if kind in "sra":
        if not width and not precision:
            return message(b, node) if kind == "s" else (Field(variable(b, node), kind),)
        return (Field(variable(b, node), kind, joined((f"{align}{width}{precision}",))),)
    if kind in "diu":
        node = supported(builtins.int_, [node], node)
        kind, precision = "d", ""
    align = "" if zero else align
    alternate = "#" if "#" in flags else ""
    return (Field(variable(b, node), "", joined((f"{align}{sign}{alternate}{zero}{width}{precision}{kind}",))),)


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


def assign_text(b: Builder, targets: list[Node], value: Node) -> bool:
    """Assign a text that is only shown, and return True; False, and nothing is built, for any other assignment."""
    if len(targets) != 1 or not isinstance(targets[0], gast.Name):
        return False
    name = targets[0].id
    if not _holds_text(b, name, value) or not (shows_lanes(b, value) or _shows_text(b, value)):
        return False
    b.texts[name] = _kept(b, message(b, value), value)
    return True


def _holds_text(b: Builder, name: str, value: Node) -> bool:
    """Whether a variable is assigned once, and that a text which is only shown."""
    if len(b.unit.bound.get(name, ())) != 1 or name in b.unit.params or not is_text(b, value):
        return False
    known = dict(b.texts)
    b.texts.setdefault(name, ())  # for texts that are made of this one
    only_shown = all(_reads_shown(b, node, name, False) for node in b.unit.body)
    b.texts = known
    return only_shown


def _shows_text(b: Builder, node: Node) -> bool:
    """Whether a text is made of another one in a variable."""
    return any(_reads(node, name) for name in b.texts)


def _kept(b: Builder, shown: Message, at: Node) -> Message:
    """A message of copies of the values, which what follows may assign anew."""
    copies: dict[str, str] = {}

    def kept(part: str | Field) -> str | Field:
        if isinstance(part, str):
            return part
        if part.var not in copies:
            copies[part.var] = b.temp()
            b.emit(Move(copies[part.var], part.var, b.loc(at)))
        return replace(part, var=copies[part.var], spec=tuple(map(kept, part.spec)))

    return tuple(map(kept, shown))


def _reads_shown(b: Builder, node: Node, name: str, shown: bool) -> bool:
    """Whether each read of a variable is in a message of `raise`, `assert` or `print`, or in another such text."""
    if isinstance(node, gast.Name):
        return node.id != name or not isinstance(node.ctx, gast.Load) or shown
    match node:
        case gast.Assign(targets=[gast.Name(id=other)], value=value) if other != name and _reads(value, name):
            return _reads_shown(b, value, name, True) and _holds_text(b, other, value)
        case gast.Raise(exc=gast.Call() as call):
            return (
                all(_reads_shown(b, arg, name, True) for arg in call.args)
                and not call.keywords
                or not _reads(node, name)
            )
        case gast.Assert():
            return _reads_shown(b, node.test, name, False) and (
                node.msg is None or _reads_shown(b, node.msg, name, True)
            )
        case gast.Expr(value=gast.Call() as call) if is_builtin(b.unit, call.func, "print"):
            return all(_reads_shown(b, arg, name, True) for arg in call.args) and not any(
                _reads(keyword, name) for keyword in call.keywords
            )
    # Inside a text the variable may be a part of it, and in no other expression.
    inside = shown and (isinstance(node, gast.JoinedStr | gast.FormattedValue) or _is_join(node))
    return all(_reads_shown(b, child, name, inside) for child in children(node))


def _is_join(node: Node) -> bool:
    return isinstance(node, gast.BinOp) and isinstance(node.op, gast.Add)


def _reads(node: Node, name: str) -> bool:
    if isinstance(node, gast.Name):
        read: bool = node.id == name
        return read
    return any(_reads(child, name) for child in children(node))


def is_print(unit: Unit, node: Node) -> bool:
    """Whether a node is a call of `print` or `jax.debug.print`."""
    return isinstance(node, gast.Call) and (is_builtin(unit, node.func, "print") or is_debug_print(unit, node))


def is_debug_print(unit: Unit, call: Node) -> bool:
    """Whether a call is one of `jax.debug.print`."""
    return resolve(unit, call.func) is jax.debug.print


def exception_class(unit: Unit, node: Node) -> type[BaseException] | None:
    """The exception class that a node refers to; None if it is no class that is known while compiling."""
    cls: Any = resolve(unit, node)
    return cls if isinstance(cls, type) and issubclass(cls, BaseException) else None


def exception_parts(node: Node) -> tuple[Node, list[Node], list[Node]]:
    """The class, the arguments and the keywords of the operand of `raise`: a call, or the class alone."""
    return (node.func, node.args, node.keywords) if isinstance(node, gast.Call) else (node, [], [])


def build_assert(b: Builder, node: Node) -> None:
    """Build `assert`: a branch to a block that ends the lane."""
    holds, failing = b.label(), b.label()
    condition(b, node.test, holds, failing)
    b.start(failing)
    made = call(load("AssertionError", node), [] if node.msg is None else [node.msg], node)
    parts = _parts(b, AssertionError, made, node)
    shown = () if parts or node.msg is None else message(b, node.msg)
    b.fail(AssertionError, shown, node.test, parts)
    b.start(holds)


def build_raise(b: Builder, node: Node) -> None:
    """Build `raise`: the end of a block, and of the lane."""
    if node.exc is None:
        raise_again(b, b.caught[-1], node)
        return
    raised, args, keywords = exception_parts(node.exc)
    cls = exception_class(b.unit, raised)
    assert cls is not None
    made = node.exc if isinstance(node.exc, gast.Call) else call(raised, [], node.exc)
    if parts := _parts(b, cls, made, node):
        b.fail(cls, (), node, parts)
        return
    shown = [message(b, arg) for arg in args]
    shown += [(f"{keyword.arg}=", *message(b, keyword.value)) for keyword in keywords]
    b.fail(cls, _separated(shown, (", ",)), node)


def _has_code(cls: type[BaseException]) -> bool:
    """Whether code of the user's runs where an exception of a class is made."""
    methods = (inspect.getattr_static(cls, name, None) for name in ("__init__", "__new__"))
    return any(isinstance(getattr(method, "__func__", method), FunctionType) for method in methods)


def _parts(b: Builder, cls: type[BaseException], made: Node, at: Node) -> tuple[str, ...]:
    """Assign the parts of an exception that handlers read, of an object that `made` makes; return the parts."""
    if not b.handlers:
        return ()
    variables = b.handlers[-1].parts
    parts = tuple(part for part in variables if issubclass(cls, b.symbol.parts[part]))
    asked = parts or ((COUNT,) if _has_code(cls) else ())  # code of the user's may raise, or change something
    if asked:
        temps = tuple(b.temp() for _ in asked)
        expression = attempted(lower(b, made), at)
        b.prim(temps, supported(exceptions.raising, [constant(asked, at), expression], at), shown=made, at=at)
        for part, temp in zip(parts, temps, strict=False):
            b.emit(Move(variables[part], temp, b.loc(at)))
    return parts


def build_print(b: Builder, node: Node) -> None:
    """Build a statement `print(...)`: one operation that shows a message."""
    if is_debug_print(b.unit, node):
        text = (*filled(b, template(node.args[0].value), node, skip=1), "\n")
    else:
        words = [message(b, arg) for arg in node.args]
        options = {keyword.arg: keyword.value for keyword in node.keywords}
        text = (*_separated(words, _option(b, options, "sep", " ")), *_option(b, options, "end", "\n"))
    b.emit(Print(joined(text), b.loc(node)))


def _option(b: Builder, options: dict[str, Node], name: str, default: str) -> Message:
    node = options.get(name)
    return (default,) if node is None or is_none(node) else message(b, node)


def _separated(messages: list[Message], separator: Message) -> Message:
    parts = [part for k, item in enumerate(messages) for part in (*(separator if k else ()), *item)]
    return joined(tuple(parts))
