"""The room with which runs begin, after Python has run some examples, and runs that need more."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import pcbatch
from pcbatch.compiler import growth
from pcbatch.data.capacity import NO_ROOM, Room
from pcbatch.sizing import room as sizing
from pcbatch.sizing.closed import outside
from pcbatch.sizing.room import room_of
from pcbatch.sizing.watched import Watch
from tests.strangers.rows import argument, as_plain, lane_of


def rooms(fn: Any, *args: Any) -> Room:
    programs = pcbatch.batch(fn)._programs
    return room_of(programs.fn, programs.is_batched, programs.prepare(args, {}))


def grown(n: int) -> int:
    xs = []
    for k in range(n):
        xs.append(k)
    return sum(xs)


def table(n: int, m: int) -> int:
    rows = [[k] * m for k in range(n)]
    return sum(map(sum, rows))


def words(text: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for word in text.split():
        counts[word] = counts.get(word, 0) + 1
    return counts


def joined(text: str) -> str:
    """The list of what a generator gives is in no variable."""
    return "".join(letter.upper() for letter in text)


def groups(xs: list[int], m: int) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for x in xs:
        found.setdefault(x % m, []).append(x)
    return found


class Counter:
    def __init__(self) -> None:
        self.depth = 0


class Frame:
    def __init__(self, value: int, below: Frame | None) -> None:
        self.value = value
        self.below = below


class Machine(Counter):
    def __init__(self) -> None:
        super().__init__()
        self.top: Frame | None = None

    def push(self, value: int) -> None:
        self.top = Frame(value, self.top)
        self.depth += 1


def machine(n: int) -> tuple[int, int]:
    vm = Machine()
    for k in range(n):
        vm.push(k * 3)
    total, frame = 0, vm.top
    while frame is not None:
        total += frame.value
        frame = frame.below
    return total, vm.depth


def numbers(n: int) -> int:
    return n * n


def endless(n: int) -> int:
    xs = [n]
    while n > 0:
        xs[0] += 1
    return xs[0]


def writes(n: int) -> list[int]:
    print(n)
    return [n] * n


@pytest.mark.parametrize(
    ("fn", "args", "room"),
    [
        (grown, [[3, 5, 9]], NO_ROOM),  # less than any run begins with
        (grown, [[3, 50, 9]], Room(elements=64)),
        (grown, [[60, 60, 60]], Room(elements=64)),
        (grown, [[60, 60, 50]], Room(elements=128)),
        (grown, [[60, 50, 60, 60, 20]], Room(elements=64)),
        (table, [[2, 3, 5], [3, 3, 3]], Room(inner=4)),
        (table, [[2, 3, 5], [3, 4, 7]], Room(inner=16)),
        (table, [[2, 3, 5], [20, 20, 20]], Room(inner=32)),
        (joined, [["a" * 40, "b" * 40, "c" * 40]], Room(elements=64)),
        (words, [["a cat", "the elephants", ""]], Room(inner_characters=16, entries=8)),
        (machine, [[3, 3, 3, 40]], Room(rows=(("Frame", 64), ("Machine", 1)))),
        (machine, [[3, 3]], Room(rows=(("Frame", 8), ("Machine", 2)))),  # of two examples nothing is taken as a bound
        (numbers, [[3, 5]], NO_ROOM),
        (writes, [[3, 50]], NO_ROOM),
    ],
)
def test_the_room_that_examples_need(fn: Callable[..., Any], args: list[Any], room: Room) -> None:
    assert rooms(fn, *map(argument, args)) == room


def test_the_largest_of_many_examples_is_one_that_runs() -> None:
    sizes = [2] * 1000
    sizes[617] = 50
    assert rooms(grown, argument(sizes)).elements == 64


def test_an_example_without_an_end_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizing, "LINES", 500)
    assert rooms(endless, argument([1, 2])) == NO_ROOM


def lists_in_dicts(n: int, m: int) -> Any:
    found: dict[int, list[int]] = {}
    for k in range(n):
        found.setdefault(k % m, []).append(k)
    first = found.get(0, [])[:]
    first.append(-1)
    found[m] = first + [n]
    return found, [row[:] for row in found.values()], max(map(len, found.values()))


def texts_in_lists(n: int, m: int) -> Any:
    parts = []
    for k in range(n):
        parts.append(str(k) * m)
    seen = {part: len(part) for part in parts}
    longest = max(parts, key=len)
    seen[longest + "!"] = 0
    return parts, seen, "-".join(parts), longest in seen, (longest + "?") in seen


class Node:
    def __init__(self, name: str) -> None:
        self.name = name
        self.children: list[Node] = []
        self.counts: dict[str, int] = {}


def fields_of_objects(n: int, m: int) -> Any:
    nodes = [Node("n" * (k % m + 1)) for k in range(n)]
    for k in range(1, n):
        nodes[k // m].children.append(nodes[k])
        above = nodes[k // m]
        above.counts[nodes[k].name] = above.counts.get(nodes[k].name, 0) + 1
    return [(node.name, len(node.children), node.counts) for node in nodes]


def parts_of_long_texts(n: int, m: int) -> Any:
    """Texts with a long room become elements of lists, the first one of a list that is known to be empty."""
    long = "abc" * (7 * n)
    first, rest = [long[:m]], []
    for k in range(n):
        rest.append(long[k : k + m])
    return first + rest, [f"{k}:{long[:m]}" for k in range(n)], [[long[k:][:m] for k in range(m)] for _ in range(2)]


def known_sizes(n: int, m: int) -> Any:
    rows = [[0] * 40 for _ in range(3)]
    rows[n % 3][m] = n
    return rows, ["x" * 30, "y"], [list(range(m)) for _ in range(2)]


def dicts_in_dicts(n: int, m: int) -> Any:
    table: dict[int, dict[int, int]] = {}
    for k in range(n):
        table.setdefault(k % 2, {})[k % m] = k
    return table


def sorted_groups(n: int, m: int) -> Any:
    groups: dict[str, list[tuple[str, int]]] = {}
    for k in range(n):
        name = "abcdefgh"[k % 3 : k % 3 + 1 + k % m]
        groups.setdefault(name, []).append((name + str(k), k))
    return {name: sorted(group, reverse=True)[:m] for name, group in sorted(groups.items())}


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "fn",
    [
        *(lists_in_dicts, texts_in_lists, fields_of_objects, known_sizes, dicts_in_dicts, sorted_groups),
        parts_of_long_texts,
    ],
)
def test_later_calls_that_need_more(fn: Callable[..., Any]) -> None:
    """The first call has short lists and texts, later ones of the same program longer ones."""
    batched = pcbatch.batch(fn)
    for example in ([(3, 2), (2, 1), (4, 2)], [(24, 2), (5, 1), (7, 3)], [(36, 11), (40, 4), (2, 2)]):
        result = batched(*map(argument, zip(*example, strict=True)))
        for lane, given in enumerate(example):
            assert as_plain(lane_of(result, lane)) == as_plain(fn(*given)), given


def counted(n: int) -> int:
    k = 0
    xs = [0]
    while k < n:
        k += 1
    return k + xs[0]


def test_an_example_has_so_many_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizing, "LINES", 500)
    found = outside(counted, lambda value: None)
    assert found is not None
    watch = Watch(found.codes, 100)
    watch.run(counted, {"n": 1000})
    assert watch.lines < 0


def copied(xs: list[int]) -> list[int]:
    rows = [xs]
    rows.append([1])
    return rows[1]


def test_arguments_do_not_count() -> None:
    assert rooms(copied, argument([[1] * 100, [2]])) == Room(elements=0, inner=4)


def shapes(batched: Any) -> set[tuple[int, ...]]:
    (program,) = batched._programs.cache.values()
    return {var.type.shape for var in program.stages.opt.vars.values()}


def test_lists_in_dicts_have_the_room_that_they_need() -> None:
    batched = pcbatch.batch(groups)
    lists = [[1, 2, 3, 4, 5, 6], [7]]
    assert batched(*map(argument, [lists, [3, 3]])).tolist() == [groups(xs, 3) for xs in lists]
    tables = [shape for shape in shapes(batched) if len(shape) == 3]
    assert tables == [(2, 8, 4)]  # buckets, places in each, elements


def of_many_keys(n: int) -> Any:
    found = {}
    xs = []
    for k in range(n):
        found[k] = k
        if k < 3:
            xs.append(k)
    return len(found), xs


def test_a_full_dict_makes_no_list_longer() -> None:
    batched = pcbatch.batch(of_many_keys)
    assert batched(argument([3, 2]))[0].tolist() == [3, 2]
    assert batched(argument([50, 2]))[0].tolist() == [50, 2]
    rooms = [program.room for program in batched._programs.cache.values()]
    assert len({room.elements for room in rooms}) == 1 and rooms[0].entries < rooms[1].entries


def test_a_full_class_makes_no_other_one_larger() -> None:
    batched = pcbatch.batch(machine)
    for ns in ([3, 3, 3, 2], [20, 1, 2, 3]):
        result = batched(argument(ns))
        assert [(int(total), int(depth)) for total, depth in zip(*result, strict=True)] == [machine(n) for n in ns]
    first, second = (dict(program.room.rows) for program in batched._programs.cache.values())
    assert first == {"Frame": 4, "Machine": 1}
    assert second == {"Frame": 32, "Machine": 1}


def test_the_error_names_the_class_that_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    batched = pcbatch.batch(machine)
    batched(argument([3, 3, 3]))
    monkeypatch.setattr(growth, "_repeated", lambda *args: None)
    with pytest.raises(pcbatch.BatchRuntimeError, match="`Frame` of more than 4 objects"):
        batched(argument([3, 9, 3]))


def one_of_parts(lines: list[str]) -> list[list[str]]:
    """The list that is split first is in no variable."""
    found = []
    for line in lines:
        head = line.split(";")[0]
        found.append(head.split())
    return found


def test_a_part_of_a_list_that_is_in_no_variable() -> None:
    batched = pcbatch.batch(one_of_parts)
    lines = ["push 1", "call fact 1 ; n"]
    assert batched(argument([lines] * 3))[0].tolist() == one_of_parts(lines)
    (program,) = batched._programs.cache.values()
    assert program.room.inner_characters == 8


class Cache:
    def __init__(self) -> None:
        self.all: list[int] = []
        self.uses: dict[int, dict[int, int]] = {}


def used(n: int, m: int) -> Any:
    cache = Cache()
    for k in range(n):
        cache.all.append(k)
        cache.uses.setdefault(k % m, {})[k % (m + 1)] = k
    return sum(cache.all), sum(map(len, cache.uses.values()))


def test_a_long_list_of_an_object_makes_no_dict_there_larger() -> None:
    """Dicts in dicts of objects have room for the square of what each has."""
    batched = pcbatch.batch(used)
    examples = [(100, 3), (20, 2), (7, 2)]
    room = rooms(used, *map(argument, zip(*examples, strict=True)))
    assert (room.inner, room.inner_entries) == (128, 8)
    sums, counts = batched(*map(argument, zip(*examples, strict=True)))
    assert list(zip(sums.tolist(), counts.tolist(), strict=True)) == [used(*one) for one in examples]
    assert max(map(math.prod, shapes(batched))) <= 32 * 128


def of_few(n: int, m: int) -> Any:
    found = {}
    for k in range(n):
        found[k % 5] = k
    inside: dict[int, dict[int, int]] = {}
    if n < 50:
        for k in range(m):
            inside.setdefault(k % 2, {})[k] = k
    return len(found), sum(map(len, inside.values()))


def test_what_no_example_has_grows_beside_what_some_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizing, "EXAMPLES", 2)
    batched = pcbatch.batch(of_few)
    examples = [*((100 + k, 500) for k in range(40)), (10, 100), (11, 90)]
    found = batched(*map(argument, zip(*examples, strict=True)))
    assert list(zip(*(part.tolist() for part in found), strict=True)) == [of_few(*one) for one in examples]
    grown = {(room.elements, room.entries) for room in (one.room for one in batched._programs.cache.values())}
    assert grown == {(32, 8), (32, 32), (32, 128)}


def test_where_memory_is_short_each_part_grows_by_itself_again() -> None:
    batched = pcbatch.batch(used, max_memory="12MB")
    for examples in ([(70, 60)], [(150, 2), (3, 2)] * 8):
        sums, counts = batched(*map(argument, zip(*examples, strict=True)))
        assert list(zip(sums.tolist(), counts.tolist(), strict=True)) == [used(*one) for one in examples]
    last = [program.room for program in batched._programs.cache.values()][-1]
    assert last.elements == 512 and last.inner_entries == 32


def short_parts(n: int) -> Any:
    long = "abc" * n
    return len(long), [f"{long[:1]}{k}" for k in range(n % 5)]


def test_short_parts_of_long_texts() -> None:
    batched = pcbatch.batch(short_parts)
    assert batched(argument([92, 100, 99]))[1].tolist() == [["a0", "a1"], [], ["a0", "a1", "a2", "a3"]]
    assert max(map(math.prod, shapes(batched))) <= 512  # and not 32 times as many


def of_range(n: int) -> list[int]:
    return [sum(range(n)) % 7]


def squares(n: int) -> list[int]:
    xs = [n]
    for _ in range(100):
        n = n * n + 1
        xs.append(n % 7)
    return xs


@pytest.mark.parametrize(("fn", "n"), [(of_range, 2**30), (squares, 3)])
def test_examples_that_would_take_long_end(fn: Any, n: int) -> None:
    assert rooms(fn, argument([2, n])).elements <= 128
