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
