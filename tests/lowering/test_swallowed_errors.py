"""Errors of JAX that NumPy or the standard library swallowed in a helper are raised all the same."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.lowering.typing import trace_errors
from tests.oracles.interpret_cfg import interpret_cfg

XS = np.array([[1.0, -2.0, 4.0], [0.5, 3.0, -1.0]], np.float32)


def lowered(fn: Callable[..., Any]) -> Any:
    return pcbatch.batch(fn).lower(XS).stages.cfg


def same(x, y):
    return np.array_equal(x, y)


class Checked:
    def __init__(self, x):
        self.equal = [same(x, x)]


def in_a_helper(x):
    return jnp.where(same(x, 2 * x), x, -x)


def in_a_method(x):
    return x + jnp.sum(jnp.asarray(Checked(x).equal))


def in_a_lambda(x):
    return x + (lambda y: np.array_equiv(y, x))(x)


def in_a_transformation(x):
    return jax.vmap(lambda y: y * same(y, y))(x)


@pytest.mark.parametrize("fn", [in_a_helper, in_a_method, in_a_lambda, in_a_transformation])
def test_swallowed(fn: Callable[..., Any]) -> None:
    with pytest.raises(pcbatch.CompileError, match=r"PCB306(.|\n)*write `jnp.array_equ"):
        lowered(fn)


def test_the_swallowed_error_comes_before_what_fails_because_of_it() -> None:
    def asserting(x):
        assert same(x, x), "not equal to itself"
        return x

    with pytest.raises(pcbatch.CompileError, match="TracerArrayConversionError"):
        lowered(lambda x: asserting(x))


def asks_jax(x):
    try:
        return np.asarray(x).sum() + 0.0
    except jax.errors.TracerArrayConversionError:
        return jnp.sum(x)


def constants(x):
    known, evaluated = same(np.ones(3), np.ones(3)), same(jnp.ones(3), jnp.ones(3))
    return x + known + 2 * evaluated


def questions_of_types(x):
    return x * np.ndim(x) + np.size(x) + np.shape(x)[0] + (np.result_type(x) == np.float32) + np.iscomplexobj(x)


@pytest.mark.promotion("standard")
@pytest.mark.parametrize(
    ("fn", "want"),
    [
        (lambda x: asks_jax(x) + x, lambda x: x.sum() + x),
        (constants, lambda x: x + 3),
        (questions_of_types, lambda x: x + 7),
        (lambda x: np.sum(x) + np.max(x) - np.mean(x), lambda x: x.sum() + x.max() - x.mean()),
    ],
)
def test_what_works(fn: Callable[..., Any], want: Callable[..., Any]) -> None:
    (found,), _ = interpret_cfg(lowered(fn), [jnp.asarray(XS[0])])
    np.testing.assert_allclose(found, want(XS[0]), rtol=1e-6)


def test_only_inside() -> None:
    assert not jax.jit(lambda x: same(x, x))(1.0)  # JAX itself is as it was


def test_the_first_error_is_raised_as_it_is() -> None:
    with pytest.raises(KeyError), trace_errors.noticed():
        raise KeyError
    with pytest.raises(TypeError, match="bool"), trace_errors.noticed(), contextlib.suppress(ZeroDivisionError):
        jax.make_jaxpr(bool)(1.0)


def argsorted(x):
    return np.argsort(x)


def test_what_only_lowering_refuses() -> None:
    """NumPy hands `kind=None` on to a method of JAX, which does not look at it while it is traced."""
    with pytest.raises(pcbatch.CompileError, match=r"PCB306(.|\n)*jnp.argsort"):
        lowered(lambda x: np.argsort(x))
    with pytest.raises(pcbatch.CompileError, match=r"PCB306(.|\n)*jnp.argsort"):
        pcbatch.batch(lambda x: argsorted(x))(XS)
