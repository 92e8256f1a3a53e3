"""Expressions that Python evaluates element by element, and which of them become loops of the lane.

A *stream* is a comprehension, a generator expression, or a call such as `map(f, xs)`; a *consumer* is a call of a
builtin that takes all elements of one, such as `any(...)`. Both stay in one primitive, as plain Python, unless that
cannot be: they call a batched function, assign by `:=`, or type inference has decided so (`Decisions.expanded`).
"""

from __future__ import annotations

import builtins
import collections
import functools
import heapq
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import gast

from pcbatch.data.catalogue import facts
from pcbatch.data.functions import receivers
from pcbatch.decisions import Cure
from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.errors import Refusal
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.generators import assigns_around, generator, may_stop
from pcbatch.frontend.source.own_classes import own_methods
from pcbatch.frontend.source.places import mutation
from pcbatch.frontend.source.resolve import MISSING, callee, resolve
from pcbatch.frontend.source.scope import bindings
from pcbatch.frontend.source.tree import (
    COMPREHENSIONS,
    FUNCTIONS,
    Node,
    children,
    constant,
    integer,
    is_supported,
    supported,
)

CONSUMERS: dict[str, Any] = {
    **{
        name: getattr(builtins, name)
        for name in "sum any all max min list tuple bytes set frozenset sorted dict next".split()
    },
    "prod": math.prod,
    "reduce": functools.reduce,
}
LAZY: dict[str, Any] = {
    **{name: getattr(builtins, name) for name in "map filter zip enumerate reversed range iter".split()},
    **{
        name: getattr(itertools, name)
        for name in (
            "product combinations combinations_with_replacement permutations pairwise accumulate chain takewhile "
            "dropwhile filterfalse islice count repeat starmap"
        ).split()
    },
    "from_iterable": itertools.chain.from_iterable,
}
ELEMENTS = (gast.ListComp, gast.GeneratorExp)
"""Comprehensions that stand for their elements; a set or dict is made first, as it holds equal ones only once."""

CALLING = frozenset({"map", "filter", "starmap", "takewhile", "dropwhile", "filterfalse"})
"""Streams that call their first argument for each element."""

INSIDE_OUT = frozenset({"zip", "enumerate", "reversed", "range"})
"""Streams that the head of a loop takes as they are."""

NESTED = frozenset({"product", "combinations", "combinations_with_replacement", "permutations"})
"""Streams that become as many loops, one inside another, as an argument says."""

COLLECTED = (collections.Counter, collections.OrderedDict, collections.deque, heapq.nsmallest, heapq.nlargest)
FROM_KEYS = [vars(cls)["fromkeys"] for cls in (dict, collections.OrderedDict)]
ELEMENT = "element"  # the variable of a comprehension that the compiler makes
BY_METHOD = "elements are put in an order by a function or a method of the user's"
IN_PLACE = {gast.Add: "__iadd__ __add__", gast.BitOr: "__ior__ __or__"}
"""Operators in place that take an iterable likewise, with the methods that objects have for them."""


def steps(value: Any) -> Any:
    """The stream of an expression that is evaluated again and again until it raises StopIteration; in trees alone."""
    raise AssertionError("a loop takes the elements")


def groups(values: Any, key: Any) -> Any:
    """The stream of keys, with the lists of neighbours that have them; in trees alone, in place of `groupby`."""
    raise AssertionError("a loop takes the elements")


STEPS, GROUPS = steps.__name__, groups.__name__
COUNTED = ("range", "count", "repeat")
"""Streams whose arguments are no iterables."""


def in_order(values: Any, before: Any, key: Any) -> Any:
    """The list of values in the order of their keys, in which `before(a, b)` tells whether `a` comes before `b`; in
    trees alone."""
    raise Refusal("PCB305", BY_METHOD, cures=Cure.ALONG)


def first_of(values: Any, before: Any, key: Any, name: str) -> Any:
    """The first value before which no other one comes, as the builtin `name` gives it; in trees alone."""
    raise Refusal("PCB305", BY_METHOD, cures=Cure.ALONG)


BY_COMPARISON = (in_order, first_of)


def consumer(unit: Unit, node: Node) -> str | None:
    """The name of the builtin that takes all elements of an iterable (see `source`); None for other nodes."""
    if not isinstance(node, gast.Call) or not node.args or isinstance(node.args[0], gast.Starred):
        return None
    if (ordered := _by_comparison(node)) is not None:
        return ordered
    name = _name(unit, node, CONSUMERS)
    if name in ("max", "min") and len(node.args) != 1:
        return None
    if name == "reduce" and (len(node.args) not in (2, 3) or node.keywords or _is_odd(node)):
        return None
    return name


def _by_comparison(node: Node) -> str | None:
    return next((function.__name__ for function in BY_COMPARISON if is_supported(node, function)), None)


def source(unit: Unit, node: Node) -> Node:
    """The iterable whose elements a consumer takes."""
    return node.args[1 if consumer(unit, node) == "reduce" else 0]


def lazy(unit: Unit, node: Node) -> str | None:
    """The name of the function whose call makes a stream, such as "map"; None for other nodes."""
    for made in (steps, groups):
        if is_supported(node, made):
            return made.__name__
    name = _name(unit, node, LAZY) if isinstance(node, gast.Call) else None
    if name == "iter" and (len(node.args) != 1 or _is_odd(node)):
        return None
    return None if name in NESTED and nested_loops(unit, node, name) is None else name


def groups_of(unit: Unit, node: Node) -> bool:
    """Whether a node is a call of `itertools.groupby`, whose groups come from one iterator."""
    return isinstance(node, gast.Call) and resolve(unit, node.func) is itertools.groupby


def nested_loops(unit: Unit, node: Node, name: str) -> int | None:
    """The number of loops that stand for a call such as `combinations(xs, 2)`; None if types must be known."""
    given = [*node.args[1:]] if name != "product" else []
    given += [keyword.value for keyword in node.keywords]
    if not given:
        return 1 if name == "product" else None
    value = resolve(unit, given[0])
    times = value if type(value) is int else integer(given[0])
    return times if times is not None and times >= 0 else None


def _name(unit: Unit, node: Node, table: dict[str, Any]) -> str | None:
    function = resolve(unit, node.func)
    if function is MISSING:
        return None
    return next((name for name, value in table.items() if function is value or _equal(function, value)), None)


def _equal(a: Any, b: Any) -> bool:
    # A bound method, such as `chain.from_iterable`, is a new object at each look-up; a dotted name means a descriptor.
    a = itertools.chain.from_iterable if a is vars(itertools.chain)["from_iterable"] else a
    return type(a) is type(b) is type(itertools.chain.from_iterable) and a == b


def is_stream(unit: Unit, node: Node) -> bool:
    """Whether a node is a comprehension, other than of a set or dict, or a call that makes a stream."""
    return isinstance(node, ELEMENTS) or lazy(unit, node) is not None or generator(unit, node) is not None


def is_special(unit: Unit, node: Node) -> bool:
    """Whether a node is a stream that the head of a loop does not take as it is."""
    name = lazy(unit, node)
    if generator(unit, node) is not None:
        return not _is_odd(node) or _has_one_star(node)
    if name == "enumerate" and node.args:
        kept = unit.source.loc(node.args[0]) in unit.decisions.taken
        return not _is_odd(node) and (kept or is_special(unit, node.args[0]))
    if name == "zip" and (generator_among(unit, node) is not None or in_turns(unit, node.args)):
        return not node.keywords and not _is_odd(node)
    if isinstance(node, ELEMENTS) or (name == "chain" and not node.keywords):
        return True
    return name is not None and name not in INSIDE_OUT and not _is_odd(node)


def counts(unit: Unit, node: Node) -> bool:
    """Whether a node is `itertools.count` or an endless `itertools.repeat`, whose elements follow from their index."""
    name = lazy(unit, node)
    return name == "count" or (name == "repeat" and len(node.args) + len(node.keywords) == 1)


def endless(unit: Unit, node: Node) -> bool:
    """Whether a stream has no last element for certain, as it is made of those of `itertools` that have none."""
    if isinstance(node, ELEMENTS):
        return any(endless(unit, part.iter) for part in node.generators)
    match lazy(unit, node):
        case "chain":
            return any(endless(unit, part) for part in node.args)
        case "map" | "zip" as name:
            sources = node.args[name == "map" :]
            return bool(sources) and all(endless(unit, part) for part in sources)
        case "filter" | "starmap" | "filterfalse" | "dropwhile":
            return endless(unit, node.args[-1])
        case "enumerate" | "iter" | "accumulate" | "pairwise":
            return bool(node.args) and endless(unit, node.args[0])
    return counts(unit, node)


def generator_among(unit: Unit, node: Node) -> int | None:
    """Return the place of the only generator among the arguments of `zip`, whose elements are made in their turn."""
    if node.keywords or _is_odd(node):
        return None
    found = [k for k, arg in enumerate(node.args) if generator_in(unit, arg)]
    return found[0] if len(found) == 1 or any(is_supported(node.args[k], steps) for k in found) else None


def in_turns(unit: Unit, sources: Sequence[Node]) -> bool:
    """Whether `zip` takes elements of some streams in turns, each of which is made then: of one that must be gone over,
    and of those behind it by their indices."""
    made = [part for part in sources if is_special(unit, part) and not counts(unit, part)]
    return bool(made) and all(by_index(unit, part) for part in made[1:])


def by_index(unit: Unit, node: Node) -> bool:
    """Whether the elements of a `map` or of a generator expression follow from those of its sources one by one."""
    match node:
        case gast.GeneratorExp(generators=[gast.comprehension(iter=part, ifs=[])]):
            sources, called = [part], [node.elt]
        case gast.Call(args=[function, *sources]) if lazy(unit, node) == "map" and not _is_odd(node):
            called = [function]
        case _:
            return False
    made = (part for part in sources if is_special(unit, part) and not counts(unit, part))
    return not (generator_in(unit, node) or may_stop(unit, called)) and all(by_index(unit, part) for part in made)


def _is_odd(node: Node) -> bool:
    return any(isinstance(arg, gast.Starred) for arg in node.args) or any(k.arg is None for k in node.keywords)


def _has_one_star(node: Node) -> bool:
    stars = sum(isinstance(arg, gast.Starred) for arg in node.args)
    return stars == 1 and all(keyword.arg is not None for keyword in node.keywords)


def generator_in(unit: Unit, node: Node) -> bool:
    """Whether a stream calls a generator function of the user's, which no primitive can keep for a loop, asks an
    iterator of the user's, or has no end."""
    if generator(unit, node) is not None or is_supported(node, steps):
        return True
    if endless(unit, node):
        return not counts(unit, node)
    parts = (node.generators[0].iter,) if isinstance(node, COMPREHENSIONS) else getattr(node, "args", ())
    whole = isinstance(node, COMPREHENSIONS) or is_stream(unit, node)
    return whole and any(generator_in(unit, part) for part in parts)


def takes_list(unit: Unit, node: Node) -> bool:
    """Whether a node is a call that gives the same for a generator as for a list of its elements."""
    if not isinstance(node, gast.Call):
        return False
    if isinstance(node.func, gast.Attribute) and facts(node.func.attr).iterates:
        return True
    function = resolve(unit, node.func)
    return any(function is one for one in (*COLLECTED, *FROM_KEYS))


def has_own(unit: Unit, *names: str) -> bool:
    """Whether a class that the function can see has a method of the user's of one of these names."""
    return any(any(own_methods(unit.classes.values(), name)) for name in names)


def of_container(unit: Unit, value: Node, path: Node, methods: str, at: Node) -> Node:
    """A variable whose part at a path gets a list in place of an iterator, by a method that may be the user's."""
    asked = [value, path, constant(methods, at)]
    return supported(receivers.of_container, asked, at) if has_own(unit, *methods.split()) else value


def takes_elements(unit: Unit, node: Node, target: Any) -> bool:
    """Whether a call, of what means `target`, takes the elements of its arguments, each once: `max(a, b)` does not."""
    func = node.func
    if (target is max or target is min) and (len(node.args) != 1 or isinstance(node.args[0], gast.Starred)):
        return False
    takers = (*CONSUMERS.values(), *LAZY.values(), *COLLECTED)
    if isinstance(func, gast.Attribute) and facts(func.attr).iterates and not has_own(unit, func.attr):
        return True
    return any(target is one for one in takers)


def iterables_of(unit: Unit, node: Node) -> list[Node]:
    """Return the arguments of which a call takes elements: not the start of `sum`, nor the function of `map`."""
    if consumer(unit, node) is not None:
        return [source(unit, node)]
    match lazy(unit, node):
        case "islice" | "enumerate" | "accumulate":
            return list(node.args[:1])
        case name if name in COUNTED:
            return []
        case name:
            return list(node.args[name in CALLING :])


def expands(unit: Unit, node: Node) -> bool:
    """Whether a comprehension, or a consumer of a stream, becomes a loop.

    A generator expression, or `map(f, xs)`, becomes one only where it is consumed.
    """
    if isinstance(node, gast.ListComp | gast.SetComp | gast.DictComp):
        return needs_loop(unit, node)
    return consumer(unit, node) is not None and needs_loop(unit, node)


def becomes_list(unit: Unit, node: Node) -> bool:
    """Whether a generator expression, or a call such as `map(f, xs)`, becomes a list where one is as good."""
    if isinstance(node, gast.ListComp) or not is_stream(unit, node):
        return False
    return generator_in(unit, node) or needs_loop(unit, node)


def streams_in(unit: Unit, node: Node) -> tuple[Loc, ...]:
    """The places in an expression of what may become a loop: a stream, a consumer of one, a call with `*values`."""
    kinds, parts = (*COMPREHENSIONS, gast.Starred), gast.walk(node)
    found = (p for p in parts if isinstance(p, kinds) or lazy(unit, p) or consumer(unit, p) or groups_of(unit, p))
    return tuple(unit.source.loc(part) for part in found)


def needs_loop(unit: Unit, node: Node) -> bool:
    """Whether a node contains what a primitive cannot hold: see `Decisions`, and control flow inside of a stream."""
    if _by_comparison(node) is not None:
        return True
    if any(is_supported(part, steps) or is_supported(part, groups) for part in gast.walk(node)):
        return True
    if unit.definitions and any(assigns_around(unit, part) for part in gast.walk(node)):
        return True
    if not isinstance(node, COMPREHENSIONS) and not is_stream_inside(unit, node):
        spans = [unit.source.loc(keyword.value) for keyword in node.keywords]
        return unit.source.loc(node) in unit.decisions.expanded or any(map(unit.decisions.expands, spans))
    if unit.decisions.expands(unit.source.loc(node)):
        return True
    return any(_has_control(unit, part, hidden) for part, hidden in _stepwise(unit, node))


def is_stream_inside(unit: Unit, node: Node) -> bool:
    """Whether a node is a stream, or consumes one."""
    return is_stream(unit, node) or (consumer(unit, node) is not None and is_stream(unit, source(unit, node)))


def _stepwise(unit: Unit, node: Node) -> Iterator[tuple[Node, frozenset[str]]]:
    """The parts of a node that are evaluated for each element, with the names that comprehensions bind there."""
    if isinstance(node, COMPREHENSIONS):
        bound = frozenset(name for g in node.generators for name, _ in bindings([g.target]))
        first, *rest = node.generators
        yield first.iter, frozenset()
        parts = [*first.ifs, *(part for g in rest for part in (g.iter, *g.ifs))]
        parts += [node.key, node.value] if isinstance(node, gast.DictComp) else [node.elt]
        yield from ((part, bound) for part in parts)
        return
    if not isinstance(node, gast.Call):
        return
    for part in (*node.args, *(k.value for k in node.keywords)):
        if isinstance(part, gast.Lambda):
            yield part.body, frozenset(arg.id for arg in part.args.args)
        elif is_stream(unit, part):
            yield from _stepwise(unit, part)
        elif lazy(unit, node) is not None or consumer(unit, node) is not None:
            target = resolve(unit, part)
            if target is not MISSING and (batched := unit.batched(target)) is not None and not batched.inline:
                yield gast.copy_location(gast.Call(func=part, args=[], keywords=[]), part), frozenset()


def _has_control(unit: Unit, node: Node, hidden: frozenset[str]) -> bool:
    """Whether the evaluation of an expression calls a batched function, assigns by `:=` or mutates a variable."""
    if isinstance(node, gast.NamedExpr) or _by_comparison(node) is not None:
        return True
    target = callee(unit, node, hidden)
    if target is not None and not target.inline:
        return True
    if isinstance(node, (*FUNCTIONS, gast.Lambda)):
        return False
    change = mutation(unit, node)
    if change is not None and change.place.name not in hidden:
        return True
    if isinstance(node, COMPREHENSIONS):
        inner = hidden | frozenset(name for g in node.generators for name, _ in bindings([g.target]))
        return any(_has_control(unit, part, inner) for part in children(node))
    if isinstance(node, gast.Call) and consumer(unit, node) is not None and is_stream(unit, source(unit, node)):
        if any(_has_control(unit, part, hidden | more) for part, more in _stepwise(unit, node)):
            return True
    return any(_has_control(unit, child, hidden) for child in children(node))
