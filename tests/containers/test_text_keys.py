"""Texts as keys of dicts and members of sets, compared with plain Python on random texts."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest

import pcbatch
from pcbatch.errors import CompileError

pytestmark = pytest.mark.share(3)


def first_repeated(text):
    seen = set()
    for c in text:
        if c in seen:
            return c
        seen.add(c)
    return ""


def counts(text):
    found = {}
    for c in text:
        found[c] = found.get(c, 0) + 1
    return found


def most_frequent(text):
    found = Counter(text + "a")
    return max(found, key=found.get), found["a"], found["zz"], found.total()


def with_default(text):
    found = defaultdict(int)
    for c in text:
        found[c] += 1
    return [c for c in found], sum(found.values()), "b" in found


def by_place(text):
    places = defaultdict(list)
    for k, c in enumerate(text):
        places[c].append(k)
    return sum(len(p) * p[-1] for p in places.values())


def comprehension(text):
    return {c: text.count(c) for c in text if c != "b"}, len({c for c in text}), sorted(set(text))


def parts(text):
    found = set()
    for i in range(len(text)):
        for j in range(i + 1, len(text) + 1):
            found.add(text[i:j])
    return len(found), "ab" in found, "" in found, text in found


def longest(text):
    last = {}
    best = start = 0
    for k, c in enumerate(text):
        if c in last and last[c] >= start:
            start = last[c] + 1
        last[c] = k
        best = max(best, k - start + 1)
    return best


def words(text):
    found = {}
    word = ""
    for c in text + " ":
        if c == " ":
            if word:
                found[word] = found.get(word, 0) + 1
            word = ""
        else:
            word += c
    return found


def anagram(text):
    half = len(text) // 2
    return Counter(text[:half]) == Counter(text[half:]), set(text[:half]) <= set(text[half:])


def pairs(text):
    found = set()
    total = {}
    for k in range(len(text) - 1):
        found.add((text[k], text[k + 1]))
        total[k % 2, text[k]] = k
    return len(found), ("a", "b") in found, (0, "a") in total, ("a", 0) in total, sum(total.values())


def mixed_known(text):
    values = {"a": 1, "b": 2}
    seen = {"a"}
    for c in text:
        seen.add(c)
    return sum(values.get(c, 0) for c in text), len(seen), "c" in seen


def removed(text):
    found = {}
    for k, c in enumerate(text):
        if c in found:
            del found[c]
        else:
            found[c] = k
    popped = found.pop("a", -1)
    return found, popped, sorted(found), sorted(found.items())


def sets(text):
    half = len(text) // 2
    a, b = set(text[:half]), set(text[half:])
    return len(a & b), len(a | b), sorted(a - b), sorted(a ^ b), a.isdisjoint(b)


def lookup(text):
    found = {}
    for k, c in enumerate(text):
        found[c] = k
    return found["a"]


def united(text):
    half = len(text) // 2
    a, b = {}, {c: k for k, c in enumerate(text[half:])}
    for c in text[:half]:
        a[c] = -1
    a.update(b)
    total = Counter(text[:half])
    total.update(text)
    return {**a, "a": 5}, a | {"b": 7}, total, (text, 1) in [(k, 1) for k in b.keys()]


PROGRAMS = (
    united,
    first_repeated,
    counts,
    most_frequent,
    with_default,
    by_place,
    comprehension,
    parts,
    longest,
    words,
    anagram,
    pairs,
    mixed_known,
    removed,
    sets,
)


def inputs(seed: int) -> list[str]:
    """Texts of few different characters, one of them empty, one with words that begin alike."""
    draw = random.Random(seed)
    made = ["".join(draw.choice("aab bcd") for _ in range(draw.randrange(12))) for _ in range(5)]
    return [*made, "", "ab abc ab a abcd"]


def tolist(value: Any, lane: int) -> Any:
    if isinstance(value, tuple):
        return tuple(tolist(part, lane) for part in value)
    found = value.tolist()[lane]
    return found.tolist() if isinstance(found, np.ndarray) else found


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs_with_texts_as_keys(program):
    texts = inputs(len(program.__name__))
    found = pcbatch.batch(program)(pcbatch.ragged(texts))
    for lane, text in enumerate(texts):
        want = program(text)
        have = tolist(found, lane)
        assert have == want, text
        if isinstance(want, dict):
            assert list(have) == list(want), text


def test_key_that_is_missing_fails_the_lane():
    result = pcbatch.batch(lookup).run(pcbatch.ragged(["xa", "b"]))
    assert result.value.tolist()[0] == 1 and result.status.tolist()[0] == 0 and result.status.tolist()[1] != 0


def known_and_new(text):
    found = {"a": 0}
    if len(text) > 2:
        found["size"] = len(text)
    for k in range(len(text)):
        found[str(k)] = k
    if text == "":
        found = {"none": 1}
    return found


def of_texts_of_numbers(text):
    return {f"k{k}": [] for k in range(len(text))}


def without_values(text):
    return {str(k): None for k in range(len(text))}


@pytest.mark.parametrize("program", [known_and_new, of_texts_of_numbers, without_values])
def test_keys_that_are_known_on_some_ways_are_texts_of_the_lane(program):
    texts = ["", "ab", "abcde"]
    found = pcbatch.batch(program)(pcbatch.ragged(texts)).tolist()
    assert found == [program(text) for text in texts]
    assert [list(each) for each in found] == [list(program(text)) for text in texts]


def numbers_and_texts(text):
    found = {1: 2}
    for c in text:
        found[c] = 1
    return len(found)


def in_any_order(text):
    whole = ""
    for c in set(text):
        whole += c
    return whole


@pytest.mark.parametrize("program", [numbers_and_texts, in_any_order])
def test_refused(program):
    with pytest.raises(CompileError):
        pcbatch.batch(program)(pcbatch.ragged(["ab"]))


def letters_among_words(t):
    p = set()
    p.add(t[:1])
    d = {t[1:2]: 3}
    return "a" in p, d.get("b", 0), ("a", 1) in {(t[:1], 1)}


@pytest.mark.parametrize("emitter", ["scalar", "guard"])
def test_letters_are_found_among_keys_cut_from_longer_texts(emitter):
    texts = ["abcde", "b", "", "ba", "aaaaaaaaaaaa"]
    got = pcbatch.batch(letters_among_words, plan=pcbatch.Plan(emitter=emitter))(pcbatch.ragged(texts))
    assert list(zip(*(part.tolist() for part in got), strict=True)) == [letters_among_words(t) for t in texts]
