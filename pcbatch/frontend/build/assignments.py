"""Assignments: one or more targets, each a name, a part of a variable, or a pattern of these."""

from __future__ import annotations

from collections.abc import Sequence

import gast

from pcbatch.data.functions import changes, iteration
from pcbatch.data.functions.links import as_value
from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.build.changes_in_try import by_stream
from pcbatch.frontend.build.evaluation_order import assigned, changes_objects, copied, frozen, may_raise, store, updated
from pcbatch.frontend.build.exchanges import PARTS, exchange
from pcbatch.frontend.build.expressions import atom, condition, has_control, lower, lower_into, operands
from pcbatch.frontend.build.iteration.streams_as_lists import whole
from pcbatch.frontend.build.links import link_each, link_into
from pcbatch.frontend.build.mutations import (
    augment_place,
    delete_place,
    read_place,
    require_kept,
    set_place,
)
from pcbatch.frontend.build.operators import operator_name
from pcbatch.frontend.build.primitives import lane_reads
from pcbatch.frontend.build.receivers import is_kept, look_up, require_own
from pcbatch.frontend.source.places import Place, mutation, place_of
from pcbatch.frontend.source.streams import IN_PLACE, is_stream, of_container
from pcbatch.frontend.source.tree import Node, binary, constant, display, load, subscript, supported
from pcbatch.ir.effects import Change
from pcbatch.ir.ops import Move


def assign(b: Builder, targets: Sequence[Node], value: Node) -> None:
    """`a = b = value`, targets from left to right, the value evaluated once."""
    if len(targets) == 1 and isinstance(targets[0], gast.Name):
        if not link_into(b, targets[0].id, value, has_control):
            lower_into(b, targets[0].id, value)
        return
    if len(targets) == 1 and exchange(b, targets[0], value):
        return
    if isinstance(value, gast.IfExp) and len(targets) == 1 and _unpacks_unlike(targets[0], value):
        _assign_either(b, targets, value)
        return
    given = value
    match targets:
        case [gast.Tuple() | gast.List()]:
            value = whole(b.unit, value)
        case [gast.Subscript(slice=gast.Slice())]:
            value = whole(b.unit, value, is_stream)
    listed = value is not given
    value = lower(b, value)
    if len(targets) > 1:
        value = _once(b, value)
    elif b.unit.decisions.tuples and isinstance(targets[0], gast.Tuple) and not isinstance(value, gast.Tuple):
        value = atom(b, value)  # what its parts are may hang on its class, for each of which code is built then
    for target in targets:
        assign_value(b, target, value, listed)


def _unpacks_unlike(target: Node, value: Node) -> bool:
    """Whether a target takes the parts of a display or of something else, which need not have a common type."""
    arms = [arm for arm in (value.body, value.orelse) if isinstance(arm, gast.Tuple | gast.List)]
    alike = len(arms) == 2 and len(arms[0].elts) == len(arms[1].elts)
    return isinstance(target, gast.Tuple | gast.List) and bool(arms) and not alike


def _assign_either(b: Builder, targets: Sequence[Node], value: Node) -> None:
    """Build `targets = x if test else y` with an assignment of each arm."""
    first, second, after = b.label(), b.label(), b.label()
    condition(b, value.test, first, second)
    for label, arm in ((first, value.body), (second, value.orelse)):
        b.start(label)
        assign(b, targets, arm)
        b.jump(after)
    b.start(after)


def assign_value(b: Builder, target: Node, value: Node, listed: bool = False) -> None:
    """`target = value` for an expression without control flow; `listed`: it is a list in place of an iterator."""
    if isinstance(target, gast.Name):
        store(b, target.id, value)
    elif isinstance(target, gast.Tuple | gast.List):
        _unpack(b, target, value, _last_occurrences(target))
    elif isinstance(target, PARTS) and (place := place_of(b.unit, target)) is not None:
        require_kept(b, place, place.operands, target)
        names = frozenset[str]().union(*(updated(b, operand) for operand in place.operands))
        value = frozen(b, _stored(b, value), names, False)
        set_place(b, place, operands(b, place.operands), value, target, listed)


def _stored(b: Builder, value: Node) -> Node:
    """A value to be stored in a part of a variable, as a variable or a literal, evaluated before the place."""
    if isinstance(value, gast.Name) and value.id in b.unbound:
        return copied(b, value)
    return value if isinstance(value, gast.Constant) else atom(b, value)


def augment(b: Builder, node: Node) -> None:
    """`x += value`: the binary operator, or a change in place of what Python would change so."""
    if isinstance(node.target, gast.Name):
        _augment_variable(b, node, node.target.id)
    elif (place := place_of(b.unit, node.target)) is not None:
        _augment_place(b, node, place)


def _augment_variable(b: Builder, node: Node, name: str) -> None:
    """Build `x += value` for a variable. What the value changes in place in its object, `x` shows as well; a variable
    that the value assigns is read before."""
    old = load(name, node.target)
    if name in updated(b, node.value):
        old = copied(b, old)
    given, methods = _taken(b, node)
    if b.handlers and methods:
        by_stream(b, node.value, node, lambda value, _: _augmented(b, node, name, old, value, methods))
        return
    value = lower(b, given)
    if b.handlers:
        value = atom(b, value)  # nothing is changed if it raises
    _augmented(b, node, name, old, value, methods)


def _augmented(b: Builder, node: Node, name: str, old: Node, value: Node, methods: str) -> None:
    owner = of_container(b.unit, old, display([], node), methods, node)
    changed = supported(changes.augmented, [constant(operator_name(node.op), node), owner, value], node)
    shown = binary(old, node.op, value, node)
    sure = b.loc(node) in b.unit.decisions.in_place or b.loc(shown) in b.unit.decisions.in_place
    drops = isinstance(node.op, gast.Sub | gast.BitAnd)  # an object gets none of the other's parts
    change = (old.id, Change(0, sure=sure, grows=isinstance(node.op, gast.Add), decided=sure, spreads=drops))
    dst = b.temp() if b.handlers and old.id != name else name
    b.prim((dst,), changed, shown=shown, changes=change)
    if dst != name:
        b.emit(Move(name, dst, b.loc(node)))


def _taken(b: Builder, node: Node) -> tuple[Node, str]:
    """The right side of `x += value`, as a list where it is an iterator, and the methods that must not get that."""
    methods = IN_PLACE.get(type(node.op), "")
    value = whole(b.unit, node.value, is_stream) if methods else node.value
    return value, methods if value is not node.value else ""


def _augment_place(b: Builder, node: Node, place: Place) -> None:
    """Build `x[i] += value`. Python reads the old value first: what the value changes or raises comes after that."""
    target, stores = node.target, None
    given, methods = _taken(b, node)
    require_kept(b, place, [*place.operands, node.value], node)
    if isinstance(target, gast.Subscript):  # what is missing in a `defaultdict` is stored when it is read
        stores = mutation(b.unit, subscript(target.value, target.slice, target))
    names = assigned(b, node.value)
    objects = changes_objects(b, node.value)
    if b.handlers and methods:
        keys = [frozen(b, key, names, objects) for key in operands(b, place.operands)]
        by_stream(b, node.value, node, lambda value, _: augment_place(b, place, keys, node, value, methods))
        return
    if (
        not (names or objects)
        and not may_raise(b, node.value)
        and (stores is None or place.name not in lane_reads(b.unit, node.value, b.variables))
    ):
        *keys, value = operands(b, [*place.operands, given])
        augment_place(b, place, keys, node, value, methods)
        return
    keys = [frozen(b, key, names, objects) for key in operands(b, place.operands)]
    # Python has looked up the container by then, as it has the object of a method.
    keys, _ = look_up(b, Place(place.root, place.keys[:-1]), keys, [node.value], node)
    require_own(b, place, keys, [node.value], node)
    old = read_place(b, place, keys, subscript(target.value, target.slice, target) if stores else target, node)
    stays = names == {place.name} and is_kept(b, place, [node.value])
    if stays:  # the object itself is found there again
        old = copied(b, supported(as_value, [old], node))
    value = operands(b, [given])[0]
    if not (names or objects):
        augment_place(b, place, keys, node, value, methods)
    elif stays or place.name not in names:
        augment_place(b, place, keys, node, value, methods, old)
    else:  # an object that changes in place would have another place by now: the check of ownership refuses that
        changed = supported(changes.augmented, [constant(operator_name(node.op), node), old, value], node)
        change = (old.id, Change(0, sure=False, grows=isinstance(node.op, gast.Add)))
        new = b.temp()
        b.prim((new,), changed, shown=binary(old, node.op, value, node), changes=change)
        set_place(b, place, keys, b.held(new, node), node)


def delete(b: Builder, target: Node) -> None:
    """`del target`, for a name, a part of a variable, or a pattern of these."""
    if isinstance(target, gast.Name):
        b.delete(target)
    elif isinstance(target, PARTS) and (place := place_of(b.unit, target)) is not None:
        require_kept(b, place, place.operands, target)
        delete_place(b, place, operands(b, place.operands), target)
    for element in getattr(target, "elts", []):
        delete(b, element)


def _unpack(b: Builder, target: Node, value: Node, last: set[int]) -> None:
    """Names of a flat pattern become the destinations of one primitive; patterns inside it follow.

    A name that stands twice keeps the value of its last occurrence, so the earlier ones get a temporary. So do all
    names where a part of a variable is a target, because its index may read them.
    """
    elements = [e.value if isinstance(e, gast.Starred) else e for e in target.elts]
    ordered = _has_parts(target)
    direct = [isinstance(e, gast.Name) and id(e) in last and not ordered for e in elements]
    dsts = tuple(e.id if plain else b.temp() for e, plain in zip(elements, direct, strict=True))
    star = next((k for k, e in enumerate(target.elts) if isinstance(e, gast.Starred)), None)
    if star is not None:
        _unpack_star(b, dsts, star, value, target)
    elif len(dsts) == 1:
        # One destination would receive the whole sequence, which is evaluated at its own place.
        value = value if isinstance(value, gast.Name) else copied(b, value)
        b.prim(dsts, supported(iteration.single, [value], target), shown=_single(value, target), at=target)
    elif not link_each(b, dsts, value, has_control):
        b.prim(dsts, value)
    for element, dst in zip(elements, dsts, strict=True):
        if isinstance(element, gast.Tuple | gast.List):
            _unpack(b, element, load(dst, element), last if not ordered else set())
        elif isinstance(element, PARTS) or ordered:
            assign_value(b, element, load(dst, element))


def _has_parts(target: Node) -> bool:
    """Whether a pattern assigns a part of a variable."""
    parts = [e.value if isinstance(e, gast.Starred) else e for e in target.elts]
    return any(isinstance(e, PARTS) or (hasattr(e, "elts") and _has_parts(e)) for e in parts)


def _unpack_star(b: Builder, dsts: tuple[str, ...], star: int, value: Node, at: Node) -> None:
    """Unpack a pattern with a star, `a, *rest, z = value`, by one primitive."""
    if not isinstance(value, gast.Name):
        value = copied(b, value)
    after = len(dsts) - star - 1
    sizes = [constant(star, at), constant(after, at)]
    if len(dsts) == 1:
        b.prim(dsts, supported(iteration.all_items, [value], at), shown=value, at=at)
        return
    # The text that people see: `xs[0], xs[1:-1], xs[-1]`.
    parts = [subscript(value, constant(k, at), at) for k in range(star)]
    parts.append(subscript(value, load(f"{star}:-{after}" if after else f"{star}:", at), at))
    parts += [subscript(value, constant(k - after, at), at) for k in range(after)]
    b.prim(dsts, supported(iteration.starred, [value, *sizes], at), shown=display(parts, at), at=at)


def _single(value: Node, at: Node) -> Node:
    zero = gast.copy_location(gast.Constant(value=0, kind=None), at)
    return gast.copy_location(gast.Subscript(value=value, slice=zero, ctx=gast.Load()), at)


def _last_occurrences(target: Node) -> set[int]:
    """Identities of the name nodes whose name does not occur again to their right."""
    last: dict[str, int] = {}
    for name in _names(target):
        last[name.id] = id(name)
    return set(last.values())


def _names(target: Node) -> list[Node]:
    if isinstance(target, gast.Name):
        return [target]
    if isinstance(target, gast.Starred):
        return _names(target.value)
    return [name for element in getattr(target, "elts", []) for name in _names(element)]


def _once(b: Builder, value: Node) -> Node:
    if isinstance(value, gast.Constant) or (isinstance(value, gast.Name) and value.id not in b.unit.variables):
        return value
    return copied(b, value)
