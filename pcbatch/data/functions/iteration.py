"""Lengths and elements of ranges and of other values that loops go over."""

from __future__ import annotations

import gc
import types
from dataclasses import replace
from itertools import islice
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.aliasing import holds_objects, one_of
from pcbatch.data.capacity import made_of_others
from pcbatch.data.checks import require
from pcbatch.data.columns import Unset
from pcbatch.data.container import Collection, in_order, lane_value
from pcbatch.data.functions.lifted import lane_dict
from pcbatch.data.functions.sequence_builtins import len_, list_, refuse_cycle
from pcbatch.data.functions.truth import ARRAYS
from pcbatch.data.functions.users_code import ask_for_elements, elements_of, iterable, iterated, users_codes
from pcbatch.data.integer_marks import between, exact_add
from pcbatch.data.mappings.entries import Entries
from pcbatch.data.mappings.keys import ROWS, hashable
from pcbatch.data.mappings.lane_dict import LaneDict
from pcbatch.data.mappings.lane_set import DictView, LaneSet
from pcbatch.data.objects import questions
from pcbatch.data.objects.decode import RecordList
from pcbatch.data.objects.questions import RECORDS
from pcbatch.data.objects.reference import Ref
from pcbatch.data.optional import Optional, sure
from pcbatch.data.origins import number
from pcbatch.data.sequences.indices import LARGEST, traced_range_length
from pcbatch.data.sequences.lane_deque import LaneDeque
from pcbatch.data.sequences.lane_iterator import HELPS, LaneIterator
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.sequences.lane_tuple import LaneTuple
from pcbatch.data.stored import lists_in, parts
from pcbatch.data.texts.lane_text import LaneText
from pcbatch.data.values import Flag, Index, Value
from pcbatch.decisions import Cure
from pcbatch.diagnostics.lane_words import type_name
from pcbatch.errors import NeedsUnrolling, Refusal

iinfo: Any = jnp.iinfo
WHOLE_HELP = "convert it: `int(x)` cuts a number off, and `a // b` divides to a whole one"

KEYS_VIEW: Any = type({}.keys())
DICT_VIEWS: tuple[Value, ...] = (type({}.values()), type({}.items()))
"""Views of dicts that are known while compiling, of which values may change while a loop goes over them."""

MOST_TAKEN = 2**14  # elements of an iterator that are taken while compiling: it may have no end

STEP_HELP = "go over `range(count)` and compute `start + k * step` in the loop"


def range_start(value: Value) -> Value:
    """The start of a `range`, at least 32 bits wide, so that counting from it does not wrap around."""
    if isinstance(value, jax.Array) and value.shape == () and jnp.issubdtype(value.dtype, jnp.integer):
        wide = jnp.promote_types(value.dtype, np.int32)
        return number(value if wide == value.dtype else value.astype(wide), value)
    return value


def range_length(start: Index, stop: Index, step: Index) -> Value:
    """The length of a `range` of traced values; never overflows. A traced step of zero gives zero."""
    for name, value in (("start", start), ("stop", stop), ("step", step)):
        _check_integer(name, value)
    if not isinstance(step, jax.Array) and int(step) == 0:
        title = "the step of range() must not be zero"
        raise Refusal("PCB314", title, helps=("leave the step out to count by one, or write `-1` to count down",))
    if not any(isinstance(value, jax.Array) for value in (start, stop, step)):
        return len(range(int(start), int(stop), int(step)))
    return traced_range_length(start, stop, step if isinstance(step, jax.Array) else int(step))


def range_size(start: Index, stop: Index, step: Index) -> Value:
    """The length of a `range` as a signed number, which may be subtracted from."""
    length = range_length(start, stop, step)
    return number(jnp.minimum(length, LARGEST).astype(np.int32), length) if isinstance(length, jax.Array) else length


def following(value: Value, step: Index) -> Value:
    """The number behind another one in a `range`, which is behind the last one at most once, and is not read then."""
    return number(exact_add(value, step)) if isinstance(value, jax.Array) else value + step


def one_less(value: Value) -> Value:
    """The number of elements that remain of a `range` behind one of them."""
    return number(value - 1) if isinstance(value, jax.Array) else value - 1


def counted(value: Value, step: Index) -> Value:
    """A number of a `range`: it is not the largest of its dtype where the step goes up, nor the least where it goes
    down, since the stop is behind it."""
    if not isinstance(value, jax.Array) or not isinstance(step, int):
        return value
    info = iinfo(value.dtype)
    return number(between(value, int(info.min) + (step < 0), int(info.max) - (step > 0)))


def _check_integer(name: str, value: Value) -> None:
    if isinstance(value, ARRAYS):
        is_integer = value.shape == () and (jnp.issubdtype(value.dtype, jnp.integer) or value.dtype == np.bool_)
        kind = f"{value.dtype}{list(value.shape)}"
    else:
        is_integer, kind = hasattr(type(value), "__index__"), type_name(value)
    if not is_integer:
        title = f"the {name} of range() must be an integer, not {kind}"
        raise Refusal("PCB314", title, helps=(STEP_HELP if name == "step" else WHOLE_HELP,))


def rows(value: Value) -> Value:
    """The iterable of a `for` loop as an array, a tuple or a list; refuses objects that are not iterable."""
    value = sure(value, "'NoneType' object is not iterable")
    if isinstance(value, LaneIterator):
        cures = Cure.ALONG | Cure.ITERATOR
        raise Refusal("PCB304", "a loop over an iterator that is kept", helps=HELPS, cures=cures)
    refuse_cycle(value)
    value = iterable(value)
    ask_for_elements(value)
    if isinstance(value, (*ARRAYS, tuple, list, str, *RECORDS)):
        return value
    if isinstance(value, Collection):
        return value.gone_over()
    value = iterated(value)
    if isinstance(value, DICT_VIEWS):
        # What shows changes of the dict counts as the dict itself, so that none is overlooked.
        return one_of(list(value), gc.get_referents(value))
    if isinstance(value, types.GeneratorType):
        title, note = "this generator is made while compiling", "it cannot be written out in the loop that goes over it"
        help = "define it outside of this function, and pass what it reads as arguments"
        raise Refusal("PCB314", title, note, helps=(help,))
    once = hasattr(value, "__next__")
    try:
        taken = islice(value, MOST_TAKEN) if once else value
        made = list(taken) if isinstance(value, set | frozenset) else tuple(taken)
    except TypeError:
        title = f"a `for` loop cannot go over a value of type {type_name(value)}"
        help = "write `range(n)` to count up to a number" if hasattr(value, "__index__") else "use an array or a tuple"
        raise Refusal("PCB314", title, helps=(help,)) from None
    if once and len(made) == MOST_TAKEN:
        raise Refusal("PCB304", "a loop goes over an iterator with no end in sight", helps=HELPS)
    return made


def iter_length(value: Value) -> Value:
    """The number of elements that a `for` loop goes over: for arrays, the size of the leading axis."""
    if isinstance(value, RecordList):
        return value.length
    if isinstance(value, ARRAYS) and value.shape == ():
        title = "a `for` loop cannot go over a scalar"
        note = "of an array it takes the leading axis; a scalar has none"
        raise Refusal("PCB314", title, note, helps=("write `range(n)` to count up to a number",))
    return len_(value)


def shortest(*lengths: Index) -> Value:
    """The length of `zip`, the least of `lengths`."""
    dynamic = [n for n in lengths if isinstance(n, jax.Array)]
    least = min((n for n in lengths if not isinstance(n, jax.Array)), default=None)
    for n in dynamic:
        least = n if least is None else jnp.minimum(least, n)
    return least


def row(values: Value, index: Index) -> Value:
    """The element `values[index]`, also for a NumPy array with a traced index; the index is in range."""
    if isinstance(values, Collection):
        return values.element(index)
    if not isinstance(index, jax.Array):
        return values[index]
    if isinstance(values, RECORDS):
        return questions.element(values, index)
    if not isinstance(values, ARRAYS):
        raise NeedsUnrolling(len(values))
    return jnp.asarray(values)[index]


def rolled_rows(value: Value) -> Value:
    """The iterable of a loop that stays a loop, as its length is not the same in each round of one around it."""
    value = rows(value)
    if isinstance(value, LaneTuple):
        return list_(value)
    if type(value) is str:
        return lane_value(value).gone_over()
    return one_of(LaneList.from_list(value), [value]) if type(value) in (list, tuple) else value


def appended(items: Value, item: Value) -> Value:
    """The list of a comprehension or of a consumer of an iterable with one more item."""
    if isinstance(items, list):
        return [*items, item]
    items = items.copy()
    with made_of_others():
        items.append(item)
    return items


def as_it_is(value: Value) -> Value:
    """Return a value, which is still in use where it is named again."""
    return value


def repeated_element(item: Value, depth: int, count: Index) -> Value:
    """The list of so many elements like `item`: the lists at its first `depth` levels are new ones in each element.

    What lies deeper is one object, as in `[[x] * 2 for _ in range(n)]`.
    """
    if not isinstance(count, jax.Array):
        return [_made_anew(item, depth) for _ in range(count)]
    shared = _below(item, depth)
    if lists_in(shared):
        title = "all elements of `[[xs] * 2 for _ in range(n)]` hold one list, and a change of it would be seen in all"
        raise Refusal("PCB304", title, helps=("make the list in the comprehension as well: `[[0] for _ in range(2)]`",))
    new = LaneList.repeated(item, count)
    if holds_objects(shared):
        new.held = (shared, shared)
    return new


def _made_anew(item: Value, depth: int) -> Value:
    if depth == 0:
        return item
    if isinstance(item, list):
        return [_made_anew(part, depth - 1) for part in item]
    new = jax.tree.map(lambda leaf: leaf, item)
    new.held = item.held
    return new


def _below(item: Value, depth: int) -> tuple[Value, ...]:
    """The objects that lie so many lists deep in an item."""
    if depth == 0:
        return (item,)
    if isinstance(item, list):
        return tuple(found for part in item for found in _below(part, depth - 1))
    return tuple(item.held)


def all_items(value: Value) -> list[Value]:
    """The value of `x` after `*x, = value`."""
    return list_(value)  # type: ignore[no-any-return]


def starred(value: Value, before: int, after: int) -> list[Value]:
    """The values of `a, ..., *rest, ..., z = value`."""
    if (of_lane := in_order(value)) is not None:
        return of_lane.unpacked_star(before, after)  # type: ignore[no-any-return]
    items = list(elements_of(value))
    if len(items) < before + after:
        raise ValueError(f"not enough values to unpack (expected at least {before + after}, got {len(items)})")
    end = len(items) - after
    return [*items[:before], items[before:end], *items[end:]]


def single(value: Value) -> Value:
    """The value of `x` after `x, = value`."""
    (only,) = elements_of(value) if (items := in_order(value)) is None else items.unpacked(1)
    return only


def stored_rows(value: Value) -> Value:
    """The iterable of a loop whose body stores items into it: None for a list or an array, which is read as it is then.

    Others are kept as they are when the loop begins, as `rows` gives them.
    """
    return None if isinstance(value, (*ARRAYS, list, LaneList)) else rows(value)


def stored_length(kept: Value, value: Value) -> Value:
    """The number of elements that such a loop goes over."""
    return iter_length(rows(value) if kept is None else kept)


def stored_row(kept: Value, value: Value, index: Index) -> Value:
    """The element `index` that such a loop takes now."""
    return row(value if kept is None else kept, index)


def kept_iterator(values: Value, *sources: Value) -> Value:
    """The iterator `iter(values)`, whose elements those of `sources` show: none of these may change meanwhile."""
    if isinstance(values, LaneIterator):
        return values
    if any(isinstance(source, LaneIterator | Ref) for source in sources):
        raise Refusal("PCB304", "an iterator that is kept goes over another one, or reads a record", helps=HELPS)
    made = rows(values)
    if isinstance(made, tuple | list | str):
        made = LaneText.known(made) if isinstance(made, str) else LaneList.from_list(list(made))
    if (isinstance(made, LaneList) and any(map(_can_change, parts(made.columns)))) or holds_objects(values):
        title = "an iterator that is kept goes over lists or objects, which changes of them would show"
        raise Refusal("PCB304", title, helps=("go over numbers: `for k in range(len(xs))`, and read `xs[k]`",))
    return LaneIterator(one_of(made, (values, *sources)), jnp.zeros((), np.int32))


def _can_change(part: Value) -> bool:
    return not (part is None or isinstance(part, (jax.Array, Optional, Unset, *ROWS)))


def is_left(iterator: Value) -> Value:
    """Whether an iterator has an element left."""
    if codes := users_codes(iterator, "__next__"):
        raise Refusal("PCB305", "the next element of an iterator changes it", functions=codes, cures=Cure.ALONG)
    if not isinstance(iterator, LaneIterator):
        raise TypeError(f"'{type_name(iterator)}' object is not an iterator")
    return jnp.asarray(iterator.position < iter_length(iterator.sequence))


def advanced(iterator: Value) -> Value:
    """The next element of an iterator, which takes it."""
    left = is_left(iterator)
    require(left, "StopIteration", "")
    value = row(iterator.sequence, jnp.where(left, iterator.position, 0))
    iterator.position = iterator.position + left.astype(np.int32)
    return value


# Loops over dicts, sets and deques that the body changes: the iterator sees the values of now, and no other size.


def watched(value: Value) -> Value:
    """Return a dict or set so that each change of its keys shows in its clock, also if its size does not change.

    The clock goes back where the last key is removed, so from now on no key is the last one. In a loop inside of
    another one over the same object none is already: the outer one would see the clock go on.
    """
    given = value
    if type(value) is set or (type(value) is dict and not any(isinstance(key, str) for key in value)):
        value = LaneSet.from_items(list(value)) if isinstance(value, set) else lane_dict(value)
    if isinstance(value, LaneDict | LaneSet) and (table := value.table) is not None:
        last = jnp.max(table.stamps, initial=-1)
        value = value.with_table(replace(table, clock=table.clock + (table.clock <= last + 1).astype(jnp.int32)))
    return one_of(value, [given])


def entries_of(value: Value) -> Value:
    """Return the number of entries of a dict or set before a loop over it, and of insertions, -1 if not known."""
    if isinstance(value, LaneDict | LaneSet) and value.table is not None:
        return value.length, value.table.clock
    if isinstance(value, LaneDeque):
        return value.length, value.start
    return value.length if isinstance(value, Entries) else len(value) if isinstance(value, dict | set) else 0, -1


def moved(already: Flag, value: Value, method: str) -> Value:
    """Whether the elements of a deque have moved, after a call of a method; no other object has such methods.

    A deque that is reversed has other elements in the same places, which a loop over it goes on with.
    """
    if not isinstance(value, LaneDeque) or method == "reverse":
        return already
    return already | number(value.length > 1) if method == "rotate" else True


def same_size(value: Value, before: Value, has_moved: Flag = False) -> Value:
    """Let the lane raise where a dict or set has changed its size, or its keys, in a loop over it.

    If the size is the same again, what Python does follows from its own table, which is not made here: it raises, or
    goes on with other keys. A lane always raises.
    """
    kind = "Set" if isinstance(value, LaneSet | set) else "dictionary"
    size, clock = before
    if isinstance(value, Entries | dict | set):
        now = value.length if isinstance(value, Entries) else len(value)
        require(now == size, "RuntimeError", f"{kind} changed size during iteration")
        if isinstance(value, LaneDict | LaneSet) and value.table is not None:
            holds = (clock < 0) | (value.table.clock == clock)
            require(holds, "RuntimeError", f"{kind} keys changed during iteration")
    if isinstance(value, LaneDeque):
        same = (value.length == size) & (value.start == clock) & jnp.logical_not(has_moved)
        require(same, "RuntimeError", "deque mutated during iteration")
    return 0


def live_rows(view: Value) -> Value:
    """The keys that a loop over the values or items of a dict visits; other values as a loop goes over them."""
    if isinstance(view, DictView):
        return view.source.keys_list()
    return list(view.mapping) if isinstance(view, DICT_VIEWS) else rows(view)


def live_row(kept: Value, value: Value, index: Index, items: bool) -> Value:
    """The element `index` that such a loop takes now from the dict; `items`: with its key."""
    element = row(kept, index)
    if isinstance(value, LaneDict):
        found = _value(value, element)
    elif isinstance(value, dict):
        require(element in value, "RuntimeError", "dictionary keys changed during iteration")
        found = value[element]
    else:
        return element
    return (element, found) if items else found


def _value(value: LaneDict, key: Value) -> Value:
    found = value._find(hashable(key))
    require(found.present, "RuntimeError", "dictionary keys changed during iteration")
    return value._value_at(found)
