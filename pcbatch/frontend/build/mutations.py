"""Changes in place become assignments to the variable at the root of a place.

    grid[i][j] = v        ==>      grid = support.set_item(grid, (i, j), v)
    t = stack.pop()       ==>      t, stack = support.call_method(stack, (), "pop", (), ())
    sort(grid[i])         ==>      t0 = grid[i];  t1, t0 = call @sort(t0);  grid = support.set_item(grid, (i,), t0)

The objects that a callee changes in place are further results of the call. All operands are variables or literals, so
that an analysis sees which variables share an object afterwards (`lowering/diagnose/check_ownership.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import gast

from pcbatch.data.catalogue import facts
from pcbatch.data.functions import changes, iteration, sequence_builtins
from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.build.evaluation_order import assigned, copied, updated
from pcbatch.frontend.build.operators import operator_name
from pcbatch.frontend.source.changed_in_loops import CHANGING
from pcbatch.frontend.source.places import Mutation, Place, mutation, place_of
from pcbatch.frontend.source.streams import of_container
from pcbatch.frontend.source.tree import Function, Node, call, constant, display, load, rebuild, supported
from pcbatch.ir.effects import Change


def set_place(b: Builder, place: Place, operands: Sequence[Node], value: Node, at: Node, listed: bool = False) -> None:
    """Build `place = value` for a part of a variable; `operands` are those of the place, evaluated.

    With `listed`, the value is a list in place of an iterator.
    """
    keys, old = path(place, operands, at), load(place.name, at)
    old = of_container(b.unit, old, display(keys.elts[:-1], at), "__setitem__", at) if listed else old
    _change(b, changes.set_item, place, [old, keys, value], at)


def require_kept(b: Builder, place: Place, parts: Iterable[Node], at: Node) -> None:
    """Refuse a change of a variable that one of the parts which are evaluated for it assigns (PCB330).

    Python has looked the object up before them, and changes that one.
    """
    if any(place.name in updated(b, part, in_place=False) for part in parts):
        title = f"`{place.name}` is assigned while what changes it is evaluated"
        note = "Python changes the object that the variable named before"
        help = "if the new object is to change, evaluate that in a line before: `value = ...`"
        b.faults.add("PCB330", title, at, notes=(note,), helps=(help,))


def put_back(b: Builder, place: Place, operands: Sequence[Node], value: Node, at: Node) -> None:
    """Build the change of a variable of which a part, a place, has been changed in place by a call, which is `at`."""
    count = len(place.keys)
    args = [load(place.name, at), path(place, operands, at), value]
    _change(b, changes.put_part, place, args, at, Change(0, count > 1, depth=count + 1))
    b.note(back=True, alone=b.loc(at) not in b.unit.decisions.linked)


def augment_place(
    b: Builder, place: Place, operands: Sequence[Node], at: Node, value: Node, methods: str, old: Node = None
) -> None:
    """Build `place += value`, or another operator, for a part of a variable; `old` is what it was before the value was
    evaluated, where that may differ from what it is now. `methods` must not get the value: it stands for an iterator.
    """
    keys, op = path(place, operands, at), at.op
    whole = of_container(b.unit, load(place.name, at), keys, methods, at)
    args = [whole, keys, constant(operator_name(op), at), value]
    args += [] if old is None else [old]
    count, plain = len(place.keys), isinstance(value, gast.Constant | gast.Name) and not isinstance(op, gast.Mult)
    change = Change(0, count > 1, depth=count, augments=True, unclear=not plain, spreads=isinstance(op, CHANGING))
    _change(b, changes.augment_item, place, args, at, change)


def exchange_places(
    b: Builder, places: Sequence[Place], operands: Sequence[Sequence[Node]], sources: Sequence[int], at: Node
) -> None:
    """Build an assignment that gives each of some parts of one variable what another has, by its number in `sources`;
    `operands` are those of each part."""
    paths = [path(place, keys, at) for place, keys in zip(places, operands, strict=True)]
    lengths = [len(place.keys) for place in places]
    change = Change(0, max(lengths) > 1, depth=min(lengths))
    args = [load(places[0].name, at), display(paths, at), display([constant(k, at) for k in sources], at)]
    _change(b, changes.exchange_items, places[0], args, at, change)


def delete_place(b: Builder, place: Place, operands: Sequence[Node], at: Node) -> None:
    """Build `del place` for a part of a variable."""
    _change(b, changes.delete_item, place, [load(place.name, at), path(place, operands, at)], at)


def call_mutation(b: Builder, found: Mutation, operands: Sequence[Node], node: Node, listed: bool = False) -> str:
    """Build a call that changes a place, with its operands evaluated; return the variable that holds its value.

    With `listed`, operands are lists in place of iterators.
    """
    place, count = found.place, len(found.place.operands)
    keys, old = path(place, operands[:count], node), load(place.name, node)
    args = [
        of_container(b.unit, old, keys, found.method, node) if listed else old,
        keys,
        constant(found.method, node),
        display(list(operands[count:]), node),
        display([constant(name, node) for name in found.names], node),
    ]
    result = b.temp()
    changed = supported(changes.call_method, args, node)
    known, depth = facts(found.method), len(place.keys) + 1
    change = Change(
        0, bool(place.keys), removes=known.removes, depth=depth, grows=known.grows, method=True, spreads=known.iterates
    )
    b.prim((result, place.name), changed, shown=node, at=node, changes=(place.name, change))
    for flag in () if place.keys else b.flags.get(place.name, ()):
        moved = supported(
            iteration.moved, [load(flag, node), load(place.name, node), constant(found.method, node)], node
        )
        b.plain_prim((flag,), moved, shown=load(place.name, node), at=node)
    return result


def read_place(b: Builder, place: Place, operands: Sequence[Node], read: Node, at: Node) -> Node:
    """Build a read of a place, with its operands evaluated: what a `defaultdict` lacks is stored by that."""
    stores = mutation(b.unit, read)
    if stores is not None:
        return b.held(call_mutation(b, stores, operands, at), at)
    return copied(b, supported(changes.old_item, [load(place.name, at), path(place, operands, at)], at))


def path(place: Place, operands: Sequence[Node], at: Node) -> Node:
    """The keys of a place as a tuple, for the support functions; `operands` are its expressions, evaluated."""
    values = iter(operands)
    keys = [
        _index(key.slice, values)
        if isinstance(key, gast.Subscript)
        else supported(changes.Field, [constant(key.attr, key)], key)
        for key in place.keys
    ]
    return display(keys, at)


def _index(index: Node, values: Iterator[Node]) -> Node:
    match index:
        case gast.Slice():
            parts = (index.lower, index.upper, index.step)
            bounds = [constant(None, index) if part is None else next(values) for part in parts]
            return supported(sequence_builtins.slice_, bounds, index)
        case gast.Tuple():
            return display([_index(element, values) for element in index.elts], index)
        case _:
            return next(values)


def _change(
    b: Builder, function: Function, place: Place, args: list[Node], at: Node, change: Change | None = None
) -> None:
    """Make a primitive of one of the functions that change a value at a path."""
    shown = call(load(function.__name__, at), args, at)
    last = place.keys[-1]
    sliced = function is changes.set_item and isinstance(last, gast.Subscript) and isinstance(last.slice, gast.Slice)
    change = change or Change(0, len(place.keys) > 1, depth=len(place.keys), spreads=sliced)
    build = b.plain_prim if function is changes.put_part else b.prim  # which raises nothing
    build((place.name,), supported(function, args, at), shown=shown, at=at, changes=(place.name, change))


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments of a call by parameter, and the places of those that the callee changes."""

    nodes: Mapping[str, Node]
    places: dict[str, Place]

    def fixed(self, b: Builder, lower: Callable[[Builder, Node], Node], node: Node) -> Node:
        """An argument; the indices in a place that the callee changes are evaluated here."""
        name = next((name for name in self.places if self.nodes[name] is node), None)
        if name is None:
            return node
        node = _with_evaluated_keys(b, node, lower)
        self.places[name] = place_of(b.unit, node) or self.places[name]
        return node

    def written(
        self, b: Builder, name: str, variables: Mapping[str, str], outer: Mapping[str, str], taken: Sequence[str]
    ) -> str:
        """The variable that receives what a parameter is after the call.

        Args:
            b: the builder.
            name: the parameter.
            variables: the variables that were passed, by parameter.
            outer: likewise those that the callee has captured.
            taken: the variables that receive other results.
        """
        place = self.places.get(name)
        variable = outer.get(name) if place is None else place.name
        passed = outer.get(name, variables.get(name))
        whole = variable is not None and (place is None or not place.keys)
        return str(variable) if whole and passed == variable and variable not in taken else b.temp()

    def write_back(self, b: Builder, written: Sequence[str], names: Sequence[str], at: Node) -> None:
        """Store what was passed as a part of a variable, and was changed, in that part."""
        for name, variable in zip(names, written, strict=True):
            place = self.places.get(name)
            if place is not None and place.keys:
                put_back(b, place, place.operands, load(variable, at), at)


def given_places(b: Builder, nodes: Mapping[str, Node], given_back: Sequence[str]) -> Given:
    """Return the arguments of a call, with the places of those that it gives back.

    What an argument after a place takes out of its variable or puts there may move the object that was passed: such a
    place is none, so the check of ownership sees that the object has another name.
    """
    places, names = {}, frozenset[str]()
    for name in reversed(list(nodes)):
        node = nodes[name]
        place = place_of(b.unit, node) if name in given_back else None
        if place is not None and (not place.keys or place.name not in names):
            places[name] = place
        names |= assigned(b, node)
    return Given(nodes, places)


def _with_evaluated_keys(b: Builder, node: Node, lower: Callable[[Builder, Node], Node]) -> Node:
    """A place whose indices are variables or literals that nothing else assigns."""
    if isinstance(node, gast.Name):
        return node

    def evaluated(index: Node) -> Node:
        if isinstance(index, gast.Slice | gast.Tuple):
            return rebuild(index, lambda child: evaluated(child) if isinstance(child, gast.expr) else child)
        return index if isinstance(index, gast.Constant) else copied(b, lower(b, index))

    value = _with_evaluated_keys(b, node.value, lower)
    if isinstance(node, gast.Attribute):
        return rebuild(node, lambda child: value if child is node.value else child)
    return gast.copy_location(gast.Subscript(value=value, slice=evaluated(node.slice), ctx=node.ctx), node)
