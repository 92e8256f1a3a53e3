"""The results of a function under a cache of Python's, kept by each lane in a dict: the *memo* of the function.

@cache                                       memo = {}
def fib(n):                                  def fib(n):
    if n < 2:                                    if n < 2:
        return n                    ==>              return n
    return fib(n - 1) + fib(n - 2)               if n in memo:
                                                     return memo[n]
                                                 result = fib(n - 1) + fib(n - 2)
                                                 memo[n] = result
                                                 return result

Only a function that calls itself, also through others, has one: a recursion may be fast by its memo alone. That of a
nested function is made where the function is defined. That of any other is made by each function that calls it from
outside of the recursion; those inside hand it on, as they do with variables around nested functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import gast

from pcbatch.frontend.source.caches import has_key
from pcbatch.frontend.source.callable_objects import CACHE, callee_of
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.helpers import key_of
from pcbatch.frontend.source.resolve import MISSING, resolve
from pcbatch.frontend.source.rewrites.nested import calls_itself, has_cache
from pcbatch.frontend.source.scope import bindings, free_reads, parameters
from pcbatch.frontend.source.tree import (
    FUNCTIONS,
    SCOPES,
    Node,
    compare,
    display,
    is_none,
    load,
    rebuild_bodies,
    subscript,
    target_of,
    with_fields,
)

MAKING = (gast.List, gast.Dict, gast.Set, *SCOPES)
"""Expressions that make a new object each time: Python gives the one that it has kept."""


def write_memos(unit: Unit) -> Node:
    """Return the tree of a function that makes the memos it needs, and keeps its own results if it has one."""
    node = unit.node
    if isinstance(node, gast.Lambda):
        return node
    nested = {name: memo for name in unit.definitions if (memo := _of_nested(unit, name)) is not None}

    def statements(body: list[Node]) -> list[Node]:
        new: list[Node] = []
        for part in body:
            if isinstance(part, FUNCTIONS):
                if part.name in nested:
                    new.append(_empty(nested[part.name], part))
                part = _reading(part, _read(unit, [part], nested))
            new.append(_cleared(unit, part, nested) or part)
        return new

    made = [_empty(memo, node) for memo in _read(unit, node.body, {}) if memo not in unit.params]
    node = rebuild_bodies(node, statements, inner=False)
    own = unit.helpers.memos.get(key_of(unit.fn.__code__))
    if own in unit.params:
        node = _remembering(node, own)
    return with_fields(node, body=[*made, *node.body]) if made else node


def _of_nested(unit: Unit, name: str) -> str | None:
    """The memo of a function that is defined in this one; None if it has none."""
    target = unit.lifted.get(name)
    if target is None or not target.cached or not has_key(target.fn.__code__):
        return None
    return unit.helpers.memo(key_of(target.fn.__code__)) if calls_itself(name, unit.definitions) else None


def _cleared(unit: Unit, node: Node, nested: Mapping[str, str]) -> Node | None:
    """The statement that empties the memo of a function, in place of `f.cache_clear()`; None for other statements."""
    match node:
        case gast.Expr(value=gast.Call(func=gast.Attribute(value=function, attr="cache_clear"), args=[], keywords=[])):
            name = function.id if isinstance(function, gast.Name) else ""
            found = resolve(unit, function)
            if isinstance(found, CACHE):
                fn = callee_of(found)[0]
                memo = None if fn is None else unit.helpers.memos.get(key_of(fn.__code__))
            elif has_cache(unit, unit.definitions.get(name)):
                memo = nested.get(name)
            else:
                return None
            return gast.copy_location(gast.Pass(), node) if memo is None else _empty(memo, node)
    return None


def _read(unit: Unit, nodes: Iterable[Node], nested: Mapping[str, str]) -> list[str]:
    """The memos of functions that are named in nodes: of `nested` ones, and of those that are not nested."""
    found: dict[str, None] = {}
    parts = [part for node in nodes for part in gast.walk(node) if isinstance(part, gast.Attribute)]
    for part in [*(read for node in nodes for read in free_reads(node)), *parts]:
        value = resolve(unit, part)
        target = None if value is MISSING else unit.batched(value)
        if isinstance(part, gast.Name) and part.id in nested:
            found[nested[part.id]] = None
        elif target is not None and target.nested is None:
            found.update((memo, None) for memo, _ in target.captured)
    return list(found)


def _empty(memo: str, at: Node) -> Node:
    value = gast.copy_location(gast.Dict(keys=[], values=[]), at)
    return gast.copy_location(gast.Assign(targets=[target_of(memo, at)], value=value, type_comment=None), at)


def _reading(node: Node, memos: Iterable[str]) -> Node:
    """A nested function that names memos, so that it is handed them as it is other variables around it."""
    named: list[Node] = []
    for memo in memos:
        named.append(gast.copy_location(gast.Expr(value=load(memo, node)), node))
        named[-1].value.written_out = True  # a statement that stands for something
    return with_fields(node, body=[*named, *node.body]) if named else node


def _remembering(node: Node, memo: str) -> Node:
    """A function that looks for its result in its memo, and keeps there what is not known without a call."""
    names = parameters(node.args)
    if any(isinstance(part, gast.Return) for one in gast.walk(node) for part in _finals(one)):
        return node  # what it returns takes the place of what is kept by then
    key = load(names[0], node) if len(names) == 1 else display([load(name, node) for name in names], node)
    body, before = list(node.body), []
    while body and _is_simple(body[0]):
        before.append(body.pop(0))
    if any(name in names for name, _ in bindings(body)):
        kept = f"{memo}.key"
        before.append(gast.copy_location(gast.Assign([target_of(kept, node)], key, None), node))
        key = load(kept, node)
    found = gast.copy_location(gast.Return(value=subscript(load(memo, node), key, node)), node)
    known = compare(key, gast.In(), load(memo, node), node)
    look_up = gast.copy_location(gast.If(test=known, body=[found], orelse=[]), node)

    def keep(statements: list[Node]) -> list[Node]:
        return [new for part in statements for new in _kept(part, memo, key)]

    changed = rebuild_bodies(with_fields(node, body=body), keep, inner=False)
    return with_fields(changed, body=[*before, look_up, *changed.body])


def _finals(node: Node) -> list[Node]:
    """The parts of the `finally` of a statement."""
    return [part for each in getattr(node, "finalbody", ()) for part in gast.walk(each)]


def _is_simple(node: Node) -> bool:
    """Whether a statement is one at which a function begins that needs no memo: a text, a name or a simple case."""
    match node:
        case gast.Expr(value=gast.Name() | gast.Constant()):
            return True
        case gast.If(test=test, body=[gast.Return() as result], orelse=[]):
            parts = [*gast.walk(test), *gast.walk(result)]
            return not any(isinstance(part, (gast.Call, *MAKING)) for part in parts)
    return False


def _kept(node: Node, memo: str, key: Node) -> list[Node]:
    """A `return` that keeps what it returns; other statements, and a return of nothing, as they are."""
    if not isinstance(node, gast.Return) or node.value is None or is_none(node.value):
        return [node]
    result = f"{memo}.result"
    place = gast.copy_location(gast.Subscript(load(memo, node), key, gast.Store()), node)
    parts = [(target_of(result, node), node.value), (place, load(result, node))]
    stores = [gast.copy_location(gast.Assign([target], value, None), node) for target, value in parts]
    return [*stores, with_fields(node, value=load(result, node))]
