"""Lists of the lane, compared with Python's own over random sequences of operations."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcbatch.data.aliasing import Parts
from pcbatch.data.capacity import Room, using_capacity
from pcbatch.data.checks import CAPACITY, collecting
from pcbatch.data.elements import prepare, unify
from pcbatch.data.origins import Origin
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.sequences.list_reductions import extreme, total, truths
from pcbatch.errors import Refusal

pytestmark = pytest.mark.share(3)

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
Element = Callable[[random.Random], Any]
ELEMENTS: dict[str, Element] = {
    "numbers": lambda r: r.randint(0, 4),
    "pairs": lambda r: (r.randint(0, 2), r.randint(0, 2)),
    "lists": lambda r: [r.randint(0, 2) for _ in range(r.randint(0, 3))],
}


def plain(value: Any) -> Any:
    """The value in the plain function."""
    if isinstance(value, LaneList):
        return [plain(value.element(k)) for k in range(int(value.length))]
    if isinstance(value, tuple | list):
        return type(value)(map(plain, value))
    return None if value is None else np.asarray(value).item()


def operation(r: random.Random, element: Element) -> tuple[Any, ...]:
    """A random operation with its arguments; indices may be out of range."""
    index, value = r.randint(-6, 6), element(r)
    bounds = [r.choice([None, r.randint(-6, 6)]) for _ in range(2)]
    part = slice(*bounds, r.choice([None, 1, 2, -1, -2, 3]))
    several = [element(r) for _ in range(r.randint(0, 3))]
    copies = ("times", r.randint(-1, 2)) if not isinstance(value, list) else ("pop",)
    return r.choice(
        [
            *(("append", value),) * 4, ("pop",), ("pop", index), ("insert", index, value), ("extend", several),
            ("remove", value), ("clear",), ("reverse",), ("sort",), ("index", value), ("index", value, index),
            ("index", value, index, r.randint(-6, 6)), ("count", value), ("get", index), ("get", part),
            ("set", index, value), ("set", slice(*bounds), several), ("set", part, several), ("del", index),
            ("del", part), ("add", several), ("iadd", several), ("contains", value), ("copy",), copies,
            (r.choice(COMPARISONS), several), ("sort backwards",),
        ]
    )  # fmt: skip


def applied(xs: Any, name: str, *args: Any) -> Any:
    """Apply an operation to a list of the lane or of Python."""
    match name:
        case "get":
            return xs[args[0]]
        case "set":
            xs[args[0]] = args[1]
        case "del":
            del xs[args[0]]
        case "add":
            return xs + args[0]
        case "iadd":
            xs += args[0]
        case "times":
            return xs * args[0]
        case "contains":
            return xs.contains(*args) if isinstance(xs, LaneList) else args[0] in xs
        case "sort backwards":
            xs.sort(reverse=True)
        case "eq" | "ne" | "lt" | "le" | "gt" | "ge":
            return getattr(operator, name)(xs, *args)
        case _:
            return getattr(xs, name)(*args)
    return None


def may_share(a: Any, b: Any) -> bool:
    """Whether a change of one value, or in it, could be seen in the other."""
    one, other = Parts(a), Parts(b)
    return not (one.own | one.inner).isdisjoint(other.own | other.inner)


def of_lane(value: Any) -> Any:
    """An argument as a value of the lane."""
    if type(value) is int:
        return jnp.int32(value)
    if isinstance(value, slice):
        return slice(*(None if bound is None else jnp.int32(bound) for bound in (value.start, value.stop)), value.step)
    return value


@pytest.mark.parametrize("seed", range(1))
@pytest.mark.parametrize("known", [True, False], ids=["known", "of_the_lane"])
@pytest.mark.parametrize("kind", ELEMENTS)
def test_every_operation_means_what_it_means_in_python(kind: str, known: bool, seed: int) -> None:
    r = random.Random(f"{seed} {known} {kind}")
    want = [ELEMENTS[kind](r) for _ in range(r.randint(0, 4))]
    have = LaneList.from_list(want, 8)
    if not known:
        have.length = jnp.int32(have.length)
    for _ in range(25):
        name, *args = operation(r, ELEMENTS[kind])
        outcome: Any
        try:
            outcome = applied(want, name, *args)
        except (IndexError, ValueError) as error:
            with pytest.raises(type(error)):
                applied(have, name, *(args if known else map(of_lane, args)))
        else:
            result = applied(have, name, *(args if known else map(of_lane, args)))
            if result is not have:
                assert plain(result) == plain(outcome), (name, args)
        assert plain(have) == want, (name, args)
        if len(want) > 14:
            want, have = want[:2], have[:2]


def test_where_a_check_fails_the_list_stays_as_it_is() -> None:
    operations: list[tuple[Any, ...]] = [
        ("pop",), ("pop", -4), ("pop", 3), ("set", 3, 9), ("set", -4, 9), ("del", 3), ("remove", 8), ("get", 3),
        ("get", 2), ("index", 8), ("set", slice(None, None, 2), [1, 2, 3]),
    ]  # fmt: skip

    def one(xs: Any) -> Any:
        failed = []
        for name, *args in operations:
            with collecting() as checks:
                applied(xs, name, *args)
            failed.append(jnp.any(jnp.stack([check.failed for check in checks])))
        return xs, jnp.stack(failed)

    for items in ([], [1, 2, 3]):
        xs = LaneList.from_list([1, 2, 3], 8)
        xs.length = jnp.int32(len(items))
        after, failed = jax.jit(one)(xs)
        want = list(items)
        for k, (name, *args) in enumerate(operations):
            try:
                applied(want, name, *args)
                assert not failed[k], name
            except (IndexError, ValueError):
                assert failed[k], name
        assert plain(after) == want


def test_lanes_do_not_see_what_lies_behind_the_end_of_a_list() -> None:
    def one(xs: Any) -> Any:
        facts = (total(xs, 0, operator.add), truths(xs, True), truths(xs, False), xs.contains(9), xs == [1])
        xs.sort()
        xs.reverse()
        with collecting():
            return (*facts, extreme(xs, True, None), extreme(xs, False, None), xs)

    columns = jnp.array([[1, 9, 0, 9], [3, 0, 2, 9], [5, 6, 7, 8]])
    lists = LaneList.tree_unflatten((Origin.NUMBER,), (columns, jnp.array([1, 3, 4])))
    results = jax.jit(jax.vmap(one))(lists)
    for lane, items in enumerate([[1], [3, 0, 2], [5, 6, 7, 8]]):
        got = jax.tree.map(lambda leaf, lane=lane: leaf[lane], results)
        want = (sum(items), any(items), all(items), 9 in items, items == [1], max(items), min(items))
        assert tuple(map(plain, got[:-1])) == want
        assert plain(got[-1]) == sorted(items)[::-1]


class TestViews:
    def test_an_element_of_an_inner_list_is_stored_where_it_is(self) -> None:
        grid = LaneList.from_list([[1, 2], [3], []])
        grid[jnp.int32(0)][1] = 7
        grid[1].append(8)
        grid[-1].extend([5, 6])
        assert plain(grid) == [[1, 7], [3, 8], [5, 6]]
        assert plain(grid[1].pop()) == 8
        assert plain(grid) == [[1, 7], [3], [5, 6]]

    def test_touches_one_element(self) -> None:
        def one(grid: Any, i: Any) -> Any:
            with collecting():
                grid[i][i] = grid[i][i + 1]
            return grid

        grid = LaneList.from_list([[0] * 50 for _ in range(40)])
        jaxpr = jax.make_jaxpr(one)(grid, jnp.int32(0))
        whole = [eqn for eqn in jaxpr.eqns if any(var.aval.shape == (40, 50) for var in eqn.outvars)]
        assert [eqn.primitive.name for eqn in whole] == ["scatter"]
        assert not [eqn for eqn in jaxpr.eqns if any(var.aval.shape == (50,) for var in eqn.outvars)]

    def test_is_refused_after_a_change_of_the_list_around_it(self) -> None:
        grid = LaneList.from_list([[1], [2]])
        row = grid[0]
        grid.append([3])
        with pytest.raises(Refusal, match="after the other one has changed"):
            row.append(1)

    def test_shares_with_the_list_around_it(self) -> None:
        grid, row = LaneList.from_list([[1], [2]]), LaneList.from_list([5])
        assert may_share(grid[0], grid)
        assert not may_share(grid.pop(), grid)
        grid.append(row)
        assert may_share(grid, row)
        assert may_share(grid[:], grid[1])
        assert not may_share(LaneList.from_list([1]), row)


class TestTypes:
    @pytest.mark.promotion("standard")
    def test_widen_by_what_is_stored(self) -> None:
        xs = LaneList.filled(0, 3)
        xs[1] = 0.5
        xs.append(True)
        assert plain(xs) == [0.0, 0.5, 0.0, 1.0]
        xs[0] = None
        assert not xs[0].present
        assert plain(xs[1].value) == 0.5

    def test_of_an_empty_list_come_from_the_first_element(self) -> None:
        xs = LaneList.from_list([[], []])
        xs[1].append((1, 2.5))
        assert plain(xs) == [[], [(1, 2.5)]]

    def test_stay_weak_for_numbers_of_python(self) -> None:
        xs = LaneList.from_list([1, 2])
        xs.append(3)
        assert xs[0].weak_type
        assert xs.origins == (Origin.NUMBER,)
        assert LaneList.from_array(np.ones(2)).origins == (Origin.ARRAY,)

    @pytest.mark.parametrize("items", [[1, (1, 2)], [(1,), (1, 2)], [np.ones(2), np.ones(3)]])
    def test_that_differ_are_refused(self, items: list[Any]) -> None:
        with pytest.raises(Refusal):
            LaneList.from_list(items)

    def test_are_unified_in_both_directions(self) -> None:
        a, b = unify(prepare([[1, 2]]), (), prepare([[0.5], [0.5, 2.5, 1.5]]), ())
        assert jax.tree.structure(a) == jax.tree.structure(b)
        assert [jnp.result_type(leaf) for leaf in jax.tree.leaves(a)] == list(map(jnp.result_type, jax.tree.leaves(b)))
        assert plain(a) == [[1, 2]]
        assert plain(b) == [[0.5], [0.5, 2.5, 1.5]]


class TestRoom:
    def test_that_is_missing_is_a_check(self) -> None:
        def one(xs: Any) -> Any:
            with using_capacity(Room(4)), collecting() as checks:
                xs.append(1)
            return [check.failed for check in checks], [check.exception for check in checks]

        xs = LaneList.from_list([1, 2, 3, 4], 4)
        for length, full in ((3, False), (4, True)):
            xs.length = jnp.int32(length)
            failed, kinds = one(xs)
            assert kinds == [CAPACITY]
            assert bool(failed[0]) is full

    def test_of_a_known_length_grows_while_compiling(self) -> None:
        xs = LaneList.from_list(list(range(100)))
        xs.append(1)
        assert xs.capacity == 128

    def test_of_one_list_for_all_elements_is_refused(self) -> None:
        with pytest.raises(Refusal, match="are one list"):
            LaneList.filled([0], jnp.int32(3))


def test_order_of_nan_is_refused_while_running() -> None:
    xs = LaneList.from_list([1.0, float("nan")])
    with pytest.raises(OverflowError, match="NaN"):
        xs.sort()


def test_keys_are_computed_for_elements_alone() -> None:
    xs = LaneList.from_list([(2, [1]), (1, [4]), (3, [0])])
    xs.length = jnp.int32(3)
    xs.sort(key=lambda pair: pair[1][0])
    assert plain(xs) == [(3, [0]), (2, [1]), (1, [4])]
    xs[0][1].clear()
    with pytest.raises(IndexError):
        xs.sort(key=lambda pair: pair[1][0])


def test_unpacking_checks_the_length() -> None:
    xs = LaneList.from_list([1, 2, 3], 8)
    xs.length = jnp.int32(3)
    assert tuple(map(plain, xs.unpacked(3))) == (1, 2, 3)
    assert list(map(plain, xs.unpacked_star(1, 1))) == [1, [2], 3]
    with pytest.raises(ValueError, match=r"too many values to unpack \(expected 2\)"):
        xs.unpacked(2)
    with pytest.raises(ValueError, match=r"not enough values to unpack \(expected 4, got 3\)"):
        xs.unpacked(4)
    with pytest.raises(ValueError, match="expected at least 4, got 3"):
        xs.unpacked_star(2, 2)
