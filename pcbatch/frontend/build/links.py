"""Variables that are parts of others: what is changed through one of them is stored in the other one.

    row = grid[i]            ==>      k = support.fixed_key(grid, i);  row = support.linked_item(grid, k)
    row[0] = 1               ==>      row = set_item(row, (0,), 1);  grid = set_item(grid, (k,), row)
    grid[j][0] = 2           ==>      grid = set_item(grid, (j, 0), 2);  row = linked_item(grid, k)

A lane's variables are values, so `row` has a copy of what is in `grid`. Where it is certain that both are one object in
Python, the other variable is brought up to date after each change. That costs time, and is done only at the places that
the check of ownership has asked for (`Decisions.linked`). Which links hold at a change is found by a forward analysis.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import gast

from pcbatch.data.functions import links
from pcbatch.data.functions.links import linked_item, put_back
from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.build.evaluation_order import copied
from pcbatch.frontend.build.primitives import lane_reads, passed_function
from pcbatch.frontend.source.places import Place, place_of
from pcbatch.frontend.source.tree import Node, constant, load, subscript, supported
from pcbatch.ir.analysis.dataflow import forward
from pcbatch.ir.cfg import Block, Call, Function, Op
from pcbatch.ir.effects import Change, Effects
from pcbatch.ir.ops import Expr, Move, Prim
from pcbatch.ir.roles import writes


class Fact(NamedTuple):
    """The variable `child` is the object at `keys` in that of `root`."""

    child: str
    root: str
    keys: tuple[str, ...]


Facts = frozenset[Fact]


HasControl = Callable[[Builder, Node], bool]


def link_into(b: Builder, dst: str, node: Node, has_control: HasControl, whole: Node = None) -> bool:
    """Build `dst = node` as a link if that was decided and `node` is a part of a variable; else build nothing.

    The decision is that of the expression, or of the `whole` that it is a part of.
    """
    place = linked_place(b, node, has_control, whole)
    if place is None or place.name == dst or not place.keys:
        return False
    _link_to(b, dst, place, node)
    return True


def link_each(b: Builder, dsts: Sequence[str], value: Node, has_control: HasControl) -> bool:
    """Build `above, row = table[i - 1], table[i]`, or `above, row = rows`, as links if that was decided; else build
    nothing.

    A variable that a later element still reads is assigned after them.
    """
    if b.loc(value) not in b.unit.decisions.linked or b.handlers:
        return False
    elements = value.elts if isinstance(value, gast.Tuple | gast.List) else []
    if (place := linked_place(b, value, has_control)) is not None:
        reads = [load(place.name, value), *(load(key, value) for key in fixed_keys(b, place, value))]
        rows = supported(links.linked_elements, reads, value)
        b.prim(tuple(b.temp() for _ in dsts), rows, shown=value, at=value)  # raises where there are more or less
        elements = [subscript(value, constant(k, value), value) for k in range(len(dsts))]
    if len(elements) != len(dsts) or any(isinstance(element, gast.Starred) for element in elements):
        return False
    late: list[tuple[str, str]] = []
    for k, (dst, element) in enumerate(zip(dsts, elements, strict=True)):
        if any(dst in lane_reads(b.unit, later, b.variables) for later in elements[k:]):
            late.append((dst, b.temp()))
            dst = late[-1][1]
        if link_into(b, dst, element, has_control, value):
            continue
        if isinstance(element, gast.Name) and element.id in b.variables and not passed_function(b.unit, element.id):
            b.emit(Move(dst, element.id, b.loc(value)))
        else:
            b.prim((dst,), element)
    for dst, temp in late:
        b.emit(Move(dst, temp, b.loc(value)))
    return True


def _link_to(b: Builder, dst: str, place: Place, node: Node) -> None:
    keys = fixed_keys(b, place, node)
    reads = [load(place.name, node), *(load(key, node) for key in keys)]
    b.prim((dst,), supported(links.linked_item, reads, node), shown=node, at=node)
    b.note(is_part=True)


def linked_place(b: Builder, node: Node, has_control: HasControl, whole: Node = None) -> Place | None:
    """The variable, or part of one, that a node names, if it, or the `whole` that it is a part of, is to be linked."""
    if b.loc(node if whole is None else whole) not in b.unit.decisions.linked or b.handlers:
        return None
    place = place_of(b.unit, node)
    if place is None or place.name not in b.variables or has_control(b, node):
        return None
    return place if all(map(_is_single, place.keys)) else None


def _is_single(key: Node) -> bool:
    slices = (gast.Slice, gast.Tuple, gast.Starred)
    return not isinstance(key, gast.Subscript) or not isinstance(key.slice, slices)


def fixed_keys(b: Builder, place: Place, at: Node) -> tuple[str, ...]:
    """Build variables for the keys of a place, in which an index counts from the start of its list; the key of an
    attribute is its name."""
    keys: list[str] = []
    for key in place.keys:
        index = operand = constant(key.attr, key) if isinstance(key, gast.Attribute) else key.slice
        if not isinstance(index, gast.Name) and lane_reads(b.unit, index, b.variables):
            operand = copied(b, index)
        reads = [load(place.name, at), operand, *(load(key, at) for key in keys)]
        keys.append(b.temp())
        b.prim((keys[-1],), supported(links.fixed_key, reads, at), shown=operand, at=at)
    return tuple(keys)


def synced(function: Function, linked: frozenset[Loc]) -> Function:
    """Return a function in which variables that are linked are brought up to date after changes."""
    if not linked or not any(_link(op, linked) for block in function.blocks for op in block.ops):
        return function
    entry = function.blocks[0].label

    def after(label: str, facts: Facts | None) -> Facts | None:
        for op in function.block(label).ops:
            facts = None if facts is None else _after(op, facts, linked)
        return facts

    solution = forward(
        function.blocks,
        join=lambda label, values: _met([*values, frozenset() if label == entry else None]),
        transfer=after,
        start=None,
    )
    blocks = [_synced_block(block, solution.entering[block.label] or frozenset(), linked) for block in function.blocks]
    return replace(function, blocks=tuple(blocks))


def _met(values: Sequence[Facts | None]) -> Facts | None:
    known = [value for value in values if value is not None]
    return frozenset.intersection(*known) if known else None


def _synced_block(block: Block, facts: Facts, linked: frozenset[Loc]) -> Block:
    ops: list[Op] = []
    for op in block.ops:
        if isinstance(op, Call) and op.loc in linked:
            ops += _apart(op, facts)
        facts = _after(op, facts, linked)
        ops.append(op)
        ops += _updates(_changed_in_place(op), facts, op.loc)
    return replace(block, ops=tuple(ops))


def _changed_in_place(op: Op) -> tuple[str, ...]:
    """The variables that an operation assigns because it changes their objects in place."""
    match op:
        case Prim(dsts=dsts, expr=expr) if expr.effects.changes and expr.effects.changes[0].sure:
            root = expr.ins[expr.effects.changes[0].position]
            return (root,) if dsts[-1] == root else ()
        case Call(given_back=names):
            return names
    return ()


def _link(op: Op, linked: frozenset[Loc]) -> tuple[str, ...]:
    """The root and the keys of the object that an operation gives to a variable; empty if it is not a link."""
    match op:
        case Prim(expr=expr) if expr.effects.is_part:
            return expr.ins
        case Move(dst=dst, src=src, loc=loc) if loc in linked and dst != src:
            return (src,)
    return ()


def _after(op: Op, facts: Facts, linked: frozenset[Loc]) -> Facts:
    """The links that hold after an operation."""
    if (op.dst == op.src) if isinstance(op, Move) else isinstance(op, Prim) and op.expr.effects.same:
        return facts
    changed = _changed_in_place(op)
    assigned = frozenset(writes(op)).difference(changed)
    kept = {fact for fact in facts if assigned.isdisjoint((fact.child, fact.root, *fact.keys))}
    for name in changed:
        change = op.expr.effects.changes[0] if isinstance(op, Prim) else Change(0)
        if not change.grows:
            depths = _depths(name, kept)
            kept = {fact for fact in kept if depths.get(fact.child, 0) < change.depth}
    link = _link(op, linked)
    if link and link[0] not in writes(op):
        kept.add(Fact(writes(op)[0], link[0], link[1:]))
    return frozenset(kept)


def _depths(name: str, facts: Collection[Fact]) -> dict[str, int]:
    """The number of keys from a variable to each that is linked with it; less than zero for what it is a part of."""
    depths, waiting, most = {name: 0}, [name], sum(len(fact.keys) for fact in facts)
    while waiting:
        here = waiting.pop()
        for fact in facts:
            for one, other, step in ((fact.root, fact.child, len(fact.keys)), (fact.child, fact.root, -len(fact.keys))):
                depth = min(depths[here] + step, most)
                if one == here and (other not in depths or depths[other] < depth):
                    depths[other] = depth
                    waiting.append(other)
    return depths


def _apart(call: Call, facts: Facts) -> Iterator[Op]:
    """Yield operations that read two arguments of a call anew, which are parts of one variable: lanes in which both are
    the same part stop there, since the callee would have to show what it changes by both names."""
    places: dict[tuple[str, int], dict[str, tuple[str, ...]]] = {}
    for fact in sorted(facts):
        if fact.keys and fact.child in call.args:
            places.setdefault((fact.root, len(fact.keys)), {})[fact.child] = fact.keys
    for (root, _), parts in places.items():
        if len(parts) == 2:
            ins = (root, *(key for keys in parts.values() for key in keys))
            text = f"{links.parts_apart.__name__}({', '.join(ins)})"
            yield Prim(tuple(parts), Expr(text, ins, links.parts_apart, effects=Effects(apart=True)), call.loc)


def _updates(changed: Sequence[str], facts: Facts, loc: Loc | None) -> Iterator[Op]:
    """Yield the operations that bring all variables up to date that are linked with changed ones.

    Several that a call has changed are apart, so each is stored before others are read again.
    """
    done, waiting = set(changed), list(changed)
    while waiting:
        name = waiting.pop(0)
        for fact in sorted(facts):
            if fact.child == name and (fact.root not in done or (name in changed and fact.root not in changed)):
                done.add(fact.root)
                waiting.append(fact.root)
                yield _sync(fact.root, (fact.root, *fact.keys, name), put_back, loc, Change(0, bool(fact.keys)))
        for fact in sorted(facts):
            if fact.root == name and fact.child not in done:
                done.add(fact.child)
                waiting.append(fact.child)
                yield _sync(fact.child, (name, *fact.keys), linked_item, loc)


def _sync(dst: str, ins: tuple[str, ...], fn: Callable[..., Any], loc: Loc | None, *changes: Change) -> Prim:
    text = f"{fn.__name__}({', '.join(ins)})"
    return Prim((dst,), Expr(text, ins, fn, effects=Effects(changes, syncs=True)), loc)
