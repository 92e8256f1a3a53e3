"""The variables that statements of a generator read before they certainly have assigned them."""

from __future__ import annotations

from collections.abc import Iterable

import gast

from pcbatch.frontend.source.generators import is_generator
from pcbatch.frontend.source.scope import bindings, free_reads
from pcbatch.frontend.source.tree import COMPREHENSIONS, Node, children

ENDS = (gast.Return, gast.Raise, gast.Break, gast.Continue)
CHOICES = (gast.BoolOp, gast.IfExp, gast.Compare, gast.Lambda, *COMPREHENSIONS)


def read_without_value(nodes: list[Node], known: Iterable[str], *, resumes: bool) -> dict[str, Node]:
    """Return the first reads, by name, of what has no value there yet; `known` has one at first.

    With `resumes`, nothing has a value behind a `yield`.
    """
    reads = _Reads(resumes)
    reads.run(nodes, frozenset(known))
    return reads.found


class _Reads:
    def __init__(self, resumes: bool) -> None:
        self.resumes = resumes
        self.found: dict[str, Node] = {}

    def run(self, nodes: Iterable[Node], state: frozenset[str]) -> frozenset[str] | None:
        """Go through statements with what is assigned before them; return what is behind them, None if nothing is."""
        for node in nodes:
            after = self.statement(node, state)
            if after is None:
                return None
            state = after
        return state

    def read(self, node: Node | None, state: frozenset[str]) -> frozenset[str]:
        """Note what an expression reads; return what is assigned behind it."""
        for name in () if node is None else free_reads(node):
            if name.id not in state:
                self.found.setdefault(name.id, name)
        return state if node is None else state.union(_assigned(node))

    def statement(self, node: Node, state: frozenset[str]) -> frozenset[str] | None:
        match node:
            case gast.If(test=test, body=body, orelse=orelse):
                state = self.read(test, state)
                return _meet(self.run(body, state), self.run(orelse, state))
            case gast.While(test=test, body=body, orelse=orelse):
                state = self.read(test, self.begun(node, state))
                self.run(body, state)
                self.run(orelse, state)
                return state
            case gast.For(target=target, iter=source, body=body, orelse=orelse):
                state = self.begun(node, self.read(source, state))
                self.run(body, self.read(target, state))
                self.run(orelse, state)
                return state
            case gast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
                start = self.begun(node, state)
                through = self.run(body, state)
                out = None if through is None else self.run(orelse, through)
                for handler in handlers:
                    self.read(handler.type, start)
                    out = _meet(out, self.run(handler.body, start | {handler.name or ""}))
                self.run(final, start)
                return out
            case gast.With(items=items, body=body):
                for item in items:
                    state = self.read(item, state)
                return self.run(body, state)
            case gast.Match(subject=subject, cases=cases):
                state = out = self.read(subject, state)
                for case in cases:
                    begun = self.read(case.guard, self.read(case.pattern, state))
                    out = _meet(out, self.run(case.body, begun))
                return out
            case gast.Expr(value=gast.Yield() | gast.YieldFrom()):
                state = self.read(node.value.value, state)
                return frozenset() if self.resumes else state
            case gast.AugAssign(target=gast.Name(id=name)) if name not in state:
                self.found.setdefault(name, node.target)
        state = self.read(node, state)
        return None if isinstance(node, ENDS) else state

    def begun(self, node: Node, state: frozenset[str]) -> frozenset[str]:
        """Return the variables assigned where a round or a handler begins, before any `yield`."""
        resumed = self.resumes and is_generator(gast.Module(body=[node], type_ignores=[]))
        return frozenset() if resumed else state


def _meet(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    return (one if other is None else other) if one is None or other is None else one & other


def _assigned(node: Node) -> Iterable[str]:
    """The names that a statement or an expression assigns whenever it ends."""
    chosen = {id(part) for each in _choices(node) for part in gast.walk(each)}
    return (name for name, place in bindings([node]) if id(place) not in chosen)


def _choices(node: Node) -> Iterable[Node]:
    if isinstance(node, CHOICES):
        yield node
        return
    for child in children(node):
        yield from _choices(child)
