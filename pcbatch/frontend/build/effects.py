"""`assert`, `raise` and `print`: what is refused of them, and the blocks that they become."""

from __future__ import annotations

from typing import Any

import gast
import jax

from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.build.expressions import assigned, condition
from pcbatch.frontend.build.messages import filled, fits, message, template
from pcbatch.frontend.source.faults import Faults
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.resolve import MISSING, is_builtin, resolve
from pcbatch.frontend.source.tree import Node, is_constant
from pcbatch.ir.message import Message, joined
from pcbatch.ir.ops import ASSERTION, ERROR, Fail, Print

PRINT_KEYWORDS = frozenset({"sep", "end", "flush"})


def is_print(unit: Unit, node: Node, hidden: frozenset[str] = frozenset()) -> bool:
    """Is this a call of `print` or `jax.debug.print`?"""
    return isinstance(node, gast.Call) and (_is_builtin_print(unit, node, hidden) or _is_debug(unit, node, hidden))


def _is_builtin_print(unit: Unit, node: Node, hidden: frozenset[str] = frozenset()) -> bool:
    return not hidden & {"print"} and is_builtin(unit, node.func, "print")


def _is_debug(unit: Unit, node: Node, hidden: frozenset[str] = frozenset()) -> bool:
    return resolve(unit, node.func, hidden) is jax.debug.print


# What is refused


def check_print(unit: Unit, faults: Faults, node: Node) -> None:
    """Record what is wrong with a statement `print(...)` or `jax.debug.print(...)`."""
    if any(isinstance(arg, gast.Starred) for arg in node.args) or any(k.arg is None for k in node.keywords):
        title = "`print` cannot unpack its arguments in a lane"
        faults.add("PCB119", title, node, helps=("write the arguments out, or print the tuple itself",))
    elif _is_debug(unit, node):
        _check_template(faults, node)
    else:
        for keyword in node.keywords:
            if keyword.arg not in PRINT_KEYWORDS and not _is_none(keyword.value):
                title = f"`print` in a lane has no `{keyword.arg}`"
                faults.add("PCB119", title, keyword, helps=("leave it out: lanes print to the standard output",))


def _check_template(faults: Faults, node: Node) -> None:
    text = node.args[0] if node.args else None
    if text is None or not is_constant(text) or not isinstance(text.value, str):
        title = "the format of `jax.debug.print` must be a literal string"
        faults.add(
            "PCB119", title, text or node, helps=('write `jax.debug.print("x = {}", x)`, or `print(f"x = {x}")`',)
        )
    elif not fits(text.value, node.args[1:], node.keywords):
        title = "this format does not fit its arguments"
        help = "give one argument for every `{}` or `{name}`, and the part itself where `{x.y}` or `{x[0]}` is meant"
        faults.add("PCB119", title, text, helps=(help,))


def _is_none(node: Node) -> bool:
    return is_constant(node) and node.value is None


def check_raise(unit: Unit, faults: Faults, node: Node) -> None:
    """Record what is wrong with a statement `raise`."""
    if node.exc is None:
        title = "`raise` without an exception is not supported"
        faults.add("PCB103", title, node, "there is none to raise again", helps=("name one: `raise ValueError(...)`",))
        return
    if node.cause is not None and not _is_none(node.cause):
        title = "`raise` with a cause is not supported"
        faults.add("PCB103", title, node.cause, "a lane has no other exception", helps=("leave `from` out",))
    made, args, keywords = _made(node.exc)
    if exception(unit, made) is None:
        title = "a lane can raise only an exception class that is known while compiling"
        help = "write `raise ValueError(...)`, with the class as a global, a builtin or a closure variable"
        faults.add("PCB103", title, made, helps=(help,))
    elif any(isinstance(a, gast.Starred) for a in args) or any(k.arg is None for k in keywords):
        title = "the arguments of an exception cannot be unpacked in a lane"
        faults.add("PCB103", title, node.exc, helps=("write them out, or pass the tuple itself",))


def check_no_walrus(faults: Faults, node: Node) -> None:
    """Record `:=` in a message, whose values are read when all of it has been evaluated."""
    if assigned(node):
        title, label = "`:=` inside a message is not supported", "assigns while the message is put together"
        faults.add("PCB114", title, node, label, helps=("assign in a statement of its own before",))


def exception(unit: Unit, node: Node) -> type[BaseException] | None:
    """The exception class that a node means."""
    found: Any = resolve(unit, node)
    return found if found is not MISSING and isinstance(found, type) and issubclass(found, BaseException) else None


def _made(node: Node) -> tuple[Node, list[Node], list[Node]]:
    return (node.func, node.args, node.keywords) if isinstance(node, gast.Call) else (node, [], [])


# What they become


def build_assert(b: Builder, node: Node) -> None:
    """A branch to a block that fails."""
    holds, failing = b.label(), b.label()
    condition(b, node.test, holds, failing)
    b.start(failing)
    shown = () if node.msg is None else message(b, node.msg)
    b.end(Fail(ASSERTION, "AssertionError", shown, b.loc(node.test)))
    b.start(holds)


def build_raise(b: Builder, node: Node) -> None:
    """The end of a block."""
    made, args, keywords = _made(node.exc)
    cls = exception(b.unit, made)
    assert cls is not None
    shown = [message(b, arg) for arg in args]
    shown += [(f"{keyword.arg}=", *message(b, keyword.value)) for keyword in keywords]
    kind = ASSERTION if issubclass(cls, AssertionError) else ERROR
    b.end(Fail(kind, cls.__name__, _separated(shown, (", ",)), b.loc(node)))


def build_print(b: Builder, node: Node) -> None:
    """One operation."""
    if _is_debug(b.unit, node):
        text = (*filled(b, template(node.args[0].value), node, skip=1), "\n")
    else:
        words = [message(b, arg) for arg in node.args]
        options = {keyword.arg: keyword.value for keyword in node.keywords}
        text = (*_separated(words, _option(b, options, "sep", " ")), *_option(b, options, "end", "\n"))
    b.emit(Print(joined(text), b.loc(node)))


def _option(b: Builder, options: dict[str, Node], name: str, default: str) -> Message:
    node = options.get(name)
    return (default,) if node is None or _is_none(node) else message(b, node)


def _separated(messages: list[Message], separator: Message) -> Message:
    parts = [part for k, item in enumerate(messages) for part in (*(separator if k else ()), *item)]
    return joined(tuple(parts))
