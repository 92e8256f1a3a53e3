"""The lowering of `for` loops: an index runs from 0 to the length of the iterable.

The progress of a loop lives in variables that the user cannot name, so assigning the loop variable in the body
does not disturb the iteration, and after the loop it holds its last value, as in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import gast

from pcbatch.frontend.build.assignments import assign_value
from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.build.evaluation_order import store
from pcbatch.frontend.build.expressions import condition
from pcbatch.frontend.build.iterables import Element, Iterable, fixed_range, iterable, kept, range_bounds, range_count
from pcbatch.frontend.source.places import Place, mutation, place_of
from pcbatch.frontend.source.resolve import is_builtin
from pcbatch.frontend.source.stored_items import stored_into
from pcbatch.frontend.source.tree import Node, binary, compare, constant, integer, load, supported
from pcbatch.ir.ops import Link

VIEWS = ("keys", "values", "items")


@dataclass(frozen=True, slots=True)
class Iteration:
    """The parts of a loop that depend on its iterable.

    `test(body, exit)` closes the block at the head of the loop; `step` starts the body and assigns the target. A loop
    that is `sure` to run once is entered at its body, so that variables of the body have a value after the loop.
    """

    test: Callable[[str, str], None]
    step: Callable[[], None]
    sure: bool = False


def begin(b: Builder, node: Node, fixed: bool = False) -> Iteration:
    """Evaluate the iterable of a loop, once, and return the parts of the loop."""
    b.stored = stored_into(node)
    try:
        return _begin(b, node, fixed)
    finally:
        b.stored = frozenset()


def _begin(b: Builder, node: Node, fixed: bool) -> Iteration:
    if isinstance(node.iter, gast.Call) and is_builtin(b.unit, node.iter.func, "range"):
        if fixed:
            return _over_iterable(b, node.target, fixed_range(b, node.iter), node.iter)
        return _over_range(b, node.target, node.iter)
    return _over_elements(b, node)


def _over_range(b: Builder, target: Node, node: Node) -> Iteration:
    """Loop over a `range` by the next value and the number that remain: without a product, nothing overflows."""
    args = range_bounds(b, node)
    # The step is read in every trip, so it must not be a variable that the body may assign.
    step = kept(b, args[2])
    following, remaining = b.temp(), b.temp()
    count = range_count(args, node)
    b.prim((remaining,), count.value, shown=count.shown)
    store(b, following, args[0])

    def advance() -> None:
        assign_value(b, target, load(following, target))
        b.prim((following,), binary(load(following, node), gast.Add(), step, node))
        _count(b, remaining, gast.Sub(), node)

    zero = constant(0, node)
    return Iteration(
        lambda body, leave: condition(b, compare(load(remaining, node), gast.Gt(), zero, node), body, leave),
        advance,
        _is_sure(args),
    )


def _is_sure(args: list[Node]) -> bool:
    values = [integer(arg) for arg in args]
    return None not in values and values[2] != 0 and len(range(*(v for v in values if v is not None))) > 0


def _over_elements(b: Builder, node: Node) -> Iteration:
    iteration = _over_iterable(b, node.target, iterable(b, node.iter), node.iter)
    changed = _changed_dict(b, node)
    if changed is None:
        return iteration
    size, at = b.temp(), node.iter
    b.prim((size,), supported("entries_of", [changed], at), shown=changed)

    def test(body: str, leave: str) -> None:
        same = b.temp()
        b.prim((same,), supported("same_size", [changed, load(size, at)], at), shown=changed, at=at)
        iteration.test(body, leave)

    return Iteration(test, iteration.step)


def _changed_dict(b: Builder, node: Node) -> Node | None:
    """The variable that a loop goes over if its body changes it; a dict or set must keep its size meanwhile."""
    source = node.iter
    if isinstance(source, gast.Call) and isinstance(source.func, gast.Attribute) and source.func.attr in VIEWS:
        source = source.func.value
    if not isinstance(source, gast.Name):
        return None
    for part in (part for statement in node.body for part in gast.walk(statement)):
        if isinstance(part, gast.Call) and (found := mutation(b.unit, part, statement=True)) is not None:
            place: Place | None = found.place
        elif isinstance(part, gast.Subscript) and not isinstance(part.ctx, gast.Load):
            place = place_of(b.unit, part.value)
        else:
            continue
        if place is not None and place.name == source.id and not place.keys:
            return source
    return None


def _over_iterable(b: Builder, target: Node, source: Iterable, node: Node) -> Iteration:
    count, index = b.temp(), b.temp()
    b.prim((count,), source.length.value, shown=source.length.shown)
    b.prim((index,), constant(0, node))
    position = load(index, node)

    def advance() -> None:
        b.taking = True
        _assign(b, target, source.element(position))
        b.taking = False
        _count(b, index, gast.Add(), node)

    def test(body: str, leave: str) -> None:
        if source.live:
            b.prim((count,), source.length.value, shown=source.length.shown)
        condition(b, compare(position, gast.Lt(), load(count, node), node), body, leave)

    return Iteration(test, advance)


def _assign(b: Builder, target: Node, element: Element) -> None:
    if isinstance(target, gast.Name) and element.link is not None and not b.handlers:
        rows, index = element.link
        key = b.temp()
        store(b, key, index)
        reads = [load(rows, index), load(key, index)]
        b.prim((target.id,), supported("linked_item", reads, index), shown=element.shown, at=index)
        b.link(Link(rows, (key,)))
    elif isinstance(target, gast.Name):
        b.prim((target.id,), element.value, shown=element.shown)
    elif _matches(target, element):
        for part, value in zip(target.elts, element.parts, strict=True):
            _assign(b, part, value)
    else:
        temp = b.temp()
        b.prim((temp,), element.value, shown=element.shown)
        assign_value(b, target, load(temp, target))


def _matches(target: Node, element: Element) -> bool:
    """Whether a target is a pattern of as many parts as the element has, so that no tuple need be made."""
    pattern = isinstance(target, gast.Tuple | gast.List) and len(target.elts) == len(element.parts)
    return pattern and not any(isinstance(part, gast.Starred) for part in target.elts)


def _count(b: Builder, name: str, op: Node, at: Node) -> None:
    b.prim((name,), binary(load(name, at), op, constant(1, at), at))
