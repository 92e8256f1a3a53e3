"""The object of a method, which Python looks up before it evaluates the arguments.

m[k].append(f(m))        ==>        k = place_key(m, (), k);  t0 = looked_up(m[k]);  t1, m = call @f(m)
                                    if is_there(m[k], t0):  m = call_method(m, (k,), "append", (t1,))
                                    else:                   t0 = call_method(t0, (), "append", (t1,))

A change goes to what is at the place once the arguments are evaluated. Where these store another object there
(`source/stored_parts.py`), Python changes one that is at no place any more: lanes tell by a comparison whether that is
so. It is refused where the text tells that the object is replaced, since one that is equal would not be noticed, and
where the arguments may also change what is in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import gast

from pcbatch.data.catalogue import NEXT
from pcbatch.data.functions import receivers
from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.build.evaluation_order import (
    assigned,
    changes_objects,
    copied,
    frozen,
    may_raise,
    store,
)
from pcbatch.frontend.build.mutations import call_mutation, path, read_place, require_kept
from pcbatch.frontend.build.primitives import lane_reads
from pcbatch.frontend.source.places import Mutation, Place, mutation
from pcbatch.frontend.source.stored_parts import ANY, Kind, Stored, part_of, stored_parts
from pcbatch.frontend.source.tree import Node, display, integer, load, supported
from pcbatch.ir.ops import Branch

Operands = Callable[[Builder, Sequence[Node]], list[Node]]
Keys = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The operands of a place and the arguments of its method, evaluated.

    `before` is the object as it was before the arguments, where these may have put another one in its place.
    """

    operands: list[Node]
    before: Node = None


def evaluated(b: Builder, node: Node, found: Mutation, args: Sequence[Node], operands: Operands) -> Evaluated:
    """Evaluate the operands of a place and the arguments of its method, with `operands`.

    A place is read before arguments that may raise, as `d[k]` is in `d[k].append(f(x))`, or that may change it.
    """
    require_kept(b, found.place, [*found.place.operands, *found.args], node)
    place, receiver = found.place, _receiver(node, found.method)
    arguments = display(list(found.args), node)
    names, objects = assigned(b, arguments), changes_objects(b, arguments)
    first = bool(place.operands) and _is_read_first(b, place, receiver, found.args)
    if not (first or (place.keys and objects)):
        return Evaluated(operands(b, [*place.operands, *args]))
    keys = [frozen(b, key, names, objects) for key in operands(b, place.operands)]
    whole = len(args) == len(found.args) and found.method != NEXT
    keys, replaced = look_up(b, place, keys, found.args, node, compared=whole)
    require_own(b, place, keys, found.args, node)
    before = None
    if first or replaced:
        before = read_place(b, place, keys, receiver, node)
    if replaced:
        before = copied(b, supported(receivers.looked_up, [before], node))
    return Evaluated([*keys, *operands(b, args)], before if replaced else None)


def _receiver(node: Node, method: str) -> Node:
    """The expression of what a call changes: the object of its method, or the first argument of its function."""
    if isinstance(node, gast.Subscript):
        return node.value
    return node.args[0] if "." in method else node.func.value


def _is_read_first(b: Builder, place: Place, receiver: Node, args: Sequence[Node]) -> bool:
    """Whether the object at a place is read before arguments, because these may raise or see what that stores.

    A `defaultdict` raises nothing, but stores what is missing.
    """
    raising = any(may_raise(b, arg) for arg in args)
    if mutation(b.unit, receiver) is None or (raising and b.handlers):
        return raising
    return any(place.name in lane_reads(b.unit, arg, b.variables) or changes_objects(b, arg) for arg in args)


def call_of_looked_up(b: Builder, found: Mutation, given: Evaluated, node: Node, listed: bool) -> str:
    """Build a call that changes a place, or what was there before; return the variable that holds its value."""
    if given.before is None:
        return call_mutation(b, found, given.operands, node, listed)
    count, dst, cond = len(found.place.operands), b.temp(), b.temp()
    there, gone, after = b.label(), b.label(), b.label()
    now = read_place(b, found.place, given.operands[:count], _receiver(node, found.method), node)
    b.prim((cond,), supported(receivers.is_there, [now, given.before], node), shown=node)
    b.end(Branch(cond, there, gone, b.loc(node)))
    before = Mutation(Place(given.before), found.method, found.args, found.names)
    for label, change, values in ((there, found, given.operands), (gone, before, given.operands[count:])):
        b.start(label)
        store(b, dst, load(call_mutation(b, change, values, node, listed), node))
        b.jump(after)
    b.start(after)
    return dst


def look_up(
    b: Builder, place: Place, keys: Sequence[Node], args: Sequence[Node], at: Node, *, compared: bool = False
) -> tuple[list[Node], bool]:
    """Return the keys by which the object at a place is found after arguments, and whether these may replace it.

    Args:
        b: the builder.
        place: the place of the object.
        keys: the operands of the place, evaluated; there may be more.
        args: the arguments.
        at: the call.
        compared: whether the object is compared with what is there afterwards; else it must not be replaced.
    """
    found = _stored(b, place, args)
    count = len(place.keys)
    stored = [one for one in found if one.kind is Kind.STORES and len(one.part.keys) <= count]
    replaced, inside = bool(stored), any(len(one.part.keys) > count for one in found)
    sure = any(one.sure and ANY not in one.part.keys == _keys(place)[: len(one.part.keys)] for one in stored)
    if sure or (replaced and (inside or not compared)):
        note = "Python changes the object that was there before"
        b.faults.add("PCB330", receivers.REPLACED, at, notes=(note,), helps=(receivers.LINE_BEFORE,))
        return list(keys), False
    on_the_way = [(len(one.part.keys), one.kind) for one in found if len(one.part.keys) <= count]
    fixed = _fixed(b, place, keys, at) if on_the_way else list(keys)
    for length in sorted({length for length, kind in on_the_way if kind is Kind.MOVES}):
        holder = Place(place.root, place.keys[: length - 1])
        test = supported(receivers.require_still, [load(place.name, at), path(holder, fixed, at)], at)
        b.prim((b.temp(),), test, shown=at, at=at)
    return fixed, replaced


def is_kept(b: Builder, place: Place, args: Sequence[Node]) -> bool:
    """Whether the text tells that what is at a place is there still once arguments are evaluated."""
    return bool(place.keys) and all(len(one.part.keys) > len(place.keys) for one in _stored(b, place, args))


def require_own(b: Builder, place: Place, keys: Sequence[Node], args: Sequence[Node], at: Node) -> None:
    """Build the refusals of records on the way to a place to whose attributes arguments assign by other names: records
    may be one another, whatever the paths to them."""
    names, ways = _keys(place), [one.part.keys for one in _changed(b, place, args) if one.kind is not Kind.GROWS]
    for count, name in enumerate(names, 1):
        left = [way[k:] for way in ways for k, key in enumerate(way) if name[0] == "." and key == name]
        if any(len(way) <= len(names[count - 1 :]) and _on_one_way(way, names[count - 1 :]) for way in left):
            part = path(Place(place.root, place.keys[:count]), keys, at)
            b.prim((b.temp(),), supported(receivers.require_own, [load(place.name, at), part], at), shown=at, at=at)


def _stored(b: Builder, place: Place, args: Sequence[Node]) -> list[Stored]:
    """The parts that arguments store on the way to a place, or inside of what is there."""
    name, keys, found = place.name, _keys(place), _changed(b, place, args)
    return [one for one in found if one.part.root == name and _on_one_way(one.part.keys, keys)]


def _changed(b: Builder, place: Place, args: Sequence[Node]) -> frozenset[Stored]:
    """The parts of variables that arguments store, for a place that is a part of one."""
    changing = [arg for arg in args if changes_objects(b, arg)]
    return stored_parts(b.unit, changing) if place.keys and changing else frozenset()


def _keys(place: Place) -> Keys:
    part = part_of(place.keys[-1]) if place.keys else None
    return () if part is None else part.keys


def _on_one_way(stored: Keys, keys: Keys) -> bool:
    """Whether one of two paths may be the beginning of the other."""
    pairs = zip(stored, keys, strict=False)
    return all(one == other or (one[0] == other[0] == "[" and ANY in (one, other)) for one, other in pairs)


def _fixed(b: Builder, place: Place, operands: Sequence[Node], at: Node) -> list[Node]:
    """The operands of a place, where an index counts from the start of its list."""
    fixed = list(operands)
    for count, key in enumerate(place.keys):
        start = Place(place.root, place.keys[:count])
        if not isinstance(key, gast.Subscript) or isinstance(key.slice, gast.Slice | gast.Tuple):
            continue
        index = fixed[len(start.operands)]
        if (integer(index) or 0) < 0 or not isinstance(index, gast.Constant):
            parts = [load(place.name, at), path(start, fixed, at), index]
            fixed[len(start.operands)] = copied(b, supported(receivers.place_key, parts, at))
    return fixed
