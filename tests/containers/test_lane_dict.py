"""Dicts of the lane, compared with Python's own over random sequences of operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pcbatch.data.capacity import Room, using_capacity
from pcbatch.data.checks import ENTRIES, collecting
from pcbatch.data.mappings.lane_dict import COUNTER, LaneDict, missing_of
from pcbatch.data.sequences.lane_list import LaneList
from tests.shares import examples

pytestmark = pytest.mark.share(5)

ROOM = 16  # two buckets for each of four, so that keys meet in them


def assign(d: Any, key: Any, value: Any) -> Any:
    d[key] = value


def increment(d: Any, key: Any, value: Any) -> Any:
    d[key] = d.get(key, 0) + value


def change(d: Any, key: Any, value: Any) -> Any:
    d[key] += value
    return d[key]


def delete(d: Any, key: Any, value: Any) -> Any:
    del d[key]


def take(d: Any, key: Any, value: Any) -> Any:
    return d.pop(key, value)


def take_last(d: Any, key: Any, value: Any) -> Any:
    return d.popitem()


def default(d: Any, key: Any, value: Any) -> Any:
    return d.setdefault(key, value)


def empty(d: Any, key: Any, value: Any) -> Any:
    d.clear()


def read(d: Any, key: Any, value: Any) -> Any:
    return d[key]


OPERATIONS: tuple[Callable[..., Any], ...] = (
    assign, assign, assign, increment, change, delete, delete, take, take_last, default, read, empty,
)  # fmt: skip

KEYS: dict[str, Any] = {
    "int": (st.integers(-10, 10), 0),
    "float": (st.sampled_from([0.0, -0.0, 1.0, 0.5, -2.25, 2.0**99, float("inf"), -7.0, 3.0]), 0.0),
    "bool": (st.booleans(), False),
    "tuple": (st.tuples(st.integers(0, 3), st.integers(-2, 2)), (0, 0)),
    "nested": (st.tuples(st.integers(0, 2), st.tuples(st.booleans(), st.sampled_from([0.5, 1.0]))), (0, (True, 0.5))),
}


def checked(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a jitted function of a container and arguments, and its container, result and the exception it raises."""
    names: list[str] = []

    def run(container: Any, *args: Any) -> Any:
        with collecting() as checks:
            result = fn(container, *args)
        names[:] = [check.exception for check in checks]
        return container, result, [jnp.asarray(check.failed) for check in checks]

    jitted = jax.jit(run)

    def call(container: Any, *args: Any) -> Any:
        after, result, failed = jitted(container, *args)
        error = next((name for name, fails in zip(names, failed, strict=True) if fails), None)
        return after, result, error

    return call


step = cache(checked)
listed = jax.jit(lambda d: d.items_list())


def tolist(values: LaneList) -> list[Any]:
    """Return the elements of a list of the lane as Python's own."""
    n = int(values.length)
    return [jax.tree.map(lambda leaf, k=k: np.asarray(leaf)[k].item(), values.columns) for k in range(n)]


def python(value: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf.item() if hasattr(leaf, "item") else leaf, value)


@pytest.mark.parametrize("kind", KEYS)
@settings(max_examples=examples(25, 8), deadline=None)
@given(data=st.data())
def test_operations_give_what_pythons_dict_gives(kind: str, data: Any) -> None:
    keys, example = KEYS[kind]
    expected: dict[Any, Any] = {}
    with using_capacity(Room(ROOM)):
        d = LaneDict()
        d[jax.tree.map(jnp.asarray, example)] = jnp.int32(0)
        del d[jax.tree.map(jnp.asarray, example)]
        for _ in range(data.draw(st.integers(1, 25))):
            operation = data.draw(st.sampled_from(OPERATIONS))
            key, value = data.draw(keys), data.draw(st.integers(-5, 5))
            d, result, error = step(operation)(d, key, jnp.int32(value))
            if error == ENTRIES:
                assert len(expected) == ROOM
                return
            try:
                wanted = operation(expected, key, value)
            except KeyError:
                assert error == "KeyError"
                return
            assert error is None
            assert python(result) == wanted
            assert int(d.length) == len(expected)
            assert tolist(listed(d)) == list(expected.items())
        assert d == expected


def test_a_full_dict_stops_the_lane_and_loses_nothing() -> None:
    with using_capacity(Room(8)):
        d = LaneDict.known({k: k for k in range(8)})
        d, _, error = step(assign)(d, 100, jnp.int32(1))
        assert error == ENTRIES
        assert tolist(listed(d)) == [(k, k) for k in range(8)]
        d, _, error = step(assign)(d, 7, jnp.int32(1))
        assert error is None


def test_places_are_used_again_after_many_deletions() -> None:
    def churn(d: Any, n: Any) -> Any:
        for k in range(5):
            d[n + k] = k
        del d[n - 5]

    with using_capacity(Room(16)):
        d = LaneDict.known({k: k for k in range(-10, 0)})
        expected = {k: k for k in range(-10, 0)}
        for n in range(0, 60, 1):
            d, _, error = step(churn)(d, jnp.int32(n))
            churn(expected, n) if n - 5 in expected else None
            if error is not None:
                assert error == ENTRIES
                break
            if len(expected) > 15:
                break
        assert tolist(listed(d)) == list(expected.items())


@pytest.mark.full_only
def test_keys_of_other_types_are_equal_as_in_python() -> None:
    d = LaneDict()
    d[jnp.int32(1)] = 10
    d[jnp.int32(0)] = 20
    assert d.contains(jnp.float32(1.0)) and d.contains(jnp.asarray(True)) and d.contains(0.0) and d.contains(-0.0)
    assert not d.contains(jnp.float32(1.5)) and not d.contains(2**40) and not d.contains(float("nan"))
    assert not d.contains(jnp.float32(2.0**31)) and not d.contains((1, 0)) and not d.contains(None)
    with jax.numpy_dtype_promotion("standard"):
        d[jnp.float32(2.5)] = 30
    assert tolist(d.items_list()) == [(1.0, 10), (0.0, 20), (2.5, 30)]
    assert d.contains(jnp.int32(1)) and not d.contains(jnp.int32(2)) and not d.contains(jnp.int32(2**31 - 1))


def test_nan_is_no_key() -> None:
    d = LaneDict()
    d[jnp.float32(1.0)] = 1
    _, _, error = step(assign)(d, jnp.float32(np.nan), 1)
    assert error == "limit"


def test_a_counter_counts_from_zero_and_reads_without_storing() -> None:
    counts = LaneDict(COUNTER)
    counts.update(LaneList.from_array(jnp.array([3, 1, 3, 2, 1, 3])))
    expected = Counter([3, 1, 3, 2, 1, 3])
    counts[jnp.int32(9)] += 2
    expected[9] += 2
    assert int(counts[jnp.int32(77)]) == 0 and int(counts.length) == 4
    assert tolist(counts.most_common()) == expected.most_common()
    assert tolist(counts.most_common(2)) == expected.most_common(2)
    assert int(counts.total()) == 8
    counts.subtract(counts)
    assert int(counts.total()) == 0


def test_a_defaultdict_stores_what_it_lacks() -> None:
    d = LaneDict(missing_of(int))
    assert int(d[jnp.int32(5)]) == 0 and int(d.length) == 1
    d[jnp.int32(5)] += 3
    assert tolist(d.items_list()) == [(5, 3)]


def test_lists_as_values_are_changed_in_the_dict() -> None:
    groups = LaneDict(missing_of(list))
    for k in (3, 1, 3, 2, 3):
        groups[jnp.int32(k)].append(jnp.int32(10 * k))
    assert int(groups[jnp.int32(3)].length) == 3 and int(groups[jnp.int32(1)].length) == 1
    assert tolist(groups.keys_list()) == [3, 1, 2]


@pytest.mark.full_only
def test_update_and_union_store_the_entries_of_both() -> None:
    a = LaneDict.of_items([(jnp.int32(1), 10), (jnp.int32(2), 20)])
    b = LaneDict.of_items([(jnp.int32(2), 21), (jnp.int32(3), 31)])
    assert tolist((a | b).items_list()) == [(1, 10), (2, 21), (3, 31)]
    assert tolist(a.items_list()) == [(1, 10), (2, 20)]
    assert (a | b) == {3: 31, 2: 21, 1: 10} and (a | b) != {3: 31, 2: 22, 1: 10} and a != b


def test_a_known_dict_of_many_entries_is_one_of_the_lane() -> None:
    known = {k * k: k for k in range(40)}
    d = LaneDict.known(known)
    assert tolist(d.items_list()) == list(known.items())
