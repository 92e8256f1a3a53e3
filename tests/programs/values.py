"""Values: pytrees, dtypes, weak types, closures, nested functions, scoping, PRNG keys."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from tests.programs.registry import add, each, floats, ints, keys, program, shared

scale = 100.0  # read as a global by some programs, shadowed by a local in others
FACTORS = np.array([1.0, 10.0, 100.0], np.float32)


@program(ints(0, 5), floats(-1, 1))
def weak_accumulator(n, y):
    acc = 0
    while n > 0:
        acc += 0.5 * y
        n -= 1
    return acc


@program(ints(0, 5))
def read_twice_before_it_widens(n):
    twice, step = 0, 1
    while n > 0:
        twice = step * 2
        n -= 1
        step = step * 0.5
    return twice, step


@program(floats(-2, 2))
def disjoint_live_ranges(y):
    x = 0
    x = x * 0.5 + y
    if x > 0:
        y = 3
        y = y * x
    x = x > 1
    return x, y


@program(ints(0, 9))
def constant_result(n):
    return 7


@program(ints(0, 9), floats(0, 1))
def constant_results_on_paths(n, unused):
    if n > 4:
        return 1, True
    return 0, False


@program(ints(0, 9), floats(-1, 1))
def global_read(n, x):
    while n > 0:
        x = x + scale
        n = n - 3
    return x


@program(ints(0, 9), floats(-1, 1))
def global_shadowed(n, x):
    scale = 2.0
    while n > 0:
        scale = scale + x
        n = n - 3
    return scale


def _make_shadowed_cell():
    limit = 50
    weight = jnp.array([1.0, 2.0, 3.0])

    def cell_shadowed(n):
        limit = 3
        total = 0.0
        for i in range(n):
            if i >= limit:
                break
            total += weight[i]
        return total

    def cell_read(n):
        while n < limit:
            n = n * 3 + 1
        return n

    return cell_shadowed, cell_read


_cell_shadowed, _cell_read = _make_shadowed_cell()
add("cell_shadowed", _cell_shadowed, each(ints(0, 5)))
add("cell_read", _cell_read, each(ints(0, 9)))


@program(floats(-2, 2, 3), ints(0, 5))
def nested_gradient(x, n):
    target = x * 0.5

    def loss(z):
        return jnp.sum((z - target) ** 2)

    for _ in range(n):
        x = x - 0.1 * jax.grad(loss)(x)
    return x, loss(x)


@program(floats(0.2, 2))
def lambda_inside(x):
    square = lambda v: v * v
    while square(x) < 10.0:
        x = square(x) + 0.5
    return jax.lax.cond(x > 12.0, lambda: square(x), lambda: x)


add("lambda_entry", lambda n: n * 2 + 1, each(ints(0, 5)))


def _quadratic(x, a=1.0, *, b=0.5):
    return a * x * x + b


@program(floats(-1, 1), ints(0, 4))
def helper_keywords(x, n):
    for _ in range(n):
        x = _quadratic(x, b=0.1) - _quadratic(a=0.2, x=x)
    return x


@program(ints(0, 6), floats(-1, 1, 2))
def dict_values(n, v):
    state = {"v": v, "count": 0, "inner": (n, n > 3)}
    while state["inner"][0] > 0:
        k, flag = state["inner"]
        state = {"v": state["v"] * 0.5, "count": state["count"] + 1, "inner": (k - 1, not flag)}
    return state


@program(ints(0, 5), ints(0, 5))
def order_of_a_dict(x, n):
    d = {"low": x, "high": {"b": n, "a": 2}}
    for _ in range(n):
        d = {**d, "high": {"b": d["low"], "a": n}, "low": d["high"]["b"]}
    t = 0
    for name in d["high"]:
        t = t * 10 + d["high"][name]
    first, _ = d.values()
    return t, first, d


@program(ints(0, 6), floats(-1, 1))
def tuple_values(n, x):
    pair = (x, (n, x * 2))
    for i in range(n):
        a, (b, c) = pair
        pair = (c, (b + i, a))
    return pair, pair[1][0]


@program(floats(-1, 1), ints(0, 4))
def none_in_pytrees(x, n):
    state = {"x": x, "extra": None}
    while n > 0:
        state = {"x": state["x"] + 1.0, "extra": None}
        n -= 1
    return state, None


def _tree(rng, lanes):
    return [rng.normal(size=lanes).astype(np.float32), {"a": rng.integers(0, 5, lanes).astype(np.int32), "b": None}]


@program(_tree)
def pytree_argument(tree):
    x, rest = tree
    while rest["a"] > 0:
        x = x * 2
        rest = {"a": rest["a"] - 1, "b": rest["b"]}
    return [x, rest]


@program(keys(), ints(0, 9))
def random_walk(key, n):
    x = 0.0
    for _ in range(n):
        key, sub = jax.random.split(key)
        step = jax.random.normal(sub)
        if step > 1.0:
            break
        x += step
    return x, jax.random.key_data(key)


@program(keys(old=True), ints(0, 9))
def random_walk_old_keys(key, n):
    x = 0.0
    while n > 0:
        key, sub = jax.random.split(key)
        x = x + jax.random.uniform(sub) if x < 2.0 else x - 1.0
        n -= 1
    return x, key


@program(keys(), ints(0, 4), recursive=True)
def random_tree(key, depth):
    if depth <= 0 or jax.random.uniform(key) < 0.2:
        return 1
    left, right = jax.random.split(key)
    return random_tree(left, depth - 1) + random_tree(right, depth - 1)


@program(keys())
def key_carried_as_result(key):
    n = jax.random.randint(key, (), 0, 4)
    while n > 0:
        key = jax.random.fold_in(key, n)
        n -= 1
    return key


@program(floats(-1, 1, 3), shared(FACTORS), in_axes=(0, None))
def shared_argument(x, factors):
    total = 0.0
    for i in range(3):
        if x[i] > 0:
            total += factors[i] * x[i]
    return total


@program(floats(-1, 1, 3), shared(4), in_axes=(0, None))
def shared_loop_bound(x, n):
    for i in range(n):
        if x[0] > 0:
            x = x * 0.5 - i
        else:
            x = x + 1.0
    return x


def _columns(rng, lanes):
    return rng.normal(size=(3, lanes)).astype(np.float32)


@program(_columns, ints(0, 4), in_axes=(1, 0))
def mapped_over_axis_one(x, n):
    while n > 0:
        x = x[::-1] * 0.5
        n -= 1
    return x


@program(ints(0, 6), ints(0, 200, dtype=np.uint8))
def unsigned_wraps(n, x):
    for _ in range(n):
        x = x + 77
    return x


@program(ints(0, 6), floats(-1, 1))
def complex_values(n, x):
    z = 0j + x
    for _ in range(n):
        z = z * z + 0.5j
    return z.real, z.imag


@program(ints(0, 6), floats(-1, 1), x64=True)
def wide_and_narrow(n, x):
    y = x.astype(jnp.float64)
    while n > 0:
        y = y / 3.0
        x = x / 3.0
        n -= 1
    return x, y


@program(ints(-5, 5))
def integer_division(n):
    return n // 3, n % 3, -n // 2, -n % 4, n / 2


@program(ints(0, 6))
def bool_arithmetic(n):
    flag = n > 2
    count = 0
    while n > 0:
        flag = not flag
        count = count + flag
        n -= 1
    return flag, count


@program(floats(-3, 3, 3))
def slices_and_subscripts(x):
    head, _ = (x[:2], x[2])
    tail = x[1:]
    if x[0] > x[-1]:
        return jnp.concatenate([head, tail])
    return jnp.concatenate([tail, head])


@program(ints(0, 4))
def comprehension_inside(n):
    table = jnp.stack([n * k for k in range(4)])
    while table[1] < 5:
        table = table + jnp.array([k + 1 for k in range(4)])
    return table


@program(floats(0, 1), ints(0, 5))
def bound_on_every_path(x, n):
    if n > 2:
        y = x
    elif n > 1:
        y = 2.0 * x
    else:
        y = 0.0
    z: float = y + 1.0
    a = b = z
    return a + b


@pcbatch.batch
def settle(point, n):
    while n > 0 and point["x"] > 0.1:
        point = {"x": point["x"] * 0.7, "n": point["n"] + 1}
        n -= 1
    return point


@program(floats(0, 4), ints(0, 5))
def dict_through_callee(x, n):
    point = settle({"x": x, "n": 0}, n)
    other = settle(point=point, n=n)
    return other["x"], point["n"] + other["n"]


@program(floats(-1, 1), ints(0, 3))
def loop_in_primitive(x, n):
    while n > 0:
        x = jax.lax.fori_loop(0, 5, lambda i, v: v * 0.9 + 0.01, x)
        n -= 1
    return x
