"""What cannot be a key of a dict or set of the lane is marked, not the look-up around it."""

from __future__ import annotations

import linecache
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.lowering.diagnose.key_spans import key_span

N = np.arange(3)
XS = jnp.ones((3, 2))


def read(i):
    d = {1.5: 2}
    return d[XS[i % 3]]


def stored(i):
    d = {1.5: 2}
    d[XS[i % 3]] = 1
    return d[1.5]


def augmented(i):
    d = {1.5: 2}
    d[XS[i % 3]] += 1
    return d[1.5]


def removed(i):
    d = {1.5: 2}
    del d[XS[i % 3]]
    return len(d)


def asked(i):
    d = {1.5: 2}
    return d.get(XS[i % 3], 0)


def added(i):
    s = {1.5}
    s.add(XS[i % 3])
    return len(s)


@pytest.mark.parametrize("fn", [read, stored, augmented, removed, asked, added])
def test_keys_that_are_arrays(fn: Any) -> None:
    with pytest.raises(pcbatch.CompileError) as caught:
        pcbatch.batch(fn)(N)
    assert _marked(caught.value) == ("PCB304", "XS[i % 3]")


def array_as_key(i):
    d = {1: 2}
    j = jnp.arange(3) + i
    return d.get(j, 1)


def text_among_numbers(i):
    d = {1: 2}
    d["abc"[i % 3]] = 1
    return len(d)


@pytest.mark.parametrize(
    ("fn", "key", "title"),
    [
        (array_as_key, "j", "an array of shape (3,) cannot be a key"),
        (text_among_numbers, '"abc"[i % 3]', "must be alike, not a number and a str"),
    ],
)
def test_other_keys(fn: Any, key: str, title: str) -> None:
    with pytest.raises(pcbatch.CompileError) as caught:
        pcbatch.batch(fn)(N)
    assert _marked(caught.value) == ("PCB304", key)
    assert title in str(caught.value)


@pytest.mark.parametrize("choices", [("a", "b", "c"), ["aa", "b", "c"], (b"ab", b"c", b"")])
def test_a_text_that_is_chosen_is_a_key(choices: Any) -> None:
    def looked_up(i: Any) -> Any:
        names = {choices[0]: 1, choices[1]: 2}
        return names[choices[i % 3]]

    run = pcbatch.batch(looked_up).run(N)
    assert np.asarray(run.value)[:2].tolist() == [1, 2]
    assert [int(status) for status in run.status] == [0, 0, int(pcbatch.Status.ERROR)]


def test_spans_of_several_lines_and_wide_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ['x = d["ü"](é)[\n', "    ß + k\n", "]; y = ü in d; z = d\n"]
    monkeypatch.setitem(linecache.cache, "<keys>", (1, None, lines, "<keys>"))
    assert key_span(Loc("<keys>", 1, 4, 3, 1)) == Loc("<keys>", 2, 4, 2, 9)
    assert key_span(Loc("<keys>", 3, 7, 3, 13)) == Loc("<keys>", 3, 7, 3, 8)
    assert key_span(Loc("<keys>", 3, 19, 3, 20)) == Loc("<keys>", 3, 19, 3, 20)


def _marked(error: pcbatch.CompileError) -> tuple[str, str]:
    (finding,) = error.diagnostics
    assert finding.primary is not None
    loc = finding.primary.loc
    return finding.code, linecache.getline(loc.file, loc.line)[loc.col : loc.end_col]
