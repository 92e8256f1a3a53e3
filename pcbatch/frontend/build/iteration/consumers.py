"""Comprehensions, and builtins that take all elements of an iterable, written out as loops.

    t = any(x > n for x in xs)      ==>      t = False
                                             for x in xs:
                                                 if x > n:
                                                     t = True
                                                     break

`sum`, `any`, `max` and their like keep one value; lists, sets and dicts grow by an element in each trip.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import gast

from pcbatch.data.functions import builtins, iteration, mappings, sequence_builtins
from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.build.evaluation_order import copied
from pcbatch.frontend.build.expressions import condition, lower, lower_into
from pcbatch.frontend.build.iteration.alike_elements import alike
from pcbatch.frontend.build.iteration.any_order import forgets_order, of_any_order, with_sets
from pcbatch.frontend.build.iteration.element_loops import each
from pcbatch.frontend.build.iteration.inner_names import applied
from pcbatch.frontend.build.statements import statements
from pcbatch.frontend.source.streams import consumer
from pcbatch.frontend.source.tree import (
    Function,
    Node,
    binary,
    compare,
    constant,
    display,
    is_none,
    load,
    subscript,
    supported,
)

Keywords = Mapping[str, Node]


def expand(b: Builder, dst: str, node: Node) -> None:
    """Build `dst = node` for a comprehension, or a call of a consumer, as a loop."""
    match node:
        case gast.ListComp():
            whole = alike(b.unit, node)
            if whole is None:
                _collected(b, dst, node, node, iteration.appended, _empty_list(node))
            else:
                b.prim((dst,), whole, shown=node)
        case gast.GeneratorExp():
            _collected(b, dst, node, node, iteration.appended, _empty_list(node))
        case gast.SetComp():
            _set_of(b, dst, _elements(node, node.elt), node, mappings.set_)
        case gast.DictComp():
            _dict(b, dst, _elements(node, display([node.key, node.value], node)), node)
        case _:
            name = consumer(b.unit, node)
            assert name is not None
            keywords = {k.arg: k.value for k in node.keywords}
            CONSUMERS[name](b, dst, _of_any_order(b, node) if forgets_order(name, node, keywords) else node, keywords)


def _elements(node: Node, element: Node) -> Node:
    return gast.copy_location(gast.GeneratorExp(elt=element, generators=node.generators), node)


def _of_any_order(b: Builder, node: Node) -> Node:
    args = [of_any_order(b.unit, node.args[0]), *node.args[1:]]
    return gast.copy_location(gast.Call(func=node.func, args=args, keywords=node.keywords), node)


def expand_condition(b: Builder, node: Node, on_true: str, on_false: str) -> bool:
    """Build `if any(...)` or `if all(...)` without a value in between; False for other nodes, which build nothing."""
    name = consumer(b.unit, node)
    if name not in ("any", "all") or isinstance(node.args[0], gast.ListComp):
        return False

    def step(value: Node, after: str) -> None:
        condition(b, value, *((on_true, after) if name == "any" else (after, on_false)))
        b.start(b.label())

    each(b, of_any_order(b.unit, node.args[0]), step)
    b.jump(on_false if name == "any" else on_true)
    return True


def build(b: Builder, body: Sequence[Node]) -> None:
    """Build statements in the current block."""
    statements(b, body)


def _empty_list(at: Node) -> Node:
    return gast.copy_location(gast.List(elts=[], ctx=gast.Load()), at)


def collect(b: Builder, dst: str, node: Node) -> None:
    """Build the list of a stream's elements in a variable that nothing else reads, as it grows."""
    _grown(b, dst, node, node, iteration.appended, _empty_list(node))


def _collected(b: Builder, dst: str, source: Node, at: Node, method: Function, empty: Node) -> None:
    """Build a collection that grows by one element in each trip."""
    grown = b.temp()
    _grown(b, grown, source, at, method, empty)
    lower_into(b, dst, load(grown, at))


def _grown(b: Builder, grown: str, source: Node, at: Node, method: Function, empty: Node) -> None:
    b.prim((grown,), empty, shown=at)

    def step(value: Node, _: str) -> None:
        element = lower(b, value)
        b.prim((grown,), supported(method, [load(grown, at), element], value), shown=element, at=value)

    each(b, source, step)


def _list(b: Builder, dst: str, node: Node, _: Keywords) -> None:
    _collected(b, dst, node.args[0], node, iteration.appended, _empty_list(node))


def _tuple(b: Builder, dst: str, node: Node, _: Keywords) -> None:
    items = b.temp()
    _collected(b, items, node.args[0], node, iteration.appended, _empty_list(node))
    b.prim((dst,), gast.copy_location(gast.Call(func=node.func, args=[load(items, node)], keywords=[]), node))


def _set_of(b: Builder, dst: str, source: Node, at: Node, empty: Function) -> None:
    """Build a set or frozenset, whose own order is not known where the elements of another set come in any order."""
    grown = b.temp()
    b.prim((grown,), supported(empty, [], at), shown=at)
    elements = with_sets(b.unit, source)

    def step(value: Node, _: str) -> None:
        made, sets = (value.elts[0], [value.elts[1]]) if elements is not source else (value, [])
        element = lower(b, made)
        b.prim((grown,), supported(mappings.added, [load(grown, at), element, *sets], made), shown=element, at=made)

    each(b, elements, step)
    lower_into(b, dst, load(grown, at))


def _set(b: Builder, dst: str, node: Node, _: Keywords) -> None:
    _set_of(b, dst, node.args[0], node, mappings.set_)


def _frozenset(b: Builder, dst: str, node: Node, _: Keywords) -> None:
    _set_of(b, dst, node.args[0], node, mappings.frozenset_)


def _dict(b: Builder, dst: str, source: Node, at: Node) -> None:
    grown = b.temp()
    b.prim((grown,), gast.copy_location(gast.Dict(keys=[], values=[]), at))

    def step(value: Node, _: str) -> None:
        pair = lower(b, value)
        if isinstance(pair, gast.Tuple) and len(pair.elts) == 2:
            key, item = pair.elts
        else:
            both = copied(b, pair)
            key, item = (subscript(both, constant(k, both), both) for k in range(2))
        b.prim((grown,), supported(mappings.with_item, [load(grown, at), key, item], value), shown=item, at=value)

    each(b, source, step)
    lower_into(b, dst, load(grown, at))


def _dict_call(b: Builder, dst: str, node: Node, _: Keywords) -> None:
    _dict(b, dst, node.args[0], node)


def _sorted(b: Builder, dst: str, node: Node, _: Keywords) -> None:
    items = b.temp()
    _collected(b, items, node.args[0], node, iteration.appended, _empty_list(node))
    args = [load(items, node), *node.args[1:]]
    b.prim((dst,), gast.copy_location(gast.Call(func=node.func, args=args, keywords=node.keywords), node))


def _in_order(b: Builder, dst: str, node: Node, _: Keywords) -> None:
    """Build `in_order(values, before, key)`: each value is inserted behind those that it does not come before."""
    before, key = node.args[1], None if is_none(node.args[2]) else node.args[2]
    out, keys, low, high, middle = (load(b.temp(), node) for _ in range(5))
    grown = [out] if key is None else [out, keys]
    for each_list in grown:
        b.prim((each_list.id,), _empty_list(node))

    def step(value: Node, _: str) -> None:
        element = copied(b, lower(b, value))
        rank = element if key is None else copied(b, lower(b, applied(b, key, [element], value)))
        head, inside, above, below, found = (b.label() for _ in range(5))
        b.prim((low.id,), constant(0, node))
        b.prim((high.id,), supported(sequence_builtins.len_, [out], node))
        b.begin(head)
        condition(b, compare(low, gast.Lt(), high, node), inside, found)
        b.start(inside)
        half = binary(binary(low, gast.Add(), high, node), gast.FloorDiv(), constant(2, node), node)
        b.prim((middle.id,), half)
        other = copied(b, lower(b, subscript(grown[-1], middle, node)))
        condition(b, applied(b, before, [rank, other], value), below, above)
        b.start(below)
        lower_into(b, high.id, middle)
        b.jump(head)
        b.start(above)
        b.prim((low.id,), binary(middle, gast.Add(), constant(1, node), node))
        b.jump(head)
        b.start(found)
        for each_list, item in zip(grown, (element, rank), strict=False):
            longer = supported(sequence_builtins.inserted, [each_list, low, item], value)
            b.prim((each_list.id,), longer, shown=item, at=value)

    each(b, node.args[0], step)
    lower_into(b, dst, out)


def _sum(b: Builder, dst: str, node: Node, keywords: Keywords) -> None:
    start = node.args[1] if len(node.args) > 1 else keywords.get("start", constant(0, node))
    _accumulated(b, dst, node, start, gast.Add())


def _prod(b: Builder, dst: str, node: Node, keywords: Keywords) -> None:
    _accumulated(b, dst, node, keywords.get("start", constant(1, node)), gast.Mult())


def _accumulated(b: Builder, dst: str, node: Node, start: Node, op: Node) -> None:
    total = b.temp()
    lower_into(b, total, start)

    def step(value: Node, _: str) -> None:
        element = lower(b, value)
        b.prim((total,), binary(load(total, node), op, element, value), at=value)

    each(b, node.args[0], step)
    lower_into(b, dst, load(total, node))


def _reduce(b: Builder, dst: str, node: Node, _: Keywords) -> None:
    """Build `reduce(function, iterable, initial)`; without an initial value it is the first element."""
    function, elements, *initial = node.args
    total, found = load(b.temp(), node), load(b.temp(), node)
    if initial:
        lower_into(b, total.id, initial[0])
    else:
        b.unset(total.id, node)
        b.prim((found.id,), constant(False, node))

    def step(value: Node, after: str) -> None:
        element = copied(b, lower(b, value))
        if not initial:
            first, later = b.label(), b.label()
            condition(b, found, later, first)
            b.start(first)
            lower_into(b, total.id, element)
            b.prim((found.id,), constant(True, node))
            b.jump(after)
            b.start(later)
        lower_into(b, total.id, applied(b, function, [total, element], value))

    each(b, elements, step)
    if not initial:
        some, none = b.label(), b.label()
        condition(b, found, some, none)
        b.start(none)
        b.fail(TypeError, ("reduce() of empty iterable with no initial value",), node)
        b.start(some)
    lower_into(b, dst, total)


def _decided(b: Builder, dst: str, node: Node, _: Keywords, by: bool) -> None:
    """Build `any` (`by` is True) or `all` (False); the first element that decides ends a lazy iterable."""
    result, end = b.temp(), b.label()
    b.prim((result,), constant(not by, node))
    whole = isinstance(node.args[0], gast.ListComp)  # Python makes the whole list first

    def step(value: Node, after: str) -> None:
        decides = b.label()
        condition(b, value, *((decides, after) if by else (after, decides)))
        b.start(decides)
        b.prim((result,), constant(by, node))
        b.jump(after if whole else end)

    each(b, node.args[0], step)
    b.begin(end)
    lower_into(b, dst, load(result, node))


def _extreme(b: Builder, dst: str, node: Node, keywords: Keywords, name: str) -> None:
    """Build `max` or `min`: the first of the elements that none exceeds."""
    best, best_key, found = (load(b.temp(), node) for _ in range(3))
    before = node.args[1] if len(node.args) > 1 else None
    key = keywords.get("key")
    key = None if key is None or is_none(key) else key
    default = keywords.get("default")
    fallback = None if default is None else copied(b, lower(b, default))
    b.unset(best.id, node)
    if key is not None:
        b.unset(best_key.id, node)
    b.prim((found.id,), constant(False, node))

    def step(value: Node, after: str) -> None:
        element = copied(b, lower(b, value))
        rank = element if key is None else copied(b, lower(b, applied(b, key, [element], value)))
        rival = best if key is None else best_key
        better, later = b.label(), b.label()
        condition(b, found, later, better)
        b.start(later)
        pair = [rank, rival] if name == "max" else [rival, rank]
        exceeds = supported(builtins.exceeds, [*pair, constant(name, node)], value)
        condition(b, exceeds if before is None else applied(b, before, [rank, rival], value), better, after)
        b.start(better)
        lower_into(b, best.id, element)
        if key is not None:
            lower_into(b, best_key.id, rank)
        b.prim((found.id,), constant(True, node))

    source = node.args[0]
    known = isinstance(source, gast.Name | gast.Attribute)
    each(b, supported(sequence_builtins.as_records, [source], source) if known else source, step)
    some, none, end = b.label(), b.label(), b.label()
    condition(b, found, some, none)
    b.start(none)
    if fallback is None:
        b.fail(ValueError, (f"{name}() arg is an empty sequence",), node)
    else:
        lower_into(b, dst, fallback)
        b.jump(end)
    b.start(some)
    lower_into(b, dst, best)
    b.begin(end)


def _next(b: Builder, dst: str, node: Node, _: Keywords) -> None:
    """Build `next(stream, default)`: the first element ends the loop."""
    end = b.label()
    fallback = copied(b, lower(b, node.args[1])) if len(node.args) > 1 else None

    def step(value: Node, _: str) -> None:
        lower_into(b, dst, value)
        b.jump(end)

    each(b, node.args[0], step)
    if fallback is None:
        b.fail(StopIteration, (), node)
    else:
        lower_into(b, dst, fallback)
        b.jump(end)
    b.start(end)


CONSUMERS: Mapping[str, Callable[[Builder, str, Node, Keywords], None]] = {
    "sum": _sum,
    "prod": _prod,
    "reduce": _reduce,
    "any": partial(_decided, by=True),
    "all": partial(_decided, by=False),
    "max": partial(_extreme, name="max"),
    "min": partial(_extreme, name="min"),
    "list": _list,
    "tuple": _tuple,
    "bytes": _tuple,
    "set": _set,
    "frozenset": _frozenset,
    "sorted": _sorted,
    "dict": _dict_call,
    "next": _next,
    "in_order": _in_order,
    "first_of": lambda b, dst, node, _: _extreme(b, dst, node, {"key": node.args[2]}, node.args[3].value),
}
