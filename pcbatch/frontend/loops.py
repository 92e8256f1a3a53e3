"""`for` loops: over `range` with run-time bounds, and over the leading axis of an array.

The progress of a loop lives in variables that the user cannot name, so assigning the loop variable in the body
does not disturb the iteration, and after the loop it holds its last value, as in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import gast

from pcbatch.frontend.assign import assign_value
from pcbatch.frontend.exprs import atom, condition, lower, store
from pcbatch.frontend.graph import Builder
from pcbatch.frontend.prims import supported
from pcbatch.frontend.resolve import is_builtin
from pcbatch.frontend.tree import Node, binary, call, compare, constant, display, load, subscript


@dataclass(frozen=True, slots=True)
class Iteration:
    """`test(body, exit)` closes the block at the head of the loop; `step` starts the body: assigns the target."""

    test: Callable[[str, str], None]
    step: Callable[[], None]


def begin(b: Builder, node: Node) -> Iteration:
    """Evaluate what the loop goes over, once, and say how to go on."""
    iterable = node.iter
    if isinstance(iterable, gast.Call) and is_builtin(b.unit, iterable.func, "range"):
        return _over_range(b, node.target, iterable)
    if isinstance(iterable, gast.Call) and is_builtin(b.unit, iterable.func, "enumerate"):
        return _over_enumerate(b, node.target, iterable)
    return _over_rows(b, node.target, iterable, None)


def _over_range(b: Builder, target: Node, node: Node) -> Iteration:
    args = [atom(b, arg) for arg in node.args]
    if len(args) == 1:
        args.insert(0, constant(0, node))
    if len(args) == 2:
        args.append(constant(1, node))
    if not isinstance(args[0], gast.Constant):
        args[0] = _start(b, args[0])
    # The step is read in every trip, so it must not be a variable that the body may assign.
    step = args[2] if isinstance(args[2], gast.Constant) else _copy(b, args[2])
    following, remaining = b.temp(), b.temp()
    length = call(load("len", node), [call(node.func, args, node)], node)
    b.prim((remaining,), supported("range_length", args, node), shown=length)
    store(b, following, args[0])

    def advance() -> None:
        assign_value(b, target, load(following, target))
        b.prim((following,), binary(load(following, node), gast.Add(), step, node))
        _count(b, remaining, gast.Sub(), node)

    zero = constant(0, node)
    return Iteration(
        lambda body, leave: condition(b, compare(load(remaining, node), gast.Gt(), zero, node), body, leave), advance
    )


def _start(b: Builder, node: Node) -> Node:
    temp = b.temp()
    b.prim((temp,), supported("range_start", [node], node), shown=node)
    return load(temp, node)


def _over_enumerate(b: Builder, target: Node, node: Node) -> Iteration:
    start = next((k.value for k in node.keywords), node.args[1] if len(node.args) > 1 else None)
    if start is None or (isinstance(start, gast.Constant) and start.value == 0):
        return _over_rows(b, target, node.args[0], constant(0, node))
    # `xs` comes first in evaluation order.
    rows = _copy(b, lower(b, node.args[0]))
    start = lower(b, start)
    return _over_rows(b, target, rows, start if isinstance(start, gast.Constant) else _copy(b, start))


def _over_rows(b: Builder, target: Node, node: Node, start: Node | None) -> Iteration:
    rows = _copy(b, lower(b, node))
    count, index = b.temp(), b.temp()
    b.prim((count,), supported("iter_length", [rows], node), shown=call(load("len", node), [rows], node))
    b.prim((index,), constant(0, node))
    at = load(index, node)
    row = supported("row", [rows, at], node)
    shown = subscript(rows, at, node)

    def advance() -> None:
        if start is None:
            _assign_shown(b, target, row, shown)
        else:
            number = (
                at if isinstance(start, gast.Constant) and start.value == 0 else binary(at, gast.Add(), start, node)
            )
            _assign_numbered(b, target, number, row, shown)
        _count(b, index, gast.Add(), node)

    return Iteration(
        lambda body, leave: condition(b, compare(at, gast.Lt(), load(count, node), node), body, leave), advance
    )


def _assign_numbered(b: Builder, target: Node, number: Node, row: Node, shown: Node) -> None:
    if isinstance(target, gast.Tuple | gast.List) and len(target.elts) == 2:
        assign_value(b, target.elts[0], number)
        _assign_shown(b, target.elts[1], row, shown)
    else:
        temp = b.temp()
        b.prim((temp,), display([number, row], target), shown=display([number, shown], target))
        assign_value(b, target, load(temp, target))


def _assign_shown(b: Builder, target: Node, value: Node, shown: Node) -> None:
    if isinstance(target, gast.Name):
        b.prim((target.id,), value, shown=shown)
    else:
        temp = b.temp()
        b.prim((temp,), value, shown=shown)
        assign_value(b, target, load(temp, target))


def _copy(b: Builder, node: Node) -> Node:
    """The value in a variable of its own."""
    temp = b.temp()
    store(b, temp, node)
    return load(temp, node)


def _count(b: Builder, name: str, op: Node, at: Node) -> None:
    b.prim((name,), binary(load(name, at), op, constant(1, at), at))
