"""Programs whose derivatives are worth a look: each has floating arguments, and a way that gradients could go wrong."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from pcbatch.mcmc.hamiltonian import Mass, Sample
from pcbatch.mcmc.nuts import nuts
from tests.programs.registry import Program, cycle, each, floats, ints, keys, shared

DIFFERENTIABLE: list[Program] = []
SEVEN = np.array([1, 3, -1, -1, -1, -1, -1], np.int32), np.array([2, 4, -1, 5, -1, 6, -1], np.int32)
MATRIX = (np.random.default_rng(1).normal(size=(8, 8)) / 3).astype(np.float32)
WORDS = np.random.default_rng(2).normal(size=(5, 8)).astype(np.float32)


def program(*samplers: Any, **settings: Any) -> Any:
    """Decorator: one sampler per argument."""

    def register(fn: Any) -> Any:
        name = getattr(fn, "fn", fn).__name__
        DIFFERENTIABLE.append(Program(name, fn, each(*samplers), **settings))
        return fn

    return register


@program(ints(0, 7), floats(0.2, 1.5))
@pcbatch.batch
def fib_with_weights(n, x):
    if n <= 1:
        return x * n + 0.5
    return jnp.sin(fib_with_weights(n - 2, x * 0.9)) + x * fib_with_weights(n - 1, x)


@program(floats(0.5, 50), floats(0.1, 1))
def newton_with_a_break(a, x):
    for _ in range(30):
        new = 0.5 * (x + a / x)
        if abs(new - x) < 1e-4:
            break
        x = new
    else:
        x = -x
    return x


@program(ints(0, 6), ints(0, 4, 7), *map(shared, (*SEVEN, WORDS, MATRIX)), in_axes=(0, 0, None, None, None, None))
@pcbatch.batch
def tree_of_words(node, words, left, right, table, w):
    if left[node] < 0:
        return table[words[node]]
    a = tree_of_words(left[node], words, left, right, table, w)
    if right[node] < 0:
        return jnp.tanh(w @ a)
    b = tree_of_words(right[node], words, left, right, table, w)
    return jnp.tanh(w @ (a - b) + a * b)


@program(floats(-2, 2), floats(-1, 1, 3))
def early_returns(x, v):
    if x < -1:
        return v * x
    for k in range(3):
        if v[k] > 0.5:
            return jnp.sin(v) * v[k]
        x = x * (1.5 + v[k])
        if x > 2:
            return v + x
    return jnp.exp(-v) * x


@program(ints(1, 9), floats(-1, 1, 24), floats(-1, 1))
def sieve_of_floats(n, xs, y):
    i = 0
    while i < n:
        xs = xs.at[i].set(xs[i + 1] * y + xs[2 * i % 24])
        xs = xs.at[(3 * i) % 24].add(xs[i] * xs[i + 2])
        if xs[i] > 0:
            xs = xs.at[0:2].set(y) if n == 3 else xs
            y = y * 0.9 + jnp.sum(jax.lax.dynamic_slice(xs, (i,), (4,))) * 0.1
        i += 1
    return xs, y


@program(ints(0, 5), floats(-1, 1, 24), shared(MATRIX), in_axes=(0, 0, None))
@pcbatch.batch
def stores_through_recursion(n, xs, w):
    if n == 0:
        return xs
    xs = xs.at[n].set(w[n, 2] * xs[n + 1])
    deeper = stores_through_recursion(n - 1, xs.at[n + 3].add(xs[0] * 0.5), w)
    return deeper.at[2 * n].set(jnp.tanh(xs[n] + deeper[n]))


@program(keys(), ints(1, 6), floats(0.1, 1))
def keys_are_carried(key, n, scale):
    total, up = scale * 0.0, True
    while n > 0:
        key, mine = jax.random.split(key)
        total = total + jax.random.normal(mine) * (scale if up else scale**2)
        up, n = total < 0.5, n - 1
    return total, up, n, key


LN_DENSITY = jax.value_and_grad(lambda q: -0.5 * jnp.sum(q * q * jnp.array([1.0, 4.0, 0.25])))
TRANSITION = nuts(LN_DENSITY, deepest=4).transition


def _noise(rng: np.random.Generator, lanes: int) -> Any:
    return rng.normal(size=(lanes, 3)).astype(np.float32)


@program(keys(), _noise, _noise, floats(0.2, 0.6), shared(np.ones(3, np.float32)), in_axes=(0, 0, 0, 0, None))
@pcbatch.batch
def step_of_nuts(key, noise, q, step, inv_mass):
    logp, grad = LN_DENSITY(q)
    start, mass = Sample(jnp.stack([q, grad]), logp), Mass(inv_mass, 1 / jnp.sqrt(inv_mass))
    walker, sample, _, _ = TRANSITION(jax.random.key_data(key), noise, start, step, mass, 4, ())
    return sample.q, sample.logp, walker.accept, walker.leapfrogs


@jax.custom_jvp
def own_rule(x):
    return jnp.sin(x)


own_rule.defjvp(lambda primals, tangents: (own_rule(*primals), tangents[0] * primals[0] * 7))


@program(floats(-2, 2), ints(0, 4))
def custom_rules(x, n):
    while n > 0:
        x = jax.nn.softplus(x) - jax.nn.relu(x) * 0.3 + own_rule(x) * 0.1
        if x > 1:
            x = jax.scipy.special.logsumexp(jnp.stack([x, x * x, 0.5]))
        n -= 1
    return x


@program(floats(0.5, 2), ints(0, 4))
def stopped(x, n):
    y = x
    while n > 0:
        y = y * jax.lax.stop_gradient(jnp.sin(x)) + x
        x = jax.lax.stop_gradient(x) if n == 2 else x
        n -= 1
    return y


@pcbatch.batch
def heavy(v, n):
    v = jnp.tanh(MATRIX @ (MATRIX @ v))
    v = jnp.tanh(MATRIX @ (MATRIX @ v))
    if n <= 0:
        return v
    return heavy(v * 0.5, n - 1) + heavy(v * 0.25, n - 2)


@program(cycle(0, 1, 2, 0, 0.3, dtype=np.float32), ints(0, 3), floats(0, 1, 8), floats(0.5, 2))
def not_looked_at(x, n, v, w):
    """The logarithm of zero is computed before a call, and its derivative is infinite; who has it does not use it."""
    y = jnp.log(x) * w
    z = heavy(v, n + (y > 9)).sum()
    if x < 0.5:
        return z * w
    return y * z


@program(cycle(0.5, 1, 2, 0, 0.3, dtype=np.float32), floats(0.5, 2))
def steep_arms(x, w):
    """Slopes are infinite, or of no number, in the arms that lanes do not take."""
    for _ in range(2):
        if x > 0.5:
            y = jnp.exp(-jnp.sqrt(x - 0.5)) * w
        else:
            y = jnp.cos(x + jnp.log1p(x * w))
        z = jnp.sqrt(1.25 - y) if y < 1.25 else jnp.log(y / 1.25)
        x = z * y + x
    return x


def _down(step: int) -> Any:
    return lambda n: jax.lax.while_loop(lambda s: s[0] != 0, lambda s: (s[0] - step, s[1] + 1), (n, 0))[1]


THREES, TWOS_UP = _down(3), _down(-2)


@program(cycle(9, -4, 0, -10, 3), floats(0.1, 1))
def loops_that_end_on_one_side(n, x):
    for _ in range(3):
        x = jnp.sin(x)
        x = x * THREES(n) if n >= 0 else jnp.cos(x) + x * TWOS_UP(n)
    return x


@program(floats(-1, 1), floats(-1, 1), ints(0, 5))
def complex_orbit(x, y, n):
    z = c = x + 1j * y
    while n > 0 and abs(z) < 2:
        z = z * z + c
        n -= 1
    return z, abs(z), z.real


@program(floats(-1, 1, 4), ints(0, 3))
def loops_of_jax(v, n):
    inner = jax.checkpoint(lambda c, x: (jnp.sin(c) + x, c * x))
    while n > 0:
        c, ys = jax.lax.scan(inner, v[0], v)
        v = jax.lax.fori_loop(0, 3, lambda _, u: jnp.tanh(u + c), ys)
        v = jax.lax.cond(v[0] > 0, lambda u: u * u, lambda u: -u, v)
        n -= 1
    return v


@program(floats(-1, 1, 5), ints(0, 9), shared((np.eye(5) * 0.9 + 0.1).astype(np.float32)), in_axes=(0, 0, None))
def matrix_power(x, n, weight):
    while n > 0:
        if n % 2:
            x = weight @ x
        x, n = x / 2, n - 1
    return x


@program(
    ints(0, 5), floats(0.5, 2), shared((np.float32(0.5), {"b": np.float32(2), "none": None})), in_axes=(0, 0, None)
)
def trees_of_weights(n, x, weights):
    w, more = weights
    state = {"x": x, "seen": (), "n": n}
    while state["n"] > 0:
        state = {"x": state["x"] * w + more["b"], "seen": (), "n": state["n"] - 1}
    return state


@program(ints(-2, 6), floats(0.3, 2))
def through_many_types(n, x):
    a = 1 if n > 0 else x
    c = 0
    for k in range(n):
        c = c + (k * x if k % 2 else 0.5)
    return a, c, n > 2, c * (1 if n else 1j)


@program(floats(-1, 1, 4), ints(0, 4), shared(np.arange(12, dtype=np.float32).reshape(3, 4) / 12), in_axes=(0, 0, None))
def rows_of_a_shared_table(v, n, table):
    for k in range(n):
        for row in table:
            v = v * 0.9 + row * v[k]
            if row[0] > 0.5:
                continue
            v = jnp.sin(v)
    return v


@program(floats(0.2, 1), ints(0, 40))
def long_loop(x, n):
    while n > 0:
        x = jnp.sin(x) + 0.1
        n -= 1
    return x


@program(ints(0, 5), floats(-1, 1, 40), floats(-1, 1, 40))
def large_vectors_change_places(n, u, v):
    while n > 0:
        u, v = v.at[n].set(u[2 * n]), u * 0.5 + v[n]
        n -= 1
    return u, v


@program(ints(0, 3), floats(-1, 1), raises=(AssertionError, ValueError))
@pcbatch.batch
def fails_here_and_there(n, x):
    assert x > -0.5, "too small"
    if n == 3:
        raise ValueError("three")
    if n == 0:
        return jnp.exp(x)
    return fails_here_and_there(n - 1, x * 0.9) * x


@program(ints(0, 9), floats(-1, 1, 24), floats(-1, 1), shared(np.float32(0.4)), in_axes=(0, 0, 0, None))
def only_compared(n, xs, x, limit):
    """In the loop nothing is made of an array, and of what lanes share, but truth values."""
    xs = jnp.tanh(xs)
    for k in range(n):
        x = jnp.sin(x) if xs[k] > limit else x * 0.5
    return x + xs.sum() * limit


@program(
    cycle(0, 1, 2, 0, 0.3, dtype=np.float32),
    ints(0, 3),
    floats(0.1, 1, 8),
    shared(abs(MATRIX)),
    in_axes=(0, 0, 0, None),
)
def products_not_looked_at(x, n, v, w):
    """As `not_looked_at`, in a product with what lanes share."""
    y = jnp.log(w @ (v / jnp.maximum(x, 0.0)))
    v = w @ v
    z = heavy(v, n + (y[0] > 9)).sum()
    if x < 0.5:
        return z * w[0, 0]
    return y.sum() * z


@program(ints(0, 4), floats(-1, 1, 24), floats(-1, 1), shared(MATRIX), in_axes=(0, 0, 0, None))
def numbers_of_a_shared_matrix_are_stored(n, xs, x, w):
    while n > 0:
        x = jnp.sin(x + xs[n])
        xs = xs.at[2].set(w[0, 1])
        n = n - 1
    return xs, x
