"""Lists of the parts of a text, which are places in it until they are changed or put somewhere else."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import pcbatch
from pcbatch.data.texts.lane_text import LaneText
from pcbatch.data.texts.text_parts import TextParts
from tests.oracles.plans import planned

TEXTS = ["", "a", " ", ",", ",,", "  a  ", "a,b", "a b", "b,cat a,é\u2003a\tcat", "cat " * 9 + "x" * 40]
LONG = [text * 20 for text in TEXTS] + ["x" * 300 + " y", "x " * 200]


def _words(text: str) -> Any:
    return text.split()


def _changed(text: str) -> Any:
    words = text.split(",")
    words.append("end")
    words[0] = "first"
    return words, words == [*text.split(), "end"], len(words)


def _questions(text: str) -> Any:
    words = text.split()
    first = words.index("a") if "a" in words else -1
    return first, words[1:], words[::-1], words.count("cat"), words[:1] == text.split(",")[:1]


def _joined(text: str) -> Any:
    return "-".join(text.split(",")), text.rsplit(",", 1), text.split(" ", 2), "".join(text.split())


def _rows(text: str) -> Any:
    rows = [line.split(",") for line in text.split(" ")]
    return len(rows), rows[0]


def _either(text: str) -> Any:
    words = text.split() if len(text) % 2 else ["one"]
    total = 0
    for word in words:
        total = 31 * total + len(word)
        total %= 1009
    return total, words


def _unpacked(text: str) -> Any:
    padded = text + "abc"
    head, *tail = padded
    x, y = padded[:2]
    (last,) = tuple(c for c in padded)[-1:]
    *most, _, _ = deque(padded)
    lengths = {word: len(word) for word in padded.split()}
    (word, length), *_ = lengths.items()
    return head.upper() + "".join(tail), y + x + last, most, word * 2, length


def _fullest(text: str) -> Any:
    groups = defaultdict(list)
    for word in text.split():
        groups[len(word)].append(word)
    return max(groups, key=lambda size: (len(groups[size]), size), default=-1)


@pytest.mark.parametrize("function", [_words, _changed, _questions, _joined, _rows, _either, _unpacked, _fullest])
@pytest.mark.parametrize("options", [{"emitter": "scalar"}, {"schedule": "sweep"}], ids=["alone", "together"])
def test_lists_of_parts_are_as_in_python(function: Any, options: Any) -> None:
    out = pcbatch.batch(function, **planned(**options))(pcbatch.ragged(TEXTS))
    assert _by_lane(out) == [function(text) for text in TEXTS]


@pytest.mark.parametrize("function", [_words, _questions])
def test_long_texts_get_more_room_for_long_parts(function: Any) -> None:
    assert _by_lane(pcbatch.batch(function, plan=pcbatch.Plan(emitter="scalar"))(pcbatch.ragged(LONG))) == [
        function(t) for t in LONG
    ]


def _by_lane(out: Any) -> list[Any]:
    if not isinstance(out, tuple):
        return list(out.tolist())
    return list(zip(*(list(part.tolist()) for part in out), strict=True))


def test_a_list_of_parts_has_no_rows() -> None:
    text = LaneText.made(jnp.zeros(1024, jnp.int32), jnp.int32(0))
    parts = jax.eval_shape(lambda text: text.split(), text)
    assert isinstance(parts, TextParts)
    assert max(leaf.size for leaf in jax.tree.leaves(parts)) == 1024
