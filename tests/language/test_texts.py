"""Texts of the lane: digits of integers, and strings that differ from path to path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.errors import BatchRuntimeError

pytestmark = pytest.mark.share(2)

NUMBERS = [7, 10, 121, -32, 90210, 999999999, -2147483648]
NATURAL = [7, 10, 121, 32, 90210, 999999999]
VALUES = {"1": 5, "2": 7, "3": 1}


def digits(n):
    total = 0
    for c in str(n):
        total += 3 if c == "-" else int(c)
    return total, len(str(n)), str(n) == str(n)[::-1], str(n).count("1"), "2" in str(n), int(str(n)), bool(str(n))


def bases(n):
    return bin(n).count("1"), len(hex(n)), int(oct(n), 8), int(bin(n), 2), int(hex(n)[1:] if n < 0 else hex(n), 16)


def natural(n):
    ds = [int(d) for d in str(n)]
    largest = int("".join(sorted(str(n), reverse=True)[:4]))
    binary = int("".join("1" if d in "13579" else "0" for d in str(n)), 2)
    return (
        sum(ds),
        max(map(int, str(n))),
        largest,
        binary,
        f"{n:b}".count("0"),
        len(f"<{n:>12}>"),
        str(n).zfill(12) > "1",
    )


def lookups(n):
    s = str(n)
    table = sum(VALUES[c] if c in VALUES else 0 for c in s)
    return table, s in ("7", "121"), ord(s[0]) - ord("0"), int(chr(48 + n % 10)), s[-1] in {"0", "1"}, s < "2"


def methods(n):
    s = str(n)
    t = s.replace("1", "").strip("0")
    return len(t), len(s.lstrip("1")), s.rfind("1"), s.endswith("1"), s.isdigit(), s.find("02"), len("-".join([s, "x"]))


def states(n):
    state, k = "start", 0
    while state != "done":
        match state:
            case "start":
                state = "run" if n % 2 else "half"
            case "half":
                n, k = n // 2, k + 1
                state = "run" if n % 2 else "half"
            case _:
                n, k = n - 1, k + 3
                state = "half" if n > 0 else "done"
    return k


def words(n):
    word = ["zero", "one", "two", "three", "four"][n % 5]
    return (
        len(word),
        word.count("e"),
        word[0] == "t",
        word.upper() == "ONE",
        word < "one",
        ("a" * (n % 3)) + word == "ttwo",
    )


@pytest.mark.parametrize(
    ("fn", "numbers"),
    [(digits, NUMBERS), (bases, NUMBERS[:-1]), (natural, NATURAL), (lookups, NATURAL), (methods, NATURAL)]
    + [(states, [5, 8, 12]), (words, [1, 2, 5, 13, 14])],
)
def test_it_is_what_python_makes_of_it(fn: Callable[..., Any], numbers: list[int]) -> None:
    found = pcbatch.batch(fn)(jnp.array(numbers))
    for k, n in enumerate(numbers):
        here = jax.tree.map(lambda leaf, k=k: np.asarray(leaf)[k], found)
        for have, want in zip(jax.tree.leaves(here), jax.tree.leaves(fn(n)), strict=True):
            np.testing.assert_array_equal(have, want)


def shown(n):
    s = str(n)
    print(s, len(s))
    if n > 100:
        raise ValueError("bad " + s)
    return n


def test_a_text_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BatchRuntimeError, match="bad 121"):
        pcbatch.batch(shown)(jnp.array([7, 121]))
    jax.effects_barrier()
    assert sorted(line.split("] ")[-1] for line in capfd.readouterr().out.splitlines()) == ["121 3", "7 1"]


def test_a_text_without_a_number_fails_the_lane() -> None:
    with pytest.raises(BatchRuntimeError, match="1 of 2 lanes raised `ValueError`"):
        pcbatch.batch(lambda n: int(str(n)[2:]))(jnp.array([7, 121]))


def names(n):
    if n % 15 == 0:
        return "FizzBuzz", None, ["all"], {n: "first"}
    text = bin(n)[2:]
    return text, text if n > 3 else None, [str(k) * 2 for k in range(n % 3)], {n: text, n + 1: "second"}


def constant(n):
    return n, "even"


def test_texts_are_results() -> None:
    given = [15, 3, 4, 7]
    found = pcbatch.batch(names)(jnp.array(given))
    lanes = [list(part) for part in zip(*map(names, given), strict=True)]
    assert [part.tolist() for part in found] == lanes
    assert found[0].kind == "text" and found[0][1] == "11" and len(found[0]) == 4
    assert pcbatch.batch(constant)(jnp.array([1, 2]))[1] == ["even", "even"]


def test_a_lane_that_failed_has_no_text() -> None:
    result = pcbatch.batch(lambda n: str(10 // n) if n < 3 else str(n)[n])
    texts = result.run(jnp.array([2, 5])).value
    assert texts.tolist() == ["5", None]
    with pytest.raises(ValueError, match="lane 1 has failed"):
        texts[1]
    with pytest.raises(IndexError):
        texts[2]


def backwards(text, words):
    return text[::-1] + str(len(text)), sorted(words), " ".join(w for w in words if w != text)


def test_texts_are_arguments() -> None:
    texts, words = ["abc", "", "de"], [["b", "abc", "aa"], [], ["de"]]
    found = pcbatch.batch(backwards)(pcbatch.ragged(texts), pcbatch.ragged(words))
    lanes = list(map(backwards, texts, words))
    assert [part.tolist() for part in found] == [list(part) for part in zip(*lanes, strict=True)]
    assert pcbatch.batch(backwards).plain("ab", ["c"]) == ("ba2", ["c"], "c")


def test_texts_go_through_jit() -> None:
    found = jax.jit(pcbatch.batch(lambda n: str(n)))(jnp.array([7, 121]))
    assert found == pcbatch.ragged(["7", "121"]) and found[1:].tolist() == ["121"]
    assert repr(found) == "Ragged(['7', '121'])"


def test_zeros_before_a_number_are_grouped() -> None:
    @pcbatch.batch
    def shown(n):
        return f"{n:08,d}", f"{n:09,}", f"{n:010_}", f"{n:+08,d}", f"{n: 07,}", f"{n:02,}", f"{n:012_x}", f"{n:<08,d}"

    numbers = [sign * n for n in (0, 1, 12, 123, 1234, 12345, 123456, 1234567) for sign in (1, -1)]
    texts = [part.tolist() for part in shown(jnp.array(numbers))]
    assert list(zip(*texts, strict=True)) == [shown.plain(n) for n in numbers]


@pytest.mark.parametrize("emitter", ["scalar", "guard"])
def test_marks_between_digits(emitter: str) -> None:
    def value(s):
        try:
            return int(s)
        except ValueError:
            return -1

    def of_base(s):
        try:
            return int(s, 16)
        except ValueError:
            return -1

    decimal = ["1_000", "_1", "1_", "1__0", "-1_2", "+_1", "1_2_3", " 7_7 ", "_", "1 _2", ""]
    hexadecimal = ["0x_f", "0xf_f", "0_xff", "_0xf", "0x", "0x__f", "f__f", "-0x_1", "ff_"]
    for function, texts in ((value, decimal), (of_base, hexadecimal)):
        found = pcbatch.batch(function, plan=pcbatch.Plan(emitter=emitter))(pcbatch.ragged(texts))
        assert found.tolist() == [function(text) for text in texts]
