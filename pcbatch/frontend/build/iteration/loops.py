"""The lowering of `for` loops: an index runs from 0 to the length of the iterable.

The progress of a loop lives in variables that the user cannot name, so assigning the loop variable in the body
does not disturb the iteration, and after the loop it holds its last value, as in Python.

The variables whose items the body of a loop assigns, and of which it does nothing else that a loop over them sees.

for i, x in enumerate(xs):
    xs[i] = 2 * x               `xs` is as long as before, and the next element is read after this store
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import gast

from pcbatch.data.functions import iteration, links
from pcbatch.frontend.build.assignments import assign_value
from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.build.evaluation_order import store
from pcbatch.frontend.build.expressions import condition, lower
from pcbatch.frontend.build.iteration.iterables import (
    Element,
    Iterable,
    fixed_range,
    iterable,
    kept,
    range_bounds,
    range_count,
)
from pcbatch.frontend.build.iteration.kept_iterators import next_element, taken_place, test_next
from pcbatch.frontend.source.changed_in_loops import (
    assigned_in,
    changed_in,
    is_kept_attribute,
    is_same_object,
    lists_read_anew,
    moved_in,
    refilled_in,
    sources,
)
from pcbatch.frontend.source.places import Place
from pcbatch.frontend.source.resolve import is_builtin
from pcbatch.frontend.source.tree import Node, binary, compare, constant, integer, load, one_line, supported
from pcbatch.ir.ops import Move

RENAME = "assign another variable there"


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
    b.changed = dict.fromkeys(changed_in(b.unit, node))
    b.stored = stored_into(node) | lists_read_anew(b.unit, node, b.changed)
    try:
        return _begin(b, node, fixed)
    finally:
        b.stored, b.changed = frozenset(), {}


def _begin(b: Builder, node: Node, fixed: bool) -> Iteration:
    if isinstance(node.iter, gast.Call) and is_builtin(b.unit, node.iter.func, "range"):
        if fixed and b.loc(node.iter) not in b.unit.decisions.rolled:
            return _over_iterable(b, node.target, fixed_range(b, node.iter), node.iter)
        return _over_range(b, node.target, node.iter)
    if (place := taken_place(b, node.iter)) is not None:
        return _over_iterator(b, node, place)
    return _over_elements(b, node)


def _over_iterator(b: Builder, node: Node, place: Place) -> Iteration:
    """Loop over what is left of an iterator that is kept: the body, and what comes behind the loop, go on with it."""
    if place.name in assigned_in(node):
        b.faults.add(
            "PCB304", "a loop assigns the variable of the iterator that it goes over", node.iter, helps=(RENAME,)
        )

    def test(body: str, leave: str) -> None:
        with _outside_try(b):
            test_next(b, place, [], body, leave, node.iter)

    def step() -> None:
        with _outside_try(b):
            element = next_element(b, place, node.iter)
        assign_value(b, node.target, element)

    return Iteration(test, step)


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
        number = supported(iteration.counted, [load(following, target), step], target)
        if isinstance(target, gast.Name):
            b.prim((target.id,), number, shown=load(following, target))
        else:
            assign_value(b, target, number)
        shown = binary(load(following, node), gast.Add(), step, node)
        b.prim((following,), supported(iteration.following, [load(following, node), step], node), shown=shown)
        less = binary(load(remaining, node), gast.Sub(), constant(1, node), node)
        with _outside_try(b):
            b.prim((remaining,), supported(iteration.one_less, [load(remaining, node)], node), shown=less)

    zero = constant(0, node)
    more = compare(load(remaining, node), gast.Gt(), zero, node)
    return Iteration(lambda body, leave: _test(b, more, body, leave), advance, _is_sure(args))


def _is_sure(args: list[Node]) -> bool:
    values = [integer(arg) for arg in args]
    return None not in values and values[2] != 0 and len(range(*(v for v in values if v is not None))) > 0


def _over_elements(b: Builder, node: Node) -> Iteration:
    at, changed = node.iter, []
    for each in sources(node.iter):
        if isinstance(each, gast.Name) and each.id in b.changed:
            changed.append(_gone_over(b, each, node))
        elif one_line(each) in b.changed and is_same_object(each, node, b.changed):
            changed.append(lower(b, each))
        elif is_kept_attribute(b.unit, each, node, b.changed):
            changed.append(lower(b, each))
    loop = _over_iterable(b, node.target, iterable(b, node.iter), node.iter)
    sizes, moved = [b.temp() for _ in changed], [_flag(b, each, node) for each in changed]
    for name, size in zip(changed, sizes, strict=True):
        b.prim((size,), supported(iteration.entries_of, [name], at), shown=name)

    def test(body: str, leave: str) -> None:
        for name, size, flag in zip(changed, sizes, moved, strict=True):
            b.prim((b.temp(),), supported(iteration.same_size, [name, load(size, at), *flag], at), shown=name, at=at)
        loop.test(body, leave)

    return Iteration(test, loop.step)


def _gone_over(b: Builder, name: Node, loop: Node) -> Node:
    """Return a variable with the object of a variable that a loop goes over, whatever the body assigns to that."""
    if name.id in refilled_in(b.unit, loop):
        b.plain_prim((name.id,), supported(iteration.watched, [name], name), shown=name)
        b.note(same=True)
    if name.id not in assigned_in(loop):
        return name
    kept = b.temp()
    b.emit(Move(kept, name.id, b.loc(name)))
    b.changed[name.id] = held = b.held(kept, name)
    return held


def _flag(b: Builder, name: Node, loop: Node) -> list[Node]:
    """Build a variable that says whether methods have moved the elements of a deque since the loop over it began."""
    if not isinstance(name, gast.Name) or name.id not in moved_in(b.unit, loop):
        return []
    flag = b.temp()
    b.prim((flag,), constant(False, name))
    b.flags = {**b.flags, name.id: (*b.flags.get(name.id, ()), flag)}
    return [load(flag, name)]


def _over_iterable(b: Builder, target: Node, source: Iterable, node: Node) -> Iteration:
    count, index = b.temp(), b.temp()
    b.prim((count,), source.length.value, shown=source.length.shown)
    b.prim((index,), constant(0, node))
    position = load(index, node)
    plus_one = binary(position, gast.Add(), constant(1, node), node)

    def advance() -> None:
        with _taking(b):
            _assign(b, target, source.element(position))
        b.prim((index,), supported(iteration.following, [position, constant(1, node)], node), shown=plus_one)

    more = compare(position, gast.Lt(), load(count, node), node)

    def test(body: str, leave: str) -> None:
        if source.live:
            with _outside_try(b):
                b.prim((count,), source.length.value, shown=source.length.shown)
        _test(b, more, body, leave)

    return Iteration(test, advance)


def _test(b: Builder, more: Node, body: str, leave: str) -> None:
    """Build the test of a loop, which raises nothing: a loop that may be unrolled has it at its head."""
    with _outside_try(b):
        condition(b, more, body, leave)


@contextlib.contextmanager
def _taking(b: Builder) -> Iterator[None]:
    """Build operations that read the element of a trip, which no other trip reads."""
    b.taking = True
    try:
        yield
    finally:
        b.taking = False


@contextlib.contextmanager
def _outside_try(b: Builder) -> Iterator[None]:
    """Build operations that raise nothing, so that no `try` around them has to ask what they have raised."""
    handlers, b.handlers = b.handlers, []
    try:
        yield
    finally:
        b.handlers = handlers


def _assign(b: Builder, target: Node, element: Element) -> None:
    if isinstance(target, gast.Name) and element.link is not None and not b.handlers:
        path, index = element.link
        key = b.temp()
        store(b, key, index)
        reads = [load(name, index) for name in (*path, key)]
        b.prim((target.id,), supported(links.linked_item, reads, index), shown=element.shown, at=index)
        b.note(is_part=True)
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


def stored_into(loop: Node) -> frozenset[str]:
    """Return the variables that the body of a `for` loop assigns items of, and otherwise only indexes or measures."""
    names: dict[str, bool] = {}
    parts = [part for statement in loop.body for part in gast.walk(statement)]
    harmless = {id(part.value) for part in parts if isinstance(part, gast.Subscript)}
    for part in parts:
        if isinstance(part, gast.Call) and isinstance(part.func, gast.Name) and part.func.id == "len":
            harmless |= {id(arg) for arg in part.args}
    stores = {
        part.value.id
        for part in parts
        if isinstance(part, gast.Subscript) and isinstance(part.ctx, gast.Store) and isinstance(part.value, gast.Name)
        if not isinstance(part.slice, gast.Slice)
    }
    for part in parts:
        if isinstance(part, gast.Name) and part.id in stores:
            names[part.id] = names.get(part.id, True) and id(part) in harmless
        if isinstance(part, gast.Delete):
            names |= {name.id: False for name in gast.walk(part) if isinstance(name, gast.Name)}
        if isinstance(part, gast.Subscript) and isinstance(part.slice, gast.Slice) and isinstance(part.ctx, gast.Store):
            names |= {name.id: False for name in gast.walk(part.value) if isinstance(name, gast.Name)}
    return frozenset(name for name, alone in names.items() if alone)
