"""Generators written out: the body of the loop that goes over one runs at each `yield`.

before:  for d in divisors(n):       def divisors(m):            after:  m_1 = n
             body                        k = 1                           k_1 = 1
                                         while k <= m:                   while k_1 <= m_1:
                                             yield k                         d = k_1; body
                                             k += 1                          k_1 += 1

A `return` of the generator ends the loop; `break` in the body leaves both. What the body of the loop raises the
generator does not catch, and a StopIteration of its own is a RuntimeError, as in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import gast

from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.build.evaluation_order import copied, store
from pcbatch.frontend.build.expressions import in_order, lower, without_star
from pcbatch.frontend.build.primitives import default_expr
from pcbatch.frontend.source.bind_call import bind
from pcbatch.frontend.source.callee import Target, is_static
from pcbatch.frontend.source.function_unit import Faults, Unit
from pcbatch.frontend.source.generators import may_stop
from pcbatch.frontend.source.helpers import key_of
from pcbatch.frontend.source.rewrites.generator_bodies import write_out
from pcbatch.frontend.source.rewrites.nested import static_value
from pcbatch.frontend.source.rewrites.spread import spread
from pcbatch.frontend.source.tree import Node, constant, is_constant, load, target_of
from pcbatch.frontend.subset.check import check
from pcbatch.ir.ops import Prim

OWN_ERROR = """
try:
    pass
except StopIteration:
    raise RuntimeError("generator raised StopIteration")
"""
FINALLY = "a generator runs the `finally` around a `yield` when its loop is left, which lanes cannot"
ITSELF = "a generator that goes over itself may not read variables of the function around it"
CHANGES = "a generator that goes over itself changes objects, and the loop over it may see that"
READS = "a generator that goes over itself reads what the loop over it changes"
READS_HELP = "go over a list of its elements, `for x in list(...)`, if they are those from before the loop"
CHANGES_HELP = "go over a list of its elements, `for x in list(...)`, which changes them all before"
ITSELF_HELP = "pass them as arguments, or keep what is still to do in a list, and go over it in one loop"


@dataclass(frozen=True, slots=True)
class Consumer:
    """The loop that goes over a generator: what it does with an element, and the code around it."""

    consume: Callable[[Node, str], None]
    end: str  # the label after the last element
    unit: Unit
    faults: Faults
    around: Consumer | None
    target: Target
    tried: tuple[int, int]  # the numbers of `try` statements around the loop, and of those with a `finally`


def each_yielded(b: Builder, node: Node, target: Target, consume: Callable[[Node, str], None]) -> None:
    """Build the body of a generator that `node` calls; `consume` gets each element, and the label where it goes on."""
    binding = bind(b.faults, without_star(b, spread(b.unit, node), target), target)
    statics = {name: value for name, _, value in binding.defaults if is_static(value)}
    statics |= {name: value for name, arg in binding.given if is_static(value := static_value(b.unit, arg))}
    written = write_out(b.unit, target, {**statics, **binding.shape}, b.variables | b.unit.names, b.number())
    functions = {name for name, value in statics.items() if isinstance(value, Target)}
    values = in_order(b, [constant(None, value) if name in functions else value for name, value in binding.given])
    for (name, _), value in zip(binding.given, values, strict=True):
        store(b, written.names[name], value)
    for name, text, default in binding.defaults:
        b.emit(Prim((written.names[name],), default_expr(text, default), b.loc(node)))
    faults, end = Faults(written.unit.source), b.label()
    check(written.unit, faults)
    consumer = Consumer(consume, end, b.unit, b.faults, b.consumer, target, (len(b.handlers), len(b.finals)))
    _enter(b, consumer, written.unit, faults)
    if not faults.found:
        b.variables |= written.unit.variables
        for new, old in {new: old for old, new in written.names.items()}.items():
            b.stands_for.setdefault(new, load(old, node))
        body = written.unit.body
        b.build([_with_own_error(body, node)] if may_stop(written.unit, body) else body)
    b.jump(end)
    _leave(b)
    b.start(end)


def _with_own_error(body: list[Node], at: Node) -> Node:
    """A `try` around the body of a generator that makes a StopIteration of its own a RuntimeError."""
    (made,) = gast.parse(OWN_ERROR).body
    made.body = body
    for part in gast.walk(made.handlers[0]):
        gast.copy_location(part, at)
    return gast.copy_location(made, at)


def refuse_itself(b: Builder, node: Node) -> None:
    """Record the fault of a generator that goes over itself and reads variables of the function around it."""
    b.faults.add("PCB105", ITSELF, node, helps=(ITSELF_HELP,))


def refuse_changes(b: Builder, node: Node) -> None:
    """Record the fault of a generator that goes over itself and changes objects, all of them before the loop."""
    b.faults.add("PCB105", CHANGES, node, helps=(CHANGES_HELP,))


def refuse_reads(b: Builder, node: Node) -> None:
    """Record the fault of a generator that goes over itself and reads attributes that the loop over it changes."""
    b.faults.add("PCB105", READS, node, helps=(READS_HELP,))


def sees_changes(loop: Node) -> bool:
    """Whether a loop over a generator may see how far that has come: it is left early, or reads what that is given."""
    if not isinstance(loop.body[0], gast.stmt):
        return False
    given = {part.id for part in gast.walk(loop.iter) if isinstance(part, gast.Name)}
    parts = [part for statement in loop.body for part in gast.walk(statement)]
    left = any(isinstance(part, gast.Break | gast.Return | gast.Raise) for part in parts)
    return left or any(isinstance(part, gast.Name) and part.id in given for part in parts)


def goes_over_itself(b: Builder, target: Target) -> bool:
    """Whether a generator that is gone over here is the function itself, or is written out around this place."""
    if key_of(target.fn.__code__) == key_of(b.unit.fn.__code__):
        return True
    consumer: Consumer | None = b.consumer
    while consumer is not None:
        if key_of(consumer.target.fn.__code__) == key_of(target.fn.__code__):
            return True
        consumer = consumer.around
    return False


def _enter(b: Builder, consumer: Consumer, unit: Unit, faults: Faults) -> None:
    b.consumer, b.unit, b.faults = consumer, unit, faults


def _leave(b: Builder) -> None:
    consumer: Consumer | None = b.consumer
    assert consumer is not None
    inner = b.faults
    b.consumer, b.unit, b.faults = consumer.around, consumer.unit, consumer.faults
    b.faults.include(inner)


def build_yield(b: Builder, node: Node) -> None:
    """Build a statement `yield value`: the body of the loop around the generator."""
    value = node.value if node.value is not None else constant(None, node)
    element = lower(b, value)
    if not is_constant(element):
        element = copied(b, element)
    _consumed(b, element)


def build_yield_from(b: Builder, node: Node) -> None:
    """Build a statement `yield from values`."""
    item = load(b.temp(), node)
    value = gast.copy_location(gast.Yield(value=item), node)
    body = [gast.copy_location(gast.Expr(value=value), node)]
    loop = gast.For(target=target_of(item.id, node), iter=node.value, body=body, orelse=[], type_comment=None)
    b.build([gast.copy_location(loop, node)])


def _consumed(b: Builder, element: Node) -> None:
    """Hand an element to the loop, whose body is code of the function around the generator."""
    consumer: Consumer | None = b.consumer
    assert consumer is not None
    unit, faults, handlers, following = b.unit, b.faults, b.handlers, b.label()
    b.consumer, b.unit, b.faults, b.handlers = (
        consumer.around,
        consumer.unit,
        consumer.faults,
        handlers[: consumer.tried[0]],
    )
    if len(b.finals) > consumer.tried[1]:
        faults.add("PCB105", FINALLY, element, helps=("write what the `finally` does behind the loop",))
    consumer.consume(element, following)
    b.jump(following)
    b.consumer, b.unit, b.faults, b.handlers = consumer, unit, faults, handlers
    b.start(following)
