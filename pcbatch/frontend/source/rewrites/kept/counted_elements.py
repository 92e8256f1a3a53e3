"""Elements of an iterable for a loop with a `yield` in it, which counts those that it has passed.

    for x in xs: ...          ==>     k = 0
                                      while k < len(xs): x = xs[k]; k += 1; ...

So the loop can be left and gone on with. The count is an attribute of the object that stands for the generator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import gast

from pcbatch.data.functions import sequence_builtins
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.resolve import is_builtin
from pcbatch.frontend.source.tree import Node, constant, display, rebuild, supported, with_fields
from pcbatch.ir.names import unused

ZIPPED = ("begin", "tests", "after")


class CannotResume(Exception):
    """A generator that no object can stand for: why, and where."""

    def __init__(self, why: str, node: Node) -> None:
        super().__init__(why)
        self.why, self.node = why, node


def statements(text: str, at: Node, **parts: Node) -> list[Node]:
    """Make the statements of a text, with the location of `at`; names in `parts` stand for these expressions."""

    def change(node: Node) -> Node:
        if isinstance(node, gast.Name) and node.id in parts:
            part = parts[node.id]
            is_target = isinstance(node.ctx, gast.Store) and isinstance(getattr(part, "ctx", None), gast.Load)
            return with_fields(part, ctx=gast.Store()) if is_target else part
        return gast.copy_location(rebuild(node, change), at) if isinstance(node, POSITIONED) else node

    return [change(node) for node in gast.parse(text).body]


POSITIONED = (gast.stmt, gast.expr, gast.ExceptHandler)


def expression(text: str, at: Node, **parts: Node) -> Node:
    """Make the expression of a text, as `statements` does."""
    return statements(text, at, **parts)[0].value


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of an iterable that are taken one by one."""

    begin: list[Node]
    tests: list[Node]
    element: Node
    after: list[Node]


@dataclass(slots=True)
class Counted:
    """Writes how elements are taken.

    Attributes:
        own: the variables that are not the user's, by their names here.
        fixed: the variables that nobody assigns behind the beginning.
        counts: the attributes that count elements, zero at first.
        parts: the attributes that loops go over, None at first.
    """

    unit: Unit
    own: Mapping[str, Node]
    fixed: frozenset[str]
    counts: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)

    def elements(self, node: Node) -> Elements:
        """Return the elements of an iterable, as they are taken."""
        match node:
            case gast.Call(func=func, args=[_, *_] as args, keywords=[]) if is_builtin(self.unit, func, "range"):
                return self.range(node, args)
            case gast.Call(func=func, args=[source, *start], keywords=[]) if is_builtin(self.unit, func, "enumerate"):
                inner, count = self.elements(source), self.attribute("count", node, self.counts)
                begin = statements("count = start", node, count=count, start=[*start, constant(0, node)][0])
                more = statements("count += 1", node, count=count)
                pair = display([count, inner.element], node)
                return Elements([*inner.begin, *begin], inner.tests, pair, [*inner.after, *more])
            case gast.Call(func=func, args=[_, *_] as args, keywords=[]) if is_builtin(self.unit, func, "zip"):
                parts = [self.elements(arg) for arg in args]
                begin, tests, after = ([one for part in parts for one in getattr(part, name)] for name in ZIPPED)
                return Elements(begin, tests, display([part.element for part in parts], node), after)
            case gast.Call(func=func, args=[source], keywords=[]) if is_builtin(self.unit, func, "reversed"):
                return self.sequence(source, node, "len(sequence) - 1", "0 <= index < len(sequence)", "index -= 1")
        return self.sequence(node, node, "0", "index < len(sequence)", "index += 1")

    def range(self, node: Node, args: list[Node]) -> Elements:
        """Return the numbers of a range, which are taken by what is left of them."""
        begin = list[Node]()
        for k, arg in enumerate(args):
            if not isinstance(arg, gast.Constant | gast.Starred):
                bound = self.attribute("bound", node, self.counts)
                begin += statements("bound = value", node, bound=bound, value=arg)
                args = [*args[:k], bound, *args[k + 1 :]]
        first, step = (args[0] if args[1:] else constant(0, node)), [*args[2:], constant(1, node)][0]
        value, left = (self.attribute(name, node, self.counts) for name in ("value", "left"))
        whole = gast.copy_location(gast.Call(func=node.func, args=args, keywords=[]), node)
        text = "left = len(whole)\nvalue = first"
        begin += statements(text, node, left=left, value=value, whole=whole, first=first)
        after = statements("left -= 1\nvalue += step", node, left=left, value=value, step=step)
        return Elements(begin, [expression("left > 0", node, left=left)], value, after)

    def sequence(self, source: Node, node: Node, first: str, test: str, more: str) -> Elements:
        """Return the elements of a sequence, which are taken by an index, as its iterator does."""
        index, begin = self.attribute("index", node, self.counts), list[Node]()
        sequence = supported(sequence_builtins.counted_sequence, [source], node)
        if not (isinstance(source, gast.Name) and source.id in self.fixed) and not _is_literal(source):
            held = self.attribute("sequence", node, self.parts)
            begin, sequence = statements("held = sequence", node, held=held, sequence=sequence), held
        parts = {"index": index, "sequence": sequence}
        begin += statements(f"index = {first}", node, **parts)
        element = expression("sequence[index]", node, **parts)
        return Elements(begin, [expression(test, node, **parts)], element, statements(more, node, **parts))

    def attribute(self, kind: str, at: Node, among: list[str]) -> Node:
        """A read of a new attribute."""
        among.append(unused(f"{kind}_{len(self.counts) + len(self.parts)}", "_", self.unit.names))
        return expression(f"me.{among[-1]}", at, **self.own)


def _is_literal(node: Node) -> bool:
    """Whether an expression is a display of literals, or a text."""
    elements = node.elts if isinstance(node, gast.Tuple | gast.List) else [node]
    return all(isinstance(one, gast.Constant) for one in elements)
