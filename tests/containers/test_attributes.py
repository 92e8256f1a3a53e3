"""What user code can read of a container of the lane: no attribute that Python's own container lacks."""

from __future__ import annotations

import enum
import queue
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import pcbatch
from pcbatch.data.container import Collection, Container
from pcbatch.data.functions.python_objects import OBJECTS, python_object
from pcbatch.data.functions.users_code import load_attribute, load_method
from pcbatch.data.mappings.lane_dict import COUNTER, ORDERED, LaneDict, Missing
from pcbatch.data.mappings.lane_set import DictView
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.errors import NoAttribute

INSIDE = {"WithHeap", "_Bucket"}  # of which no variable of the user's is one
BASES = {"Compared", "Counts", "Entries", "LaneSequence", "Letters", "Rows", "Stored", "StoredTable", "Text"}
DEFAULT = Missing("defaultdict", int, 0, stored=True)
DICTS = [LaneDict(missing) for missing in (None, COUNTER, ORDERED, DEFAULT)]
VIEWS = [DictView(of, part) for of in DICTS for part in ("keys", "values", "items")]
LANES = np.int32([2, 3])


def subclasses(cls: type) -> Iterator[type]:
    for each in cls.__subclasses__():
        if each.__module__.startswith("pcbatch."):
            yield each
            yield from subclasses(each)


def blank(cls: type) -> Any:
    """An object of a class without content, of which only attributes are asked."""
    return LaneList.from_list([]) if cls is LaneList else object.__new__(cls)


OF_LANES = [*map(blank, OBJECTS), *DICTS, *VIEWS]


def test_each_class_of_the_lane_stands_for_one_of_python() -> None:
    classes = set(subclasses(Collection)) - {Container}
    assert BASES | INSIDE <= {cls.__name__ for cls in classes}
    for cls in classes:
        if cls.__name__ not in BASES | INSIDE and cls is not DictView:
            assert cls in (LaneDict, *OBJECTS) or any(base in OBJECTS for base in cls.__mro__), cls


@pytest.mark.parametrize("value", OF_LANES, ids=lambda value: f"{type(python_object(value)).__name__}")
def test_what_user_code_can_read_is_an_attribute_in_python(value: Any) -> None:
    plain = python_object(value)
    assert type(plain).__module__.partition(".")[0] in ("builtins", "collections", "queue", "_queue")
    lacking = [name for name in dir(value) if not name.startswith("__") and name not in dir(plain)]
    for name in lacking:
        for read in (load_attribute, load_method):
            with pytest.raises(NoAttribute, match=f"has no attribute '{name}'"):
                read(value, name)


def length(n: int) -> int:
    xs = [*range(n)]
    try:
        return xs.length  # type: ignore[attr-defined, no-any-return]
    except AttributeError:
        return -1


def total(n: int) -> int:
    counts = {n: 2}
    try:
        return counts.total()  # type: ignore[attr-defined, no-any-return]
    except AttributeError:
        return -1


def subtract(n: int) -> int:
    counts = {n: 2}
    try:
        counts.subtract({n: 1})  # type: ignore[attr-defined]
    except AttributeError:
        return -counts[n]
    return counts[n]


def assigned(n: int) -> int:
    xs = [*range(n)]
    try:
        xs.length = 1  # type: ignore[attr-defined]
    except AttributeError:
        return -1
    return len(xs)


def deleted(n: int) -> int:
    counts = {n: 2}
    try:
        del counts.table  # type: ignore[attr-defined]
    except AttributeError:
        return -1
    return len(counts)


def asked(n: int) -> tuple[int, bool, bool]:
    xs = [*range(n)]
    return getattr(xs, "length", -5), hasattr(xs, "length"), hasattr(xs, "append")


def of_a_view(n: int) -> int:
    try:
        return {n: 1}.keys().length  # type: ignore[attr-defined, no-any-return]
    except AttributeError:
        return -1


def of_a_queue(n: int) -> int:
    waiting: queue.Queue[int] = queue.Queue()
    waiting.put(n)
    try:
        return waiting.popleft()  # type: ignore[attr-defined, no-any-return]
    except AttributeError:
        return -1


def sorted_deque(n: int) -> int:
    waiting = deque([n, 1])
    try:
        waiting.sort()  # type: ignore[attr-defined]
    except AttributeError:
        return -1
    return waiting[0]


def of_a_text(n: int) -> int:
    text = str(n)
    try:
        return text.codes[0]  # type: ignore[attr-defined, no-any-return]
    except AttributeError:
        return -1


def in_a_helper(n: int) -> int:
    size = lambda xs: xs.length
    try:
        return size([*range(n)])  # type: ignore[no-any-return]
    except AttributeError:
        return -1


class Point(NamedTuple):
    value: int
    present: int


class Op(enum.Enum):
    ADD = 5
    SUB = 7

    @property
    def index(self) -> int:
        return 99


def of_a_value_that_may_be_none(n: int) -> tuple[int, int]:
    point = Point(n, 8) if n > 2 else None
    op = Op.ADD if n > 2 else None
    try:
        return point.value + point.present, op.value  # type: ignore[union-attr]
    except AttributeError:
        return -1, -1


def of_a_member(n: int) -> tuple[int, int, bool]:
    op = Op.ADD if n > 2 else Op.SUB
    return op.index, getattr(op, "tolist", 4), hasattr(op, "members")


@dataclass
class Node:
    present: int
    typed: int


def of_records(n: int) -> int:
    count = 0
    for node in [Node(0, n), Node(1, 5)]:
        if node.present:
            count += 100
        count += node.typed
    return count


PROGRAMS: list[Callable[..., Any]] = [
    length, total, subtract, assigned, deleted, asked, of_a_view, of_a_queue, sorted_deque, of_a_text, in_a_helper,
    of_a_value_that_may_be_none, of_a_member, of_records,
]  # fmt: skip


@pytest.mark.parametrize("function", PROGRAMS)
def test_lanes_find_what_python_finds(function: Callable[..., Any]) -> None:
    found, wanted = pcbatch.batch(function)(LANES), [function(int(n)) for n in LANES]
    parts = [part.tolist() for part in found] if isinstance(found, tuple) else found.tolist()
    assert (list(zip(*parts, strict=True)) if isinstance(found, tuple) else parts) == wanted


def test_a_lane_that_reaches_it_raises() -> None:
    def reached(n: int) -> int:
        counts = {n: 1}
        return counts.total() if n > 2 else 0  # type: ignore[attr-defined, no-any-return]

    with pytest.raises(pcbatch.BatchRuntimeError, match="1 of 2 lanes raised `AttributeError`: 'dict' object has no"):
        pcbatch.batch(reached)(LANES)


def test_attributes_that_lanes_lack_are_refused_where_python_has_them() -> None:
    def default(n: int) -> Any:
        return getattr(bytes([n]), "upper", -1)

    with pytest.raises(pcbatch.CompileError, match="`upper` is not there for bytes"):
        pcbatch.batch(default)(LANES)


def test_a_queue_is_true_and_has_no_elements_to_ask_for() -> None:
    def truth(n: int) -> int:
        waiting: queue.Queue[int] = queue.Queue()
        waiting.put(n)
        waiting.get()
        return 1 if waiting else 0

    def size(n: int) -> int:
        waiting: queue.Queue[int] = queue.Queue()
        waiting.put(n)
        return len(waiting)  # type: ignore[arg-type]

    def same(n: int) -> bool:
        one: queue.Queue[int] = queue.Queue()
        other: queue.Queue[int] = queue.Queue()
        one.put(n)
        other.put(n)
        return one == other

    def listed(n: int) -> list[int]:
        waiting: queue.Queue[int] = queue.Queue()
        waiting.put(n)
        return [*waiting]  # type: ignore[misc]

    assert pcbatch.batch(truth)(LANES).tolist() == [1, 1]
    for function, words in ((size, "has no len"), (same, "compared by identity"), (listed, "is not iterable")):
        with pytest.raises(pcbatch.CompileError, match=words):
            pcbatch.batch(function)(LANES)


def test_elements_of_a_counter_are_repeated_in_order() -> None:
    def repeated(n: int) -> tuple[list[int], int]:
        counts = Counter([n, n, 3, 5])
        counts[4], counts[6] = 0, -1
        counts[5] += 2
        return list(counts.elements()), sum(Counter({7: n * 30}).elements())

    found, sums = pcbatch.batch(repeated)(LANES)
    assert list(zip(found.tolist(), sums.tolist(), strict=True)) == [repeated(int(n)) for n in LANES]
