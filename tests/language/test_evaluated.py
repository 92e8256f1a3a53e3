"""What no value of a lane enters is evaluated while compiling, where an object holds it or a number is asked for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from tests.oracles.interpret_cfg import interpret_cfg

pytestmark = pytest.mark.promotion("standard")

XS = np.array([[1.0, -2.0, 4.0], [0.5, 3.0, -1.0]], np.float32)


def scaled(w):
    m = 2 * w
    return lambda x: m * x


class Affine:
    def __init__(self, size):
        self.weights = jnp.arange(size) + 1.0
        self.layers = {"bias": [jnp.ones(size) / 2]}

    def __call__(self, x):
        return self.weights * x + self.layers["bias"][0]


def steps(table):
    return 4 if jnp.any(table > 2) else 2  # a branch in a helper, on no value of a lane


def closure(x):
    g = scaled(jnp.ones(3))
    return g(x)


def closure_in_a_loop(x):
    k = 0
    while k < 3:
        g = scaled(jnp.ones(3))
        x = g(x)
        k += 1
    return x


def closure_of_a_closure(x):
    g, h = scaled(jnp.ones(3)), scaled(scaled(jnp.arange(3.0))(2.0))
    return g(x) + h(x)


def partial(x):
    g = functools.partial(jnp.multiply, jnp.ones(3) * 3)
    return g(x)


def instance(x):
    model = Affine(3)
    return model(x) + model.weights


def beside_an_array(x):
    w, g = jnp.ones(3) * 5, scaled(jnp.ones(3))
    pair = (jnp.full(3, 7.0), g)
    return pair[1](x) + pair[0] + w


def on_one_way(x):
    y = x
    if x[0] > 0.75:
        g = scaled(jnp.ones(3))
        y = g(x)
    return y


def text(x):
    name = f"{int(jnp.ones(2).sum())}"
    return x + (1 if name == "2" else 10)


def known_count(x):
    for _ in range(steps(jnp.arange(4))):
        x = x + 1
    return x


def known_size(x):
    zeros = jnp.zeros(int(jnp.arange(4).max()))
    return x + zeros


PROGRAMS = [closure, closure_in_a_loop, closure_of_a_closure, partial, instance, beside_an_array, on_one_way, text,
            known_count, known_size]  # fmt: skip


@pytest.mark.parametrize("fn", PROGRAMS)
def test_it_is_what_python_makes_of_it(fn: Callable[..., Any]) -> None:
    stages = pcbatch.batch(fn).lower(XS).stages
    for row in XS:
        (found,), _ = interpret_cfg(stages.cfg, [jnp.asarray(row)])
        np.testing.assert_allclose(found, fn(jnp.asarray(row)), rtol=1e-6)


def test_closures_run() -> None:
    def fn(x):
        return closure(x) + closure_of_a_closure(x) + instance(x) + partial(x)

    np.testing.assert_allclose(pcbatch.batch(fn)(XS), [fn(jnp.asarray(row)) for row in XS], rtol=1e-6)


def test_arrays_alone_stay_operations() -> None:
    def fn(x):
        zeros = jnp.zeros((1000, 3))
        return x + zeros[0]

    consts = [
        np.size(const)
        for block in pcbatch.batch(fn).lower(XS).stages.cfg.functions[0].blocks
        for op in block.ops
        for const in op.expr.fn.closed.consts
    ]
    assert sum(consts) < 1000


def test_an_effect_is_one_of_each_lane(capfd: pytest.CaptureFixture[str]) -> None:
    def shouting(w):
        jax.debug.print("here")
        return lambda x: w * x

    def fn(x):
        g = shouting(jnp.ones(3))
        return g(x)

    assert pcbatch.batch(fn)(XS).tolist() == XS.tolist()
    jax.effects_barrier()
    assert capfd.readouterr().out.count("here") == len(XS)


def test_an_error_is_the_first_one() -> None:
    def wrong():
        raise KeyError("no such thing")

    def fn(x):
        return x + wrong()

    with pytest.raises(pcbatch.CompileError, match="no such thing"):
        pcbatch.batch(fn).lower(XS)


def test_a_function_captures_what_an_outer_trace_holds() -> None:
    @jax.jit
    def outer(w):
        def fn(x):
            g = scaled(w)
            return g(x)

        return pcbatch.batch(fn)(XS)

    assert outer(jnp.ones(3)).tolist() == [scaled(jnp.ones(3))(x).tolist() for x in XS]
