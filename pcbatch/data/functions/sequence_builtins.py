"""Subscripts and builtins of sequences: lists of the lane, and Python's own with an index or a length of the lane."""

from __future__ import annotations

import collections
import functools
import itertools
import queue
from collections.abc import Callable
from enum import EnumType
from typing import Any

import jax
import jax.extend.source_info_util

from pcbatch.data.aliasing import holds_same, note_value, one_of
from pcbatch.data.capacity import made_of_others
from pcbatch.data.checks import require
from pcbatch.data.container import Collection, as_lane_list, in_order
from pcbatch.data.elements import prepare, stacked
from pcbatch.data.functions.lifted import lifted
from pcbatch.data.functions.python_objects import is_without
from pcbatch.data.functions.texts import chosen
from pcbatch.data.functions.truth import ARRAYS
from pcbatch.data.functions.users_code import iterated, users_method
from pcbatch.data.integer_marks import between
from pcbatch.data.mappings.entries import Entries
from pcbatch.data.mappings.keys import is_of_lane
from pcbatch.data.mappings.lane_set import DictView, LaneSet
from pcbatch.data.mappings.ordered_keys import plain, with_ordered_keys
from pcbatch.data.members import data_of
from pcbatch.data.object_parts import is_plain_object
from pcbatch.data.objects.decode import RecordList
from pcbatch.data.objects.made_classes import classes_in
from pcbatch.data.objects.pack import known_records
from pcbatch.data.objects.reference import Ref
from pcbatch.data.objects.tuples.displays import displays
from pcbatch.data.objects.tuples.operands import asked_for
from pcbatch.data.objects.tuples.parts import has_tuples, unpacked_tuple
from pcbatch.data.optional import sure, unwrapped
from pcbatch.data.origins import Tracer, is_noting, number
from pcbatch.data.rows import Rows, element_at
from pcbatch.data.sequences.indices import checked_index
from pcbatch.data.sequences.lane_deque import LaneDeque, LaneQueue, LaneStack
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.sequences.lane_tuple import LaneTuple
from pcbatch.data.stored import OfObjects
from pcbatch.data.texts.lane_bytes import LaneByteArray, LaneBytes
from pcbatch.data.texts.lane_text import LaneText
from pcbatch.data.values import Index, Value
from pcbatch.decisions import Cure, Decisions, key_of_library
from pcbatch.diagnostics.lane_words import type_name
from pcbatch.errors import Refusal

jax.extend.source_info_util.register_exclusion(__file__)

Binary = Callable[[Value, Value], Value]


def get_item(value: Value, index: Index) -> Value:
    """The subscription `value[index]`, also of a list, a tuple or a range with an index of the lane."""
    value, index = data_of(sure(value, "'NoneType' object is not subscriptable")), data_of(index)
    if (method := users_method(value, "__getitem__")) is not None:
        return method(value, index)
    if is_without(value, "__getitem__"):
        raise TypeError(f"'{type_name(value)}' object is not subscriptable")
    if not isinstance(value, dict | Entries | DictView):  # whose keys may be None
        index = unwrapped(index)
    if isinstance(value, list | tuple | Rows):
        index = asked_for(index, False, "TypeError", "list indices must be integers or slices, not str")
    if isinstance(value, list | tuple):
        return _part(value, index)
    if isinstance(value, EnumType) and isinstance(index, LaneText):
        value = dict(value.__members__)
    if isinstance(value, dict) and isinstance(index, LaneText | LaneBytes):
        return chosen(value, index)
    found = lifted(value, index)
    # A dict that becomes one of the lane only here is a copy: nothing stores a change of what it holds back.
    return (found if found is value or not isinstance(value, dict) else note_value(value, found))[index]


def _part(values: Value, index: Index) -> Value:
    """The element or the slice of a known list or tuple."""
    if values and isinstance(index, Tracer) and index.shape == ():
        return _element(values, index)
    try:
        return (lifted(values, index) if isinstance(index, slice) else values)[index]
    except Refusal as unlike:
        return _known_part(values, index, unlike)


def _known_part(values: Value, index: Index, unlike: Refusal) -> Value:
    """The part of a list or tuple whose elements are not alike: Python's own subscription fails at an index of the
    lane, but objects that a lane has made, and tuples of displays, become records."""
    if isinstance(unlike, OfObjects):
        if is_of_lane(list(values)) and classes_in(unlike.values):
            raise unlike
        if any(type(one) is tuple for one in (*unlike.values, *unlike.whole)) and displays() is not None:
            unlike.cures |= Cure.ALONG | Cure.LOOP  # those of Python's own error, as a loop may be unrolled
            raise unlike
    return values[index]


def as_records(values: Value, chosen: bool = False) -> Value:
    """Return the elements of a known list or tuple as records, if a lane can choose among them in no other way.

    Those that cannot be records are refused where they are `chosen` by the lane.
    """
    if not isinstance(values, list | tuple) or not values or not all(map(is_plain_object, values)):
        return values
    if (records := known_records(values)) is not None:
        return records
    if is_of_lane(list(values)):
        LaneList.from_list(list(values))  # objects that a lane has made become records where they are not alike
    elif chosen and (len(set(map(type, values))) > 1 or jax.tree_util.all_leaves(list(values))):
        title = "a lane chooses among objects that existed before the call, and a field of theirs is no number"
        raise Refusal("PCB320", title, helps=("make the objects in the batched function",))
    return values


def _element(values: Value, index: Index) -> Value:
    """The element of a known sequence at an index of the lane; a list in it stays a known one."""
    message = (LaneList if isinstance(values, list) else LaneTuple).NO_INDEX
    if (records := as_records(values, True)) is not values:
        return LaneList.from_list(records)[index]
    trees: list[Value] = [jax.tree.structure(with_ordered_keys(value)) for value in values]
    if all(tree == trees[0] for tree in trees[1:]):
        leaves = [jax.tree.leaves(value) for value in values]
        columns = [_column(list(column)) for column in zip(*leaves, strict=True)]
        if all(column is not None for column in columns):
            place, _ = checked_index(index, len(values), len(values), message)
            value = plain(jax.tree.unflatten(trees[0], [element_at(column, place) for column in columns]))
            # A text is read anew of its column each time, and nothing changes it: it is no copy to look after.
            return value if isinstance(value, LaneText | LaneBytes) else note_value(values, one_of(value, values))
    try:
        table = LaneList.from_list(values)
    except Refusal as unlike:
        return _known_part(values, index, unlike)
    return note_value(values, holds_same(table, values))[index]


def _column(leaves: list[Value]) -> Value:
    """The list of leaves of known elements; None if they are not alike, or functions."""
    if any(map(callable, leaves)):
        return None
    try:
        columns, origins = stacked([prepare(leaf) for leaf in leaves])
    except (Refusal, TypeError):
        return None
    return LaneList.tree_unflatten(origins, (columns, len(leaves)))


def slice_(*bounds: Value) -> slice:
    """The slice of a subscription."""
    return slice(*bounds)


def len_(value: Value, /) -> Value:
    """The builtin `len`, also for the lane's containers."""
    value = sure(value, "object of type 'NoneType' has no len()")
    value = asked_for(value, True, "TypeError", "object of type 'int' has no len()")
    if (method := users_method(value, "__len__")) is not None:
        return method(value)
    if is_without(value, "__len__"):
        raise TypeError(f"object of type '{type_name(value)}' has no len()")
    if isinstance(value, Rows) and isinstance(value.length, Tracer):
        return number(between(value.length, 0, value.capacity))
    return number(value.length) if isinstance(value, Collection | RecordList) else len(value)


def unpacked(value: Value, count: int) -> Value:
    """Return what is unpacked to `count` variables, as Python unpacks it."""
    if isinstance(value, Ref) and has_tuples(value):
        return unpacked_tuple(value, count)
    elements = iterated(value)
    return elements if (listed := in_order(elements)) is None else listed.unpacked(count)


def list_(*args: Value) -> Value:
    """The builtin `list`, also for the lane's containers."""
    if len(args) == 1 and (made := in_order(args[0])) is not None:
        return made.copy()
    return list(*map(iterated, args))


def inserted(items: Value, place: Index, item: Value) -> Value:
    """The list of items that are put in an order with one more of them, before a place."""
    if isinstance(items, list) and not items:
        return [item]
    items = LaneList.from_list(items) if isinstance(items, list) else items.copy()
    with made_of_others():
        items.insert(place, item)
    return items


def list_display(stars: str, *values: Value) -> Value:
    """The list display `[x, *xs, ...]`; `stars` has a `*` for each value with one, and a dot for the others."""
    parts = [in_order(value) if star == "*" else None for star, value in zip(stars, values, strict=True)]
    if all(part is None for part in parts):
        groups = [list(value) if star == "*" else [value] for star, value in zip(stars, values, strict=True)]
        return [item for group in groups for item in group]
    made = LaneList.from_list([])
    for star, value, part in zip(stars, values, parts, strict=True):
        if star == "*":
            made.extend(value if part is None else part)
        else:
            made.append(value)
    return made


def tuple_(*args: Value) -> Value:
    """The builtin `tuple`, also for the lane's containers."""
    if len(args) == 1 and (made := in_order(args[0])) is not None and not isinstance(made.length, int):
        return LaneTuple.of(made)
    return tuple(*args)


def bytes_(*args: Value, **options: Value) -> Value:
    """The class `bytes`, also for texts, numbers and containers of the lane."""
    value: Value = args[0] if args else None
    if isinstance(value, LaneText) and (len(args) > 1 or options):
        return value.encode(*args[1:], **options)
    if len(args) != 1 or options or isinstance(value, LaneText):
        return bytes(*args, **options)
    if isinstance(value, Tracer) and value.shape == ():
        require(value >= 0, "ValueError", "negative count")
        return LaneBytes.checked(LaneList.filled(0, value))
    if isinstance(value, list | tuple) and any(isinstance(part, Tracer) for part in value):
        value = LaneList.from_list(list(value))
    made = in_order(value)
    return bytes(value) if made is None else LaneBytes.checked(made)


def bytearray_(*args: Value, **options: Value) -> Value:
    """The class `bytearray`."""
    return LaneByteArray.of(bytes_(*args, **options)) if is_noting() else bytearray(*args, **options)


def reduce_(function: Any, values: Value, *initial: Value) -> Value:
    """The function `functools.reduce`, which becomes a loop for what has a length of the lane."""
    if as_lane_list(values) is not None:
        title = "`reduce` takes a number of steps that is known while compiling, and here it depends on the lane"
        raise Refusal("PCB306", title, helps=("write it as a loop, `for x in xs: total = f(total, x)`",))
    return functools.reduce(function, values, *initial)


def _of_lane(name: str, of_lane: Callable[..., Value], plain: Callable[..., Value]) -> Callable[..., Value]:
    """Return what stands for a class: one of the lane while a primitive is traced."""

    def make(*args: Value, **options: Value) -> Value:
        return (of_lane if is_noting() else plain)(*args, **options)

    make.__name__ = name
    return make


deque_ = _of_lane("deque_", LaneDeque.of, collections.deque)
queue_ = _of_lane("queue_", LaneQueue.new, queue.Queue)
stack_ = _of_lane("stack_", LaneStack.new, queue.LifoQueue)

HEAP_HELPS = (
    "keep a list as a heap: `heapq.heappush(heap, item)` in place of `put`, `heapq.heappop(heap)` of `get`, and "
    "`not heap` of `empty()`, after `heap = []`",
)


def priority_queue_(*args: Value, **options: Value) -> Value:
    """The class `queue.PriorityQueue`."""
    if is_noting():
        title = "`queue.PriorityQueue` is not there for lanes"
        raise Refusal("PCB304", title, helps=HEAP_HELPS)
    return queue.PriorityQueue(*args, **options)


def reversed_(values: Value, /) -> Value:
    """The builtin `reversed` where its iterator is kept; refuses what is of the lane, which would be a list."""
    if isinstance(values, Collection):
        title, note = "an iterator (reversed) cannot be kept in a variable of a lane", "Python goes over it once"
        help = "make a list of it, `list(reversed(xs))`, or use it in the expression that makes it"
        raise Refusal("PCB304", title, note, helps=(help,))
    return reversed(values)


def cycle_(values: Value, /) -> Value:
    """The class `itertools.cycle`."""
    made: Value = values if isinstance(values, Collection) else itertools.cycle(values)
    refuse_cycle(made, Collection)
    return made


def refuse_cycle(value: Value, kind: Any = (itertools.cycle, itertools.count)) -> None:
    """Refuse an iterator by `itertools.cycle` or `count`, which has no end; an object stands for it from now on."""
    if isinstance(value, kind):
        name, help = "cycle", "use an index: `xs[k % len(xs)]`"
        if isinstance(value, itertools.count):
            name, help = "count", "count in a variable: `k += 1`"
        wants = Decisions(kept=frozenset({key_of_library(name)}))
        raise Refusal("PCB304", f"an iterator ({name}) is kept", helps=(help,), wants=wants)


def counted_sequence(values: Value) -> Value:
    """A sequence whose elements are taken by an index, between which others may run."""
    if isinstance(values, (*ARRAYS, list, tuple, str, range, LaneList, LaneTuple, LaneText)):
        return values
    if type(values) in (set, frozenset):
        return list(values)
    title = f"a generator that is kept goes over a {type_name(values)}"
    raise Refusal("PCB304", title, helps=("let it go over a list of the elements, `for x in list(...)`",))


def settled(value: Value) -> Value:
    """A number, which nobody changes."""
    if isinstance(value, int | float | str) or (isinstance(value, jax.Array) and value.shape == ()):
        return value
    title = "a generator that is kept begins with an operation on what may be changed until it is asked"
    raise Refusal("PCB304", title, helps=("pass it the number, or write the operation behind a `yield`",))


def islice_(values: Value, *bounds: Index) -> Value:
    """The class `itertools.islice`."""
    asks = users_method(values, "__next__") is not None
    if any(isinstance(bound, jax.Array) for bound in bounds) or asks:
        title = "`islice` takes as many elements as the lane says"
        cures = Cure.LOOP | Cure.METHODS if asks else Cure.LOOP  # a generator must stand where it is written out
        raise Refusal("PCB306", title, helps=("take them by `next` in a loop",), cures=cures)
    return itertools.islice(values, *bounds)


def reversed_once(values: Value, /) -> Value:
    """The builtin `reversed`, where all its elements are taken at once; a collection of the lane gives no iterator."""
    if is_without(values, "__reversed__") and is_without(values, "__getitem__"):
        raise TypeError(f"'{type_name(values)}' object is not reversible")
    return reversed(values)


def for_keys(values: Value, key: Value) -> tuple[LaneList | None, bool]:
    """Return the elements of a container of the lane for a function that compares them, by a key or themselves.

    With them comes whether their order is not that of Python, so that equal keys must not show it.
    """
    any_order = isinstance(values, LaneSet) and key is not None and not values.order_is_known
    return (as_lane_list if key is None or any_order else in_order)(values), any_order


def product(multiply: Binary) -> Binary:
    """Return the operator `*`, also for a list and a number of the lane."""

    def run(a: Value, b: Value) -> Value:
        result = _repeated(a, b)
        return multiply(a, b) if result is None else result

    run.__name__ = multiply.__name__
    return run


def _repeated(a: Value, b: Value) -> Value:
    for values, times in ((a, b), (b, a)):
        repeats = isinstance(values, str | bytes | list) or type(values) is tuple
        if repeats and isinstance(times, Tracer) and times.shape == ():
            one = isinstance(values, list) and len(values) == 1
            return LaneList.filled(values[0], times) if one else lifted(values, times) * times
    return None


def same_length(*lengths: Index) -> Value:
    """The length of `zip(..., strict=True)`."""
    if any(isinstance(n, jax.Array) for n in lengths):
        raise TypeError("zip(..., strict=True) needs lengths that are the same for all lanes")
    if len(set(lengths)) > 1:
        raise ValueError(f"zip(..., strict=True) goes over things of different lengths: {lengths}")
    return lengths[0]
