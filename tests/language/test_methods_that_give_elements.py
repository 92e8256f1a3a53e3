"""Elements that methods of the user's give, iterators of the user's, and streams where methods of the same names are
in sight: each lane is compared with the plain function."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
import pytest

import pcbatch
from pcbatch.errors import CompileError

LANES = [0, 1, 2, 5, 7]


class Count:
    def __init__(self, n: Any) -> None:
        self.n, self.i = n, 0

    def __iter__(self) -> Count:
        return self

    def __next__(self) -> Any:
        if self.i >= self.n:
            raise StopIteration
        self.i += 1
        return self.i * self.i


class Pair:
    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b

    def __iadd__(self, other: Any) -> Pair:
        if other.a > 2:
            self.a += other.a
        return self

    def __iter__(self) -> Iterator[Any]:
        yield self.a
        if self.b > 1:
            yield self.b
        yield self.a


class Link:
    def __init__(self, value: Any, following: Any) -> None:
        self.value, self.following = value, following

    def __iter__(self) -> Iterator[Any]:
        link = self
        while link is not None:
            yield link.value
            link = link.following


class Model:
    def __init__(self) -> None:
        self.total, self.cells, self.counts = 0, [0] * 4, defaultdict(int)

    def update(self, x: Any) -> None:
        if x > 0:
            self.total += x

    def extend(self, xs: Any) -> None:
        for x in xs:
            self.total += x

    def __setitem__(self, k: Any, value: Any) -> None:
        if isinstance(k, slice):
            for j, x in enumerate(value):
                if x > 1:
                    self.cells[k.start + j] = x
        else:
            self.cells[k] = value


def odd(n: Any) -> Iterator[Any]:
    for k in range(n):
        if k % 2:
            yield k * n


def body_changes(n: Any) -> Any:
    pair, total = Pair(n, 2), 0
    for z in pair:
        total = total * 10 + z
        pair.a += 1
    return total


def added(n: Any) -> Any:
    pair, other = Pair(n, 1), Pair(3, n)
    pair += other
    total = 0
    for z in pair:
        total = total * 10 + z
    return total


def links(n: Any) -> Any:
    head = None
    for k in range(n):
        head = Link(k, head)
    if head is None:
        return -1, 0, []
    total = 0
    for z in head:
        total = total * 3 + z
        if z == 2:
            head.following = None
    return total, sum(head), [x + 1 for x in head]


def counted(n: Any) -> Any:
    total = 0
    for x in Count(n):
        if x > 10:
            break
        total = total * 3 + x
    else:
        total += 1
    return total


def taken(n: Any) -> Any:
    count = Count(n)
    first = next(count, -1)
    return first, 9 in count, count.i, [*count], sum(Count(n)), max(Count(n), default=-2)


def streams(n: Any) -> Any:
    model = Model()
    model.update(n - 2)
    model[1:3] = [n, n + 1]
    xs = [0] * 4
    xs[1:2] = odd(n)
    xs.extend(odd(n))
    xs += (k * k for k in range(n))
    seen = {1}
    seen.update(k * k for k in range(n))
    return model.total, model.cells, xs, sorted(seen.union(odd(n))), ",".join(map(str, odd(n)))


def shared(n: Any) -> Any:
    rows = [[n], [1], [2] * n]
    rows[1].extend(rows[2])
    rows[n % 3] += rows[1]
    rows[2][0:1] = rows[0]
    rows[1].append(len(rows[0]))
    return rows


def stored(n: Any) -> Any:
    model = Model()
    for k in range(n):
        model.counts[k % 3] += k
    x = model.counts[n] + 1
    rows = [defaultdict(int) for _ in range(n + 1)]
    x += rows[n // 2][n]
    return x, len(model.counts), [len(row) for row in rows]


def moved(n: Any) -> Any:
    order: OrderedDict[Any, Any] = OrderedDict()
    for k in range(n + 3):
        order[k] = k
    order.move_to_end(2, last=n > 2)
    return list(order), order.popitem(last=n % 2 == 0)


PROGRAMS = [body_changes, added, links, counted, taken, streams, shared, stored, moved]


def _lane(value: Any, k: int) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(_lane(part, k) for part in value)
    return value.tolist()[k]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_lanes_equal_plain_python(program: Callable[[Any], Any]) -> None:
    found = pcbatch.batch(program)(jnp.array(LANES))
    assert [_lane(found, k) for k in range(len(LANES))] == [program(n) for n in LANES]


@pytest.mark.parametrize("statement", ["model[1:3] = (k for k in range(n))", "model.extend(k for k in range(n))"])
def test_a_stream_that_a_method_of_the_users_gets_is_refused(statement: str, tmp_path: Any) -> None:
    path = tmp_path / "program.py"
    path.write_text(f"def f(n):\n    model = Model()\n    {statement}\n    return model.total\n")
    space: dict[str, Any] = {"Model": Model}
    exec(compile(path.read_text(), str(path), "exec"), space)
    with pytest.raises(CompileError, match="PCB30[46]"):
        pcbatch.batch(space["f"])(jnp.array(LANES))


def test_a_stream_that_is_stored_is_no_list() -> None:
    def f(n: Any) -> Any:
        kept = []
        kept.append(k for k in range(n))
        return sum(kept[0]), sum(kept[0])

    with pytest.raises(CompileError, match="PCB306"):
        pcbatch.batch(f)(jnp.array(LANES))


def test_lengths_of_a_ragged_are_integers() -> None:
    @pcbatch.batch
    def f(xs: Any) -> Any:
        return sum(xs)

    with pytest.raises(pcbatch.UsageError, match="integers, and not of dtype float"):
        f(pcbatch.Ragged(jnp.zeros((2, 3), int), jnp.array([1.0, 2.0])))


class Doubled:
    def __init__(self, xs: Any) -> None:
        self.xs = xs

    def __getitem__(self, i: Any) -> Any:
        return self.xs[i] * 2

    def __len__(self) -> int:
        return len(self.xs)


class Bounded(Doubled):
    def __getitem__(self, i: Any) -> Any:
        if i >= len(self.xs):
            raise IndexError(i)
        return self.xs[i]


class Among(Doubled):
    def __contains__(self, x: Any) -> bool:
        return bool(x == len(self.xs))


class Iterated(Doubled):
    def __iter__(self) -> Iterator[Any]:
        yield from self.xs


def _known_by_index(n):
    a = Doubled([1, n, 3])
    first, second, third = a
    total = sum(a) + sum(list(a)) + sum([x for x in a]) + max(a) + first * second + third
    for x in Doubled((n, 2)):
        total += x
    return total if 6 in a else -1


def _by_places(n):
    a = Doubled(list(range(n)))
    total = 0
    for k in range(len(a)):
        total += a[k]
    return total


def _by_iter(n):
    a = Iterated(list(range(n)))
    return sum(a) if 1 in a else -1


def _by_contains(n):
    return 2 in Among(list(range(n)))


@pytest.mark.parametrize("function", [_known_by_index, _by_places, _by_iter, _by_contains])
def test_elements_by_index_alone(function: Callable[..., Any]) -> None:
    assert pcbatch.batch(function)(jnp.array(LANES)).tolist() == [function(n) for n in LANES]


def _looped(a):
    total = 0
    for x in a:
        total += x
    return total


@pytest.mark.parametrize("cls", [Doubled, Bounded])
@pytest.mark.parametrize(
    "take",
    [sum, list, _looped, lambda a: [x for x in a], lambda a: 2 in a, lambda a: tuple(zip(a, a, strict=True))],
    ids=["sum", "list", "for", "comprehension", "in", "zip"],
)
def test_an_index_error_that_each_lane_has_to_find_ends_no_loop(take: Callable[..., Any], cls: type) -> None:
    def taken(n):
        a = cls(list(range(n)))
        return take(a)

    with pytest.raises(CompileError, match=f"give `{cls.__name__}` a method `__iter__`"):
        pcbatch.batch(taken)(jnp.array(LANES))
