"""Iterators that are taken from twice: the second time sees what the first has left, or the program is refused."""

from __future__ import annotations

import importlib.util
from functools import reduce
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pcbatch

KINDS = {
    "reversed": "reversed(xs)",
    "iter": "iter(xs)",
    "map": "map(lambda v: v + 1, xs)",
    "filter": "filter(lambda v: v > 2, xs)",
    "zip": "zip(xs, xs)",
    "enumerate": "enumerate(xs)",
    "generator": "(v + 1 for v in xs)",
}
CONSUMERS = {
    "for": "for v in it: total = total * 3 + {v}",
    "break": "for v in it: total = total * 3 + {v}; break",
    "sum": "total = total * 3 + sum({v} for v in it)",
    "list": "total = total * 3 + len(list(it))",
    "next": "v = next(it); total = total * 3 + {v}",
    "in": "total = total * 3 + (1 if {some} in it else 0)",
}
ITERABLES = {
    "known": "def f(x):\n    return h((x, x + 1, x + 2))\n",
    "list": "def f(x):\n    xs = []\n    for k in range(x):\n        xs.append(k + 2)\n    return h(xs)\n",
    "range": "def f(x):\n    return h(range(x))\n",
}
PLACES = {
    "made": "def h(xs):\n    total, it = 0, {it}\n    {first}\n    {second}\n    return total\n",
    "given": "def g(it):\n    total = 0\n    {first}\n    {second}\n    return total\ndef h(xs):\n    return g({it})\n",
    "between": "def g(it):\n    total = 0\n    {first}\n    return total\n"
    "def h(xs):\n    it = {it}\n    total = g(it)\n    {second}\n    return total\n",
}
LANES = np.int32([3, 5])


def _program(path: Path, kind: str, iterable: str, place: str, uses: tuple[str, str]) -> Any:
    pair = kind in ("zip", "enumerate")
    words = {"v": "v[0] + 2 * v[1]" if pair else "v", "some": "(1, 4)" if pair else "4"}
    first, second = (CONSUMERS[use].format(**words) for use in uses)
    text = PLACES[place].format(it=KINDS[kind], first=first, second=second) + ITERABLES[iterable]
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.f


@pytest.mark.share(21)
@pytest.mark.parametrize("iterable", ITERABLES)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", KINDS)
def test_taken_from_twice(kind: str, place: str, iterable: str, tmp_path: Path) -> None:
    for number, uses in enumerate(product(CONSUMERS, repeat=2)):
        function = _program(tmp_path / f"p{number}.py", kind, iterable, place, uses)
        try:
            plain = [function(int(x)) for x in LANES]
        except StopIteration:
            plain = None
        try:
            lanes = pcbatch.batch(function)(LANES).tolist()
        except pcbatch.PcbatchError:
            continue
        assert lanes == plain, uses


def at_once(x):
    """Every place where all elements of `reversed` are taken at once."""
    xs = []
    for k in range(x):
        xs.append(k * k)
    first, *rest = reversed(xs)
    rest += reversed(xs)
    rest.extend(reversed(range(x)))
    total = len(rest) + first + max(reversed(xs))
    for k, v in enumerate(reversed(rest)):
        total = total * 3 + k * v
    return total + sum(a * b for a, b in zip(xs, reversed(xs), strict=False)) + (1 if 9 in reversed(xs) else 0)


def test_reversed_at_once() -> None:
    assert pcbatch.batch(at_once)(LANES).tolist() == [at_once(int(x)) for x in LANES]


def _twice(it):
    return sum(it) * 100 + sum(it)


KEPT = {
    "in a dict": lambda xs: (lambda d: sum(d["it"]) * 100 + sum(d["it"]))({"it": reversed(xs)}),
    "by another name": lambda xs: (lambda made: _twice(made(xs)))(reversed),
    "of a choice": lambda xs: _twice(reversed(xs) if len(xs) else xs),
}


@pytest.mark.parametrize("name", KEPT)
def test_a_kept_iterator_of_the_lane_is_refused(name: str) -> None:
    kept = KEPT[name]

    def listed(x):
        xs = []
        for k in range(x):
            xs.append(k + 2)
        return kept(xs)

    with pytest.raises(pcbatch.PcbatchError, match="iterator") as info:
        pcbatch.batch(listed)(LANES)
    assert info.value.diagnostics[0].code == ("PCB301" if name == "of a choice" else "PCB304")


def _expression(tokens):
    token = next(tokens)
    if token < 0:
        left = _expression(tokens)
        return left + 2 * _expression(tokens)
    return token


def _until_zero(it):
    total = 0
    for x in it:
        if x == 0:
            break
        total += x
    return total


class Parser:
    def __init__(self, text):
        self.signs = iter(text)
        self.sign = next(self.signs, None)

    def advance(self):
        self.sign = next(self.signs, None)

    def term(self):
        if self.sign == "(":
            self.advance()
            value = self.sum()
        else:
            value = int(self.sign)
        self.advance()
        return value

    def sum(self):
        value = self.term()
        while self.sign is not None and self.sign in "+-":
            sign = self.sign
            self.advance()
            other = self.term()
            value = value + other if sign == "+" else value - other
        return value


def prefix(xs):
    return _expression(iter(xs))


def tokens(text):
    it, found = iter(text), []
    c = next(it, None)
    while c is not None:
        value = 0
        while c is not None and c.isdigit():
            value = value * 10 + int(c)
            c = next(it, None)
        found.append(value)
        c = next(it, None)
    return found


def parsed(text):
    return Parser(text).sum()


def in_two_helpers(xs):
    it = iter(xs)
    first = _until_zero(it)
    return first, _until_zero(it), list(it)


def taken_in_a_loop(xs):
    it, total = iter(xs), 0
    for x in it:
        total = total * 2 + (next(it, 7) if x == 0 else x)
        if x < 0:
            break
    else:
        total += 1000
    return total, next(it, -1), sum(v * v for v in it)


def numbered(xs):
    it, total = iter(xs), 0
    next(it, None)
    for k, x in enumerate(it):
        total += k * x
    pairs = zip(xs, xs[1:])
    a, b = next(pairs, (0, 0))
    return total, a, b, [c - d for c, d in pairs]


def caught(xs):
    it, total = reversed(xs), 0
    while True:
        try:
            total = total * 3 + next(it)
        except StopIteration:
            return total


def by_two_names(xs):
    a = iter(xs)
    b = a
    return next(a, 0) * 100 + next(b, 0) * 10 + next(a, 0)


def in_a_closure(xs):
    it = iter(xs)

    def taken():
        return next(it, 0)

    first = taken()
    return first * 10 + taken() - next(it, 0)


def of_a_range(xs):
    it, total = iter(range(len(xs), 0, -1)), 0
    for x in xs:
        total += x * next(it)
    return total, (1 if total else 2) * next(it, 5)


def chosen(xs):
    forth = xs[0] > 1 if xs else False
    return list(reversed(xs) if forth else xs), sum(k * x for k, x in enumerate(reversed(xs) if forth else xs))


def _pushed(values):
    def push(stack, x):
        while stack and stack[-1] > x:
            stack.pop()
        stack.append(x)
        return stack

    return reduce(push, values, [])


def _twice_in_a_loop(it):
    total = 0
    for _ in range(2):
        total = total * 100 + sum(it)
    return total


def handed_on(xs):
    return _pushed(xs), _pushed(reversed(xs)), _twice_in_a_loop(reversed(xs)), _twice(reversed(xs))


LISTS = [[1, -1, 0, 2, 3], [], [5], [0], [-1, -1, 2, 3, 4], [2, 0, 4, 0, 1]]
TEXTS = ["12+3", "7", "(3-1)+4-(2-(5-1))"]


def map_ends(xs):
    it = iter(xs)
    total = 0
    for x in map(lambda k: next(it) + k, range(4)):
        total = 3 * total + x
    return total, len(list(map(lambda k, m: next(it) * k + m, range(3), range(3))))


def _first(it):
    return next(it)


def map_ends_in_a_helper(xs):
    it = iter(xs)

    def taken(k):
        return _first(it) * k

    return list(map(taken, range(4))), sum(it)


def filter_ends(xs):
    it = iter(xs)
    return list(filter(lambda k: next(it) > 1, range(4))), next(it, -1)


def _squares(xs):
    for x in xs:
        yield x * x


def _some(it):
    total = 0
    for x in it:
        total += x
        if total > 3:
            break
    return total


def a_generator_in_parts(xs):
    it = iter(list(_squares(xs)))
    return _some(it), _some(it), next(it, -1)


def read_meanwhile(xs):
    k, added, total = len(xs), Added(), 0

    def weighed(x):
        return x * total

    now = reversed([x + total for x in xs])
    pairs = zip([1, 2], map(lambda x: x + k, [3, 4]), map(added.to, [5, 6]), strict=True)
    first = next(pairs)
    for x in map(weighed, xs):
        total += x + 1
    return total, sum(first), sum(a * b - c for a, b, c in pairs), sum(k * x for k, x in enumerate(now))


KEEPING = [
    read_meanwhile,
    prefix,
    tokens,
    parsed,
    in_two_helpers,
    taken_in_a_loop,
    numbered,
    caught,
    by_two_names,
    in_a_closure,
    of_a_range,
    chosen,
    handed_on,
    map_ends,
    map_ends_in_a_helper,
    filter_ends,
    a_generator_in_parts,
]


@pytest.mark.parametrize("function", KEEPING, ids=lambda function: function.__name__)
def test_kept_iterators(function: Any) -> None:
    examples = TEXTS if function in (tokens, parsed) else LISTS
    given = pcbatch.ragged(examples) if function in (tokens, parsed) else pcbatch.ragged(examples)
    result = pcbatch.batch(function).run(given)
    for lane, example in enumerate(examples):
        try:
            plain = function(list(example) if isinstance(example, list) else example)
        except StopIteration:
            assert result.status[lane] == pcbatch.Status.ERROR
            with pytest.raises(pcbatch.BatchRuntimeError, match="StopIteration"):
                pcbatch.batch(function)(given)
            continue
        values = result.value if isinstance(result.value, tuple) else (result.value,)
        lanes = tuple(value.tolist()[lane] for value in values)
        assert lanes == (plain if isinstance(plain, tuple) else (plain,))


def _changed(xs):
    it = iter(xs)
    first = next(it, 0)
    xs.append(5)
    return first + next(it, 0)


def _together(xs):
    it = iter(xs)
    return [a * b for a, b in zip(it, it, strict=False)]


def _asked(xs):
    it = iter(xs)
    return 2 in it


def _returned(xs):
    return iter(xs)


def _range(xs):
    return len(xs), range(len(xs))


def _view(xs):
    return {x: x for x in xs}.items()


def _of_lists(xs):
    rows = [[x] for x in xs]
    it = iter(rows)
    return len(next(it, []))


def _assigned(xs):
    it, total = iter(xs), 0
    for x in it:
        it = iter(xs)
        total += x
        if total > 100:
            break
    return total + next(it, 0)


def _read_later(xs):
    k = 1
    pairs = zip([1, 2], map(lambda x: x + k, [3, 4]), strict=True)
    k = len(xs)
    return sum(a * b for a, b in pairs)


def _called_later(xs):
    def added(x):
        return x + k

    k = 1
    pairs = enumerate(added(x) for x in [1, 2])
    k = len(xs)
    return sum(a * b for a, b in pairs)


class Added:
    """An object that a method reads."""

    def __init__(self):
        self.k = 1

    def to(self, x):
        return x + self.k


def _object_read_later(xs):
    added = Added()
    pairs = enumerate(map(added.to, [1, 2]))
    added.k = len(xs)
    return sum(a * b for a, b in pairs)


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (_changed, "PCB330"),
        (_read_later, "PCB304"),
        (_called_later, "PCB304"),
        (_object_read_later, "PCB304"),
        (_together, "PCB304"),
        (_asked, "PCB304"),
        (_returned, "PCB311"),
        (_range, "PCB311"),
        (_view, "PCB311"),
        (_of_lists, "PCB304"),
        (_assigned, "PCB304"),
    ],
)
def test_what_would_show_an_iterator_as_a_list_is_refused(function: Any, code: str) -> None:
    with pytest.raises(pcbatch.CompileError) as info:
        pcbatch.batch(function)(pcbatch.ragged(LISTS))
    assert info.value.diagnostics[0].code == code
    assert "Lane" not in str(info.value) and "DictView" not in str(info.value)
