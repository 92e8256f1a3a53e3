"""A recursive-descent parser: nested JSON arrays of numbers, or the place where the text stops being one."""

from __future__ import annotations

import json

import jax.numpy as jnp
import numpy as np

import pcbatch

OPEN, CLOSE, COMMA, NUMBER, END = range(5)


@pcbatch.batch
def value(tokens, i):
    """Parse one value at position `i`: the position after it (-1: there is none), its depth, how many numbers."""
    if tokens[i] == NUMBER:
        return i + 1, 0, 1
    if tokens[i] != OPEN:
        return -1, 0, 0
    if tokens[i + 1] == CLOSE:
        return i + 2, 1, 0
    deepest, numbers = 0, 0
    while True:
        i, depth, more = value(tokens, i + 1)
        deepest = depth if depth > deepest else deepest
        numbers += more
        if i >= 0 and tokens[i] == CLOSE:
            return i + 1, deepest + 1, numbers
        if i < 0 or tokens[i] != COMMA:
            return -1, 0, 0


@pcbatch.batch
def parse(tokens):
    """The depth of a whole text and how many numbers it has, or -1 and -1 if it is not a value."""
    i, depth, numbers = value(tokens, 0)
    if i < 0 or tokens[i] != END:
        return -1, -1
    return depth, numbers


def main(lanes: int = 1000) -> None:
    """Parse random texts, valid and not, and compare with Python's `json`."""
    rng = np.random.default_rng(0)
    texts = [nested(rng, 4) for _ in range(lanes)]
    for k in range(0, lanes, 2):  # every second one gets a fault, as a rule
        at = rng.integers(len(texts[k]))
        texts[k] = texts[k][:at] + rng.choice(list("[],")) + texts[k][at + 1 :]
    tokens = np.full((lanes, max(map(len, texts)) + 2), END)
    for row, text in zip(tokens, texts, strict=True):
        row[: len(text)] = ["[],1".index(c) for c in text]
    wanted = np.array([by_json(text) for text in texts])
    np.testing.assert_array_equal(np.stack(parse(jnp.array(tokens)), axis=1), wanted)
    valid = int(np.sum(wanted[:, 0] >= 0))
    print(f"json_tokens: {lanes} texts parsed, {valid} of them valid, all as Python's json does")


def nested(rng: np.random.Generator, depth: int) -> str:
    """A random array as text."""
    if depth == 0 or rng.random() < 0.3:
        return "1"
    return "[" + ",".join(nested(rng, depth - 1) for _ in range(rng.integers(4))) + "]"


def by_json(text: str) -> tuple[int, int]:
    """What `parse` should return."""
    try:
        json.loads(text)
    except ValueError:
        return -1, -1
    return max(np.cumsum([(c == "[") - (c == "]") for c in text])), text.count("1")


if __name__ == "__main__":
    main()
