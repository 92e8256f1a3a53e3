"""Python beyond single statements: loops over Python objects, unpacking, `:=`, `match`, `del`, `*args`, helpers."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

import pcbatch
from tests.programs.registry import floats, ints, program


class Pair(NamedTuple):
    """A namedtuple to be matched."""

    x: object
    y: object


class Rates:
    """Constants in an object, and batched methods that read them."""

    def __init__(self, limit: float) -> None:
        self.limit = limit

    @pcbatch.batch
    def shrink(self, x):
        """x below the limit."""
        while x > self.limit:
            x = x * 0.5
        return x

    @pcbatch.batch
    def climb(self, n):
        """Recursion through a method."""
        if n <= 0:
            return self.limit
        return self.shrink(self.climb(n - 1) + self.climb(n - 2))


RATES = Rates(1.5)
SLOW_RATES = Rates(0.25)


@pcbatch.batch
def double(x):
    """A small batched function, to be passed around."""
    return x * 2 if x < 10 else x


@pcbatch.batch
def shifted(x, by):
    """A function of which a part is given."""
    return x + by if x < by else x - by


@pcbatch.batch
def repeat(f, x, n):
    """Calls a function that is an argument."""
    if n <= 0:
        return x
    return repeat(f, f(x), n - 1)


@pcbatch.batch
def total(x, *rest, scale=2, **more):
    """Any number of arguments."""
    for r in rest:
        x = x + r * scale
    for key in more:
        x = x + more[key]
    return x


@pcbatch.inline
def clip(x, limit):
    """Control flow in a plain helper."""
    if x > limit:
        return limit
    return x


@pcbatch.inline
def clip_both(x, low, high):
    """An inline function that calls another."""
    if x < low:
        return low
    return clip(x, high)


TABLE = {"double": double, "shift": functools.partial(shifted, by=3.0)}


@program(floats(-2, 3))
def loop_over_a_display(x):
    y = 0.0
    for c in (1.0, x, 2.0):
        y = y * x + c
    return y, c


@program(floats(-2, 3), ints(0, 5))
def loop_with_enumerate_and_zip(x, n):
    y = 0.0
    for i, (p, q) in enumerate(zip((x, x * x, 1.0), [n, 3, 2])):
        if n == i:
            continue
        y = y + p * q * i
        if y > 20:
            break
    else:
        y += 1
    return y, i


@program(ints(0, 8))
def loop_over_reversed_range(n):
    t = 0
    for i in reversed(range(n)):
        t = t * 3 + i
    for i, j in zip(range(n), range(10, 0, -2)):
        t += i * j
    for i in reversed(range(2, n, 3)):
        t = t * 2 + i
    return t


@program(floats(0, 1, 4), floats(0, 1))
def loop_over_two_arrays(xs, limit):
    t = 0.0
    for a, b in zip(xs, reversed(xs)):
        if a > limit:
            break
        t += a * b
    for p, q in zip(xs[:2], (1, 2.5), strict=True):
        t += p * q
    return t


@program(floats(-2, 3))
def loop_over_a_dict(x):
    d = {"a": x, "b": 2 * x}
    t = 0.0
    for k in d:
        t = t + d[k]
    for k, v in d.items():
        if k == "b":
            t = t - v * 3
    return t


@program(floats(-2, 3))
def loop_over_strings(x):
    t = 0.0
    for name in ("sin", "cos", "sin"):
        t = t + (jnp.sin(x) if name == "sin" else -jnp.cos(x))
    return t


@program(floats(-2, 3))
def loop_over_different_shapes(x):
    t = x
    for item in [x, jnp.stack([x, x]), (x, x)]:
        if isinstance(item, tuple):
            t = t + item[0]
        else:
            t = t + jnp.sum(item)
    return t


@program(floats(-2, 3))
def list_that_grows(x):
    xs = []
    for i in pcbatch.unroll(range(4)):
        xs = [*xs, x * i]
    t = 0.0
    for v in reversed(xs):
        t = t * 0.5 + v
    return t


@program(ints(0, 6))
def nested_unrolled_loops(n):
    t = 0
    for a in (1, 2, 3):
        for b in (a, a * 2):
            if n > a * b:
                t += b
                continue
            if t > 9:
                break
            t += 1
    return t


@program(ints(0, 5), recursive=True)
def unrolled_recursion(n):
    t = 1
    for step in (1, 2):
        if n >= step:
            t = t + unrolled_recursion(n - step)
    return t


@program(floats(-2, 3), ints(0, 5))
def walrus_in_conditions(x, n):
    if (y := x * 2) > 1 and (z := y + 1) > n:
        return y + z
    return y


@program(ints(1, 9))
def walrus_and_evaluation_order(n):
    a = n + (n := n * 2) + n
    b = n < (n := n - 1) < 7
    t = 0
    while (n := n - 1) > 0:
        t += n + (t := t + 1)
    n += (n := 5)
    (q := n + 1)
    return a, b, t, n, q


@program(ints(-3, 9))
def walrus_in_its_own_assignment(n):
    m = -2 < (m := n * 2) < 9
    return m


@program(floats(-2, 3, 3), ints(1, 9))
def walrus_after_a_method(v, n):
    v = v.at[n % 3].set((n := n + 1) * 0.5)
    return v, v.astype((v := v + 1).dtype) + v, v.at[n % 3].add((v := v * 2)[0])


@program(floats(-2, 3), ints(1, 9))
def walrus_and_what_helpers_read(x, n):
    moved = lambda y: y + n
    return moved(n := n + 1), (lambda y: x + y)(x := x * 2), sum(map(lambda y: y * n, (1, (n := n + 1))))


@program(ints(0, 3), floats(-2, 3))
def nested_function_in_a_case(n, x):
    match n, x:
        case 0, y:
            moved = lambda z: z + y
            x = moved(1)
        case 1, *rest:

            def scaled(z):
                return z * rest[0]

            x = scaled(x)
    return x


@program(ints(0, 3), floats(-2, 3))
def leaving_a_loop_over_names(n, x):
    parts = {"low": x, "high": x + 1}
    found = 0.0
    for name in parts:
        if parts[name] > 1:
            found = parts[name] * 2
            break
    else:
        found = -1.0
    for _ in range(n):
        for name, value in parts.items():
            assert name in ("low", "high")
            if value > 2:
                return parts[name] + found
    return found


@program(ints(0, 9))
def match_on_numbers(n):
    match n:
        case 0:
            r = 10
        case 1 | 2:
            r = 20
        case k if k > 6:
            r = k * 100
        case _:
            r = -1
    return r


@program(floats(-2, 3), ints(0, 5))
def match_on_structure(x, n):
    match Pair(x, (n, 2)):
        case Pair(x=_, y=(_, 3)):
            r = x * 0
        case Pair(q, (a, 2)) if a > 2:
            r = q + a
        case Pair(q, (1, b)):
            r = q * 7 + b
        case (u, *rest):
            r = u + rest[0][0]
    match {"k": x, "m": n}:
        case {"z": _}:
            r = r * 0
        case {"k": v, **more}:
            r = r + v + more["m"]
    for op in ("add", "mul", "add"):
        match op:
            case "add":
                r = r + x
            case "mul":
                r = r * 2
    return r


@program(floats(-2, 3))
def match_on_objects(x):
    """Of known objects and of arrays in one tuple."""
    t = 0.0
    for item in (None, "text", (x, 2), 3, True):
        match item:
            case None:
                t = t + 1
            case str():
                t = t + 10
            case (a, int(k)):
                t = t + a * k
            case True:
                t = -t
            case "other":
                t = t * 0
            case _:
                t = t + x * 100
    match x:
        case None | str() | "other":
            t = t * 7
        case (_, _):
            t = t * 5
        case _:
            t = t - x
    return t


@program(floats(-2, 3), ints(0, 5))
def match_binds_at_the_end(x, n):
    """Names are bound when a whole pattern has matched; `*rest` may stand in the middle; text is no sequence."""
    a, t = 1, 0.0
    match (n, 5):
        case (a, 6):
            t = x
    match (n, x, 2.0, 3 * n):
        case (_, _):
            t = t + 1000
        case (p, *mid, q):
            t = t + p + mid[0] * q + mid[1]
    for word in ("ab", "cd"):
        match word:
            case (_, _):
                t = t - 1000
            case "ab":
                t = t * 2
    match {"k": x, "m": n}:
        case {"k": v, **more}:
            t = t + v * len(more)
    return a, t


@program(ints(0, 6))
def match_with_return_and_break(n):
    t = 0
    while True:
        match (n, t):
            case (0, _):
                return t
            case (k, 4):
                t += k
                break
            case (_, s) if s > 10:
                return -s
        n -= 1
        t += 2
    return t + 100


@program(floats(-2, 3), ints(0, 5))
def starred_targets(x, n):
    a, *b, c = (x, n, 3, x + 1)
    (*d,) = (n, n + 1)
    (e, *f), h = ((1, n, x), n)
    t = 0
    for p, *q in ((1, 2, n), (x, 5)):
        t = t + p + q[-1]
    return a + c + b[0] + b[1] + d[1] + e + f[0] + h + t


@program(ints(0, 5))
def deleted_and_assigned_again(n):
    y = n + 1
    z = y
    del y
    if n > 2:
        y = 3
        z = z + y
    return z


@program(floats(-2, 30), ints(0, 3))
def functions_as_arguments(x, n):
    return repeat(double, x, n) + repeat(TABLE["shift"], x, n)


@program(floats(-2, 30))
def methods_of_two_objects(x):
    return repeat(RATES.shrink, x, 2) + 100 * repeat(SLOW_RATES.shrink, x, 2)


@program(floats(-2, 30))
def partial_with_another_value(x):
    return TABLE["shift"](x, by=1.0)


@program(floats(-2, 3), ints(0, 3))
def any_number_of_arguments(x, n):
    pair = (x, n)
    return total(x) + total(x, n, 1.0) + total(x, n, scale=3, extra=x) + shifted(*pair)


@program(floats(-2, 3), ints(0, 5))
def inline_helpers(x, n):
    return clip(x, 1.0) + clip(n, 2) + clip_both(x * 3, -1.0, 2.0), clip((x := x * 2), 1.0) + x


@program(floats(0, 9))
def method_of_a_constant_object(x):
    return RATES.shrink(x) * 2


@program(ints(0, 5))
def recursive_method(n):
    return RATES.climb(n)


@program(floats(-2, 3))
def optional_value(x, y=None):
    if y is None:
        y = x + 1
    z = None
    z = z or 3
    return x * y + z


@program(floats(-2, 3))
def constant_table(x):
    t = 0.0
    for row in np.array([[1.0, 2.0], [3.0, 4.0]], np.float32):
        t = t * x + row[0] - row[1] * x
    return t
