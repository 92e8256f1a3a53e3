"""The iterables of `for` loops: the number of their elements, and an expression for element `i`.

`range`, `enumerate`, `zip` and `reversed` are resolved here, so that loops over arrays and run-time ranges stay
loops. Anything else is evaluated once, before the loop; if it turns out to be a tuple, a list, a dict or another
Python object of fixed length, `lowering/cfg_passes/unroll.py` makes one copy of the body for each element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import gast

from pcbatch.data.functions import iteration, links, operators, sequence_builtins
from pcbatch.data.sequences import lane_tuple
from pcbatch.data.sequences.indices import LARGEST
from pcbatch.data.sequences.lane_iterator import HELPS
from pcbatch.frontend.build.assignments import assign
from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.build.evaluation_order import copied
from pcbatch.frontend.build.expressions import atom, condition, has_control, in_order, lower
from pcbatch.frontend.build.iteration.inner_names import applied, own_name
from pcbatch.frontend.build.iteration.streams_as_lists import as_list, whole
from pcbatch.frontend.build.iteration.turns import require_turns
from pcbatch.frontend.build.links import fixed_keys, linked_place
from pcbatch.frontend.source.changed_in_loops import is_fixed, viewed
from pcbatch.frontend.source.places import Place
from pcbatch.frontend.source.resolve import builtin_name
from pcbatch.frontend.source.scope import bindings, renamed
from pcbatch.frontend.source.streams import becomes_list, by_index, counts, endless, lazy
from pcbatch.frontend.source.tree import (
    Node,
    binary,
    call,
    compare,
    constant,
    display,
    integer,
    load,
    one_line,
    subscript,
    supported,
)

ENDLESS_HELP = "take its elements one by one: `it = itertools.count()` before the loop, and `next(it)` in it"
LAZY = frozenset({"range", "enumerate", "zip", "reversed"})


@dataclass(frozen=True, slots=True)
class Element:
    """One element of an iterable: the expression `value`, and `shown`, which gives its text in messages.

    A tuple that `enumerate` or `zip` makes has its elements in `parts`.
    """

    value: Node
    shown: Node
    parts: tuple[Element, ...] = ()
    link: tuple[tuple[str, ...], Node] | None = None
    """A variable of which the element is a part for certain, with those of the keys on the way, and the index."""


@dataclass(frozen=True, slots=True)
class Iterable:
    """The length of an iterable and its element `i`, both as expressions.

    They read variables that nothing else assigns, so they may be used anywhere in the loop.
    """

    length: Element
    element: Callable[[Node], Element]
    live: bool = False
    """Whether the length is that of now, which the body of the loop may change."""


def iterable(b: Builder, node: Node, in_turn: bool = False) -> Iterable:
    """Build the parts of an iterable that are evaluated once, before the loop, in Python's order; with `in_turn`, what
    a `map` or a generator expression makes of an element is evaluated where that is asked for."""
    if in_turn and by_index(b.unit, node):
        return _mapped(b, node)
    name = builtin_name(b.unit, node.func, LAZY) if isinstance(node, gast.Call) else None
    match name:
        case "range":
            return _range(b, node)
        case "enumerate":
            return _enumerate(b, node)
        case "zip":
            return _zip(b, node)
        case "reversed":
            return _reversed(b, node)
        case _ if counts(b.unit, node):
            return _endless(b, node)
        case _:
            return _rows(b, node)


def kept(b: Builder, node: Node) -> Node:
    """Return a value as a literal, or in a variable that the body of the loop cannot assign."""
    return node if isinstance(node, gast.Constant) else copied(b, node)


def range_bounds(b: Builder, node: Node) -> list[Node]:
    """Evaluate the start, stop and step of a `range`; return them as variables or literals."""
    args = [atom(b, arg) for arg in in_order(b, node.args)]
    if len(args) == 1:
        args.insert(0, constant(0, node))
    elif not isinstance(args[0], gast.Constant):
        start = b.temp()
        b.prim((start,), supported(iteration.range_start, [args[0]], node), shown=args[0])
        args[0] = load(start, node)
    if len(args) == 2:
        return [*args, constant(1, node)]
    if integer(args[2]) is None:
        _fail_without_step(b, args[2], node)
    return args


def _fail_without_step(b: Builder, step: Node, node: Node) -> None:
    """Build the test that ends a lane whose step is zero, as Python's `range` does."""
    moving, stuck = b.label(), b.label()
    condition(b, compare(step, gast.NotEq(), constant(0, node), node), moving, stuck)
    b.start(stuck)
    b.fail(ValueError, ("range() arg 3 must not be zero",), node)
    b.start(moving)


def range_count(args: list[Node], node: Node) -> Element:
    """The number of elements of a `range`, as an expression."""
    shown = call(load("len", node), [call(node.func, args, node)], node)
    return Element(supported(iteration.range_length, args, node), shown)


def _range(b: Builder, node: Node) -> Iterable:
    start, stop, step = (kept(b, arg) for arg in range_bounds(b, node))
    count = range_count([start, stop, step], node)
    return Iterable(
        Element(supported(iteration.range_size, [start, stop, step], node), count.shown),
        lambda i: _plain(binary(start, gast.Add(), binary(i, gast.Mult(), step, node), node)),
    )


def fixed_range(b: Builder, node: Node) -> Iterable:
    """Build the parts of a `range` whose loop is unrolled if its bounds are known while compiling."""
    start, stop, step = (kept(b, arg) for arg in range_bounds(b, node))
    count = range_count([start, stop, step], node)
    length = supported(iteration.range_size, [start, stop, step], node)

    def element(i: Node) -> Element:
        shown = binary(start, gast.Add(), binary(i, gast.Mult(), step, node), node)
        return Element(supported(operators.range_element, [start, step, i, length], node), shown)

    return Iterable(Element(length, count.shown), element)


def count_bounds(node: Node) -> list[Node]:
    """The start and the step of a call of `itertools.count`."""
    given = {**dict(zip(("start", "step"), node.args, strict=False)), **{k.arg: k.value for k in node.keywords}}
    return [given.get("start", constant(0, node)), given.get("step", constant(1, node))]


def _endless(b: Builder, node: Node) -> Iterable:
    """Build the parts of `itertools.count` and `itertools.repeat`, which others beside them end."""
    length = _plain(constant(LARGEST, node))
    if lazy(b.unit, node) == "repeat":
        value = kept(b, lower(b, [*node.args, *(k.value for k in node.keywords)][0]))
        return Iterable(length, lambda i: _plain(value))
    start, step = (kept(b, lower(b, bound)) for bound in count_bounds(node))

    def element(i: Node) -> Element:
        shown = binary(start, gast.Add(), binary(i, gast.Mult(), step, node), node)
        return Element(supported(operators.count_element, [start, step, i], node), shown)

    return Iterable(length, element)


def _enumerate(b: Builder, node: Node) -> Iterable:
    inner = iterable(b, node.args[0])
    start = next((k.value for k in node.keywords), node.args[1] if len(node.args) > 1 else constant(0, node))
    start = kept(b, lower(b, start))
    zero = isinstance(start, gast.Constant) and start.value == 0

    def element(i: Node) -> Element:
        number = i if zero else binary(start, gast.Add(), i, node)
        return _together([_plain(number), inner.element(i)], node)

    return Iterable(inner.length, element, inner.live)


def _zip(b: Builder, node: Node) -> Iterable:
    if isinstance(node.args[0], gast.Starred):
        return _transposed(b, node)
    return zipped(b, node.args, node, strict=_is_strict(node))


def _transposed(b: Builder, node: Node) -> Iterable:
    """Build the parts of `zip(*rows)`."""
    columns = b.temp()
    strict = constant(_is_strict(node), node)
    b.prim((columns,), supported(lane_tuple.transposed, [lower(b, node.args[0].value), strict], node), shown=node)
    return _of_rows(load(columns, node), node)


def _mapped(b: Builder, node: Node) -> Iterable:
    """The parts of what is made of the elements of others one by one."""
    if isinstance(node, gast.GeneratorExp):
        (part,) = node.generators
        source, function = iterable(b, part.iter, in_turn=True), None
        names = {name: own_name(b, name, place) for name, place in bindings([part.target])}
    else:
        function, *sources = node.args
        source = zipped(b, sources, node, in_turn=True)

    def element(i: Node) -> Element:
        found = source.element(i)
        if function is None:
            assign(b, [renamed(part.target, names)], found.value)
            return _plain(lower(b, renamed(node.elt, names)))
        values = [load(b.temp(), node) for _ in found.parts]
        for value, one in zip(values, found.parts, strict=True):
            b.prim((value.id,), one.value, shown=one.shown)
        return _plain(lower(b, applied(b, function, values, node)))

    return Iterable(source.length, element, source.live)


def zipped(b: Builder, sources: Sequence[Node], node: Node, strict: bool = False, in_turn: bool = False) -> Iterable:
    """Build the parts of several iterables that are gone over together."""
    for arg in sources if len(sources) > 1 else ():
        require_turns(b, arg)
    inner = [iterable(b, arg, in_turn) for arg in sources]
    function = sequence_builtins.same_length if strict else iteration.shortest
    length = supported(function, [each.length.value for each in inner], node)
    shown = call(load("min", node), [each.length.shown for each in inner], node)
    only = inner[0].length
    return Iterable(
        only if len(inner) == 1 else Element(length, shown),
        lambda i: _together([each.element(i) for each in inner], node),
        any(each.live for each in inner),
    )


def _is_strict(node: Node) -> bool:
    return any(isinstance(k.value, gast.Constant) and bool(k.value.value) for k in node.keywords)


def _reversed(b: Builder, node: Node) -> Iterable:
    if endless(b.unit, node.args[0]):
        b.faults.add("PCB121", "an iterator without an end cannot be reversed", node.args[0], helps=(ENDLESS_HELP,))
    inner = iterable(b, node.args[0])
    if inner.live:  # Python goes on from the index at which it is
        title = "a loop goes over `reversed` of a list that its body changes"
        b.faults.add("PCB330", title, node, helps=("go over a copy: `reversed(list(xs))`",))
    count = b.temp()
    b.prim((count,), inner.length.value, shown=inner.length.shown)
    last = binary(load(count, node), gast.Sub(), constant(1, node), node)
    return Iterable(_plain(load(count, node)), lambda i: inner.element(binary(last, gast.Sub(), i, node)))


def _rows(b: Builder, node: Node) -> Iterable:
    if b.loc(node) in b.unit.decisions.taken:
        b.faults.add("PCB304", "an iterator that is kept is gone over here, and not by its own name", node, helps=HELPS)
    node = whole(b.unit, node)
    if endless(b.unit, node):
        title = "an iterator without an end, of which a loop takes elements beside those of another one"
        b.faults.add("PCB305", title, node, helps=(ENDLESS_HELP,))
    view = viewed(node)
    if view is not None and view[1] != "keys" and one_line(view[0]) in b.changed:
        return _live_rows(b, node, b.changed[one_line(view[0])] or view[0], view[1] == "items")
    place = linked_place(b, node, has_control)
    if place is not None:
        return _linked_rows(b, node, place)
    value = lower(b, as_list(node) if becomes_list(b.unit, node) else node)
    stored = one_line(node) in b.stored and isinstance(value, type(node))  # Python's iterator sees what the body stores
    temp = b.temp()
    rolled = b.rolls or b.loc(node) in b.unit.decisions.rolled
    take = iteration.stored_rows if stored else iteration.rolled_rows if rolled else iteration.rows
    b.prim((temp,), supported(take, [value], node), shown=value)
    b.iterated.add(temp)
    rows = load(temp, node)
    if stored:
        size = Element(supported(iteration.stored_length, [rows, value], node), call(load("len", node), [node], node))
        live = isinstance(node, gast.Attribute)
        if not live:  # the body assigns items alone
            count = b.temp()
            b.prim((count,), size.value, shown=size.shown)
            size = Element(load(count, node), size.shown)

        def element(i: Node) -> Element:
            return Element(supported(iteration.stored_row, [rows, value, i], node), subscript(node, i, node))

        return Iterable(size, element, live)
    return _of_rows(rows, node)


def _of_rows(rows: Node, node: Node) -> Iterable:
    length = Element(supported(iteration.iter_length, [rows], node), call(load("len", node), [rows], node))
    return Iterable(length, lambda i: Element(supported(iteration.row, [rows, i], node), subscript(rows, i, node)))


def _live_rows(b: Builder, node: Node, source: Node, items: bool) -> Iterable:
    """The parts of a view of the dict `source` that the body may change: Python's iterator gives the values of now."""
    temp = b.temp()
    b.prim((temp,), supported(iteration.live_rows, [lower(b, node)], node), shown=node)
    rows = load(temp, node)
    length = Element(supported(iteration.iter_length, [rows], node), call(load("len", node), [rows], node))
    place = linked_place(b, source, has_control, node)
    path = None if place is None else (place.name, *fixed_keys(b, place, node))

    def element(i: Node) -> Element:
        value = supported(iteration.live_row, [rows, source, i, constant(items, node)], node)
        shown = subscript(rows, i, node)
        if path is None:
            return Element(value, shown)
        key = Element(supported(iteration.row, [rows, i], node), shown)
        value = supported(iteration.live_row, [rows, source, i, constant(False, node)], node)
        of_key = Element(value, shown, link=(path, key.value))
        return _together([key, of_key], node) if items else of_key

    return Iterable(length, element)


def _linked_rows(b: Builder, node: Node, place: Place) -> Iterable:
    """The parts of a list in a place, as Python's iterator sees it: with what the body of the loop changes."""
    keys, temp = fixed_keys(b, place, node), b.temp()
    reads = [load(place.name, node), *(load(key, node) for key in keys)]
    b.prim((temp,), supported(links.linked_rows, reads, node), shown=node, at=node)
    b.note(is_part=True)
    b.iterated.add(temp)
    rows = load(temp, node)
    length = Element(supported(iteration.iter_length, [rows], node), call(load("len", node), [rows], node))
    path = (place.name, *keys) if keys and is_fixed(node, b.changed) else (temp,)

    def element(i: Node) -> Element:
        return Element(supported(iteration.row, [rows, i], node), subscript(rows, i, node), link=(path, i))

    return Iterable(length, element, live=True)


def _plain(node: Node) -> Element:
    return Element(node, node)


def _together(parts: list[Element], at: Node) -> Element:
    value = display([part.value for part in parts], at)
    return Element(value, display([part.shown for part in parts], at), tuple(parts))
