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
from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.build.evaluation_order import copied
from pcbatch.frontend.build.expressions import call_into, condition, in_order, lower, lower_into, where
from pcbatch.frontend.build.iteration import loops
from pcbatch.frontend.build.iteration.generators import (
    each_yielded,
    goes_over_itself,
    refuse_changes,
    refuse_itself,
    refuse_reads,
    sees_changes,
)
from pcbatch.frontend.build.iteration.inner_names import Names, applied, own_name
from pcbatch.frontend.build.iteration.iterables import zipped
from pcbatch.frontend.build.iteration.itertools_loops import ITERTOOLS, Consume, indexed
from pcbatch.frontend.build.iteration.seen_changes import attributes_of, changes_show, loop_of, reads_changed
from pcbatch.frontend.build.iteration.zipped_loops import over_zip, until_stop
from pcbatch.frontend.source.callee import Target
from pcbatch.frontend.source.generators import generator, may_stop
from pcbatch.frontend.source.rewrites.nested import static_value
from pcbatch.frontend.source.scope import bindings, renamed
from pcbatch.frontend.source.streams import ELEMENTS, STEPS, generator_among, in_turns, is_special, lazy
from pcbatch.frontend.source.tree import (
    Node,
    binary,
    call,
    constant,
    display,
    is_none,
    load,
    subscript,
    supported,
    target_of,
)


def each(b: Builder, node: Node, consume: Consume) -> None:
    """Build loops that hand each element of an iterable to `consume`, as an expression that is evaluated once."""
    around = b.streams
    if isinstance(node, gast.ListComp) and changes_show(b):  # it is made before
        b.streams = []
        node = copied(b, lower(b, node))
    b.streams = [*around, *loop_of(b.unit, node)]
    _each(b, node, consume)
    b.streams = around


def _each(b: Builder, node: Node, consume: Consume) -> None:
    if isinstance(node, ELEMENTS):
        fixed = isinstance(node, gast.ListComp)
        _generators(b, node.generators, {}, lambda names, after: consume(renamed(node.elt, names), after), fixed)
        return
    name, target = lazy(b.unit, node), generator(b.unit, node)
    if target is not None and goes_over_itself(b, target):
        _all_yielded(b, node, target, consume)
    elif target is not None:
        each_yielded(b, node, target, consume)
    elif name == "zip" and is_special(b.unit, node):
        over_zip(each, b, node, consume)
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
    if b.symbol.may_change(target) and any(sees_changes(loop) for _, loop in b.streams):
        refuse_changes(b, node)
        return
    if reads_changed(b, attributes_of(b.unit, target)):
        refuse_reads(b, node)
        return
    starred = any(isinstance(arg, gast.Starred) for arg in node.args) or any(k.arg is None for k in node.keywords)
    given = node
    kept: list[Node] = []
    if not starred:
        args, count = [*node.args, *(k.value for k in node.keywords)], len(node.args)
        known = [
            static_value(b.unit, arg) is not None for arg in args
        ]  # such as functions, which decide what is called
        kept = [held_as_it_is(b, arg) for arg in in_order(b, [a for a, k in zip(args, known, strict=True) if not k])]
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


def held_as_it_is(b: Builder, node: Node) -> Node:
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
        if generator_among(b.unit, rows) is not None or in_turns(b.unit, sources):
            over_zip(each, b, rows, lambda row, after: consume(called(list(row.elts)), after))
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
    yield lambda values: until_stop(b, applied(b, function, values, node), end)
    b.jump(end)
    b.start(end)


def _steps(b: Builder, node: Node, consume: Consume) -> None:
    """Build the loop that evaluates an expression again and again until it raises StopIteration."""
    head, end = b.label(), b.label()
    b.begin(head)
    consume(until_stop(b, node.args[0], end), head)
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
