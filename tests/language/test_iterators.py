"""Iterators that are taken from twice: the second time sees what the first has left, or the program is refused."""

from __future__ import annotations

import importlib.util
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
    "given": lambda xs: _twice(reversed(xs)),
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
    assert info.value.diagnostics[0].code == "PCB304"
