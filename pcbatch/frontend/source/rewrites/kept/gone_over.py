"""Choices among copies of a node by whose methods give the elements that it takes of an object."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import gast

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.frontend.source.resolve import resolve
from pcbatch.frontend.source.rewrites.dispatch import (
    Dispatch,
    with_receiver,
)
from pcbatch.frontend.source.rewrites.kept.kept_generators import asked_in_turns, is_kept_object, kept_generator
from pcbatch.frontend.source.rewrites.method_lookup import (
    generator_methods,
    is_simple,
    is_trivial,
    may_be_listed,
    methods_named,
    returns_self,
)
from pcbatch.frontend.source.rewrites.taken_elements import (
    asked_part,
    begun,
    behind,
    either,
    is_among,
    made_of,
    replaced,
)
from pcbatch.frontend.source.streams import steps
from pcbatch.frontend.source.tree import (
    COMPREHENSIONS,
    Node,
    attribute,
    call,
    load,
    supported,
)


class GoneOver(Dispatch):
    """Writes the methods out that give elements, and has the objects of generators go on by `__next__`."""

    def gone_over(self, node: Node, done: frozenset[Loc] = frozenset()) -> Node | None:
        """The choice among copies of a node, by whose methods give the elements that it takes of an object."""
        part = asked_part(self.unit, node, done)
        if part is None:
            return None
        is_comprehension, nodes = isinstance(node, COMPREHENSIONS), getattr(node, "generators", [])
        iterators = methods_named(self.unit, "__next__")  # which show how many elements have been taken
        functions = generator_methods(self.unit, part)
        owner = part.func.value if functions else part
        once = isinstance(owner, gast.Name) or is_simple(self.unit, owner) or is_kept_object(self.unit, owner)
        first, value = ([], owner) if once else self.kept("receiver", owner)
        value = with_receiver(part, value) if functions else value
        done |= {self.unit.source.loc(part)}
        in_turns = any(
            asked_in_turns(self.unit, inside) and any(one is part for one in inside.args) for inside in gast.walk(node)
        )
        # Whoever takes the elements of a generator expression is to see it.
        listable = may_be_listed(self.unit, made_of(self.unit, part))
        lazy_one = isinstance(node, gast.GeneratorExp) and listable and not iterators
        shown = iterators or in_turns
        first_iter = gast.walk(nodes[0].iter) if is_comprehension and shown else [node.iter for node in nodes[:1]]
        inner = is_comprehension and not any(one is part for one in first_iter)
        starred = any(isinstance(one, gast.Starred) and one.value is part for one in getattr(node, "args", ()))
        if isinstance(node, gast.List | gast.Tuple | gast.Set) or starred or inner or lazy_one:

            def listed(elements: Node) -> Node:
                return elements if elements is value else call(load("list", node), [elements], node)

            whole = replaced(node, part, behind(self.copies(listed, value, part), first))
            return self.gone_over(whole, done) or whole

        def copy(elements: Node) -> Node:
            whole = replaced(node, part, elements)
            if isinstance(node, gast.Compare) and elements is not value:
                return is_among(self.temp("element", node), whole, elements)
            return self.gone_over(whole, done) or whole

        if isinstance(node, gast.Compare) and not isinstance(node.left, gast.Name | gast.Constant):
            before, left = self.kept("member", node.left)
            first, node = [*before, *first], replaced(node, node.left, left)
        return behind(self.copies(copy, value, node, in_turns=in_turns), first)

    def copies(
        self, copy: Callable[[Node], Node], value: Node, node: Node, iterator: bool = False, in_turns: bool = False
    ) -> Node:
        """The copies of a node for the elements of a value, each behind the test of its class; `iterator`: a method
        `__iter__` has given it; `in_turns`: others are asked in between."""
        if is_kept_object(self.unit, value):
            return begun(*self.resumed(copy, value, node))
        out = copy(value)
        generators = [] if iterator else generator_methods(self.unit, value)
        for k in reversed(range(len(generators))):
            holds, called = self.choice(generators, k, value, value.func.value, value.args, value.keywords)
            out = either(holds, [], copy(called), out)
        if generators:
            return out
        functions = [function for name in ("__iter__", "__next__") for function in methods_named(self.unit, name)]
        for k, function in reversed(list(enumerate(functions))):
            holds, called = self.choice(functions, k, value, value, [])
            method, before = resolve(self.unit, function), list[Node]()
            if function.attr == "__next__":
                start = attribute(function.value, "__iter__", value)
                if not iterator and not is_trivial(resolve(self.unit, start)):
                    before, _ = self.kept("begun", call(start, [value], value))
                body = copy(supported(steps, [called], node))
            elif iterator or returns_self(method):
                continue
            elif in_turns and (object_ := kept_generator(self.unit, called)) is not None:
                before, body = self.resumed(copy, object_, node)
            elif inspect.isgeneratorfunction(method):
                body = copy(called)
            else:
                before, made = self.kept("iterator", called)
                body = self.copies(copy, made, node, True)
            out = either(holds, before, body, out)
        return out

    def resumed(self, copy: Callable[[Node], Node], made: Node, node: Node) -> tuple[list[Node], Node]:
        """The expression that keeps an object of a generator, and the copy of a node for what it gives."""
        before, value = self.kept("iterator", self.made(made) or made)
        return before, copy(supported(steps, [call(attribute(made.func, "__next__", node), [value], node)], node))
