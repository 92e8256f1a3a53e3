"""Bodies of generators that go on where their last `yield` stood, for the `__next__` of an object `me`.

before:  while k < n:              after:  if now == 1:            `now`: the number of the last `yield`, or 0
             yield k                           k += 1
             k += 1                        if k < n:
                                               me.at = 1
                                               return k
                                           raise StopIteration

What follows a `yield` is written out: the rest of its body, then the loop around it. A `for` loop with a `yield` in it
counts the elements that it has passed. What ways have in common at their ends stands once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import gast

from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.generators import YIELDS, generator, own_yields
from pcbatch.frontend.source.rewrites.kept.counted_elements import CannotResume, Counted, statements
from pcbatch.frontend.source.rewrites.method_lookup import generator_methods
from pcbatch.frontend.source.tree import (
    SCOPES,
    Node,
    children,
    constant,
    load,
    with_fields,
)
from pcbatch.ir.names import unused

OWN = ("me", "now", "given", "element")
"""The variables of texts here that are not the user's."""
BEGIN = "now = me.at\nif now < 0:\n raise StopIteration\nme.at = -1"
OWN_ERROR = """
try:
    pass
except StopIteration:
    if me.at != -2:
        raise RuntimeError("generator raised StopIteration")
    raise StopIteration
"""
TAKE = """
try:
    element = next(stream)
except StopIteration:
    break
"""
OTHERS = "its `yield` stands where lanes cannot go on: beside `yield` statements in `if`, `for`, `while` and `try`"


def yields(nodes: list[Node]) -> Iterator[Node]:
    """Yield the statements among these, and in them, that are a `yield`."""
    for node in nodes:
        if isinstance(node, gast.Expr) and isinstance(node.value, YIELDS):
            yield node
        elif not isinstance(node, SCOPES):
            yield from yields(list(children(node)))


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop with a `yield`: what begins it, its test, and what its rounds begin with."""

    begin: list[Node]
    test: Node
    first: list[Node]
    body: list[Node]
    orelse: list[Node]


@dataclass(slots=True)
class Resumed:
    """Writes out the body of one generator.

    Attributes:
        stops: what it calls may raise a StopIteration of its own.
        counted: how the elements are taken that its loops go over.
    """

    unit: Unit
    own: Mapping[str, Node]  # the variables that are not the user's, by their names here
    at: str  # the attribute with the number of the last `yield`
    stops: bool
    counted: Counted
    loops: dict[int, Loop] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)  # of `yield` statements
    tried: int = 0  # statements `try` around the place
    variables: int = 0  # that are new

    def write(self, text: str, at: Node, **parts: Node) -> list[Node]:
        """Make statements that read the object and variables of their own."""
        return statements(text.replace("me.at", f"me.{self.at}"), at, **self.own, **parts)

    def body(self, nodes: list[Node]) -> list[Node]:
        """The statements of `__next__`."""
        place, found = nodes[0], list(yields(nodes))
        used = [node for node in own_yields(nodes) if not any(node is one.value for one in found)]
        if used:
            raise CannotResume("nothing is sent into it in a lane, and the value of this `yield` is used", used[0])
        self.numbers = {id(node): k for k, node in enumerate(found, 1)}
        ways = [self.emitted(nodes), *(self.resumed(nodes, node) for node in found)]
        texts = [[gast.dump(node) for node in way] for way in ways]
        common = 0
        while all(len(text) > common for text in texts) and len({text[-1 - common] for text in texts}) == 1:
            common += 1
        shared = ways[0][len(ways[0]) - common :]
        # In their order, so that type inference sees first what stores an object, and then what uses it.
        (*others, code) = (way[: len(way) - common] for way in ways)
        for k, way in reversed(list(enumerate(others))):
            if way or code:
                (test,) = (one.value for one in self.write(f"now == {k}", place))
                code = [_if(test, way, code, place)] if way else [_if(_not(test), code, [], place)]
        code = [*code, *shared]
        if self.stops:
            code = [with_fields(self.write(OWN_ERROR, place)[0], body=code)]
        return [*self.write(BEGIN, place), *code, *([] if _ends(code) else statements("raise StopIteration", place))]

    def emitted(self, nodes: list[Node]) -> list[Node]:
        """Statements that run from their beginning."""
        out: list[Node] = []
        for node in nodes:
            if _ends(out):
                break
            out += self.statement(node)
        return out

    def statement(self, node: Node) -> list[Node]:
        """Return the form of a statement that runs from its beginning."""
        if isinstance(node, gast.Return):
            return self.ended(node)
        if isinstance(node, SCOPES) or not any(isinstance(part, (*YIELDS, gast.Return)) for part in gast.walk(node)):
            return [node]
        match node:
            case gast.Expr(value=gast.Yield(value=value)):
                return self.given(node, constant(None, node) if value is None else value)
            case gast.If(test=test, body=body, orelse=orelse):
                return [_if(test, self.emitted(body), self.emitted(orelse), node)]
            case gast.Match(cases=cases):
                return [with_fields(node, cases=[with_fields(case, body=self.emitted(case.body)) for case in cases])]
            case gast.Try(body=body):
                return [self.attempt(node, self.inside(lambda: self.emitted(body)))]
            case gast.For() | gast.While() if not any(yields([node])):
                return [with_fields(node, body=self.emitted(node.body), orelse=self.emitted(node.orelse))]
            case gast.For() | gast.While() | gast.Expr(value=gast.YieldFrom()):
                loop = self.loop(node)
                return [*loop.begin, *self.looped(loop, node)]
            case gast.With() if not any(yields([node])):
                return [with_fields(node, body=self.inside(lambda: self.emitted(node.body)))]
        raise CannotResume(OTHERS, node)

    def attempt(self, node: Node, body: list[Node]) -> Node:
        """A `try` with a body of these statements."""
        if node.finalbody and any(yields([node])):
            raise CannotResume("a generator runs the `finally` around a `yield` when nobody needs it any more", node)
        handlers = [with_fields(one, body=self.emitted(one.body)) for one in node.handlers]
        orelse, final = self.emitted(node.orelse), self.emitted(node.finalbody)
        return with_fields(node, body=body, handlers=handlers, orelse=orelse, finalbody=final)

    def inside(self, write: Callable[[], list[Node]]) -> list[Node]:
        """Write statements that stand in the body of a `try`."""
        self.tried += 1
        out = write()
        self.tried -= 1
        return out

    def ended(self, node: Node) -> list[Node]:
        """The end of the generator by `return`."""
        if self.tried:
            raise CannotResume("a `return` in the body of a `try` ends it", node)
        if node.value is None or (isinstance(node.value, gast.Constant) and node.value.value is None):
            return self.write("me.at = -2\nraise StopIteration", node)
        if self.stops:
            raise CannotResume("it returns a value, and may raise a StopIteration of its own", node)
        return self.write("given = value\nme.at = -2\nraise StopIteration(given)", node, value=node.value)

    def given(self, node: Node, value: Node) -> list[Node]:
        """The statements that give an element to whoever asks for it."""
        text = f"me.at = {self.numbers[id(node)]}\nreturn given"
        if isinstance(value, gast.Constant):
            return self.write(text.replace("given", "value"), node, value=value)
        return self.write(f"given = value\n{text}", node, value=value)

    def resumed(self, nodes: list[Node], target: Node) -> list[Node]:
        """The statements that run after a `yield` among these, up to their end."""
        k = next(k for k, node in enumerate(nodes) if _holds([node], target))
        out = self.rest(nodes[k], target)
        return out if _ends(out) else [*out, *self.emitted(nodes[k + 1 :])]

    def rest(self, node: Node, target: Node) -> list[Node]:
        """The statements that run after a `yield` in a statement, up to the end of that."""
        match node:
            case gast.Expr(value=gast.Yield()):
                return []
            case gast.Expr(value=gast.YieldFrom()):
                return self.looped(self.loop(node), node)
            case gast.If(body=body, orelse=orelse):
                return self.resumed(body if _holds(body, target) else orelse, target)
            case gast.For() | gast.While():
                return self.rest_of_loop(node, target)
            case gast.Try(body=body, orelse=orelse) if _holds(body, target):
                rest = self.inside(lambda: self.resumed(body, target))
                return [self.attempt(node, rest)] if rest else self.emitted(orelse)
            case gast.Try(orelse=orelse) if _holds(orelse, target):
                return self.resumed(orelse, target)
            case gast.Try(handlers=handlers):
                (handler,) = (one for one in handlers if _holds(one.body, target))
                if handler.name is not None or any(_reraises(handler.body)):
                    raise CannotResume("behind a `yield` in a handler its exception is gone", target)
                return self.resumed(handler.body, target)
            case gast.Match(cases=cases):
                return self.resumed(next(case.body for case in cases if _holds(case.body, target)), target)
        raise CannotResume(OTHERS, node)

    def rest_of_loop(self, node: Node, target: Node) -> list[Node]:
        loop = self.loop(node)
        if _holds(loop.orelse, target):
            return self.resumed(loop.orelse, target)
        rest, whole = self.resumed(loop.body, target), self.looped(loop, node)
        if not _leaves(rest):
            return rest if _ends(rest) else [*rest, *whole]
        # A loop of one round, which `break` and `continue` in the rest leave.
        left = self.variable(node)
        ended = statements("while True:\n left = False\n break", node, left=left)[0].body
        once = _continued(rest, ended)
        turn = with_fields(statements("while True: pass", node)[0], body=[*once, *([] if _ends(once) else ended)])
        return [*statements("left = True", node, left=left), turn, _if(_not(left), whole, [], node)]

    def looped(self, loop: Loop, node: Node) -> list[Node]:
        """The statements of a loop that has begun."""
        body, orelse = [*loop.first, *self.emitted(loop.body)], self.emitted(loop.orelse)
        endless = isinstance(loop.test, gast.Constant) and bool(loop.test.value)
        if _ends(body) and not _leaves(body):  # it has no second round
            return body if endless else [_if(loop.test, body, [], node), *orelse]
        return [gast.copy_location(gast.While(test=loop.test, body=body, orelse=orelse), node)]

    def loop(self, node: Node) -> Loop:
        """A loop that stands for this one, always the same."""
        if id(node) not in self.loops:
            self.loops[id(node)] = self.made_loop(node)
        return self.loops[id(node)]

    def made_loop(self, node: Node) -> Loop:
        match node:
            case gast.While():
                return Loop([], node.test, [], node.body, node.orelse)
            case gast.For():
                source, target, body, orelse = node.iter, node.target, node.body, node.orelse
            case _:
                target = self.variable(node)
                item = gast.copy_location(gast.Expr(value=gast.copy_location(gast.Yield(value=target), node)), node)
                self.numbers[id(item)] = self.numbers[id(node)]
                source, body, orelse = node.value.value, [item], []
        if generator(self.unit, source) is not None or generator_methods(self.unit, source):
            stream = self.counted.attribute("stream", node, self.counted.parts)
            if orelse:
                raise CannotResume("a loop over another generator has an `else`", node)
            first = self.write(f"{TAKE}\ntarget = element", node, stream=stream, target=target)
            begin = statements("stream = source", node, stream=stream, source=source)
            return Loop(begin, constant(True, node), first, body, [])
        found = self.counted.elements(source)
        tests = found.tests
        test = tests[0] if len(tests) == 1 else gast.copy_location(gast.BoolOp(op=gast.And(), values=tests), source)
        first = [*statements("target = value", node, target=target, value=found.element), *found.after]
        return Loop(found.begin, test, first, body, orelse)

    def variable(self, at: Node) -> Node:
        """A read of a new variable."""
        self.variables += 1
        return load(unused(f"element_{self.variables}", "_", self.unit.names), at)


def _if(test: Node, body: list[Node], orelse: list[Node], at: Node) -> Node:
    body = body or [gast.copy_location(gast.Pass(), at)]
    return gast.copy_location(gast.If(test=test, body=body, orelse=orelse), at)


def _not(test: Node) -> Node:
    return gast.copy_location(gast.UnaryOp(op=gast.Not(), operand=test), test)


def _ends(nodes: list[Node]) -> bool:
    """Whether control does not go on behind these statements."""
    match nodes:
        case [*_, gast.Return() | gast.Raise() | gast.Break() | gast.Continue()]:
            return True
        case [*_, gast.If(body=body, orelse=orelse)]:
            return _ends(body) and _ends(orelse)
    return False


def _holds(nodes: list[Node], target: Node) -> bool:
    return any(part is target for node in nodes for part in gast.walk(node))


def _reraises(nodes: list[Node]) -> Iterator[bool]:
    yield from (isinstance(part, gast.Raise) and part.exc is None for node in nodes for part in gast.walk(node))


def _leaves(nodes: list[Node]) -> bool:
    """Whether a `break` or `continue` among statements is of the loop around them."""
    return any(
        isinstance(node, gast.Break | gast.Continue)
        or (isinstance(node, gast.For | gast.While) and _leaves(node.orelse))
        or (not isinstance(node, (*SCOPES, gast.For, gast.While)) and _leaves(list(children(node))))
        for node in nodes
    )


def _continued(nodes: list[Node], ended: list[Node]) -> list[Node]:
    """Statements with others in place of each `continue` that is of the loop around them."""
    out = list[Node]()
    for node in nodes:
        if isinstance(node, gast.Continue):
            out += ended
            continue
        fields = dict(gast.iter_fields(node))
        if isinstance(node, gast.For | gast.While):
            fields = {"orelse": fields["orelse"]}
        changed: dict[str, list[Node]] = {}
        for name, value in {} if isinstance(node, SCOPES) else fields.items():
            if isinstance(value, list) and value and isinstance(value[0], gast.stmt):
                changed[name] = _continued(value, ended)
            elif isinstance(value, list) and value and isinstance(value[0], gast.ExceptHandler | gast.match_case):
                changed[name] = [with_fields(one, body=_continued(one.body, ended)) for one in value]
        out.append(with_fields(node, **changed) if changed else node)
    return out
