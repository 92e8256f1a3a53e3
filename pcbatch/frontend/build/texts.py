"""Variables that hold the text of a message: `text = f"bad {n}"` before `raise ValueError(text)`.

Lanes hold no text. Where such a variable is only shown, the values in its text are copied where it is assigned, and the
message is put together where it is shown.
"""

from __future__ import annotations

from dataclasses import replace

import gast

from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.build.messages import is_text, message, shows_lanes
from pcbatch.frontend.source.resolve import is_builtin
from pcbatch.frontend.source.tree import Node, children
from pcbatch.ir.message import Field, Message
from pcbatch.ir.ops import Move


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
