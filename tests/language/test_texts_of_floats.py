"""Texts that lanes make of floats: the shortest digits, decimal places, widths and signs."""

# ruff: noqa: UP031
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.data.texts import float_texts

pytestmark = pytest.mark.promotion("standard")

COUNT = 1500


@dataclass
class Point:
    """A point."""

    x: float
    y: float


def texts(make: Callable[[Any], Any], xs: np.ndarray) -> list[str]:
    """The texts that a function of `float_texts` makes of floats."""

    def parts(x: Any) -> tuple[Any, Any]:
        text = make(x)
        return text.codes, text.length

    rows, lengths = jax.jit(jax.vmap(parts))(jnp.asarray(xs))
    return ["".join(map(chr, row[:n])) for row, n in zip(np.asarray(rows), np.asarray(lengths), strict=True)]


def floats(dtype: Any, most: float) -> np.ndarray:
    """Floats of all sizes, few digits and many, next to powers of two, and those that are no numbers."""
    rng = np.random.default_rng(0)
    powers = 2.0 ** rng.integers(-12, 30, COUNT)
    some = [
        rng.uniform(0, 1, COUNT),
        10 ** rng.uniform(-4, np.log10(most), COUNT),
        rng.integers(0, 10**6, COUNT) / 10 ** rng.integers(0, 4, COUNT),
        rng.integers(0, 2**20, COUNT) / 2 ** rng.integers(0, 12, COUNT),
        powers,
    ]
    xs = np.concatenate(some).astype(dtype)
    xs = np.concatenate([xs, np.nextafter(powers.astype(dtype), dtype(0))])
    xs = xs[(xs == 0) | ((xs >= 1e-4) & (xs < most))]
    return np.concatenate([xs, -xs[:50], np.array([0.0, -0.0, np.inf, -np.inf, np.nan], dtype)])


def test_the_shortest_digits_of_64_bits() -> None:
    with jax.enable_x64(True):
        xs = floats(np.float64, 1e16)
        assert texts(float_texts.shortest, xs) == list(map(repr, xs.tolist()))


def test_the_shortest_digits_of_32_bits() -> None:
    """Those of NumPy; whole numbers have all their digits, as in Python."""
    xs = floats(np.float32, 2**24)
    with np.printoptions(floatmode="unique"):
        want = [np.format_float_positional(x, trim="0") if np.isfinite(x) else str(x) for x in xs]
    assert texts(float_texts.shortest, xs) == want
    assert texts(float_texts.shortest, np.array([94859408.0], np.float32)) == ["94859408.0"]


@pytest.mark.parametrize(("dtype", "places"), [(np.float64, (0, 1, 2, 6, 15)), (np.float32, (0, 1, 2, 7))])
def test_decimal_places(dtype: Any, places: tuple[int, ...]) -> None:
    with jax.enable_x64(dtype is np.float64):
        xs = floats(dtype, 1e16 if dtype is np.float64 else 2**31)
        for count in places:
            made = texts(lambda x, count=count: float_texts.fixed(x, count), xs)
            assert made == [f"{x:.{count}f}" for x in xs.tolist()]


def rounded_half(n):
    return f"{n / 2:.0f} {n / 8:.2f} {n / 7:.2f} {-n / 7:08.2f} {n / 3:+.1f} {n * 0.5:_^12.1f} {n:.1f} {n > 3:.1f}"


def percents_and_thousands(n):
    return f"{n / 13:.1%} {n * 3.5:10.2f} {n / 8:<7} {n * 12345.625:,.2f} {n / 4}"


def by_percent(n):
    return "%5.1f|%-8.3f|%+.2f|%d|%s|%f" % (n / 7, n / 3, n - 5.5, n * 1.75, n / 4, n / 16)


def in_a_loop(n):
    text, total = "", 0.0
    for i in range(n):
        total += i * 0.25
        text += f"{total:.1f};"
    return text + ", ".join(str(i / 4) for i in range(n))


def of_objects(n):
    point = Point(n / 4, n * 0.5)
    return str(point), repr([n / 2, n + 0.25]), str(Point(n / 8, 1.0)), str({"a": n / 4}), repr(n / 2)


def on_paths(n):
    change = n / 4 - 1.0
    if change < 0:
        return f"down {change:.2f}"
    return f"up {change:.2f}" if change > 0 else str(change)


@pytest.mark.parametrize("fn", [rounded_half, percents_and_thousands, by_percent, in_a_loop, of_objects, on_paths])
def test_lanes_have_the_texts_of_python(fn: Any) -> None:
    numbers = list(range(1, 12))
    with jax.enable_x64(True):
        found = pcbatch.batch(fn)(np.array(numbers))
    plain = [fn(n) for n in numbers]
    if isinstance(found, tuple):
        assert [list(column.tolist()) for column in found] == [list(column) for column in zip(*plain, strict=True)]
    else:
        assert found.tolist() == plain


def shown(x):
    return str(x)


def test_a_lane_whose_text_has_an_exponent_stops() -> None:
    status = pcbatch.batch(shown).run(np.array([1.5, 1e-5, 1e20, 0.0], np.float32)).status
    assert [pcbatch.Status(int(s)) for s in status] == [
        pcbatch.Status.OK,
        pcbatch.Status.LIMIT,
        pcbatch.Status.LIMIT,
        pcbatch.Status.OK,
    ]


def many_places(x):
    return f"{x:.9f}"


def test_more_decimal_places_are_refused() -> None:
    with pytest.raises(pcbatch.errors.CompileError, match="PCB304"):
        pcbatch.batch(many_places)(np.ones(2, np.float32))


def read(text):
    try:
        return float(text)
    except ValueError:
        return -1.0


SHOWN = ["1.5", "2", "-3.25", " 4.0 ", "1e3", "1.5E-3", "+7.", ".5", "-.5e1", "0.30000000000000004", "-0.0", "00012.50"]
SHOWN += ["6.022e23", "1e-40", "9007199254740993", "123456789012345678e-3", "3.141592653589793", "0" * 30 + "7"]
WRONG = ["", "abc", "1.2.3", "e5", "1e", "1e+", "--1", "1-2", ".", "+", "1 2", "5x", "1.e2.", "0x10"]


def test_texts_become_floats() -> None:
    rng = np.random.default_rng(1)
    more = [repr(x) for x in rng.uniform(-1000, 1000, 300).tolist()] + [f"{x:.3f}" for x in rng.uniform(0, 1e9, 300)]
    with jax.enable_x64(True):
        given = SHOWN + WRONG + more
        found = pcbatch.batch(read)(pcbatch.ragged(given))
    assert np.asarray(found).tolist() == [read(text) for text in given]
    few = ["1.5", "-0.25", "1234.5", "1e-3", "16777216", "x"]
    assert np.asarray(pcbatch.batch(read)(pcbatch.ragged(few))).tolist() == [np.float32(read(text)) for text in few]


def test_a_lane_stops_for_a_text_of_another_kind() -> None:
    texts = ["inf", "-nan", "1_0", "1e400", "1." + "3" * 30, "12"]
    with jax.enable_x64(True):
        status = pcbatch.batch(read).run(pcbatch.ragged(texts)).status
    assert [int(s) for s in status] == [int(pcbatch.Status.LIMIT)] * 5 + [int(pcbatch.Status.OK)]


def sure_floats(n):
    """Sums that begin with an integer, of which what is shown is a float on every path."""
    total, grown, either = 0, [], n / 2 if n % 2 else n
    for i in range(n):
        total += i * 0.5
        grown.append(i * 0.25)
    mean = total / n
    return f"{total:.1f}", f"{mean} {float(total)}", str(grown), f"{either:.2f}", str(either * 1.5), str(either / 3)


def test_a_number_that_is_a_float_on_every_path_has_a_text() -> None:
    test_lanes_have_the_texts_of_python(sure_floats)


def an_integer_or_a_float(n):
    return str(n / 2 if n % 2 else n)


def a_sum_that_may_be_empty(n):
    total = 0
    for i in range(n):
        total += i * 0.5
    return f"{total}"


def elements_of_two_kinds(n):
    return str([i / 2 if i % 2 else i for i in range(n)])


class Counter:
    """A number that begins as an integer."""

    def __init__(self) -> None:
        self.value = 0


def an_attribute(n):
    counter = Counter()
    for _ in range(n):
        counter.value += 0.5
    return str(counter.value)


MAY_BE_WHOLE = [an_integer_or_a_float, a_sum_that_may_be_empty, elements_of_two_kinds, an_attribute]


@pytest.mark.parametrize("fn", MAY_BE_WHOLE)
def test_a_number_that_may_be_an_integer_has_no_text(fn: Any) -> None:
    with pytest.raises(pcbatch.errors.CompileError, match=r"PCB304(.|\n)*(may be an integer|made while compiling)"):
        pcbatch.batch(fn)(np.array([1, 2, 3]))


def whole_numbers_shown(n):
    return f"{n / 2 if n % 2 else n:.1f}"


def test_the_help_for_it_works() -> None:
    assert pcbatch.batch(whole_numbers_shown)(np.array([1, 2])).tolist() == ["0.5", "2.0"]


def test_integers_as_decimals_show_all_their_digits() -> None:
    """A float of 32 bits has too few for them."""

    @pcbatch.batch
    def shown(n):  # type: ignore[no-untyped-def]
        return f"{n:.2f}", f"{n:,.1f}", f"{n:e}", f"{n:.8e}", f"{n:+.0e}", f"{n:.3g}", f"{n:.9G}"

    @pcbatch.batch
    def percent(n):  # type: ignore[no-untyped-def]
        return f"{n:%}", f"{n:.0%}"

    numbers = [0, 5, -15, 25, 95, 9999995, 12345650, 12345750, 123456789, -16777217, 2147483647, -2147483647]
    found = shown(jnp.array(numbers))
    assert list(map(tuple, zip(*(part.tolist() for part in found), strict=True))) == list(map(shown.plain, numbers))
    run = percent.run(jnp.array([7, -1234567, 123456789]))
    assert run.status.tolist() == [0, 0, int(pcbatch.Status.LIMIT)]
    assert [part.tolist()[:2] for part in run.value] == [
        list(part) for part in zip(*map(percent.plain, [7, -1234567]), strict=True)
    ]
