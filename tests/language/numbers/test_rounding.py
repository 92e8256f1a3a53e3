"""Floats of lanes next to those of plain Python, bit for bit, in programs that are optimised as users have them.

In each program XLA or LLVM would compute something else of equal value on paper: a product by an inverse, a sum of two
constants, a product and a sum in one step that rounds once.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.data.rounding import rounded_p
from pcbatch.runtime.costs import xla_options

pytestmark = [pytest.mark.promotion("standard"), pytest.mark.in_place]

OPTIMISED = {"xla_backend_optimization_level": 3, "xla_llvm_disable_expensive_passes": False}
WHOLE = np.arange(1, 200)
IN_ORDER = pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python's own sum of floats corrects what it rounds")
EMITTERS = ("scalar", "guard")


@pytest.fixture(autouse=True)
def optimised(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Compile with LLVM's optimiser, which the suite leaves out."""
    for option, value in OPTIMISED.items():
        monkeypatch.setitem(xla_options.ON_CPUS, option, value)
    with jax.enable_x64(True):
        yield


def weeks(n):
    return math.ceil(n / 7), math.ceil(n / 60), int(n / 49), math.floor(n / 41)


def quotients(x):
    y = x / 7.0
    return y / 3.0, x / (y / 9), 1 / (1 / (x + 1)), x / math.sqrt(x * x + 1), x / (x / 3) / 11


def a_divisor_in_a_variable(x):
    width, found = 49.0, 0
    for _ in range(20):
        if x / width == int(x / width):
            found += 1
        x += 1
    return found


def constants_in_a_sum(x):
    h = 1e-3
    return x + 0.1 + 0.2, x - 0.1 - 0.2, (x + h + h) - (x - h - h), x * 0.1 * 0.3, x * 0.1 / 0.3


def products_in_sums(x):
    y = x * 0.37
    return x * y + 0.1, x * y - y * y, x * 0.3 + y * 0.3 - 0.3 * x, x**2 + y**2, (x - y) ** 2 - (y - x) ** 2


def products_of_integers(n):
    total = 0.0
    for i in range(n % 50):
        total += i * 0.1
        total -= (i % 7) * 0.3 * 0.7
    return total, n * 0.1 - n * 0.3 + n * 0.7, float(n) * 0.1 - 0.3, (n / 7) * (n / 3) + n / 7 * 0.3


def bounded(n):
    part = min(max(n / 300, 0.0), 1.0)
    size = abs(n * 0.1)
    return part * part * 0.7 - part * 0.3, size * size + 0.1, max(size, part) * 0.3 - part


def collinear(n):
    points = [(0.1 * i, 0.3 * (i % 3)) for i in range(6)]
    count = 0
    for a in points:
        for b in points:
            if a[0] * b[1] - a[1] * b[0] == 0:
                count += n
    return count


def exact_steps(n):
    count = 0
    for i in range(n):
        if i * 0.1 - i / 10 == 0:
            count += 1
    return count


def sums_of_lists(n):
    xs = [i * 0.1 + 0.01 * (n % 7) for i in range(n % 9)]
    return sum(xs), sum(xs, 0.5), sum(xs) / max(len(xs), 1), sum(x * x for x in xs), sum([n * 0.1, n * 0.3, n * 0.7])


def angles(n):
    return math.radians(n) * 0.3, math.degrees(n * 0.1) * 0.7


PROGRAMS: list[Any] = [
    (weeks, WHOLE),
    (quotients, WHOLE / 1.0),
    (a_divisor_in_a_variable, WHOLE / 1.0),
    (constants_in_a_sum, WHOLE / 3.0),
    (products_in_sums, WHOLE / 3.0),
    (products_of_integers, WHOLE),
    (bounded, WHOLE),
    (collinear, WHOLE),
    (angles, WHOLE),
    pytest.param(sums_of_lists, WHOLE, marks=IN_ORDER),
    (exact_steps, WHOLE),
]


@pytest.mark.parametrize("emitter", EMITTERS)
@pytest.mark.parametrize(("fn", "values"), PROGRAMS)
def test_floats_are_those_of_python(fn: Callable[..., Any], values: np.ndarray, emitter: str) -> None:
    lanes = pcbatch.batch(fn, plan=pcbatch.Plan(emitter=emitter))(values)
    plain = [fn(value.item()) for value in values]
    columns = zip(*plain, strict=True) if isinstance(plain[0], tuple) else [plain]
    for column, result in zip(columns, lanes if isinstance(lanes, tuple) else [lanes], strict=True):
        assert np.asarray(result).tolist() == list(column)


@pytest.mark.parametrize("emitter", EMITTERS)
def test_whole_numbers_of_quotients_in_32_bits(emitter: str) -> None:
    with jax.enable_x64(False):
        lanes = pcbatch.batch(weeks, plan=pcbatch.Plan(emitter=emitter))(WHOLE.astype(np.int32))
    assert [tuple(map(int, lane)) for lane in zip(*lanes, strict=True)] == [weeks(int(n)) for n in WHOLE]


def scaled(x, c):
    return x / 7.0 + x * c


def test_derivatives_are_those_of_the_plain_operations() -> None:
    batched = pcbatch.batch(scaled, in_axes=(0, None))
    x = jnp.asarray([1.0, 2.0])
    for derive in (jax.grad, lambda f, k: lambda *args: jax.jvp(lambda a, b: f(a, b), args, tangents(k))[1]):
        found = [float(derive(lambda x, c: jnp.sum(batched(x, c)), k)(x, 0.5).sum()) for k in (0, 1)]
        assert found == pytest.approx([2 / 7 + 1.0, 3.0])


def tangents(k: int) -> tuple[Any, Any]:
    """Tangents of the arguments of which number `k` varies."""
    return (jnp.ones(2), 0.0) if k == 0 else (jnp.zeros(2), 1.0)


def test_arithmetic_of_jax_is_left_as_it_is() -> None:
    def rounds(**options: Any) -> bool:
        program = pcbatch.batch(scaled, in_axes=(0, None), **options).lower(jnp.ones(2), 0.5).stages.cfg
        fns = [op.expr.fn for block in program.functions[0].blocks for op in block.ops]
        return any(eqn.primitive is rounded_p for fn in fns for eqn in fn.closed.jaxpr.eqns)

    assert rounds() and not rounds(numbers="jax")
