"""Sets of the lane, compared with Python's own over random sequences of operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pcbatch
from pcbatch.data.capacity import Room, using_capacity
from pcbatch.data.mappings.lane_dict import LaneDict
from pcbatch.data.mappings.lane_set import LaneSet
from pcbatch.data.mappings.python_hashes import python_hashes
from pcbatch.data.mappings.set_order import python_order
from pcbatch.data.mappings.stored_table import covered
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.errors import Refusal
from pcbatch.runtime.scalar.rules import ForOneLane
from tests.containers.test_lane_dict import checked, python, tolist
from tests.shares import examples
from tests.strangers.rows import as_plain, lane_of

pytestmark = pytest.mark.share(3)

ROOM = 16


def add(s: Any, key: Any) -> Any:
    s.add(key)


def discard(s: Any, key: Any) -> Any:
    s.discard(key)


def remove(s: Any, key: Any) -> Any:
    s.remove(key)


OPERATIONS: dict[str, Callable[..., Any]] = {"add": add, "discard": discard, "remove": remove}
steps = {name: checked(fn) for name, fn in OPERATIONS.items()}


@settings(max_examples=examples(25, 8), deadline=None)
@given(
    operations=st.lists(
        st.tuples(
            st.sampled_from(["add", "add", "discard", "remove"]),
            st.tuples(st.integers(-2, 2), st.sampled_from([0.5, 2.0])),
        ),
        max_size=20,
    )
)
@pytest.mark.full_only
def test_operations_give_what_pythons_set_gives(operations: list[tuple[str, Any]]) -> None:
    expected: set[Any] = set()
    with using_capacity(Room(ROOM)):
        s = LaneSet.from_items([(jnp.int32(0), jnp.float32(0))])
        s.clear()
        for name, key in operations:
            s, _, error = steps[name](s, key)
            try:
                OPERATIONS[name](expected, key)
            except KeyError:
                assert error == "KeyError"
                return
            assert error is None
            assert int(s.length) == len(expected)
            assert set(tolist(s.keys_list())) == expected


def all_operators(a: Any, b: Any) -> tuple[Any, ...]:
    return (a | b, a & b, a - b, a ^ b), (a <= b, a < b, a >= b, a > b, a == b, a != b, a.isdisjoint(b))


@jax.jit
def of_lanes(xs: Any, n: Any, ys: Any, m: Any) -> Any:
    with using_capacity(Room(ROOM)):
        a, b = (LaneSet.from_items(LaneList.from_array(values)[:size]) for values, size in ((xs, n), (ys, m)))
        sets, answers = all_operators(a, b)
        return [each.keys_list() for each in sets], answers


@settings(max_examples=examples(25, 8), deadline=None)
@given(*[st.lists(st.integers(-3, 3), max_size=6)] * 2)
def test_operators_give_what_pythons_give(xs: list[int], ys: list[int]) -> None:
    sets, answers = of_lanes(
        *(part for values in (xs, ys) for part in (jnp.array([*values, *[99] * (6 - len(values))]), len(values)))
    )
    expected_sets, expected = all_operators(set(xs), set(ys))
    assert [set(tolist(each)) for each in sets] == list(expected_sets)
    assert tuple(python(answers)) == expected


def test_operators_take_known_sets_and_keys_of_dicts() -> None:
    s = LaneSet.from_items([jnp.int32(1), jnp.int32(2)])
    assert set(tolist(({2, 3} - s).keys_list())) == {3} and set(tolist(({2, 3} & s).keys_list())) == {2}
    d = LaneDict.of_items([(jnp.int32(2), 0), (jnp.int32(5), 0)])
    assert set(tolist((s | d.keys()).keys_list())) == {1, 2, 5} and s != {1} and s == {2, 1}
    with pytest.raises(TypeError, match="unsupported operand"):
        s |= [1]  # type: ignore[operator]


@jax.jit
def orders(keys: Any, count: Any, live: Any) -> Any:
    """The order of a set, of all elements and of those that are left, by lanes together and by a lane alone."""

    def both(keys: Any, count: Any, live: Any) -> Any:
        return python_order(keys, count), python_order(keys, count, live)

    alone = ForOneLane().inner(jax.make_jaxpr(both)(keys, count, live))
    return both(keys, count, live), jex.jaxpr_as_fun(alone)(*jax.tree.leaves((keys, count, live)))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(st.integers(-40, 40), st.integers(-(2**31), 2**31 - 1), st.integers(0, 40).map(lambda k: k * 256)),
        unique=True,
        max_size=90,
    ),
    st.sets(st.integers(0, 89)),
)
def test_sets_of_integers_are_gone_over_in_pythons_order(keys: list[int], gone: set[int]) -> None:
    padded = jnp.array([*keys, *[0] * (90 - len(keys))], jnp.int32)
    live = jnp.array([k not in gone for k in range(90)])
    left = _set_of(keys) - {key for k, key in enumerate(keys) if k in gone}
    for whole, rest in orders(padded, len(keys), live):
        assert [keys[place] for place in np.asarray(whole)[: len(keys)]] == list(_set_of(keys))
        assert [keys[place] for place in np.asarray(rest)[: len(left)]] == [k for k in _set_of(keys) if k in left]


NUMBERS = st.one_of(st.integers(-3, 12), st.integers(-(2**31), 2**31 - 1))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(NUMBERS, st.tuples(st.booleans(), NUMBERS)), unique=True, max_size=60),
    st.sets(st.integers(0, 59)),
)
def test_sets_of_tuples_are_gone_over_in_pythons_order(keys: list[Any], gone: set[int]) -> None:
    padded = [*keys, *[(0, (False, 0))] * (60 - len(keys))]
    first, rest = zip(*padded, strict=True)
    flags, second = zip(*rest, strict=True)
    columns = jnp.array(first, jnp.int32), (jnp.array(flags), jnp.array(second, jnp.int32))
    live = jnp.array([k not in gone for k in range(60)])
    left = _set_of(keys) - {key for k, key in enumerate(keys) if k in gone}
    for whole, others in orders(columns, len(keys), live):
        assert [keys[place] for place in np.asarray(whole)[: len(keys)]] == list(_set_of(keys))
        assert [keys[place] for place in np.asarray(others)[: len(left)]] == [k for k in _set_of(keys) if k in left]


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32", "int64"])
def test_hashes_of_integers_and_tuples_are_those_of_python(dtype: str) -> None:
    with jax.enable_x64(dtype == "int64"):
        bounds = np.iinfo(dtype)
        near = np.array([2**61 - 2, 2**61 - 1, 2**61, -(2**61) + 1, -(2**61)]) if dtype == "int64" else []
        drawn = np.random.default_rng(1).integers(bounds.min, bounds.max, 200, dtype=dtype, endpoint=True)
        values = np.array([*near, 0, 1, bounds.max, bounds.min, *drawn], dtype)
        values = np.append(values, np.array(-1, np.int64).astype(dtype))
        column = jnp.asarray(values)
        for keys, plain in [(column, values.tolist()), (((column, column), column[::-1]), _nested(values.tolist()))]:
            low, high = python_hashes(keys)
            expected = [hash(key) % 2**64 for key in plain]
            assert [int(a) | int(b) << 32 for a, b in zip(low, high, strict=True)] == expected


def _nested(values: list[int]) -> list[Any]:
    return [((one, one), other) for one, other in zip(values, values[::-1], strict=True)]


def _set_of(keys: list[Any]) -> set[Any]:
    """A set to which keys have been added one by one: its order may be another one than that of `{*keys}`."""
    found: set[Any] = set()
    for key in keys:
        found.add(key)
    return found


def test_the_order_of_other_sets_is_refused() -> None:
    s = LaneSet.from_items([jnp.int32(1), jnp.int32(2)])
    assert tolist(s.as_list()) == [1, 2]
    s.discard(jnp.int32(1))
    assert tolist(s.as_list()) == [2]
    s.add(jnp.int32(3))
    with pytest.raises(Refusal, match="order of this set"):
        s.as_list()
    with pytest.raises(Refusal, match="order of this set"):
        LaneSet.from_items([jnp.float32(1)]).as_list()
    for known in ({8, 16}, {1, 2, 3, 4, 5}):  # Python's table depends on how they came there
        with pytest.raises(Refusal, match="order of this set"):
            LaneSet.known(known).as_list()
    assert tolist(LaneSet.known({10, 3, 1}).as_list()) == list({10, 3, 1})


def lengths_of_words(text: str) -> list[int]:
    words = set(text.split())
    return list(frozenset(len(word) * 8 for word in words))


def first_letters(text: str) -> list[str]:
    return list({word[:1] for word in text.split()})


def first_of_letters(text: str) -> tuple[str, str]:
    words = set(text.split())
    letters = [word[:1] for word in words]
    return letters[0], min(letters)


def counted(text: str) -> list[str]:
    words = set(text.split())
    counts = Counter(word[:1] for word in words)
    return [letter for letter, _ in counts.most_common(1)]


@pytest.mark.parametrize("function", [lengths_of_words, first_letters, first_of_letters, counted])
def test_the_order_of_what_is_made_of_a_set_in_any_order_is_refused(function: Any) -> None:
    with pytest.raises(pcbatch.CompileError, match="the order of this set is not known"):
        pcbatch.batch(function)(pcbatch.ragged(["a bc ad"]))


def made_of_one_another(xs: list[int]) -> tuple[list[int], list[int]]:
    found = set(xs)
    return list({8 * x for x in found}), [y for y in frozenset(x // 2 for x in found)]


def around(xs: list[int]) -> list[tuple[int, int]]:
    seen, frontier = {(0, 0)}, {(0, 0)}
    order: list[tuple[int, int]] = []
    while frontier and len(order) < 9:
        following = set()
        for a, b in frontier:
            order.append((a, b))
            for x in xs:
                if (a + x, b - 1) not in seen:
                    seen.add((a + x, b - 1))
                    following.add((a + x, b - 1))
        frontier = following
    return [*order, *seen]


def bounds(cells: set[tuple[int, int]]) -> tuple[int, int, list[int]]:
    xs, ys = [x for x, _ in cells], [y for _, y in cells]
    last = list(x * y for x, y in cells)
    last.sort()
    return max(xs) - min(xs), len(ys), last


def lowest(values: list[int], by: int) -> int:
    """Sorts the list."""
    values.sort()
    return values[0] * by


def distinct(points: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found = set(points)
    return sorted(found)[:2]


def in_no_order(xs: list[int]) -> tuple[object, ...]:
    cells = {(x, x % 3) for x in xs} | {(1, 1)}
    near = Counter((x + d, y) for x, y in cells for d in (-1, 1))
    both = {c for c, k in near.items() if k == 2 or c in cells}
    rings: list[list[tuple[int, int]]] = []
    rest = cells | both
    while rest:
        ring = distinct(list(rest))
        rings.append(ring)
        rest -= set(ring)
    words = {str(x) for x in xs}
    return bounds(cells), lowest([x for x, _ in cells], by=2), sorted(both), rings, len({word[:1] for word in words})


XS = [[3, 1, 80, 17, 9], [-1], [5, 4, -1, -2, 40, 48, 8]]


@pytest.mark.parametrize("function", [made_of_one_another, around, in_no_order])
def test_sets_of_sets_have_pythons_order_or_nothing_asks_for_it(function: Any) -> None:
    result = pcbatch.batch(function).run(pcbatch.ragged(XS))
    assert [as_plain(lane_of(result.value, k)) for k in range(len(XS))] == [as_plain(function(xs)) for xs in XS]


@settings(max_examples=examples(40, 10), deadline=None)
@given(
    st.lists(st.one_of(st.integers(-9, 40), st.integers(0, 9).map(lambda k: k * 64)), max_size=30),
    st.lists(st.integers(0, 30), max_size=12),
)
def test_sets_that_only_lose_elements_keep_pythons_order(keys: list[int], gone: list[int]) -> None:
    with using_capacity(Room(32)):
        s, expected = LaneSet.from_items([jnp.int32(key) for key in keys]), _set_of(keys)
        for key in gone:
            s.discard(jnp.int32(key))
            expected.discard(key)
        assert tolist(s.as_list()) == list(expected)
        while expected:
            assert int(s.pop()) == expected.pop()
        with pytest.raises(KeyError, match="pop from an empty set"):
            LaneSet().pop()


def test_pop_of_a_set_without_a_known_order_needs_one_element() -> None:
    def last(xs: list[int]) -> int:
        found = {xs[0]}
        found.discard(xs[1])
        found.add(xs[2])
        return found.pop()

    def letter(text: str) -> str:
        return set(text).pop()

    result = pcbatch.batch(last).run(jnp.array([[1, 1, 2], [1, 2, 3], [1, 2, 1]]))
    assert [int(status) for status in result.status] == [pcbatch.Status.OK, pcbatch.Status.LIMIT, pcbatch.Status.OK]
    assert result.value[0] == 2 and result.value[2] == 1
    assert pcbatch.batch(letter)(pcbatch.ragged(["aaa", "b"])).tolist() == ["a", "b"]
    with pytest.raises(pcbatch.BatchRuntimeError, match=r"write `x = min\(s\)`, then `s.remove\(x\)`"):
        pcbatch.batch(last)(jnp.array([[1, 2, 3]]))


def test_what_covers_two_has_the_keys_of_the_first_and_room_for_both() -> None:
    with using_capacity(Room(8)):
        a = LaneDict.of_items([(jnp.int32(k), jnp.float32(k)) for k in (5, 3, 4)])
        del a[jnp.int32(3)]
    with using_capacity(Room(32)), jax.numpy_dtype_promotion("standard"):
        b = LaneDict.of_items([(jnp.float32(1.5), jnp.float32(2))])
        c = covered(a, b)
        assert c.capacity == 32 and tolist(c.items_list()) == [(5.0, 5.0), (4.0, 4.0)]  # type: ignore[attr-defined]
        assert tolist(covered({7: 1.0, 2: 2.0}, b).items_list()) == [(7.0, 1.0), (2.0, 2.0)]  # type: ignore[attr-defined]
        assert int(covered({}, b).length) == 0
        assert jax.tree.structure(covered({}, b)) == jax.tree.structure(covered(b, {}))
    with pytest.raises(Refusal, match="on one way"):
        covered(a, LaneSet())


def test_equal_keys_of_elements_in_an_order_that_is_not_known_end_the_lane() -> None:
    def shortest(text: str) -> str:
        return min(set(text.split()), key=len)

    result = pcbatch.batch(shortest).run(pcbatch.ragged(["aa b cc", "aa b c", "b b"]))
    assert [int(status) for status in result.status] == [pcbatch.Status.OK, pcbatch.Status.LIMIT, pcbatch.Status.OK]
    assert result.value[0] == "b" and result.value[2] == "b"


def widened(found: Any) -> int:
    found |= {7}
    return len(found)


def bound_anew(n: int) -> tuple[int, int, int, int]:
    found = frozenset([n, 2])
    count, other = widened(found), found
    other |= {9}
    rows = [frozenset([n, 1]), frozenset([n])]
    first = rows[0]
    rows[0] |= {50}
    return len(found) * 10 + count, len(other), len(first), len(rows[0])


def kinds(n: int) -> tuple[bool, ...]:
    f, s = frozenset([n, 1]), {n, 5}
    values = [
        f | s, s | f, f.union(s), s.union(f), set(f), frozenset(s), {1} & f, frozenset({1}) & s,
        frozenset({1}).union(s), frozenset(k for k in range(n)),
    ]  # fmt: skip
    return *[isinstance(value, frozenset) for value in values], *[type(value) is set for value in values]


def without_changes(n: int) -> tuple[int, ...]:
    found, refused = frozenset([n, 1]), 0
    try:
        found.add(3)  # type: ignore[attr-defined]
    except AttributeError:
        refused += 1
    try:
        found.pop()  # type: ignore[attr-defined]
    except AttributeError:
        refused += 1
    try:
        found |= {5 // (n - 2)}
    except ZeroDivisionError:
        refused += 1
    return refused, len(found)


def grown(n: int) -> tuple[int, bool]:
    found: frozenset[int] = frozenset()
    for k in range(n):
        found |= {k}
        found -= {0}
    return len(found), found == {1, 2}


@pytest.mark.parametrize("function", [bound_anew, kinds, without_changes, grown])
def test_frozensets_are_no_sets(function: Any) -> None:
    lanes = np.int32([2, 3])
    found = pcbatch.batch(function)(lanes)
    assert [*zip(*(part.tolist() for part in found), strict=True)] == [function(int(n)) for n in lanes]


def test_frozensets_come_back() -> None:
    def made(n: int) -> frozenset[int]:
        return frozenset([n, 1])

    result = pcbatch.batch(made)(np.int32([2, 3]))
    assert result.tolist() == [frozenset({1, 2}), frozenset({1, 3})]
    assert all(type(value) is frozenset for value in result.tolist())


def test_a_set_on_one_way_and_a_frozenset_on_another_are_refused() -> None:
    def either(n: int) -> int:
        found = frozenset([n]) if n > 2 else {n}
        found |= {100}
        return len(found)

    def key(n: int) -> int:
        return {frozenset([n]): 3}[frozenset([n])]

    with pytest.raises(pcbatch.CompileError, match="frozenset of i32"):
        pcbatch.batch(either)(np.int32([2, 3]))
    with pytest.raises(pcbatch.CompileError, match="unhashable type: 'frozenset'|keep a number in place of the inner"):
        pcbatch.batch(key)(np.int32([2, 3]))


def test_a_set_is_looked_for_among_the_sets_of_a_list() -> None:
    def first_again(xs: list[int]) -> bool:
        sets = [{x} for x in xs]
        return sets[0] in sets[1:]

    xs = [[3, 1, 3], [1, 2], [5]]
    assert pcbatch.batch(first_again)(pcbatch.ragged(xs)).tolist() == list(map(first_again, xs))
