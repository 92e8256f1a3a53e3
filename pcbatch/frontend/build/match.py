"""The lowering of `match`: each pattern becomes tests in Python's order; a whole match binds the names.

Most tests are about structure (a tuple of three, a namedtuple of this class), which types decide while compiling; a
case that cannot match for these types is then not compiled at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import gast

from pcbatch.data.functions import truth, type_questions
from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.build.evaluation_order import copied, store
from pcbatch.frontend.build.expressions import lower, where
from pcbatch.frontend.source.tree import (
    Function,
    Node,
    attribute,
    call,
    compare,
    constant,
    display,
    load,
    subscript,
    supported,
)
from pcbatch.ir.ops import Branch

OPERATORS = {type_questions.equals: gast.Eq(), type_questions.same: gast.Is()}
Captures = dict[str, str]  # name of the user -> temporary that holds its value until the pattern has matched


def match_statement(b: Builder, node: Node, statements: Callable[[Sequence[Node]], None]) -> None:
    """Build a `match`; `statements` builds the body of a case."""
    subject = copied(b, lower(b, node.subject))
    after = b.label()
    for case in node.cases:
        following = b.label()
        captures: Captures = {}
        _Pattern(b, following, captures).build(case.pattern, subject)
        for name, temp in captures.items():
            store(b, name, load(temp, case.pattern))
        if case.guard is not None:
            where(b, case.guard, following)
        statements(case.body)
        b.jump(after)
        b.start(following)
    b.begin(after)


class _Pattern:
    """Builds the tests of a pattern: control continues in the current block on a match, else at `otherwise`."""

    def __init__(self, b: Builder, otherwise: str, captures: Captures) -> None:
        self.b, self.otherwise, self.captures = b, otherwise, captures

    def build(self, node: Node, value: Node) -> None:
        """Match one pattern against a variable."""
        match type(node).__name__:
            case "MatchValue":
                self.need(type_questions.equals, [value, lower(self.b, node.value)], node)
            case "MatchSingleton":
                self.need(type_questions.same, [value, constant(node.value, node)], node)
            case "MatchAs":
                if node.pattern is not None:
                    self.build(node.pattern, value)
                self.capture(node.name, value)
            case "MatchOr":
                self.alternatives(node, value)
            case "MatchSequence":
                self.sequence(node, value)
            case "MatchMapping":
                self.mapping(node, value)
            case "MatchClass":
                self.of_class(node, value)

    def need(self, test: Function, args: list[Node], at: Node) -> None:
        """Continue only if a test, which is a support function, holds."""
        b, matched, cond = self.b, self.b.label(), self.b.temp()
        operator = OPERATORS.get(test)
        shown = call(load(test.__name__, at), args, at) if operator is None else compare(args[0], operator, args[1], at)
        b.prim((cond,), supported(truth.truth, [supported(test, args, at)], at), shown=shown)
        b.end(Branch(cond, matched, self.otherwise, b.loc(at)))
        b.start(matched)

    def capture(self, name: str | None, value: Node) -> None:
        """Store a value for a name that the pattern binds."""
        if name is not None:
            store(self.b, self.captures.setdefault(name, self.b.temp()), value)

    def part(self, node: Node, value: Node, shown: Node) -> None:
        """Match a sub-pattern against a part of the value."""
        if isinstance(node, gast.MatchAs) and node.pattern is None and node.name is None:
            return  # `_`
        temp = self.b.temp()
        self.b.prim((temp,), value, shown=shown)
        self.build(node, load(temp, node))

    def alternatives(self, node: Node, value: Node) -> None:
        matched = self.b.label()
        for pattern in node.patterns[:-1]:
            following = self.b.label()
            _Pattern(self.b, following, self.captures).build(pattern, value)
            self.b.jump(matched)
            self.b.start(following)
        self.build(node.patterns[-1], value)
        self.b.begin(matched)

    def sequence(self, node: Node, value: Node) -> None:
        patterns = node.patterns
        star = next((k for k, p in enumerate(patterns) if isinstance(p, gast.MatchStar)), None)
        count = len(patterns) - (star is not None)
        self.need(type_questions.is_sequence, [value, constant(count, node), constant(star is not None, node)], node)
        for k, pattern in enumerate(patterns):
            if k == star:
                end = k + 1 - len(patterns)
                rest = supported(
                    type_questions.between, [value, constant(k, pattern), constant(-end, pattern)], pattern
                )
                if pattern.name is not None:
                    self.part(_name(pattern.name, pattern), rest, value)
            else:
                at = constant(k if star is None or k < star else k - len(patterns), pattern)
                self.part(pattern, subscript(value, at, pattern), subscript(value, at, pattern))

    def mapping(self, node: Node, value: Node) -> None:
        keys = display([lower(self.b, key) for key in node.keys], node)
        self.need(type_questions.has_keys, [value, keys], node)
        for key, pattern in zip(node.keys, node.patterns, strict=True):
            item = subscript(value, key, pattern)
            self.part(pattern, item, item)
        if node.rest is not None:
            self.part(_name(node.rest, node), supported(type_questions.without, [value, keys], node), value)

    def of_class(self, node: Node, value: Node) -> None:
        count = constant(len(node.patterns), node)
        self.need(type_questions.is_instance, [value, node.cls, count], node)
        for k, pattern in enumerate(node.patterns):
            read = supported(type_questions.positional, [value, node.cls, constant(k, node)], node)
            self.part(pattern, read, value)
        for name, pattern in zip(node.kwd_attrs, node.kwd_patterns, strict=True):
            self.need(type_questions.has, [value, constant(name, pattern)], pattern)
            shown = attribute(value, name, node)
            self.part(
                pattern, supported(type_questions.named_part, [value, node.cls, constant(name, node)], node), shown
            )


def _name(name: str, at: Node) -> Node:
    return gast.copy_location(gast.MatchAs(pattern=None, name=name), at)
