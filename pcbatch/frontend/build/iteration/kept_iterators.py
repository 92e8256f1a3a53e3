"""Iterators that are kept, in variables, arguments and results, and what takes elements from them.

    it = enumerate(xs)       ==>      it = support.kept_iterator(list(enumerate(xs)), xs)
    x = next(it, 0)          ==>      x = next(it) if support.has_next(it) else 0
    for x in it: body        ==>      while support.has_next(it): x = next(it); body

That a loop goes over such an iterator only types tell (`Decisions.taken`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import gast

from pcbatch.data.catalogue import NEXT
from pcbatch.data.functions import changes, iteration
from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.build.mutations import call_mutation, path
from pcbatch.frontend.source.callee import Target
from pcbatch.frontend.source.captured import assigned_once
from pcbatch.frontend.source.changed_in_loops import read_for_each
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.make_unit import make_unit
from pcbatch.frontend.source.places import Mutation, Place, place_of
from pcbatch.frontend.source.resolve import resolve
from pcbatch.frontend.source.rewrites.kept.kept_generators import evaluated_once, taken_parts
from pcbatch.frontend.source.scope import free_names
from pcbatch.frontend.source.streams import lazy
from pcbatch.frontend.source.tree import SCOPES, Node, call, children, display, load, rebuild, supported
from pcbatch.ir.ops import Branch

KEPT = ("iter", "enumerate", "zip", "reversed")


def kept_iterator(unit: Unit, node: Node, within: Collection[str] | None = None) -> Node:
    """Return what stands for an iterator by `iter`, `enumerate`, `zip` or `reversed` that is kept; other nodes as they
    are, and those of which no primitive has refused the iterator, or of which elements read a variable that may change
    before they are taken: one assigned elsewhere, or, if they are taken in a call, one `within` what that knows."""
    made = isinstance(node, gast.Call) and unit.source.loc(node) in unit.decisions.expanded
    name = lazy(unit, node) if made else None
    if name not in KEPT or any(isinstance(arg, gast.Starred) for arg in node.args):
        return node
    later = [name for name in sorted(read_for_each(unit, _taken_later(node))) if name in unit.variables]
    checked = [name for name in later if within is None or name in within]
    if not all(name in unit.bound and assigned_once(unit, name) for name in checked):
        return node
    if name == "iter" and lazy(unit, node.args[0]) in KEPT:
        return node
    sources = [] if name == "iter" else [part for arg in node.args for part in _read(unit, arg)]
    values = node.args[0] if name == "iter" else call(load("list", node), [node], node)
    return supported(iteration.kept_iterator, [values, *sources, *(load(one, node) for one in later)], node)


def taken_once(unit: Unit, target: Target, parameter: str, node: Node) -> Node:
    """Return a list in place of an iterator that a function gets and whose elements it takes in one place, which is
    evaluated once; other nodes as they are."""
    known = [outer for _, outer in target.captured]
    if kept_iterator(unit, node, known) is node or resolve(unit, load("list", node)) is not list:
        return node
    own = make_unit(target.fn, unit.helpers, {}, target)
    named = sum(isinstance(part, gast.Name) and part.id == parameter for part in gast.walk(own.node))
    body = [own.node.body] if isinstance(own.node, gast.Lambda) else own.node.body
    taken = (part for once in evaluated_once(body) for part in taken_parts(own, once))
    once = named == 2 and any(isinstance(part, gast.Name) and part.id == parameter for part in taken)
    return call(load("list", node), [node], node) if once else node


def _taken_later(node: Node) -> Node:
    """A stream without the lists in it, which Python makes at once."""
    if isinstance(node, gast.ListComp):
        return display([], node)
    return rebuild(node, _taken_later) if isinstance(node, gast.Call) else node


def _read(unit: Unit, node: Node) -> Iterator[Node]:
    """The variables, and parts of them, that an expression reads."""
    place = place_of(unit, node)
    if place is not None and not place.operands:
        yield node
    elif isinstance(node, SCOPES):
        yield from (load(name, node) for name in free_names(node) if name in unit.variables)
    else:
        yield from (found for child in children(node) for found in _read(unit, child))


def take_next(b: Builder, found: Mutation, operands: list[Node], node: Node, lower_into: Callable[..., None]) -> str:
    """Build `next(place, default)`; return the variable that holds its value. The operands are evaluated."""
    count = len(found.place.operands)
    bare = Mutation(found.place, NEXT, (), ())
    if len(operands) == count:
        return call_mutation(b, bare, operands, node)
    dst, some, none, after = b.temp(), b.label(), b.label(), b.label()
    test_next(b, found.place, operands[:count], some, none, node)
    b.start(some)
    lower_into(b, dst, load(call_mutation(b, bare, operands[:count], node), node))
    b.jump(after)
    b.start(none)
    lower_into(b, dst, operands[count])
    b.begin(after)
    return dst


def test_next(b: Builder, place: Place, operands: list[Node], some: str, none: str, node: Node) -> None:
    """Build the branch on whether an iterator has an element left."""
    flag = b.temp()
    b.prim(
        (flag,), supported(changes.has_next, [load(place.name, node), path(place, operands, node)], node), shown=node
    )
    b.end(Branch(flag, some, none))


def taken_place(b: Builder, node: Node) -> Place | None:
    """The variable of an iterator that is kept, if a node names one that a loop goes over."""
    place = place_of(b.unit, node) if b.loc(node) in b.unit.decisions.taken else None
    return None if place is None or place.keys else place


def next_element(b: Builder, place: Place, node: Node) -> Node:
    """Build the next element of an iterator, which has one; return the variable that holds it."""
    return b.held(call_mutation(b, Mutation(place, NEXT, (), ()), [], node), node)
