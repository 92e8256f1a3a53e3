"""The lowering of `assert`, `raise` and `print`; `subset/check_effects.py` refuses the forms that lanes lack."""

from __future__ import annotations

from typing import Any

import gast
import jax

from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.build.exceptions import raise_again
from pcbatch.frontend.build.expressions import condition
from pcbatch.frontend.build.messages import filled, message, template
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.resolve import is_builtin, resolve
from pcbatch.frontend.source.tree import Node, is_none
from pcbatch.ir.message import Message, joined
from pcbatch.ir.ops import Print


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
    shown = () if node.msg is None else message(b, node.msg)
    b.fail(AssertionError, shown, node.test)
    b.start(holds)


def build_raise(b: Builder, node: Node) -> None:
    """Build `raise`: the end of a block, and of the lane."""
    if node.exc is None:
        raise_again(b, b.caught[-1], node)
        return
    raised, args, keywords = exception_parts(node.exc)
    cls = exception_class(b.unit, raised)
    assert cls is not None
    shown = [message(b, arg) for arg in args]
    shown += [(f"{keyword.arg}=", *message(b, keyword.value)) for keyword in keywords]
    b.fail(cls, _separated(shown, (", ",)), node)


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
