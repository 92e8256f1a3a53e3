"""The lowering of statements to blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import gast

from pcbatch.frontend.build.assignments import assign, augment, delete
from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.build.exceptions import assign_caught, build_suppress, build_try, leave, suppressed
from pcbatch.frontend.build.expressions import condition, lower, lower_into, mutate
from pcbatch.frontend.build.iteration import loops
from pcbatch.frontend.build.iteration.element_loops import each, held_as_it_is
from pcbatch.frontend.build.iteration.generators import build_yield, build_yield_from
from pcbatch.frontend.build.match import match_statement
from pcbatch.frontend.build.messages import assign_text, build_assert, build_print, build_raise, is_print
from pcbatch.frontend.source.changed_in_loops import may_show, reads_what_changes
from pcbatch.frontend.source.places import mutation
from pcbatch.frontend.source.resolve import builtin_name, callee
from pcbatch.frontend.source.rewrites.caught_exceptions import part_assigned
from pcbatch.frontend.source.rewrites.function_values import is_called_value
from pcbatch.frontend.source.rewrites.growing_lists import as_loop
from pcbatch.frontend.source.scope import bindings, is_lambda_definition
from pcbatch.frontend.source.streams import endless, generator_in, is_special, lazy, needs_loop
from pcbatch.frontend.source.tree import FUNCTIONS, Node, constant, display, rebuild, with_fields
from pcbatch.ir.ops import Return


@dataclass(frozen=True, slots=True)
class Loop:
    """The labels that `break` and `continue` jump to, and the number of `finally` bodies around the loop."""

    on_break: str
    on_continue: str
    finals: int


def statements(b: Builder, body: Sequence[Node], loop: Loop | None = None) -> None:
    """Build a list of statements."""
    for node in body:
        statement(b, node, loop)


def statement(b: Builder, node: Node, loop: Loop | None) -> None:
    """Build one statement; a statement that is not supported was refused before and builds nothing."""
    match type(node).__name__:
        case "Assign" if (part := part_assigned(node)) is not None:
            assign_caught(b, node.targets[0].id, part, node)
        case "Assign" if assign_text(b, node.targets, node.value):
            pass
        case "Assign":
            if not is_lambda_definition(node) or node.targets[0].id not in b.unit.definitions:
                assign(b, node.targets, node.value)
            else:
                b.define(node.targets[0].id)
        case "AnnAssign" if node.value is not None:
            assign(b, [node.target], node.value)
        case "AugAssign" | "Expr" if grown := as_loop(b.unit, node, b.temp):
            statements(b, grown)
        case "AugAssign":
            augment(b, node)
        case "If":
            _if(b, node, loop)
        case "While":
            _while(b, node, loop)
        case "For":
            around = b.flags
            _for(b, node, loop)
            b.flags = around  # a change after the loop, or beside it, is none that the loop sees
        case "Return" if b.consumer is not None:
            leave(b, b.consumer.tried[1])
            b.jump(b.consumer.end)  # of a generator that is written out
        case "Return":
            _return(b, constant(None, node) if node.value is None else node.value)
        case "Break" if loop is not None:
            leave(b, loop.finals)
            b.jump(loop.on_break)
        case "Continue" if loop is not None:
            leave(b, loop.finals)
            b.jump(loop.on_continue)
        case "Expr":
            _expression(b, node)
        case "Match":
            match_statement(b, node, lambda body: statements(b, body, loop))
        case "Delete":
            for target in node.targets:
                delete(b, target)
        case "Assert" if __debug__:
            build_assert(b, node)
        case "Try":
            build_try(b, node, lambda body: statements(b, body, loop))
        case "With" if (classes := suppressed(b.unit, node)) is not None:
            build_suppress(b, node, classes, lambda body: statements(b, body, loop))
        case "With":
            statements(b, node.body, loop)
        case "Raise":
            build_raise(b, node)
        case "FunctionDef" if node.name in b.unit.definitions:
            b.define(node.name)
        case "Import" | "ImportFrom":
            for name, _ in bindings([node]):
                b.define(name)
        case _:
            assert not isinstance(node, FUNCTIONS) or node.name not in b.unit.definitions


def _expression(b: Builder, node: Node) -> None:
    """Build a statement that is an expression; one without an effect builds nothing."""
    match node.value:
        case gast.Yield() as value if b.consumer is not None:
            build_yield(b, value)
        case gast.YieldFrom() as value if b.consumer is not None:
            build_yield_from(b, value)
        case gast.NamedExpr() as value:
            lower(b, value)
        case value if getattr(value, "written_out", False) or callee(b.unit, value) is not None:
            lower_into(b, b.temp(), value)
        case value if (found := mutation(b.unit, value, statement=True, effect=True)) is not None:
            mutate(b, value, found)
        case gast.Call(func=func) as value if is_called_value(b.unit, func):
            lower_into(b, b.temp(), value)
        case value if is_print(b.unit, value) and not b.faults.inside(node):
            build_print(b, value)


def _return(b: Builder, value: Node) -> None:
    if isinstance(value, gast.IfExp):
        # Each arm returns by itself, so that a call in it is a tail call.
        first, second = b.label(), b.label()
        condition(b, value.test, first, second)
        for label, arm in ((first, value.body), (second, value.orelse)):
            b.start(label)
            _return(b, arm)
    else:
        lower_into(b, b.result, value)
        leave(b, 0)
        b.end(Return())


def _if(b: Builder, node: Node, loop: Loop | None) -> None:
    first, second, after = b.label(), b.label(), b.label()
    condition(b, node.test, first, second if node.orelse else after)
    for label, body in ((first, node.body), (second, node.orelse)):
        b.start(label)
        statements(b, body, loop)
        b.jump(after)
    b.start(after)


def _while(b: Builder, node: Node, loop: Loop | None) -> None:
    head, body, orelse, after = b.label(), b.label(), b.label(), b.label()
    b.begin(head)
    condition(b, node.test, body, orelse if node.orelse else after)
    b.start(body)
    _bodies(b, node, loop, head, orelse, after)


def _for(b: Builder, node: Node, loop: Loop | None) -> None:
    lazily = is_special(b.unit, node.iter)
    if lazily and (
        lazy(b.unit, node.iter) == "enumerate"
        or needs_loop(b.unit, node.iter)
        or generator_in(b.unit, node.iter)
        or endless(b.unit, node.iter)
        or reads_what_changes(b.unit, node)
    ):
        _for_stream(b, node, loop)
        return
    head, body, orelse, after = b.label(), b.label(), b.label(), b.label()
    in_use: list[Node] = []
    if any(isinstance(part, gast.Starred) for part in gast.walk(node.iter)) and may_show(b.unit, node):
        node = with_fields(node, iter=_with_held_rows(b, node.iter, in_use))
    iteration = loops.begin(b, node)
    b.jump(body if iteration.sure else head)
    b.start(head)
    iteration.test(body, orelse if node.orelse else after)
    b.start(body)
    iteration.step()
    _bodies(b, node, loop, head, orelse, after)
    if in_use:  # Python makes each element in its turn: a change of what they are made of is refused
        b.prim((b.temp(),), display(in_use, node))


def _with_held_rows(b: Builder, node: Node, held: list[Node]) -> Node:
    """The head of a loop in which the rows of `zip(*rows)` have a name, which is added to `held`."""
    if isinstance(node, gast.Starred):
        held.append(held_as_it_is(b, lower(b, node.value)))
        return with_fields(node, value=held[-1])
    names = frozenset({"zip", "enumerate", "reversed"})
    if not isinstance(node, gast.Call) or builtin_name(b.unit, node.func, names) is None:
        return node
    return rebuild(node, lambda child: _with_held_rows(b, child, held))


def _for_stream(b: Builder, node: Node, loop: Loop | None) -> None:
    """Build a loop over a generator expression, or over a call such as `map(f, xs)`."""
    after = b.label()

    def step(element: Node, following: str) -> None:
        assign(b, [node.target], element)
        around, b.streams = b.streams, []
        statements(b, node.body, Loop(after, following, len(b.finals)))
        b.streams = around

    b.streams.append((b.unit, node))
    each(b, node.iter, step)
    b.streams.pop()
    statements(b, node.orelse, loop)
    b.begin(after)


def _bodies(b: Builder, node: Node, loop: Loop | None, head: str, orelse: str, after: str) -> None:
    """Build the body of a loop in the current block, and its `else`, which belongs to the loop around it."""
    statements(b, node.body, Loop(after, head, len(b.finals)))
    b.jump(head)
    b.start(orelse)
    statements(b, node.orelse, loop)
    b.begin(after)
