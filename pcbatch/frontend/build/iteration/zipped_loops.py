"""The loops that go over `zip`, of streams and of sequences beside them: each is asked in its turn."""

from __future__ import annotations

import gast

from pcbatch.frontend.build.builder import Builder, new_handlers
from pcbatch.frontend.build.evaluation_order import copied
from pcbatch.frontend.build.exceptions import leave_on
from pcbatch.frontend.build.expressions import condition, lower
from pcbatch.frontend.build.iteration.iterables import Iterable, zipped
from pcbatch.frontend.build.iteration.itertools_loops import Consume, Each
from pcbatch.frontend.build.iteration.turns import require_turns
from pcbatch.frontend.source.streams import by_index, counts, generator_among, generator_in, is_special, steps
from pcbatch.frontend.source.tree import Node, binary, compare, constant, display, is_supported, load, subscript


def until_stop(b: Builder, node: Node, end: str) -> Node:
    """Build an expression whose StopIteration goes to the label `end`; return the variable of its value."""
    tried, going = new_handlers(b), b.label()
    b.handlers.append(tried)
    value = copied(b, lower(b, node))
    b.handlers.pop()
    b.jump(going)
    b.start(tried.label)
    leave_on(b, tried, (StopIteration,), node, end)
    b.start(going)
    return value


def over_zip(each: Each, b: Builder, node: Node, consume: Consume) -> None:
    """Build the loop over a stream and sequences beside it: no element is made that Python does not ask for."""
    place = generator_among(b.unit, node)
    if place is None:
        made = [k for k, part in enumerate(node.args) if is_special(b.unit, part) and not by_index(b.unit, part)]
        place = next((k for k in made if not counts(b.unit, node.args[k])), None)
    if place is None or any(generator_in(b.unit, part) for part in node.args[place + 1 :]):
        _by_steps(b, node, consume)
        return
    index, end, sides = load(b.temp(), node), b.label(), list[tuple[Iterable, Node] | None]()
    for part in (node.args[:place], node.args[place + 1 :]):  # asked before the generator, and after it
        b.rolls = True
        side = zipped(b, part, node, in_turn=bool(sides)) if part else None
        count = load(b.temp(), node)
        if side is not None:
            _measure(b, side, count)
        sides.append(None if side is None else (side, count))
        b.rolls = False
    b.prim((index.id,), constant(0, node))

    def leave_at_end(side: tuple[Iterable, Node] | None) -> None:
        if side is not None:
            _measure(b, *side, always=False)
            going = b.label()
            condition(b, compare(index, gast.Lt(), side[1], node), going, end)
            b.start(going)

    def step(value: Node, after: str) -> None:
        leave_at_end(sides[1])
        found = [None if side is None else side[0].element(index).value for side in sides]
        rows = [None if row is None else load(b.temp(), node) for row in found]
        for name, row in zip(rows, found, strict=True):
            if name is not None:
                b.prim((name.id,), row)
        parts = [subscript(rows[0], constant(k, node), node) for k in range(place)]
        parts += [value, *(subscript(rows[1], constant(k, node), node) for k in range(len(node.args) - place - 1))]
        b.prim((index.id,), binary(index, gast.Add(), constant(1, node), node))
        following = b.label()
        consume(display(parts, node), following)
        b.begin(following)
        leave_at_end(sides[0])
        b.jump(after)

    leave_at_end(sides[0])
    each(b, node.args[place], step)
    b.begin(end)


def _measure(b: Builder, side: Iterable, count: Node, always: bool = True) -> None:
    """Build what measures a sequence: before the loop `always`, in it where its length may have changed."""
    if always or side.live:
        b.prim((count.id,), side.length.value, shown=side.length.shown)


def _by_steps(b: Builder, node: Node, consume: Consume) -> None:
    """Build the loop over iterators of the user's and sequences, each of which is asked in its turn."""
    index, head, end = load(b.temp(), node), b.label(), b.label()
    sides = dict[int, tuple[Iterable, Node]]()
    for k, part in enumerate(node.args):
        if is_supported(part, steps):
            continue
        require_turns(b, part, listed=False)
        b.rolls = True
        side, count = zipped(b, [part], node, in_turn=True), load(b.temp(), node)
        _measure(b, side, count)
        sides[k] = (side, count)
        b.rolls = False
    b.prim((index.id,), constant(0, node))
    b.begin(head)
    row = list[Node]()
    for k, part in enumerate(node.args):
        if k not in sides:
            row.append(until_stop(b, part.args[0], end))
            continue
        (side, count), going, value = sides[k], b.label(), load(b.temp(), node)
        _measure(b, side, count, always=False)
        condition(b, compare(index, gast.Lt(), count, node), going, end)
        b.start(going)
        b.prim((value.id,), subscript(side.element(index).value, constant(0, node), node))
        row.append(value)
    b.prim((index.id,), binary(index, gast.Add(), constant(1, node), node))
    consume(display(row, node), head)
    b.jump(head)
    b.start(end)
