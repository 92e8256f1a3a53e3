"""Checks of integers: which are left out, and that lanes which end well have Python's numbers."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import Status
from pcbatch.data.integer_marks import OPERATIONS, _limits, checked
from pcbatch.lowering.analysis.intervals import ANY, RULES, computed, meet, of_dtype, widened

INT32 = -(2**31), 2**31 - 1


def compiled(text: str, *more: str) -> Callable[..., Any]:
    """Return the function `f` of a text."""
    name = f"<integers {hash((text, *more))}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: dict[str, Any] = {"jnp": jnp}
    exec(compile(text, name, "exec"), space)
    return space["f"]  # type: ignore[no-any-return]


def limits_left(fn: Callable[..., Any], *args: Any) -> int:
    """The number of ways to end at a limit in the compiled program."""
    return pcbatch.batch(fn).lower(*args).as_text("opt").count("fail limit")


LEFT_OUT = {
    "a counter of a loop": "for i in range(n):\n        s = s ^ (i + 1)",
    "down": "for i in range(n, 0, -1):\n        s = s ^ (i - 1)",
    "a test before": "while s < n:\n        s += 1",
    "both sides": "if 0 < n < 1000:\n        s = n * n + n",
    "the length of a list": "xs = [n, n]\n    for x in xs:\n        s = s ^ (len(xs) + 1)",
    "a mask": "for i in range(9):\n        s = (s * 31 + n) & 4095",
    "a power of two": "for i in range(9):\n        t = s * 31\n        s = (t + n) % 1024",
    "a mask at the end": "for i in range(9):\n        s = s * 31 + n\n    s = s & 0x7FFFFFFF",
    "a rest": "s = n % 1000 * 1000 + n % 7",
    "minimum and maximum": "s = min(max(n, -5), 5) * 100",
    "a shift": "s = (n >> 16) * 2 - 1",
    "a square of a remainder": "s = (n % 100) ** 2",
    "bits": "s = (n & 255) << 4",
    "a quotient": "s = n // 1000 * 999",
    "a call": "def g(k):\n        return k + 1 if k < 9 else k\n    s = g(n)",
}
KEPT = {
    "a sum": "for i in range(n):\n        s += i",
    "a product": "s = n * n",
    "a counter without a test": "while n != s * 0:\n        n = n // 2\n        s += 1",
    "a hash by a prime": "for i in range(9):\n        s = (s * 31 + n) % 1000003",
    "negative": "s = -n",
    "a mask, and the number": "t = n * 31\n    s = (t & 255) + (1 if t > 5 else 0)",
    "a mask of ones": "s = (n * 31) & -2",
}


def body(lines: str) -> str:
    """A function of one number around some lines."""
    return f"def f(n):\n    s = 0\n    {lines}\n    return s\n"


@pytest.mark.parametrize("text", ["s = n * 31 + 7", "s = -n", "s = n ** 5 - (n << 3)"])
def test_unsigned_numbers_wrap_around(text: str) -> None:
    """Python has none, and hashes are written in them."""
    f, numbers = compiled(body(text)), np.array([3, 2**31 + 5], np.uint32)
    assert pcbatch.batch(f)(numbers).tolist() == [f(n) % 2**32 for n in numbers.tolist()]


@pytest.mark.parametrize("name", LEFT_OUT)
def test_checks_that_cannot_fail_are_left_out(name: str) -> None:
    assert limits_left(compiled(body(LEFT_OUT[name])), jnp.arange(3)) == 0


@pytest.mark.parametrize("name", KEPT)
def test_other_checks_stay(name: str) -> None:
    assert limits_left(compiled(body(KEPT[name])), jnp.arange(3)) > 0


class Whole(int):
    """An integer that notes whether some result does not fit 32 bits."""

    left = False

    @classmethod
    def _of(cls, value: int) -> Whole:
        Whole.left |= not INT32[0] <= value <= INT32[1]
        return cls(value)


def _noting(name: str) -> Callable[..., Any]:
    return lambda *operands: Whole._of(getattr(int, name)(*map(int, operands)))


for _name in "add sub mul lshift rshift and or xor mod floordiv radd rsub rmul rlshift rand ror rxor neg abs".split():
    setattr(Whole, f"__{_name}__", _noting(f"__{_name}__"))


def random_program(rng: random.Random) -> str:
    """A function of three numbers: loops, tests and sums, products, masks and rests of them."""

    def expression(depth: int) -> str:
        if depth == 0 or rng.random() < 0.2:
            return rng.choice(["a", "b", "c", "a", "b", "c", str(rng.choice([1, 2, 3, 7, 31, 1000, 65537]))])
        left, right = expression(depth - 1), expression(depth - 1)
        match rng.randrange(12):
            case 0 | 1 | 2:
                return f"({left} + {right})"
            case 3 | 4:
                return f"({left} - {right})"
            case 5 | 6:
                return f"({left} * {right})"
            case 7:
                return f"({left} & {rng.choice([1, 255, 65535, 2147483647])})"
            case 8:
                return f"({left} % {rng.choice([2, 64, 1024, 10, 97, 1000003])})"
            case 9:
                return f"({left} // {rng.choice([2, 3, 16])})"
            case 10:
                return f"({left} >> {rng.choice([1, 4, 16])})"
        return rng.choice([f"(-{left})", f"abs({left})", f"({left} ^ {right})", f"({left} << {rng.choice([1, 3])})"])

    lines = []
    for _ in range(rng.randint(2, 4)):
        target, value = rng.choice("abc"), expression(rng.randint(1, 3))
        match rng.randrange(4):
            case 0:
                lines.append(f"    {target} = {value}")
            case 1:
                lines += [
                    f"    for i in range({rng.randint(2, 6)}):",
                    f"        {target} = {value} + i * {rng.randint(1, 9)}",
                ]
            case 2:
                lines += [
                    f"    if {rng.choice('abc')} < {rng.choice([0, 5, 1000, 100000])}:",
                    f"        {target} = {value}",
                ]
                lines += ["    else:", f"        {target} = {expression(2)}"]
            case 3:
                lines += [
                    "    k = 0",
                    "    while k < b and k < 5:",
                    "        k += 1",
                    f"        {target} = {value} - k",
                ]
    return "\n".join(["def f(a, b, c):", *lines, f"    return a, b & 65535, {expression(1)}"]) + "\n"


@pytest.mark.share(4)
@pytest.mark.parametrize("seed", range(24))
def test_random_programs(seed: int) -> None:
    rng = random.Random(seed)
    text = random_program(rng)
    fn = compiled(text)
    some = [0, 1, -1, 2, 5, 100, -100, 46340, 46341, 65535, 10**6, -(10**6), 2**30, -(2**30), *INT32]
    lanes = [[rng.choice(some) if rng.random() < 0.6 else rng.randint(*INT32) for _ in range(3)] for _ in range(64)]
    result = pcbatch.batch(fn, on_failure="ignore").run(*map(jnp.array, np.array(lanes).T))
    for k, lane in enumerate(lanes):
        Whole.left = False
        want = fn(*map(Whole, lane))
        status = int(result.status[k])
        got = tuple(int(part[k]) for part in result.value)
        assert status in (int(Status.OK), int(Status.LIMIT))
        if status == int(Status.OK):
            assert got == tuple(map(int, want)), f"{text}\n{lane}"
        else:
            assert Whole.left, f"no number leaves 32 bits:\n{text}\n{lane}"


DTYPES = ("int8", "int16", "int32")
CASES = [(name, dtype) for name in OPERATIONS for dtype in DTYPES if name != "abs" or dtype.startswith("int")]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_each_operation_says_whether_it_fits(name: str, dtype: str) -> None:
    """All pairs of numbers near the limits, zero and roots of the limits."""
    low, high = map(int, of_dtype(dtype))
    root = int((high + 1) ** 0.5)
    centres = [low, 0, high, high // 2, high // 3, root, -root, high // 7, low // 2]
    numbers = sorted({n for c in centres for n in range(c - 2, c + 3) if low <= n <= high})
    whole: dict[str, Callable[..., int]] = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "shift_left": lambda a, b: a << b,
        "neg": lambda a: -a,
        "abs": abs,
    }
    pairs = [(a,) for a in numbers] if name in ("neg", "abs") else [(a, b) for a in numbers for b in numbers]
    if name == "shift_left":
        pairs = [(a, b) for a in numbers for b in range(np.dtype(dtype).itemsize * 8)]
    columns = [np.array(column, dtype) for column in zip(*pairs, strict=True)]
    results, fits = jax.vmap(lambda *operands: checked(name, *operands))(*columns)
    for pair, result, fit in zip(pairs, results.tolist(), fits.tolist(), strict=True):
        exact = whole[name](*pair)
        assert fit == (low <= exact <= high), (name, dtype, pair)
        assert not fit or result == exact


@pytest.mark.parametrize(("least", "most"), [(-32, 31), (0, 63)])
@pytest.mark.parametrize(("name", "whole"), [("add", int.__add__), ("sub", int.__sub__), ("mul", int.__mul__)])
def test_the_other_operand_of_a_known_one(name: str, whole: Callable[..., int], least: int, most: int) -> None:
    every = range(least, most + 1)
    for c in every:
        for known, exact in (((c, None), lambda x, c=c: whole(c, x)), ((None, c), lambda x, c=c: whole(x, c))):
            ends = _limits(name, known, least, most)
            assert ends is not None or (name == "mul" and c == 0)
            for x in every if ends else ():
                assert (ends[0] <= x <= ends[1]) == (least <= exact(x) <= most), (known, x)


@pytest.mark.parametrize(("least", "most"), [(-32, 31), (0, 63)])
def test_a_shift_with_a_known_operand(least: int, most: int) -> None:
    every = range(least, most + 1)
    for c in every:
        if (ends := _limits("shift_left", (None, c), least, most)) is not None:
            assert all((ends[0] <= x <= ends[1]) == (least <= x << c <= most) for x in every), c
        if (ends := _limits("shift_left", (c, None), least, most)) is not None:
            assert all((ends[0] <= x <= ends[1]) == (least <= c << x <= most) for x in every if x >= 0), c


BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "max": max,
    "min": min,
    "floor_divide": lambda a, b: a // b if b else None,
    "remainder": lambda a, b: a % b if b else None,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shift_right_arithmetic": lambda a, b: a >> b if b >= 0 else None,
    "shift_left": lambda a, b: a << b if b >= 0 else None,
}


@pytest.mark.parametrize("name", BINARY)
def test_rules_of_intervals_hold_for_every_number(name: str) -> None:
    rng = random.Random(name)
    for _ in range(300):
        a, b = (tuple(sorted(rng.randint(-9, 9) for _ in range(2))) for _ in range(2))
        low, high = computed(name, [a, b])
        for x in range(a[0], a[1] + 1):
            for y in range(b[0], b[1] + 1):
                if (exact := BINARY[name](x, y)) is not None:
                    assert low <= exact <= high, (name, a, b, x, y, (low, high))


def test_unknown_ends_stay_unknown() -> None:
    assert set(BINARY) <= set(RULES)
    for name in BINARY:
        low, high = computed(name, [ANY, ANY])
        assert low == ANY[0] or name in ("max", "min"), name
        assert high == ANY[1] or name in ("max", "min"), name
    assert computed("scatter", [ANY]) == ANY
    assert meet((0, 5), (3, 9)) == (3, 5)
    assert widened((0, 5), (0, 6)) == (0, ANY[1])
    assert of_dtype("float32") == ANY


def test_a_square_that_wraps_around_is_noticed() -> None:
    """XLA takes the product of a number with itself for one that is not negative."""
    run = pcbatch.batch(compiled("def f(n):\n    return n * n % 1000\n")).run(jnp.array([46340, 46341, -46341, 46342]))
    assert run.status.tolist() == [0, *[int(Status.LIMIT)] * 3]
