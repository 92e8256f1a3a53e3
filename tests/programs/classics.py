"""Classics of autobatching: what the first implementation of the method was tested with."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

import pcbatch
from tests.programs.registry import add, cycle, each, floats, ints, program, shared


def fib(n):
    if n <= 1:
        return 1
    return fib(n - 2) + fib(n - 1)


def dear_sum(x, y):
    """x + y, at a price that makes lanes wait for each other before it."""
    pair = jnp.concatenate([jnp.zeros(64, jnp.int32) + x, jnp.zeros(64, jnp.int32) + y])
    return jnp.sum(jnp.sort(pair)[63:65])


def fib_dear(n):
    if n <= 1:
        return 1
    return dear_sum(fib_dear(n - 2), fib_dear(n - 1))


add("fib", fib, each(cycle(6, 7, 8, 9, 3, 7, 4, 5, 0, 1)), recursive=True)
add("fib_f32", fib, each(cycle(5, 6, 8, 9, 3, 2.5, 4, 5, dtype=np.float32)), recursive=True)
add("fib_i64", fib, each(cycle(3, 7, 4, 5, 6, dtype=np.int64)), recursive=True, x64=True)
add("fib_f64", fib, each(cycle(6, 7, 8, 9, 3.5, dtype=np.float64)), recursive=True, x64=True)
add("fib_i8", fib, each(cycle(6, 7, 8, 9, dtype=np.int8)), recursive=True)


@program(cycle(5, 6, 8, 9, 0, 1), recursive=True)
@pcbatch.batch
def is_even(n):
    if n == 0:
        return True
    return is_odd(n - 1)


@pcbatch.batch
def is_odd(n):
    if n == 0:
        return False
    return is_even(n - 1)


def iota_sum(n, acc):
    if n <= 0:
        return acc
    return iota_sum(n - 1, acc + n)


add("iota_sum", iota_sum, each(cycle(12, -13, 100, 1, 0), cycle(0, 0, 0, 5)), recursive=True)


def gcd_subtractive(a, b):
    if a == b:
        return a
    if a < b:
        return gcd_subtractive(b, a)
    return gcd_subtractive(a - b, b)


add("gcd_subtractive", gcd_subtractive, each(cycle(7, 12, 49, 1, 30), cycle(9, 9, 56, 1)), recursive=True)


@program(cycle(1, 5, 60, 3, 7))
def nested_ifs(x):
    answer = 1
    if x > 4:
        answer = 3
        if x > 10:
            answer = 5
    return answer


@program(ints(-5, 5))
def constant_conditions(x):
    if True:
        y = x + 1
    else:
        y = x * 100
    while False:
        y = y + 1000
    return y if True else x


def _three(x):
    return x, x + 1, x * 2


def _pair(x):
    return (x, x * 3), x - 1


@program(ints(-9, 9))
def destructuring(x):
    a, b, c = [1, 2, 3]
    d, e, f = _three(x)
    [g, h] = (a + d, b + e)
    if x > 0:
        g, h = h, g
    return a, b, c + f, g, h


@program(ints(-9, 9))
def destructuring_nested(x):
    [(a, b), c], d = _pair(x), x + 7
    _, y = _pair(a)
    (p, q), _ = _pair(b)
    while p > 0:
        p, (q, c) = p - 2, (q + c, c + d)
    return a, b, c, d, p, q, y


@program(floats(-3, 3, 4))
def helper_reductions(x):
    total = jnp.sum(x, axis=0)
    peak = jnp.max(jnp.abs(x), axis=-1)
    while jnp.all(jnp.abs(x) > 0.1) and peak > 0.2:
        x = x * 0.5
        peak = jnp.max(jnp.abs(x))
    return total, x, jnp.linalg.norm(x)


class Point(NamedTuple):
    """A namedtuple that travels through all kinds of calls."""

    x: Any
    y: Any


class Segment(NamedTuple):
    """A nested one."""

    start: Point
    end: Point


def _mirror(p):
    return Point(p.y, p.x)


@pcbatch.batch
def shrink(p, n):
    if n <= 0:
        return p
    if n % 2 == 0:
        return shrink(Point(p.x * 0.5, p.y), n - 1)
    return shrink(_mirror(p), n - 1)


def _points(rng, lanes):
    return Point(rng.normal(size=lanes).astype(np.float32), rng.normal(size=lanes).astype(np.float32))


@program(_points, ints(0, 6), recursive=True)
def namedtuple_through_callee(p, n):
    q = shrink(p, n)
    x, y = _mirror(q)
    if x > y:
        return Point(x, y)
    return q


def _segments(rng, lanes):
    return Segment(_points(rng, lanes), _points(rng, lanes))


@program(_segments)
def namedtuple_nested(seg):
    while (seg.start.x - seg.end.x) ** 2 > 0.01:
        middle = Point((seg.start.x + seg.end.x) / 2, (seg.start.y + seg.end.y) / 2)
        if middle.y > seg.start.y:
            seg = Segment(middle, seg.end)
        else:
            seg = seg._replace(end=middle)
    return seg


def _state(rng, lanes):
    return {
        "scalar": rng.integers(0, 9, lanes).astype(np.int32),
        "vector": rng.normal(size=(lanes, 3)).astype(np.float32),
        "matrix": rng.normal(size=(lanes, 2, 2)).astype(np.float32),
    }


@program(_state)
def leaves_of_different_rank(state):
    while state["scalar"] > 0:
        if state["scalar"] % 3 == 0:
            state = {**state, "matrix": state["matrix"].T}
        state = {
            "scalar": state["scalar"] - 1,
            "vector": state["vector"] * 0.5 + jnp.sum(state["matrix"]),
            "matrix": state["matrix"] * 0.9,
        }
    return state


class Settings(NamedTuple):
    """A closure object whose attributes a function reads."""

    rate: float
    limit: int
    table: Any


SETTINGS = Settings(0.25, 6, jnp.arange(10, dtype=np.float32))


def _make_closure_reader(settings):
    def closure_attributes(n):
        total = 0.0
        while n < settings.limit:
            total += settings.rate * settings.table[n]
            n += 1
        return total

    return closure_attributes


add("closure_attributes", _make_closure_reader(SETTINGS), each(ints(0, 8)))

WEIGHT = np.random.default_rng(5).normal(size=(4, 4)).astype(np.float32) / 2


@pcbatch.batch(in_axes=(0, 0, None))
def shell(depth, state, weight):
    if depth <= 0:
        return jnp.tanh(weight @ state)
    half = shell(depth - 1, state, weight)
    return shell(depth - 1, half, weight)


@program(ints(0, 3), ints(0, 3), floats(-1, 1, 4), shared(WEIGHT), in_axes=(0, 0, 0, None), recursive=True)
def pea_nuts(count, depth, state, weight):
    while count > 0:
        state = shell(depth, state, weight)
        count = count - 1
    return state


@pcbatch.batch
def shell_closed(depth, state):
    if depth <= 0:
        return jnp.tanh(jnp.asarray(WEIGHT) @ state)
    return shell_closed(depth - 1, shell_closed(depth - 1, state))


@program(ints(0, 3), ints(0, 3), floats(-1, 1, 4), recursive=True)
def pea_nuts_closed(count, depth, state):
    while count > 0:
        state = shell_closed(depth, state)
        count = count - 1
    return state
