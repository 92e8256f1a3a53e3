"""Type inference of primitives that make or read records of the lane: the heap is a further operand and result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax

from pcbatch.data.aliasing import CAPTURED, of_result
from pcbatch.data.columns import one_level
from pcbatch.data.objects.made import (
    FIELD_HELP,
    NeedsHeap,
    WantsRecords,
    empty_heap,
    made_schema,
    mentions_made,
    with_heap,
    without_heap,
)
from pcbatch.data.objects.made_classes import MadeClass, classes_in, is_user_record, nests
from pcbatch.data.objects.made_existing import captured_record, existed_before, refuse_existing
from pcbatch.data.objects.made_fields import HeapUse
from pcbatch.data.objects.packed import packed_in
from pcbatch.data.objects.schema import field_names
from pcbatch.data.objects.tables import WantsCopies
from pcbatch.data.objects.tuples.atoms import kind_of_part, mixed_fields
from pcbatch.data.optional import Optional
from pcbatch.errors import Refusal
from pcbatch.ir.cfg import Call, Function
from pcbatch.ir.ops import Prim
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.abstract_values import Abstract, JoinError, of_example
from pcbatch.lowering.typing.jax_types import from_aval
from pcbatch.lowering.typing.join_types import join
from pcbatch.lowering.typing.kept_traces import KeptTraces
from pcbatch.lowering.typing.trace import Traced

if TYPE_CHECKING:
    from pcbatch.lowering.typing.inferred import Inferred

Key = tuple[str, str, int]  # function, block, index of the operation


class MadeRecords:
    """Traces primitives where some classes of the program are records made in lanes.

    Attributes:
        heap: the type of the heap, one for the whole program; None without such classes.
        keys: the primitives that read or make records.
    """

    def __init__(self, tracer: Callable[..., Traced], kept: KeptTraces | None) -> None:
        classes = made_schema().classes
        self.tracer = tracer
        self._kept = kept
        self.heap = _heap_type(len(classes)) if classes else None
        self.keys: set[Key] = set()
        self._cache: dict[Key, list[tuple[tuple[Abstract, ...], Traced]]] = {}

    def trace(self, key: Key, op: Prim, fn: Callable[..., Any], ins: tuple[Abstract, ...]) -> Traced:
        """Trace a primitive; `ins` are its operands, and the tables of packed objects if it reads them."""
        if key not in self._cache and (old := captured_record(op.expr.fn)) is not None:
            raise refuse_existing(old)
        cache = self._cache.setdefault(key, [])
        if any(mentions_made(value.tree) for value in ins):
            self.keys.add(key)
        given = self._given(key, ins)
        for seen, traced in cache:
            if seen == given:
                return traced
        if key in self.keys:
            traced = self._with_heap(key, op, fn, given)
        else:
            try:
                traced = self._without_heap(key, op, fn, ins)
            except NeedsHeap:
                self.keys.add(key)
                given = self._given(key, ins)
                traced = self._with_heap(key, op, fn, given)
        cache.append((given, traced))
        return traced

    def _without_heap(self, key: Key, op: Prim, fn: Callable[..., Any], ins: tuple[Abstract, ...]) -> Traced:
        def trace() -> Traced:
            traced = self.tracer(without_heap(fn, len(op.dsts)), ins, len(op.dsts), op.expr.fn)
            return reading_tables(traced, ins) if len(ins) > len(op.expr.ins) else traced

        return self._once(key, op, ins, len(op.dsts), trace)

    def _once(self, key: Key, op: Prim, ins: tuple[Abstract, ...], results: int, trace: Callable[[], Traced]) -> Traced:
        """Return the kept trace of a primitive for these operands, or else what `trace` gives, which is kept."""
        fn = op.expr.fn
        return trace() if self._kept is None or fn is None else self._kept.once(fn, key, ins, results, trace)

    def _given(self, key: Key, ins: tuple[Abstract, ...]) -> tuple[Abstract, ...]:
        assert self.heap is not None
        return (*ins, self.heap) if key in self.keys else ins

    def _with_heap(self, key: Key, op: Prim, fn: Callable[..., Any], ins: tuple[Abstract, ...]) -> Traced:
        return self._once(key, op, ins, len(op.dsts) + 1, lambda: self._newly_with_heap(op, fn, ins))

    def _newly_with_heap(self, op: Prim, fn: Callable[..., Any], ins: tuple[Abstract, ...]) -> Traced:
        kept: list[dict[int, Any]] = []
        uses: list[HeapUse] = []
        run = with_heap(fn, len(op.dsts), kept, uses)
        traced = self.tracer(run, ins, len(op.dsts) + 1, op.expr.fn)
        if kept[-1]:  # what a second trace finds as well was not made by the first
            first = kept[-1]
            self.tracer(run, ins, len(op.dsts) + 1, op.expr.fn)
            if (old := existed_before([first, kept[-1]])) is not None:
                raise refuse_existing(old)
        traced = using_heap(traced, len(op.expr.ins), uses[-1], tables=(tables := len(ins) > len(op.expr.ins) + 1))
        return reading_tables(traced, ()) if tables else traced

    def joined(self, heap: Abstract) -> bool:
        """Let the heap be of a type that covers another one. Returns whether it covers more."""
        assert self.heap is not None
        try:
            new = join(self.heap, heap)
        except JoinError as error:
            if tables := packed_among(self.heap, heap):
                raise WantsCopies("a field of records leads to packed objects and to others", tables) from None
            if more := _mixed(self.heap, heap):
                raise WantsRecords(more) from None
            title = "a field holds values of different kinds in different records that are made in a lane"
            raise Refusal("PCB320", title, str(error), helps=(FIELD_HELP,)) from None
        wider = new != self.heap
        self.heap = new
        return wider


def _mixed(old: Abstract, new: Abstract) -> frozenset[MadeClass]:
    """The classes of tuples with the fields in which texts or numbers meet what is none of their kind."""
    found: set[MadeClass] = set()
    for one, a, b in zip(made_schema().classes, _example(old), _example(new), strict=True):
        if more := mixed_fields(one.fields, a.columns, b.columns):
            found.add(one.mixing(*more))
    return frozenset(found)


def _heap_type(classes: int) -> Abstract:
    leaves, tree = jax.tree.flatten(jax.eval_shape(lambda: empty_heap(classes)))
    return of_example(Abstract(tree, tuple(from_aval(leaf) for leaf in leaves)))


def wanted(old: Abstract, new: Abstract, error: JoinError) -> frozenset[MadeClass]:
    """Return the classes that have to be records made in lanes, so that two types may have one that covers both."""
    if error.kind not in ("made", "structure", "levels", "value"):
        return frozenset()
    examples = [_example(value) for value in (old, new)]
    one, other = map(classes_in, examples)
    if error.kind == "value" and not _mix(*examples):
        return frozenset()
    nested = error.kind == "made" and one and other
    several = one != other or len({made.cls for made in one}) > 1
    differ = error.kind != "made" and one and other and (several or any(map(nests, examples)))
    with_made = (one or other) and any(_mentions_made(value.tree) for value in (old, new))
    if nested or differ or with_made or (one and _mix(*examples)):
        return frozenset((one | other) - set(made_schema().classes))
    return frozenset()


def _mix(a: Any, b: Any) -> bool:
    """Return whether objects of one class, at one place of two values, have a text and a number in a field."""
    if type(a) is type(b) and is_user_record(type(a)):
        pairs = [(getattr(a, name, None), getattr(b, name, None)) for name in field_names(type(a), a)]
        return any({_kind(one), _kind(other)} == {"text", "number"} or _mix(one, other) for one, other in pairs)
    (xs, tree), (ys, _) = one_level(a), one_level(b)
    return tree is not None and len(xs) == len(ys) and any(map(_mix, xs, ys))


def _kind(part: Any) -> str | None:
    part = part.value if isinstance(part, Optional) else part
    return "number" if isinstance(part, ArrayType) else kind_of_part(part)


def packed_among(old: Abstract, new: Abstract) -> frozenset[int]:
    """Return the tables of packed objects of which each lane needs a copy, where two types have no common one: one
    leads into them, and the other one has objects as well."""
    tables = [packed_in(_example(value)) for value in (old, new)]
    others = [
        bool(found or classes_of(one) or _mentions_made(one.tree))
        for found, one in zip(tables, (old, new), strict=True)
    ]
    return tables[0] | tables[1] if all(others) else frozenset()


def _mentions_made(tree: Any) -> bool:
    try:
        return mentions_made(tree)
    except Exception:  # the static fields of a registered class have an exotic __eq__, as arrays have
        return False


def _example(value: Abstract) -> Any:
    leaves = [leaf if isinstance(leaf, ArrayType) else leaf.value for leaf in value.leaves]
    return jax.tree.unflatten(value.tree, leaves)


def classes_of(value: Abstract) -> frozenset[MadeClass]:
    """Return the classes of the user's objects that a value is, or holds, of which there may be records."""
    return classes_in(_example(value))


def holds_objects(value: Abstract, classes: set[type]) -> bool:
    """Return whether a value holds objects of some classes."""
    return any(one.cls in classes for one in classes_in(_example(value)))


def functions_with_heap(functions: Iterable[Function], inferred: Inferred) -> frozenset[str]:
    """Return the functions that make or read records of the lane, or call such."""
    using = {key[0] for key, traced in inferred.traced.items() if traced.heap is not None}
    called = {f.name: {op.func for op in f.ops if isinstance(op, Call)} for f in functions}
    while more := {name for name in called if name not in using and not using.isdisjoint(called[name])}:
        using |= more
    return frozenset(using)


def reading_tables(traced: Traced, ins: Sequence[Abstract]) -> Traced:
    """Return a primitive whose last operand are the tables of records: what is read of these existed before."""
    last = len(ins) - 1
    aliases = {one._replace(source=CAPTURED) if one.source == last else one for one in traced.aliases}
    return replace(traced, tables=True, aliases=frozenset(aliases))


def using_heap(traced: Traced, operands: int, fields: HeapUse, *, tables: bool) -> Traced:
    """Return a primitive whose last operand and last result is the heap of records that lanes make; `operands` is the
    number of the others that are variables of the user's; with `tables` those of packed objects stand between."""
    last = len(traced.outs) - 1
    aliases = {
        one._replace(source=CAPTURED) if one.source >= operands else one
        for one in traced.aliases
        if of_result(last) != one.source and one.result != last  # `fields` tells of the heap
        if one.source < operands + tables
    }
    return replace(
        traced,
        outs=traced.outs[:-1],
        weak=traced.weak[:-1],
        heap=traced.outs[-1],
        fields=fields,
        aliases=frozenset(aliases),
        repeated=traced.repeated - {last},
    )
