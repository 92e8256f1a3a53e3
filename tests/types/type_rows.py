"""The rules of docs/users/types.md as a table: a program, the types that go in, the one that comes out or the refusal.

Types are those of jaxprs, weak ones with `~`. With 64-bit types on, weak types are twice as wide unless a row says
otherwise; under strict promotion a row gives its own outcome where it differs.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import pcbatch


class Row(NamedTuple):
    """What the rules say of one program. `strict` and `x64` are left out where they say nothing new."""

    fn: Callable[..., Any]
    ins: str
    standard: str
    strict: str | None = None
    x64: str | None = None

    def expected(self, mode: str, x64: bool) -> str:
        """The outcome in a mode."""
        if mode == "strict" and self.strict is not None:
            return self.strict if self.strict.startswith("PCB") or not x64 else widened(self.strict)
        if x64:
            return self.x64 or widened(self.standard)
        return self.standard


def widened(text: str) -> str:
    """The same types with JAX's 64-bit defaults for Python numbers."""
    return text.replace("~i32", "~i64").replace("~f32", "~f64").replace("~c64", "~c128")


def pick(n, a, b):
    if n > 0:
        return a
    return b


def number(value):
    def numbered(n, a):
        if n > 0:
            return value
        return a

    return numbered


def numbers(one, other):
    def numbered(n):
        if n > 0:
            return one
        return other

    return numbered


# Two arrays meet: the result is what `jnp.where` gives.
ARRAYS = [
    Row(pick, "i32[] bool[] bool[]", "bool[]"),
    Row(pick, "i32[] bool[] i8[]", "i8[]", "PCB302"),
    Row(pick, "i32[] i8[] i32[]", "i32[]", "PCB302"),
    Row(pick, "i32[] u8[] i8[]", "i16[]", "PCB302"),
    Row(pick, "i32[] u32[] i32[]", "i32[]", "PCB302", x64="i64[]"),
    Row(pick, "i32[] i32[] f16[]", "f16[]", "PCB302"),
    Row(pick, "i32[] i32[] bf16[]", "bf16[]", "PCB302"),
    Row(pick, "i32[] i32[] f32[]", "f32[]", "PCB302"),
    Row(pick, "i32[] f16[] bf16[]", "f32[]", "PCB302"),
    Row(pick, "i32[] f32[] c64[]", "c64[]", "PCB302"),
    Row(pick, "i32[] f32[3] f32[3]", "f32[3]"),
    Row(pick, "i32[] f32[3] f32[2]", "PCB302"),
    Row(pick, "i32[] f32[3] f32[]", "PCB302"),
    Row(pick, "i32[] f32[] f32[1]", "PCB302"),
]
# Floats of 8 bits and integers of 4 and 2 have no promotion at all, in either mode.
SMALL = [
    Row(pick, "i32[] i4[] i4[]", "i4[]"),
    Row(pick, "i32[] u4[] u4[]", "u4[]"),
    Row(pick, "i32[] i2[2] i2[2]", "i2[2]"),
    Row(pick, "i32[] i4[] i8[]", "PCB302"),
    Row(pick, "i32[] f8_e4m3fn[] f8_e4m3fn[]", "f8_e4m3fn[]"),
    Row(pick, "i32[] f8_e4m3fn[] f8_e5m2[]", "PCB302"),
    Row(pick, "i32[] f8_e4m3fn[] f32[]", "PCB302"),
    Row(pick, "i32[] f4_e2m1fn[] f4_e2m1fn[]", "f4_e2m1fn[]"),
    Row(number(0.5), "i32[] f8_e5m2[]", "f8_e5m2[]"),
    Row(number(1), "i32[] i4[]", "i4[]"),
]
WEAK = [
    Row(pick, "i32[] ~i32[] ~i32[]", "~i32[]"),
    Row(pick, "i32[] ~i32[] ~f32[]", "~f32[]"),
    Row(pick, "i32[] ~f32[] i32[]", "~f32[]", "PCB302"),
    Row(pick, "i32[] ~i32[] i8[]", "i8[]"),
    Row(pick, "i32[] ~f32[2] bf16[2]", "bf16[2]"),
    Row(pick, "i32[] ~f32[] c64[]", "c64[]"),
]
# A Python number meets an array: it is weak. Two numbers that differ become a weak array.
NUMBERS = [
    Row(number(1), "i32[] i8[]", "i8[]"),
    Row(number(1), "i32[] u8[]", "u8[]"),
    Row(number(1), "i32[] u32[]", "u32[]"),
    Row(number(1), "i32[] f16[]", "f16[]"),
    Row(number(1), "i32[] bool[]", "~i32[]", "PCB302"),
    Row(number(True), "i32[] bool[]", "bool[]"),
    Row(number(True), "i32[] i32[]", "i32[]", "PCB302"),
    Row(number(0.5), "i32[] f32[]", "f32[]"),
    Row(number(0.5), "i32[] bf16[]", "bf16[]"),
    Row(number(0.5), "i32[] i32[]", "~f32[]", "PCB302"),
    Row(number(1j), "i32[] f32[]", "c64[]", "PCB302"),
    Row(number(2166136261), "i32[] u32[]", "u32[]"),
    Row(numbers(1, 1), "i32[]", "~i32[]"),
    Row(numbers(1, 0), "i32[]", "~i32[]"),
    Row(numbers(1, 0.5), "i32[]", "~f32[]"),
    Row(numbers(1, 1j), "i32[]", "~c64[]"),
    Row(numbers(0.0, -0.0), "i32[]", "~f32[]"),
    Row(numbers(float("nan"), 0.0), "i32[]", "~f32[]"),
    Row(numbers(True, False), "i32[]", "bool[]"),
    Row(numbers(True, 2), "i32[]", "~i32[]", "PCB302"),
    Row(numbers(True, 1), "i32[]", "~i32[]", "PCB302"),
]


def accumulates(n, y):
    acc = 0
    while n > 0:
        acc += y
        n -= 1
    return acc


def counts(n):
    i = 0
    while n > i:
        i += 1
    return i


def halves(n):
    x = 1
    while n > 0:
        x = x / 2
        n -= 1
    return x


def ranges(n):
    last = 0
    for i in range(n):
        last = i
    return last


def rebinds(n, y):
    x = 0
    x = x + y
    if n > 0:
        y = x > 1
    else:
        y = x > 2
    return x, y


def sizes(n, x):
    size = x.shape[0] - 1
    total = jnp.zeros(size, x.dtype)
    while n > 0:
        total = total + x[:size]
        n -= 1
    return total


def known_condition(n, x):
    if x.ndim == 1:
        return x.sum()
    return "never reached"


def known_in_a_tuple(n, x):
    state = (x, 2)
    while n > 0:
        state = (state[0] + jnp.ones(state[1], x.dtype).sum(), 2)
        n -= 1
    return state


LOOPS = [
    Row(accumulates, "i32[] f32[]", "f32[]"),
    Row(accumulates, "i32[] bf16[]", "bf16[]"),
    Row(accumulates, "i32[] u8[]", "u8[]"),
    Row(accumulates, "i32[] c64[]", "c64[]"),
    Row(accumulates, "i32[] f32[2]", "PCB301"),
    Row(counts, "i32[]", "~i32[]"),
    Row(counts, "u8[]", "~i32[]"),
    Row(halves, "i32[]", "~f32[]"),
    Row(ranges, "i32[]", "~i32[]"),
    Row(rebinds, "i32[] f32[]", "(f32[], bool[])"),
    Row(sizes, "i32[] f16[3]", "f16[2]"),
    Row(known_condition, "i32[] f32[3]", "f32[]"),
    Row(known_condition, "i32[] f32[]", "a text of the lane"),
    Row(known_in_a_tuple, "i32[] f32[]", "(f32[], ~i32[])"),
]


def tuple_and_list(n):
    if n > 0:
        return (n, n)
    return [n, n]


def tuples_of_two_lengths(n):
    if n > 0:
        return (n,)
    return (n, n)


def dicts_in_any_order(n):
    if n > 0:
        return {"a": n, "b": 0.5}
    return {"b": 1, "a": n}


def dicts_of_other_keys(n):
    if n > 0:
        return {"a": n}
    return {"b": n}


def ordered_dicts(n):
    if n > 0:
        return OrderedDict(a=n, b=n)
    return OrderedDict(b=n, a=n)


class Point(NamedTuple):
    x: Any
    y: Any


def named_tuples(n):
    if n > 0:
        return Point(n, 1)
    return Point(0, 0.5)


def named_tuple_and_list(n):
    if n > 0:
        return Point(n, 1)
    return [n, 1]


def none_or_array(n):
    best = None
    while n > 0:
        best = n
        n -= 1
    return best


def none_inside(n):
    if n > 0:
        return n, None
    return 0, None


def one_string(n):
    mode = "sum"
    while n > 0:
        n = n - (1 if mode == "sum" else 2)
    return n


def two_strings(n):
    mode = "sum"
    while n > 0:
        n = n - (1 if mode == "sum" else 2)
        mode = "max"
    return n


TREES = [
    Row(tuple_and_list, "i32[]", "PCB302"),
    Row(tuples_of_two_lengths, "i32[]", "tuple of i32[]"),
    Row(dicts_in_any_order, "i32[]", "{'a': i32[], 'b': ~f32[]}"),
    Row(dicts_of_other_keys, "i32[]", "dict of texts to i32[]"),
    Row(ordered_dicts, "i32[]", "PCB302"),
    Row(named_tuples, "i32[]", "Point(x=i32[], y=~f32[])"),
    Row(named_tuple_and_list, "i32[]", "PCB302"),
    Row(none_or_array, "i32[]", "i32[] or None"),
    Row(none_inside, "i32[]", "(i32[], None)"),
    Row(one_string, "i32[]", "i32[]"),
    Row(two_strings, "i32[]", "i32[]"),
    Row(numbers("a", "b"), "i32[]", "a text of the lane"),
    Row(numbers("a", "a"), "i32[]", "a text of the lane"),
    Row(numbers(None, 1), "i32[]", "~i32[] or None", x64="~i64[] or None"),
]


def splits(n, key):
    while n > 0:
        key = jax.random.split(key)[0]
        n -= 1
    return key


KEYS = [
    Row(splits, "i32[] key<fry>[]", "key<fry>[]"),
    Row(splits, "i32[] key<rbg>[]", "key<rbg>[]"),
    Row(splits, "i32[] u32[2]", "u32[2]"),
    Row(pick, "i32[] key<fry>[2] key<fry>[2]", "key<fry>[2]"),
    Row(pick, "i32[] key<fry>[] key<rbg>[]", "PCB302"),
    Row(pick, "i32[] key<fry>[] u32[2]", "PCB302"),
    Row(number(0), "i32[] key<fry>[]", "PCB302"),
]


@pcbatch.batch
def same(a):
    if a > 100:
        return a
    return a


@pcbatch.batch
def plus(a, b=1, *, c=0.5):
    if a > 100:
        return a
    return a + b + c


@pcbatch.batch
def countdown(n, k=300):
    if n <= 0:
        return k
    return countdown(n - 1, k)


@pcbatch.batch
def width(n):
    if n > 0:
        return 3
    return 3


@pcbatch.batch
def table(n, rows=jnp.arange(4)):
    return rows[n] if n > 0 else rows[0]


CALLS = [
    Row(lambda n: jnp.ones(width(n), jnp.float16), "i32[]", "f16[3]"),
    Row(lambda n: table(n), "i32[]", "i32[]"),
    Row(lambda n, x: (same(n), same(n)), "i32[] f32[]", "(i32[], i32[])"),
    Row(lambda n, x: (same(n), same(x)), "i32[] f32[]", "(f32[], f32[])", "PCB307"),
    Row(lambda n, x: (same(x), same(0)), "i32[] f32[]", "(f32[], f32[])"),
    Row(lambda n, x: same(3), "i32[] f32[]", "~i32[]"),
    Row(lambda n, x: same(x), "i32[] f32[3]", "PCB308"),
    Row(lambda n, x: plus(x), "i32[] f16[]", "f16[]"),
    Row(lambda n, x: plus(x, x), "i32[] bf16[]", "bf16[]"),
    Row(lambda n, x: plus(n), "i32[] f32[]", "~f32[]", "PCB303"),
    Row(countdown, "i32[]", "~i32[]"),
    Row(countdown, "i32[] i16[]", "i16[]"),
    Row(lambda n, x: countdown(n) + x, "i32[] i16[]", "i16[]"),
]

TABLE = [*ARRAYS, *SMALL, *WEAK, *NUMBERS, *LOOPS, *TREES, *KEYS, *CALLS]
