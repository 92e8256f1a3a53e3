"""The lowering of `try`: what its body raises becomes a number, by which a branch chooses the handler.

    try:                          code, t = attempt(xs[i])
        y = xs[i]                 branch code != 0, handlers, next
    except IndexError:            next: y = t; jump after
        y = 0                     handlers: branch code is IndexError, handler, outer handlers
                                  handler: y = 0; jump after

Only primitives in the body of a `try` are attempted, so nobody else pays. A function that is called there is compiled
once more, so that it gives the number of what it raises as a further result. `finally` is written out on each way out.

Where a handler reads the exception, `raise` and attempts give the parts of it that are read anywhere in the program
(`source/rewrites/caught_exceptions.py`), in variables beside the number.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gast
import jax
import numpy as np

from pcbatch.data.functions import exceptions
from pcbatch.frontend.build.builder import Builder, Handlers, new_handlers
from pcbatch.frontend.build.primitives import default_expr
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.resolve import resolve
from pcbatch.frontend.source.rewrites.caught_exceptions import CLASS, parts_read, raises_again
from pcbatch.frontend.source.tree import Node, constant, load, supported
from pcbatch.ir.ops import ERROR, Branch, Fail, Move, Prim, Return

Body = Callable[[Sequence[Node]], None]

UNNAMED = "Exception"  # the name of an exception that is one of many
CHECKED = (
    ValueError, IndexError, KeyError, ZeroDivisionError, OverflowError, TypeError, AttributeError, RuntimeError,
)  # fmt: skip
"""What primitives raise."""


def is_null_context(unit: Unit, item: Node) -> bool:
    """Whether an item of `with` is a context that changes nothing that a lane computes."""
    call = item.context_expr
    target: Any = resolve(unit, call.func if isinstance(call, gast.Call) else call)
    return any(target is known for known in (contextlib.nullcontext, jax.named_scope, np.errstate))


def suppressed(unit: Unit, node: Node) -> Node | None:
    """The classes that a `with contextlib.suppress(...)` suppresses, as an expression; None for other statements."""
    if len(node.items) != 1:
        return None
    call = node.items[0].context_expr
    if not isinstance(call, gast.Call) or resolve(unit, call.func) is not contextlib.suppress:
        return None
    return gast.copy_location(gast.Tuple(elts=list(call.args), ctx=gast.Load()), call)


def classes_of(unit: Unit, node: Node | None) -> tuple[type[BaseException], ...] | None:
    """The exception classes that a handler names, all of them for none; None if they are not known while compiling."""
    if node is None:
        return (BaseException,)
    parts = node.elts if isinstance(node, gast.Tuple) else [node]
    found = [resolve(unit, part) for part in parts]
    if len(found) == 1 and isinstance(found[0], tuple):
        found = list(found[0])
    known = [cls for cls in found if isinstance(cls, type) and issubclass(cls, BaseException)]
    return tuple(known) if len(known) == len(found) else None


def build_try(b: Builder, node: Node, build: Body) -> None:
    """Build a `try` statement; `build` builds statements in the loop around it."""
    if node.finalbody:
        _build_finally(b, node, build)
    elif node.handlers:
        _build_handlers(b, node.body, node.handlers, node.orelse, build)
    else:
        build(node.body)


def build_suppress(b: Builder, node: Node, classes: Node, build: Body) -> None:
    """Build `with contextlib.suppress(...)`."""
    handler = gast.ExceptHandler(type=classes, name=None, body=[gast.copy_location(gast.Pass(), node)])
    _build_handlers(b, node.body, [gast.copy_location(handler, node)], [], build)


def _build_handlers(
    b: Builder, body: Sequence[Node], handlers: Sequence[Node], orelse: Sequence[Node], build: Body
) -> None:
    of_handlers = [classes_of(b.unit, handler.type) or () for handler in handlers]
    unread: list[type[BaseException]] = []
    first = True  # so far no handler reads an exception
    for handler, of in zip(handlers, of_handlers, strict=True):
        parts = parts_read(handler.body)
        for part in parts:
            b.symbol.want(part, of)
        first = first and not parts and not raises_again(handler.body)
        unread += of if first else ()
    tried = new_handlers(b, tuple(cls for classes in of_handlers for cls in classes), tuple(unread))
    b.handlers.append(tried)
    build(body)
    b.handlers.pop()
    build(orelse)
    after = b.label()
    b.jump(after)
    b.start(tried.label)
    for handler in handlers:
        matched, others = b.label(), b.label()
        classes = classes_of(b.unit, handler.type)
        assert classes is not None
        _branch_on_class(b, tried.code, classes, handler, matched, others)
        b.start(matched)
        b.caught.append(tried)
        build(handler.body)
        b.caught.pop()
        b.jump(after)
        b.start(others)
    raise_again(b, tried, handlers[-1])
    b.start(after)


def assign_caught(b: Builder, name: str, part: str, at: Node) -> None:
    """Build the assignment of a part of the exception in whose handler control is, or of its number."""
    tried = b.caught[-1]
    if part == CLASS:
        b.emit(Move(name, tried.code, b.loc(at)))
    elif part in tried.parts:
        b.emit(Move(name, tried.parts[part], b.loc(at)))
    else:  # wanted for the first time: all functions are built once more
        b.unset(name, at)


def leave_on(b: Builder, tried: Handlers, classes: tuple[type[BaseException], ...], at: Node, leave: str) -> None:
    """Build what handles the exceptions of some classes by going to a label; others go on."""
    others = b.label()
    _branch_on_class(b, tried.code, classes, at, leave, others)
    b.start(others)
    raise_again(b, tried, at)


def _branch_on_class(
    b: Builder, code: str, classes: tuple[type[BaseException], ...], at: Node, matched: str, others: str
) -> None:
    if any(issubclass(Exception, cls) for cls in classes):
        b.jump(matched)
        return
    known, result = b.temp(), b.temp()
    b.emit(Prim((known,), default_expr(" or ".join(cls.__name__ for cls in classes), classes), b.loc(at)))
    test = supported(exceptions.is_caught, [load(code, at), load(known, at)], at)
    b.plain_prim((result,), test, at=at)
    b.end(Branch(result, matched, others, b.loc(at)))


def _build_finally(b: Builder, node: Node, build: Body) -> None:
    """Build a `try` with a `finally`, whose body follows the others on each way out of them."""
    tried = new_handlers(b)
    b.handlers.append(tried)
    b.finals.append((partial(build, node.finalbody), len(b.handlers) - 1))
    if node.handlers:
        _build_handlers(b, node.body, node.handlers, node.orelse, build)
    else:
        build(node.body)
    b.finals.pop()
    b.handlers.pop()
    build(node.finalbody)
    after = b.label()
    b.jump(after)
    b.start(tried.label)
    build(node.finalbody)
    raise_again(b, tried, node)
    b.start(after)


def leave(b: Builder, depth: int) -> None:
    """Build the bodies of `finally` that a jump out of their statements runs, down to `depth` statements."""
    finals, handlers = b.finals, b.handlers
    for k in range(len(finals) - 1, depth - 1, -1):
        build, inner = finals[k]
        b.finals, b.handlers = finals[:k], handlers[:inner]
        build()
    b.finals, b.handlers = finals, handlers


def raise_again(b: Builder, tried: Handlers, at: Node) -> None:
    """End the block: what no handler has caught goes on to the next `try`, or ends the lane."""
    if b.handlers:
        outer = b.handlers[-1]
        outer.raised += tried.raised
        b.plain_prim((outer.code,), load(tried.code, at), at=at)
        for part, variable in outer.parts.items():
            b.emit(Move(variable, tried.parts[part], b.loc(at)))
        b.jump(outer.label)
        return
    known = dict.fromkeys((*tried.raised, *b.symbol.raised, *CHECKED))
    for cls in sorted(known, key=lambda one: -len(one.__mro__)):  # a class before those that it is derived from
        matched, others = b.label(), b.label()
        _branch_on_class(b, tried.code, (cls,), at, matched, others)
        b.start(matched)
        b.fail(cls, (), at)
        b.start(others)
    b.end(Fail(ERROR, UNNAMED, (), b.loc(at)))


def begin_catching(b: Builder, at: Node) -> None:
    """Begin a function whose caller catches what it raises, and is given the number of that as a further result."""
    tried = new_handlers(b)
    b.plain_prim((tried.code,), constant(0, at), at=at)
    for variable in (b.result, *tried.parts.values()):
        b.unset(variable, at)
    b.raising = (tried.code, *tried.parts.values())
    b.handlers.append(tried)


def end_catching(b: Builder) -> list[type[BaseException]]:
    """Build the block that returns to a caller which catches what the function raises.

    Returns:
        The classes that the function's `raise` and `assert` statements name and that primitives do not raise.
    """
    (tried,) = b.handlers
    b.start(tried.label)
    if b.fills:
        b.unset(b.unit.params[0], b.unit.body[0])
    b.end(Return())
    return [cls for cls in tried.raised if cls not in CHECKED]
