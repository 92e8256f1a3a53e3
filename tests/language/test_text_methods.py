"""Methods of texts of the lane, compared with plain Python on random texts; the table of the documentation."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pcbatch
from pcbatch.data.texts.lane_text import LACKING, LaneText
from pcbatch.errors import CompileError

pytestmark = pytest.mark.share(3)
PAGE = Path(__file__).parents[2] / "docs" / "users" / "language.md"


def parts(s):
    return s.split(), s.split(" "), s.split("a"), s.split("ab"), s.split("a", 1)


def letters(s):
    return s.swapcase(), s.title(), s.capitalize(), s.casefold(), s.center(9), s.center(8, "*"), s.center(2)


def kinds(s):
    return s.isupper(), s.islower(), s.istitle(), s.isspace(), s.isascii()


def found(s):
    return s.find("a", 1), s.find("a", 2, 4), s.find("", 3), s.rfind("a", -3), s.rfind("a", 1, -1), s.find("", -1, -2)


def counted(s):
    k = s.count("a")
    return s.count("a", 1), s.count("ab", 0, 4), s.count("", 2), s.count("aa"), s.find("b", k), s[k:], s[-k:], s[k::2]


def parted(s):
    return s.partition("a"), s.rpartition("a"), s.partition("ab"), s.rpartition("zz")


def replaced(s):
    whole = s.replace("ab", "x"), s.replace("a", "xy"), s.replace("a", "b", 1), s.replace("aa", "b"), s.replace("a", "")
    return whole, s.removeprefix("a"), s.removesuffix("b")


def sentence(s):
    words = s.split()
    turned = " ".join(w[::-1] for w in words)
    return turned, len(words), max([len(w) for w in words], default=0), sorted(words), [w for w in words if len(w) > 1]


def frequencies(s):
    groups = {}
    for word in s.lower().split():
        key = "".join(sorted(word))
        groups[key] = groups.get(key, 0) + 1
    return groups


def run_lengths(s):
    out, k = "", 0
    while k < len(s):
        j = k
        while j < len(s) and s[j] == s[k]:
            j += 1
        out += s[k] + str(j - k)
        k = j
    return out, "".join(chr((ord(c) - 97 + 3) % 26 + 97) if c.islower() else c for c in s)


def words_and_lines(s):
    lines = s.replace("1", "\n").replace("z", "\r\n").replace("B", "\r")
    pieces = s.split(None, 1), s.split(maxsplit=2), s.rsplit(" ", 1), s.rsplit("a"), s.rsplit(None, 1), s.rsplit()
    return pieces, lines.splitlines(), lines.splitlines(True), (lines + "\n").splitlines()


def ends(s):
    starts = s.startswith(("b", "aa")), s.startswith("a", 1), s.startswith("", 5), s.startswith("", 2, 1)
    return starts, s.endswith(("b", "A")), s.endswith("a", 0, 2), s.isprintable(), s.isidentifier()


def translated(s):
    pairs, gone = str.maketrans("ab", "xy"), str.maketrans("", "", "a ")
    return s.translate(pairs), s.translate(gone), s.translate(str.maketrans({"a": "<a>", "b": None, "z": 122}))


def expanded(s):
    t = s.replace(" ", "\t").replace("1", "\n").replace("z", "\r")
    sizes = t.expandtabs(3), t.expandtabs(tabsize=1), t.expandtabs(0), t.expandtabs(-2), t.expandtabs(s.count("a"))
    return t.expandtabs(), sizes, s.expandtabs()


WIDE, NAMED = "{}|{:>5}|{:^7}|{:*<4}|{:.2}", "{1}{0:03d}{name}"
NUMBERS, TEXTS = "%d%%-%5d|%-5d|%05d|%+d|%x", "%s %6s|%-6s|%.1s"


def formatted(s):
    n, k = s.count("a") - 2, len(s) * 54321
    shown = WIDE.format(s, s, s, s, s), NAMED.format(n, s, name=k)
    signs = f"{n:+}|{n: d}|{n:^5}|{n:<4}|{n:05}|{n:#x}|{k:,}|{-k:_}|{k:_x}|{k:X}|{k:>12,}", format(k, "^9d")
    return shown, signs, NUMBERS % (n, n, n, n, n, k), TEXTS % (s, s, s, s)


def of_a_width(s):
    n, w, x = s.count("a") - 2, len(s), float(len(s)) * 1.5 - 2.0
    whole = format(n, f"0{w}b"), f"{n:{w}}|{n:<{w}d}|{n:+0{w}d}|{n: 0{w}}|{n: 06d}|{7:{w}X}|{n > 0:^{w}}"
    shown = f"{s:>{w + 2}}|{s[:1]:*^{w}}|{'ab':{w}}|{w!r:<{w}}|{'':-<{w}}", f"{x:0{w}.1f}|{x:>{w}.2f}|{-w * 999:{w},d}"
    return whole, shown, "{:>{}}|{:0{width}x}".format(s, w, w, width=w)


def compared(s):
    t = s[1:] + "b"
    return max(s, t), min(s, t, "aa"), sorted([s, t, "ab"]), max(s, t, key=len), s < t, s >= "ab"


PROGRAMS = (
    words_and_lines,
    ends,
    translated,
    expanded,
    formatted,
    of_a_width,
    compared,
    parts,
    letters,
    kinds,
    found,
    counted,
    parted,
    replaced,
    sentence,
    frequencies,
    run_lengths,
)


def of_lane(value: Any, lane: int) -> Any:
    if isinstance(value, tuple):
        return tuple(of_lane(part, lane) for part in value)
    return value.tolist()[lane]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_methods(program):
    draw = random.Random(len(program.__name__))
    texts = ["".join(draw.choice("aabAB  bz1") for _ in range(draw.randrange(14))) for _ in range(12)]
    texts += ["", " ", "a"]
    found = pcbatch.batch(program)(pcbatch.ragged(texts))
    for lane, text in enumerate(texts):
        assert of_lane(found, lane) == program(text), text


def test_widths_below_zero_end_the_lane_and_other_parts_of_formats_are_refused():
    found = pcbatch.batch(lambda n: f"{n:>{n}}").run(np.int32([3, -3]))
    assert [int(status) for status in found.status] == [pcbatch.Status.OK, pcbatch.Status.LIMIT]
    assert found.value.tolist()[0] == "  3"
    for shown in (lambda n: f"{n / 3:.{n}f}", lambda n: f"{n:0{n},d}", lambda n: f"{n:{n}{n}d}"):
        with pytest.raises(pcbatch.CompileError, match="differs between lanes"):
            pcbatch.batch(shown)(np.int32([3, 5]))


def bare(s):
    return s.strip(), s.lstrip(), s.rstrip(), s.split()


def test_white_space_beyond_ascii():
    texts = ["\xa0a\u3000b\u2003", "\x85\u200b", "\xe9 \u1680c"]
    found = pcbatch.batch(bare)(pcbatch.ragged(texts))
    assert [of_lane(found, lane) for lane in range(3)] == [bare(text) for text in texts]


def failures(s):
    places = []
    try:
        places.append(s.index("b", 1))
    except ValueError:
        places.append(-1)
    try:
        places.append(s.rindex("zz"))
    except ValueError:
        places.append(-2)
    try:
        places.append(len(s.split(s)))
    except ValueError:
        places.append(-3)
    return places


def test_failures():
    texts = ["ab", "", "zzz"]
    assert pcbatch.batch(failures)(pcbatch.ragged(texts)).tolist() == [failures(text) for text in texts]


def test_table_of_methods():
    rows = dict(line.strip("| \n").split(" | ", 1) for line in PAGE.read_text().splitlines() if line.startswith("| `"))
    for name in (name for name in dir(str) if not name.startswith("_")):
        assert rows[f"`{name}`"].startswith("yes" if hasattr(LaneText, name) else f"no: {LACKING[name]}"), name
    assert not any(hasattr(LaneText, name) for name in LACKING)


def mapped(s):
    return s.format_map({})


def test_method_that_is_lacking_says_what_to_write():
    with pytest.raises(CompileError, match="write an f-string"):
        pcbatch.batch(mapped)(pcbatch.ragged(["ab"]))


def parts_joined_again(s):
    for c in s:
        s = s.replace(c, "ab")[:20]
    return "-".join([*s.split("-"), "x"])


def test_parts_that_are_joined_again_in_a_loop_have_a_type() -> None:
    """The list of the parts has no more room than a text, else types would grow with each round of inference."""
    texts = ["a-b", "", "bb", "abcabcabcabcabcabcabcabcabcabcabcabc"]
    assert pcbatch.batch(parts_joined_again)(pcbatch.ragged(texts)).tolist() == list(map(parts_joined_again, texts))


def test_a_text_of_separators_alone_has_one_part_more_than_characters() -> None:
    texts = ["," * 64, "," * 31, ","]
    split = pcbatch.batch(lambda s: len(s.split(",")))
    assert split(pcbatch.ragged(texts)).tolist() == [65, 32, 2]


def replaced_nothing(s):
    try:
        return s.replace(s[:0], "-")
    except ValueError:
        return "?"


def test_replacing_an_empty_text_is_no_error_of_the_program() -> None:
    found = pcbatch.batch(replaced_nothing).run(pcbatch.ragged(["ab"]))
    assert found.status.tolist() == [pcbatch.Status.LIMIT]


def number_or_not(s):
    try:
        return int(s)
    except ValueError:
        return -1


def test_digits_that_are_not_ascii_are_no_error_that_the_program_may_catch() -> None:
    texts = ["12", "x", "\u0663", "1\u0663", "\u3000 7", "\u00e9"]
    found = pcbatch.batch(number_or_not).run(pcbatch.ragged(texts))
    assert found.status.tolist() == [0, 0, *[pcbatch.Status.LIMIT] * 2, 0, pcbatch.Status.LIMIT]
    assert [found.value.tolist()[k] for k in (0, 1, 4)] == [12, -1, 7]
