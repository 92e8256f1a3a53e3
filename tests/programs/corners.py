"""Corners of the language that once went wrong somewhere, or easily might."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from tests.programs.registry import add, bools, each, floats, ints, program, shared


@program(ints(0, 5), shared(3), in_axes=(0, None))
def shared_counter(x, k):
    while x > 0:
        x -= 1
        k = k + 1
    return k


@program(ints(0, 5), shared(np.array([1.0, 2.0], np.float32)), in_axes=(0, None))
def shared_becomes_varying(x, w):
    while x > 0:
        w = w * 0.5 + x
        x -= 1
    return w


@program(ints(0, 5), shared(np.float32(2)), shared(np.float32(3)), in_axes=(0, None, None))
def shared_pair_swapped(x, u, v):
    while x > 0:
        u, v = v, u
        x -= 1
    return u, v


@program(ints(0, 5), shared(np.float32(2)), in_axes=(0, None))
def shared_result(x, w):
    return w


@program(ints(0, 5), shared(np.float32(2)), in_axes=(0, None))
def shared_condition(x, w):
    if w > 1:
        return x
    return -x


@program(ints(0, 5), shared(np.float32(2)), in_axes=(0, None), recursive=True)
def shared_grows_in_recursion(x, w):
    if x <= 0:
        return w
    return shared_grows_in_recursion(x - 1, w * 2) + w


@program(ints(0, 5))
def default_reassigned(x, k=5):
    while x > 0:
        x -= 1
        k = k + 1
    return k


@program(ints(0, 5))
def default_array(x, k=np.array([1.0, 2.0], np.float32)):
    while x > 0:
        x -= 1
        k = k * 2
    return k


@program(floats(0, 4))
def float_as_condition(x):
    while x:
        x = jnp.maximum(x - 1.0, 0.0)
    return x


def _halves(rng, lanes):
    return jnp.asarray(rng.uniform(0, 2, lanes), jnp.bfloat16)


# XLA keeps more digits than the type has between two operations of a block.
@program(ints(0, 3), _halves, floats(0, 2, dtype=np.float16), rtol=1e-2)
def half_precision(n, x, y):
    while n > 0:
        x, y = x * 1.5, y * 0.5
        n -= 1
    return x.astype(jnp.float32), y


@program(ints(0, 3), floats(0, 1, 0))
def zero_size_values(n, x):
    total = 0.0
    for row in x:
        total += row
    while n > 0:
        x = jnp.concatenate([x, x])
        n -= 1
    return total + n, x


@program(bools(), ints(0, 9))
def boolean_loop_variable(flag, n):
    while flag and n > 0:
        n -= 3
        flag = n != 1
    return flag, n


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Pair:
    """A registered dataclass as a value."""

    a: Any
    b: Any


@program(ints(0, 5))
def dataclass_values(n):
    pair = Pair(n, n * 2)
    while pair.a > 0:
        pair = dataclasses.replace(Pair(pair.a - 1, pair.b), b=pair.b + pair.a)
    return pair


def _make_mutual_closure():
    @pcbatch.batch
    def ping(n):
        return 0 if n <= 0 else pong(n - 1) + 1

    @pcbatch.batch
    def pong(n):
        return 0 if n <= 0 else ping(n - 2) + 10

    return ping


add("mutual_closure", _make_mutual_closure(), each(ints(0, 9)), recursive=True)


def _make_recursive_closure():
    def factorial(n):
        return 1 if n <= 0 else factorial(n - 1) * n

    return factorial


add("recursive_closure", _make_recursive_closure(), each(ints(0, 9)), recursive=True)


@program(ints(0, 5))
def deeply_nested_loops(n):
    total = 0
    while n > 0:
        for a in range(n):
            for b in range(a):
                if b == 2:
                    break
                k = 0
                while True:
                    k += 1
                    if k > b:
                        break
                    if total > 50:
                        return total
                total += k
            else:
                total += 100
        n -= 1
    return total


@program(ints(0, 2), ints(0, 2), recursive=True)
def calls_in_nested_ternaries(m, n):
    return (
        n + 1
        if m == 0
        else (
            calls_in_nested_ternaries(m - 1, 1)
            if n == 0
            else calls_in_nested_ternaries(m - 1, calls_in_nested_ternaries(m, n - 1))
        )
    )


@program(ints(0, 2), floats(-1, 1), floats(-1, 1, 4))
def jax_control_flow_inside(n, x, v):
    while n > 0:
        x = jax.lax.switch(n, [lambda u: u + 1, lambda u: u * 2, lambda u: u - 3], x)
        x, _ = jax.lax.scan(lambda c, y: (c + y, c), x, jnp.arange(3.0))
        v = jax.vmap(lambda u: u * 2)(v)
        n -= 1
    return x, v


@program(floats(0, 3, 3), recursive=True)
def vector_recursion(x):
    if jnp.sum(x) < 1.0:
        return x
    return vector_recursion(x * 0.5) + vector_recursion(x * 0.25)


@program(floats(-1, 1, 3))
def static_length_loop_backwards(x):
    total = 0.0
    for k in range(len(x) - 1, -1, -1):
        total = total * 2 + x[k]
    return total


@program(ints(0, 6))
def weak_integer_product(n):
    x = 1
    for _ in range(n):
        x = x * 3
    return x


@program(ints(0, 3))
def fresh_array_result(n):
    return jnp.arange(17)


@program(ints(0, 5))
def lane_value_in_container(n):
    if 2 in (1, n, 4):
        return 10
    return 3 if 7 not in (n, n + 2) else 5
