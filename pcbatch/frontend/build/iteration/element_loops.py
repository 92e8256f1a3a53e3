"""The loops that go over the elements of a stream: of a comprehension, of `map`, of functions of `itertools`.

    each(b, <(e for x in xs if c)>, consume)      ==>      for x in xs:
                                                               if c:
                                                                   consume(e)

The names of a comprehension are its own: they become temporaries, shown in messages as the user wrote them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import gast

from pcbatch.data.functions import iteration
from pcbatch.frontend.build.assignments import assign
from pcbatch.frontend.build.builder import Builder, new_handlers
from pcbatch.frontend.build.evaluation_order import copied
from pcbatch.frontend.build.exceptions import leave_on
from pcbatch.frontend.build.expressions import call_into, condition, in_order, lower, lower_into, where
from pcbatch.frontend.build.iteration import loops
from pcbatch.frontend.build.iteration.generators import (
    each_yielded,
    goes_over_itself,
    refuse_changes,
    refuse_itself,
    sees_changes,
)
from pcbatch.frontend.build.iteration.inner_names import Names, applied, own_name
from pcbatch.frontend.build.iteration.iterables import Iterable, zipped
from pcbatch.frontend.build.iteration.itertools_loops import ITERTOOLS, Consume, indexed
from pcbatch.frontend.source.callee import Target
from pcbatch.frontend.source.generators import generator, may_stop
from pcbatch.frontend.source.rewrites.nested import static_value
from pcbatch.frontend.source.scope import bindings, renamed
from pcbatch.frontend.source.streams import ELEMENTS, STEPS, generator_among, generator_in, is_special, lazy, steps
from pcbatch.frontend.source.tree import (
    Node,
    binary,
    call,
    compare,
    constant,
    display,
    is_none,
    is_supported,
    load,
    subscript,
    supported,
    target_of,
)

TURNS = "iterators of which `zip` takes elements in turns"
TURNS_HELP = "make lists of all but one of them, `list(...)`, if they end"


def each(b: Builder, node: Node, consume: Consume) -> None:
    """Build loops that hand each element of an iterable to `consume`, as an expression that is evaluated once."""
    if isinstance(node, ELEMENTS):
        fixed = isinstance(node, gast.ListComp)
        _generators(b, node.generators, {}, lambda names, after: consume(renamed(node.elt, names), after), fixed)
        return
    name, target = lazy(b.unit, node), generator(b.unit, node)
    if target is not None and goes_over_itself(b, target):
        _all_yielded(b, node, target, consume)
    elif target is not None:
        each_yielded(b, node, target, consume)
    elif name == "zip" and (place := generator_among(b.unit, node)) is not None:
        _zip(b, node, place, consume)
    elif name is None or not is_special(b.unit, node):
        _plain(b, node, consume)
    elif name in PYTHON:
        PYTHON[name](b, node, consume)
    else:
        ITERTOOLS[name](each, b, node, consume)


def _generators(
    b: Builder, generators: Sequence[Node], names: Names, body: Callable[[Names, str], None], fixed: bool
) -> None:
    """Build the `for` and `if` parts of a comprehension; `names` are what its variables have become so far."""
    first, *rest = generators
    source = renamed(first.iter, names)
    own = {name: own_name(b, name, place) for name, place in bindings([first.target])}
    inner = {**names, **own}
    target = renamed(first.target, own)

    def inside(following: str) -> None:
        for test in first.ifs:
            where(b, renamed(test, inner), following)
        if rest:
            _generators(b, rest, inner, body, fixed and not first.ifs)
        else:
            body(inner, following)

    def step(element: Node, following: str) -> None:
        assign(b, [target], element)
        inside(following)

    if is_special(b.unit, source):
        each(b, source, step)
    else:
        loop(b, target, source, inside, fixed and not first.ifs)


def loop(b: Builder, target: Node, source: Node, body: Callable[[str], None], fixed: bool = False) -> None:
    """Build `for target in source: body`; `body` gets the label of the next element.

    With `fixed`, a loop over a `range` of known length is unrolled, so that what it makes has a known length.
    """
    head, inside, after = b.label(), b.label(), b.label()
    at = gast.copy_location(gast.For(target=target, iter=source, body=[], orelse=[], type_comment=None), source)
    walk = loops.begin(b, at, fixed)
    b.jump(inside if walk.sure else head)
    b.start(head)
    walk.test(inside, after)
    b.start(inside)
    walk.step()
    body(head)
    b.jump(head)
    b.start(after)


def _plain(b: Builder, node: Node, consume: Consume) -> None:
    value = load(b.temp(), node)
    loop(b, store_of(value), node, lambda following: consume(value, following))


def _all_yielded(b: Builder, node: Node, target: Target, consume: Consume) -> None:
    """Build a loop over what a generator that goes over itself yields: a call makes the list of it."""
    if target.captured:  # what the body changes of it would not be seen
        refuse_itself(b, node)
        return
    if b.symbol.may_change(target) and any(map(sees_changes, b.streams)):
        refuse_changes(b, node)
        return
    starred = any(isinstance(arg, gast.Starred) for arg in node.args) or any(k.arg is None for k in node.keywords)
    given = node
    kept: list[Node] = []
    if not starred:
        args, count = [*node.args, *(k.value for k in node.keywords)], len(node.args)
        known = [
            static_value(b.unit, arg) is not None for arg in args
        ]  # such as functions, which decide what is called
        kept = [_held_as_it_is(b, arg) for arg in in_order(b, [a for a, k in zip(args, known, strict=True) if not k])]
        held = iter(kept)
        values = [arg if k else next(held) for arg, k in zip(args, known, strict=True)]
        keywords = [
            gast.copy_location(gast.keyword(arg=k.arg, value=value), k)
            for k, value in zip(node.keywords, values[count:], strict=True)
        ]
        given = gast.copy_location(gast.Call(func=node.func, args=values[:count], keywords=keywords), node)
    _plain(b, load(call_into(b, None, given, target), node), consume)
    if kept:
        # Python makes each element in its turn: a body that changes an argument is refused, as it still is in use here.
        b.prim((b.temp(),), display(kept, node))


def _held_as_it_is(b: Builder, node: Node) -> Node:
    """A temporary for the value of an expression; no copy of a variable, which could be kept equal to it (`links`)."""
    temp = b.temp()
    b.prim((temp,), supported(iteration.as_it_is, [node], node), shown=node)
    return b.held(temp, node)


def store_of(node: Node) -> Node:
    """The target that assigns the variable which `node` reads."""
    return target_of(node.id, node)


def _map(b: Builder, node: Node, consume: Consume) -> None:
    function, *sources = node.args
    with _calls(b, function, node) as called:
        if len(sources) == 1:
            each(b, sources[0], lambda value, after: consume(called([value]), after))
            return
        rows = call(function, sources, node)  # what `zip` would take, whatever the name means here
        if (place := generator_among(b.unit, rows)) is not None:
            _zip(b, rows, place, lambda row, after: consume(called(list(row.elts)), after))
            return
        together = zipped(b, sources, node)

        def step(_: Node, value: Node, after: str) -> None:
            consume(called([subscript(value, constant(k, node), node) for k in range(len(sources))]), after)

        indexed(b, together, constant(0, node), node, step)


@contextmanager
def _calls(b: Builder, function: Node, node: Node) -> Iterator[Callable[[list[Node]], Node]]:
    """Yield what calls the function of a stream, around the loop over its elements, which its StopIteration ends."""
    if not may_stop(b.unit, [function]):
        yield lambda values: applied(b, function, values, node)
        return
    end = b.label()
    yield lambda values: _until_stop(b, applied(b, function, values, node), end)
    b.jump(end)
    b.start(end)


def _until_stop(b: Builder, node: Node, end: str) -> Node:
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


def _zip(b: Builder, node: Node, place: int, consume: Consume) -> None:
    """Build the loop over a generator and sequences beside it: no element is made that Python does not ask for."""
    if any(generator_in(b.unit, part) for part in node.args[place + 1 :]):
        _zip_steps(b, node, consume)
        return
    index, end, sides = load(b.temp(), node), b.label(), list[tuple[Iterable, Node] | None]()
    for part in (node.args[:place], node.args[place + 1 :]):  # asked before the generator, and after it
        b.rolls = True
        side = zipped(b, part, node) if part else None
        count = load(b.temp(), node)
        if side is not None:
            b.prim((count.id,), side.length.value, shown=side.length.shown)
        sides.append(None if side is None else (side, count))
        b.rolls = False
    b.prim((index.id,), constant(0, node))

    def leave_at_end(side: tuple[Iterable, Node] | None) -> None:
        if side is not None:
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


def _zip_steps(b: Builder, node: Node, consume: Consume) -> None:
    """Build the loop over iterators of the user's and sequences, each of which is asked in its turn."""
    index, head, end = load(b.temp(), node), b.label(), b.label()
    sides = dict[int, tuple[Iterable, Node]]()
    for k, part in enumerate(node.args):
        if is_supported(part, steps):
            continue
        if generator_in(b.unit, part):
            b.faults.add("PCB305", TURNS, part, helps=(TURNS_HELP,))
        b.rolls = True
        side, count = zipped(b, [part], node), load(b.temp(), node)
        b.prim((count.id,), side.length.value, shown=side.length.shown)
        sides[k] = (side, count)
        b.rolls = False
    b.prim((index.id,), constant(0, node))
    b.begin(head)
    row = list[Node]()
    for k, part in enumerate(node.args):
        if k not in sides:
            row.append(_until_stop(b, part.args[0], end))
            continue
        (side, count), going, value = sides[k], b.label(), load(b.temp(), node)
        condition(b, compare(index, gast.Lt(), count, node), going, end)
        b.start(going)
        b.prim((value.id,), subscript(side.element(index).value, constant(0, node), node))
        row.append(value)
    b.prim((index.id,), binary(index, gast.Add(), constant(1, node), node))
    consume(display(row, node), head)
    b.jump(head)
    b.start(end)


def _steps(b: Builder, node: Node, consume: Consume) -> None:
    """Build the loop that evaluates an expression again and again until it raises StopIteration."""
    head, end = b.label(), b.label()
    b.begin(head)
    consume(_until_stop(b, node.args[0], end), head)
    b.jump(head)
    b.start(end)


def _starmap(b: Builder, node: Node, consume: Consume) -> None:
    function, source = node.args
    if isinstance(function, gast.Lambda):
        count = len(function.args.args)
        targets = [load(b.temp(), node) for _ in range(count)]
        pattern = gast.copy_location(gast.Tuple(elts=[store_of(t) for t in targets], ctx=gast.Store()), node)

        def step(value: Node, after: str) -> None:
            assign(b, [pattern], value)
            consume(applied(b, function, list(targets), node), after)

        each(b, source, step)
        return

    def called(value: Node, after: str) -> None:
        star = gast.copy_location(gast.Starred(value=copied(b, lower(b, value)), ctx=gast.Load()), node)
        consume(call(function, [star], node), after)

    each(b, source, called)


def _filter(b: Builder, node: Node, consume: Consume, wanted: bool = True) -> None:
    function, source = node.args

    def step(value: Node, after: str) -> None:
        kept_value = copied(b, lower(b, value))
        holds = b.label()
        test = kept_value if is_none(function) else called([kept_value])
        condition(b, test, *((holds, after) if wanted else (after, holds)))
        b.start(holds)
        consume(kept_value, after)

    with _calls(b, function, node) as called:
        each(b, source, step)


def _enumerate(b: Builder, node: Node, consume: Consume) -> None:
    start = next((k.value for k in node.keywords), node.args[1] if len(node.args) > 1 else constant(0, node))
    count, number = b.temp(), b.temp()
    lower_into(b, count, start)

    def step(value: Node, after: str) -> None:
        lower_into(b, number, load(count, node))
        b.prim((count,), binary(load(count, node), gast.Add(), constant(1, node), node))
        consume(display([load(number, node), value], node), after)

    each(b, node.args[0], step)


def _iter(b: Builder, node: Node, consume: Consume) -> None:
    each(b, node.args[0], consume)


PYTHON: Mapping[str, Callable[[Builder, Node, Consume], None]] = {
    "map": _map,
    "starmap": _starmap,
    "filter": _filter,
    "filterfalse": partial(_filter, wanted=False),
    "enumerate": _enumerate,
    "iter": _iter,
    STEPS: _steps,
}
