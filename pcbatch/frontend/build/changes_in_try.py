"""Changes in the body of a `try` whose parts raise one after the other: Python keeps what came before a raise.

xs.extend(f(y) for y in ys)      ==>      t = []
                                          try:
                                              for y in ys: t.append(f(y))
                                          finally:
                                              xs.extend(t)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pcbatch.data.catalogue import facts
from pcbatch.data.functions import receivers
from pcbatch.frontend.build.builder import Builder, new_handlers
from pcbatch.frontend.build.exceptions import raise_again
from pcbatch.frontend.build.mutations import call_mutation, path
from pcbatch.frontend.build.receivers import Operands, evaluated
from pcbatch.frontend.source.places import Mutation
from pcbatch.frontend.source.streams import becomes_list, has_own, is_stream
from pcbatch.frontend.source.tree import Node, load, supported

T = TypeVar("T")


def taken_one_by_one(b: Builder, found: Mutation) -> bool:
    """Whether a method changes a place by streams that may raise, which a `try` catches."""
    if not b.handlers or not facts(found.method).stepwise or found.names:
        return False
    listed = becomes_list if has_own(b.unit, found.method) else is_stream
    return any(listed(b.unit, arg) for arg in found.args)


def by_stream(b: Builder, stream: Node, at: Node, change: Callable[[Node, bool], T]) -> T:
    """Build a change by the list of a stream's elements: all of them, or (then True is passed) those before a raise."""
    taken, tried, after = load(b.temp(), at), new_handlers(b), b.label()
    b.handlers.append(tried)
    b.loops.collect(b, taken.id, stream)
    b.handlers.pop()
    result = change(taken, False)
    b.jump(after)
    b.start(tried.label)
    change(taken, True)
    raise_again(b, tried, at)
    b.start(after)
    return result


def by_streams(b: Builder, node: Node, found: Mutation, operands: Operands) -> str:
    """Build a call that takes the elements of its arguments, one after the other, some of which are streams.

    `operands` evaluates expressions.
    """
    streams = [is_stream(b.unit, arg) for arg in found.args]
    known = [arg for arg, stream in zip(found.args, streams, strict=True) if not stream]
    count, place, result = len(found.place.operands), found.place, ""
    given = evaluated(b, node, found, known, operands).operands
    rest = iter(given[count:])

    def change(value: Node, partly: bool = False) -> str:
        if partly and found.method == "extend":
            value = supported(
                receivers.taken_before, [load(place.name, node), path(place, given[:count], node), value], node
            )
        return call_mutation(b, found, [*given[:count], value], node, True)

    for arg, stream in zip(found.args, streams, strict=True):
        result = by_stream(b, arg, node, change) if stream else change(next(rest))
    return result
