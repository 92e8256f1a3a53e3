"""Values that may be None, where they are looked for and compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pcbatch

TABLE = {"a": 1, "c": 2}


def last_word(text):
    words, best = text.split(), None
    for word in words:
        best = word
    return best in words, words.count(best)


def words_in_a_table(text):
    last, n = None, 0
    for word in text.split():
        if last in TABLE:
            n += 1
        last = word
    return n


def numbers(text):
    k = len(text)
    best = None
    if k > 1:
        best = k
    return best in {1: 5, 3: 6}, best in range(5), best in frozenset((3, 4)), best in {None: 1, 3: 2}


def pairs(text):
    best = None
    if len(text) > 1:
        best = "a b"
    row = [1, None, 3]
    if len(text) > 2:
        row[1] = 3
    return (1, best) == (1, "a b"), 3 in row, row.count(3), (best, 1) == ("a b", 2)


def lists(text):
    best = None
    if len(text) > 1:
        best = [len(text)]
    return [best] == [[3]], best == [3], best != [5]


def joined(text):
    return " ".join(text.split()), "-".join(text.split("a"))


@pytest.mark.parametrize("emitter", ["scalar", "guard"])
@pytest.mark.parametrize("function", [last_word, words_in_a_table, numbers, pairs, lists])
def test_as_in_python(function: Any, emitter: str) -> None:
    texts = ["a b", "", "c c a", "b"]
    found = pcbatch.batch(function, plan=pcbatch.Plan(emitter=emitter))(pcbatch.ragged(texts))
    for lane, text in enumerate(texts):
        want = function(text)
        have = [np.asarray(x)[lane].tolist() for x in (found if isinstance(want, tuple) else [found])]
        assert have == list(want if isinstance(want, tuple) else [want]), text


@pytest.mark.parametrize("emitter", ["scalar", "guard"])
def test_parts_of_long_texts_are_joined(emitter: str) -> None:
    texts = ["a " * 80, "b", "", "x" * 150 + " a  b"]
    for have, want in zip(
        pcbatch.batch(joined, plan=pcbatch.Plan(emitter=emitter))(pcbatch.ragged(texts)),
        zip(*map(joined, texts), strict=True),
        strict=True,
    ):
        assert have.tolist() == list(want)


class Cell:
    """An object with a part that may be None."""

    def __init__(self, value, next=None):
        self.value = value
        self.next = next


def against_none(a, b):
    x = a if a > 1 else None
    y = None
    return x is y, y is x, None is x, y is not x, (None if b else x) is y


def against_bools(a, b):
    x = a > 2 if a > 1 else None
    return x is True, True is x, False is x, x is not True


def against_texts(a, b):
    x = "ab" if a > 1 else None
    y = [b] if b > 1 else None
    z = (a, b) if a > 2 else None
    none = None
    return none is x, none is y, none is z, z is none


def in_a_new_object(a, b):
    e = Cell(a) if not b else None
    other = None
    e = Cell(1 if other is e else 0)
    return e.value


def dicts(a, b):
    d, e = {"k": a if a > 1 else None, "l": {"m": b}}, {"l": {"m": b}, "k": b if b > 1 else None}
    none = {"k": None, "l": {"m": b}}
    return d == none, none != d, d == e, d == {"k": a}, none in [d, e], [d, e].count(none), [d] == [e], {1: a} == {1: b}


def dicts_of_names_and_numbers(a, b):
    """Keys that JAX cannot sort are compared as Python does."""
    return {"a": a} == {"a": 3, 2: 3}, {"a": a} != {2: b}, {"a": a} == {"a": b}


def of_numbers(a, b):
    x = a if a > 1 else None
    y = b if b > 1 else None
    return x is y


OF_TWO = [against_none, against_bools, against_texts, in_a_new_object, dicts, dicts_of_names_and_numbers]


@pytest.mark.parametrize("fn", OF_TWO, ids=lambda f: f.__name__)
def test_identity_and_equality_in_either_order(fn: Any) -> None:
    ones, others = np.array([0, 0, 3, 3, 2], np.int32), np.array([0, 3, 0, 3, 2], np.int32)
    found = pcbatch.batch(fn)(ones, others)
    columns = found if isinstance(found, tuple) else (found,)
    wanted = [fn(int(a), int(b)) for a, b in zip(ones, others, strict=True)]
    lanes = list(zip(*(np.broadcast_to(column, ones.shape).tolist() for column in columns), strict=True))
    assert lanes == [one if isinstance(one, tuple) else (one,) for one in wanted]


def test_identity_of_two_numbers_that_may_be_none_is_refused() -> None:
    with pytest.raises(pcbatch.CompileError, match="values of lanes are not objects"):
        pcbatch.batch(of_numbers)(np.array([0, 3]), np.array([0, 3]))


class Point:
    def __init__(self, x: Any) -> None:
        self.x = x


def least_or_none(n):
    least = min(list(range(n)), default=None)
    pair = max([(3 - k, k) for k in range(n)], default=None)
    return -1 if least is None else least, 0 if pair is None else pair[0]


def longest_text(n):
    words = ["ab", "abc", "x"][:n]
    last = max(words, default=None)
    return len(max(words, key=len, default="")), -1 if last is None else len(last)


def nearest(n):
    points = [Point(3 - k) for k in range(n)]
    point = min(points, key=lambda point: point.x, default=None)
    return -1 if point is None else point.x


@pytest.mark.parametrize("fn", [least_or_none, longest_text, nearest], ids=lambda f: f.__name__)
def test_extremes_with_a_default_of_another_kind(fn: Any) -> None:
    found = pcbatch.batch(fn)(np.arange(4))
    columns = found if isinstance(found, tuple) else (found,)
    lanes = list(zip(*(np.asarray(column).tolist() for column in columns), strict=True))
    wanted = [fn(n) for n in range(4)]
    assert lanes == [one if isinstance(one, tuple) else (one,) for one in wanted]
