"""Builtins as keys of orders stand for the lane's own: `sorted(xs, key=str)` sorts by the texts of the numbers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import pcbatch

LISTS = [[3, 10, 2, 30], [40, 4], [7]]


def orders(xs: list[int]) -> Any:
    ys = xs.copy()
    ys.sort(key=str, reverse=True)
    return (
        sorted(xs, key=str),
        sorted(xs, key=repr),
        ys,
        sorted(xs, key=bin),
        sorted(xs, key=float),
        sorted(map(str, xs), key=len),
    )


def extremes(xs: list[int]) -> Any:
    return max(xs, key=str), min(xs, key=str)


def called(n: int) -> str:
    made = str
    return made(n) + "".join(sorted("hello", key=ord))


@pytest.mark.parametrize("function", [orders, extremes])
def test_of_a_list(function: Any) -> None:
    found = [part.tolist() for part in pcbatch.batch(function)(pcbatch.ragged(LISTS))]
    assert list(zip(*found, strict=True)) == [function(xs) for xs in LISTS]


def ends(words: str) -> Any:
    counts: dict[str, int] = {}
    for word in words.split():
        counts[word] = counts.get(word, 0) + 1
    most = max(counts, key=lambda word: (counts[word], word))
    return most, min(counts, key=lambda word: (counts[word], word)), max(words.split(), key=lambda word: word[1:])


def of_rows(rows: list[list[float]]) -> Any:
    return max(rows), min(rows), max(rows, key=lambda row: row[:1])


def test_extremes_by_texts_and_lists_compare_each_element_once() -> None:
    sentences = ["the cat sat on a mat", "b a b a", "one", "ab bb cb ab"]
    f = pcbatch.batch(ends)
    found = [part.tolist() for part in f(pcbatch.ragged(sentences))]
    assert list(zip(*found, strict=True)) == [ends(words) for words in sentences]
    assert not re.search(r"\[32,32(,\d+)?\] = (lt|and|or)", str(f.lower(pcbatch.ragged(sentences)).as_text("jaxpr")))
    rows = [[[1.5, 2.0], [1.5], [0.0, 9.0]], [[-1.0]], [[2.0, 3.0], [2.0, 4.0], [2.0], [1.0, 7.0]]]
    found = [part.tolist() for part in pcbatch.batch(of_rows)(pcbatch.ragged(rows))]
    assert list(zip(*found, strict=True)) == [of_rows(each) for each in rows]


def test_builtins_that_are_values() -> None:
    assert pcbatch.batch(called)(np.array([12, 7])).tolist() == [called(12), called(7)]


def test_a_text_that_python_made_of_a_value_of_the_lane_is_refused() -> None:
    """A text that is the same for all elements while the key is traced would leave the list as it was."""

    def by_ascii(xs: list[int]) -> list[int]:
        return sorted(xs, key=ascii)

    with pytest.raises(pcbatch.CompileError, match="made while compiling"):
        pcbatch.batch(by_ascii).lower(pcbatch.ragged(LISTS))


def directed(n: int) -> Any:
    numbers, pairs = [3, n, 1, n], [(3, "a"), (n, "b"), (1, "c"), (1, "d")]
    pairs.sort(key=lambda pair: pair[0], reverse=n > 2)
    numbers.sort(reverse=n % 2 == 0)
    return (
        10 * numbers[0] + numbers[-1],
        "".join(name for _, name in pairs),
        sorted(["pear", "fig", "apple"], reverse=n > 3),
    )


def test_each_lane_has_its_own_direction() -> None:
    ns = [1, 2, 3, 4, 5]
    found = [part.tolist() for part in pcbatch.batch(directed)(np.array(ns))]
    assert list(zip(*found, strict=True)) == [directed(n) for n in ns]


def test_a_list_without_elements_has_no_key_to_ask_for() -> None:
    """The key of its first element is looked at while compiling, and no lane raises there."""

    def places(xs):
        return sorted(range(len(xs)), key=lambda i: xs[i])

    xs = [[3, 1, 2], [], [5]]
    assert pcbatch.batch(places)(pcbatch.ragged(xs)).tolist() == list(map(places, xs))
