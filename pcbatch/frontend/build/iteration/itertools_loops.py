"""The loops that go over the elements of functions of `itertools`, such as `combinations(xs, 2)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import gast

from pcbatch.data.functions import iteration
from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.build.evaluation_order import copied
from pcbatch.frontend.build.expressions import condition, lower, lower_into, where
from pcbatch.frontend.build.iteration.inner_names import applied
from pcbatch.frontend.build.iteration.iterables import Element, Iterable, count_bounds, iterable, kept
from pcbatch.frontend.build.iteration.seen_changes import called_sees_changes
from pcbatch.frontend.source.streams import GROUPS, nested_loops
from pcbatch.frontend.source.tree import Node, binary, compare, constant, display, is_none, load, supported

READ = "the key of `groupby` reads what the loop changes"
READ_HELP = "go over a list of the groups, which is made before the loop"
Consume = Callable[[Node, str], None]
"""Builds what is done with an element; control may jump to a label for the next element, or falls through to it."""
Each = Callable[[Builder, Node, Consume], None]
"""Builds the loops over any iterable; see `element_loops.each`."""


def indexed(b: Builder, source: Iterable, start: Node, at: Node, body: Callable[[Node, Node, str], None]) -> None:
    """Build a loop over the elements of an iterable from an index on; `body` gets index, element and next label."""
    index, element = load(b.temp(), at), load(b.temp(), at)
    head, inside, following, after = b.label(), b.label(), b.label(), b.label()
    count = b.temp()
    b.prim((count,), source.length.value, shown=source.length.shown)
    b.prim((index.id,), start) if not isinstance(start, gast.Name) else lower_into(b, index.id, start)
    b.begin(head)
    if source.live:
        b.prim((count,), source.length.value, shown=source.length.shown)
    condition(b, compare(index, gast.Lt(), load(count, at), at), inside, after)
    b.start(inside)
    found = source.element(index)
    b.prim((element.id,), found.value, shown=found.shown)
    body(index, element, following)
    b.begin(following)
    b.prim((index.id,), binary(index, gast.Add(), constant(1, at), at))
    b.jump(head)
    b.start(after)


def _chain(each: Each, b: Builder, node: Node, consume: Consume) -> None:
    for source in node.args:
        if isinstance(source, gast.Starred):  # its elements are arguments, all of which are there before
            given = gast.copy_location(gast.List(elts=[source], ctx=gast.Load()), node)
            _from_each(each, b, copied(b, lower(b, given)), consume)
        else:
            each(b, source, consume)


def _from_iterable(each: Each, b: Builder, node: Node, consume: Consume) -> None:
    _from_each(each, b, node.args[0], consume)


def _from_each(each: Each, b: Builder, node: Node, consume: Consume) -> None:
    def step(value: Node, _: str) -> None:
        each(b, copied(b, lower(b, value)), consume)

    each(b, node, step)


def _while_true(each: Each, b: Builder, node: Node, consume: Consume, *, drop: bool) -> None:
    function, source = node.args
    end = b.label()
    dropping = b.temp()
    if drop:
        b.prim((dropping,), constant(True, node))

    def step(value: Node, after: str) -> None:
        element = copied(b, lower(b, value))
        holds, asked = b.label(), b.label()
        if drop:
            condition(b, load(dropping, node), asked, holds)
            b.start(asked)
        condition(b, applied(b, function, [element], node), *((after, holds) if drop else (holds, end)))
        b.start(holds)
        if drop:
            b.prim((dropping,), constant(False, node))
        consume(element, after)

    each(b, source, step)
    b.begin(end)


def _accumulate(each: Each, b: Builder, node: Node, consume: Consume) -> None:
    options = {k.arg: k.value for k in node.keywords}
    function = node.args[1] if len(node.args) > 1 else options.get("func")
    initial = options.get("initial")
    total, started = load(b.temp(), node), load(b.temp(), node)
    end = b.label()
    if initial is not None:
        lower_into(b, total.id, initial)
        following = b.label()
        consume(total, following)
        b.begin(following)
    else:
        b.unset(total.id, node)
    b.prim((started.id,), constant(initial is not None, node))

    def step(value: Node, after: str) -> None:
        b.rolls = False
        element = copied(b, lower(b, value))
        first, later, both = b.label(), b.label(), b.label()
        condition(b, started, later, first)
        b.start(first)
        lower_into(b, total.id, element)
        b.prim((started.id,), constant(True, node))
        b.jump(both)
        b.start(later)
        plus = binary(total, gast.Add(), element, node)
        lower_into(
            b, total.id, plus if function is None or is_none(function) else applied(b, function, [total, element], node)
        )
        b.begin(both)
        consume(total, after)

    b.rolls = True  # a copy for the first element would read what has no value
    each(b, node.args[0], step)
    b.rolls = False
    b.begin(end)


def _times(b: Builder, node: Node, name: str) -> int:
    times = nested_loops(b.unit, node, name)
    assert times is not None, "it is no stream, otherwise"
    return times


def _product(each: Each, b: Builder, node: Node, consume: Consume) -> None:
    sources = [iterable(b, arg) for arg in node.args] * _times(b, node, "product")

    def nest(k: int, chosen: list[Node], after: str) -> None:
        if k == len(sources):
            consume(display(chosen, node), after)
            return
        indexed(
            b, sources[k], constant(0, node), node, lambda _, value, following: nest(k + 1, [*chosen, value], following)
        )

    _closed(b, lambda after: nest(0, [], after))


def _closed(b: Builder, build: Callable[[str], None]) -> None:
    after = b.label()
    build(after)
    b.begin(after)


def _choices(each: Each, b: Builder, node: Node, consume: Consume, name: str) -> None:
    """Build `combinations` and its relatives, of a number of elements that is known while building."""
    size, source = _times(b, node, name), iterable(b, node.args[0])

    def nest(chosen: list[Node], indices: list[Node], after: str) -> None:
        if len(chosen) == size:
            consume(display(chosen, node), after)
            return
        start = constant(0, node)
        if indices and name != "permutations":
            start = indices[-1]
            if name == "combinations":
                start = copied(b, binary(start, gast.Add(), constant(1, node), node))

        def inner(index: Node, value: Node, following: str) -> None:
            if name == "permutations":
                for other in indices:
                    where(b, compare(index, gast.NotEq(), other, node), following)
            nest([*chosen, value], [*indices, index], following)

        indexed(b, source, start, node, inner)

    _closed(b, lambda after: nest([], [], after))


def _pairwise(each: Each, b: Builder, node: Node, consume: Consume) -> None:
    before, started = load(b.temp(), node), load(b.temp(), node)
    b.unset(before.id, node)
    b.prim((started.id,), constant(False, node))

    def step(value: Node, after: str) -> None:
        b.rolls = False
        element = copied(b, lower(b, value))
        first, later = b.label(), b.label()
        old = load(b.temp(), node)
        condition(b, started, later, first)
        b.start(first)
        lower_into(b, before.id, element)
        b.prim((started.id,), constant(True, node))
        b.jump(after)
        b.start(later)
        lower_into(b, old.id, before)
        lower_into(b, before.id, element)
        consume(display([old, element], node), after)

    b.rolls = True  # a copy for the first element would read what has no value
    each(b, node.args[0], step)
    b.rolls = False


def _islice(each: Each, b: Builder, node: Node, consume: Consume) -> None:
    source, *bounds = node.args
    if len(bounds) == 1:
        bounds = [constant(0, node), bounds[0]]
    if len(bounds) == 2:
        bounds = [*bounds, constant(1, node)]
    start, stop, step_ = (
        kept(b, lower(b, constant(0, node) if k == 0 and is_none(bound) else bound)) for k, bound in enumerate(bounds)
    )
    position, end = load(b.temp(), node), b.label()
    b.prim((position.id,), constant(0, node))

    def leave_at_end() -> None:  # before the next element is asked for, which is left to others
        if not is_none(stop):
            where(b, compare(position, gast.Lt(), stop, node), end)

    def step(value: Node, after: str) -> None:
        index, following = load(b.temp(), node), b.label()
        lower_into(b, index.id, position)
        b.prim((position.id,), binary(position, gast.Add(), constant(1, node), node))
        element = copied(b, lower(b, value))
        where(b, compare(index, gast.GtE(), start, node), following)
        offset = binary(binary(index, gast.Sub(), start, node), gast.Mod(), step_, node)
        where(b, compare(offset, gast.Eq(), constant(0, node), node), following)
        consume(element, following)
        b.begin(following)
        leave_at_end()
        b.jump(after)

    leave_at_end()
    each(b, source, step)
    b.begin(end)


def _count(each: Each, b: Builder, node: Node, consume: Consume) -> None:
    start, step_ = count_bounds(node)
    following = load(b.temp(), node)
    lower_into(b, following.id, start)
    step_ = kept(b, lower(b, step_))
    head, next_ = b.label(), b.label()
    number = load(b.temp(), node)
    b.begin(head)
    lower_into(b, number.id, following)
    consume(number, next_)
    b.begin(next_)
    b.prim((following.id,), binary(following, gast.Add(), step_, node))
    b.jump(head)


def _repeat(each: Each, b: Builder, node: Node, consume: Consume) -> None:
    value = copied(b, lower(b, (arguments := [*node.args, *(k.value for k in node.keywords)])[0]))
    if len(arguments) == 1:
        head = b.label()
        b.begin(head)
        consume(value, head)
        b.jump(head)
        return
    bounds = [constant(0, node), kept(b, lower(b, arguments[1])), constant(1, node)]
    times = Iterable(Element(supported(iteration.range_size, bounds, node), bounds[1]), lambda i: Element(i, i))
    indexed(b, times, constant(0, node), node, lambda _index, _element, after: consume(value, after))


def _groups(each: Each, b: Builder, node: Node, consume: Consume) -> None:
    """Build the loop over neighbours with equal keys: the key of the next element is known when a group ends."""
    values, function = node.args
    if called_sees_changes(b, function):
        b.faults.add("PCB121", READ, node, "Python makes each element in its turn", helps=(READ_HELP,))
    source = iterable(b, values)
    index, element, key, following, group = (load(b.temp(), node) for _ in range(5))
    head, inside, more, done, following_group, end = (b.label() for _ in range(6))
    count = load(b.temp(), node)
    b.prim((count.id,), source.length.value, shown=source.length.shown)

    def take() -> None:
        found = source.element(index)
        b.prim((element.id,), found.value, shown=found.shown)
        lower_into(b, following.id, element if is_none(function) else applied(b, function, [element], node))

    b.prim((index.id,), constant(0, node))
    where(b, compare(index, gast.Lt(), count, node), end)
    take()
    b.begin(head)
    lower_into(b, key.id, following)
    b.prim((group.id,), gast.copy_location(gast.List(elts=[], ctx=gast.Load()), node))
    b.begin(inside)
    b.prim((group.id,), supported(iteration.appended, [group, element], node), shown=element, at=node)
    b.prim((index.id,), binary(index, gast.Add(), constant(1, node), node))
    condition(b, compare(index, gast.Lt(), count, node), more, done)
    b.start(more)
    take()
    condition(b, compare(following, gast.Eq(), key, node), inside, done)
    b.start(done)
    consume(display([key, group], node), following_group)
    b.begin(following_group)
    condition(b, compare(index, gast.Lt(), count, node), head, end)
    b.start(end)


ITERTOOLS: Mapping[str, Callable[[Each, Builder, Node, Consume], None]] = {
    "chain": _chain,
    "from_iterable": _from_iterable,
    "takewhile": partial(_while_true, drop=False),
    "dropwhile": partial(_while_true, drop=True),
    "accumulate": _accumulate,
    "product": _product,
    **{
        name: partial(_choices, name=name) for name in ("combinations", "combinations_with_replacement", "permutations")
    },
    "pairwise": _pairwise,
    "islice": _islice,
    "count": _count,
    "repeat": _repeat,
    GROUPS: _groups,
}
