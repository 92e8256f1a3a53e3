"""What primitives call at run time: the same as Python on plain values, and right on traced ones."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcbatch.data.functions import changes, iteration, operators, truth

EDGES = (-128, -127, -3, -1, 0, 1, 2, 100, 126, 127)


@pytest.mark.parametrize("step", [1, 2, 3, 127, 128, 300, -1, -2, -7, -128, -1000])
def test_range_length_never_overflows(step):
    pairs = np.array(list(itertools.product(EDGES, EDGES)), np.int8)
    length = jax.jit(jax.vmap(lambda a, b: iteration.range_length(a, b, step)))
    expected = [len(range(a, b, step)) for a, b in pairs.tolist()]
    assert length(pairs[:, 0], pairs[:, 1]).tolist() == expected


@pytest.mark.parametrize("dtype", [np.int8, np.int32])
def test_range_length_with_a_step_of_the_lane(dtype):
    edges = (-128, -3, -1, 0, 2, 127) if dtype is np.int8 else (-(2**31), -5, 0, 3, 2**31 - 1)
    steps = [step for step in (*edges, -1, 1) if step]
    triples = np.array(list(itertools.product(edges, edges, steps)), dtype)
    length = jax.jit(jax.vmap(iteration.range_length))
    assert length(*triples.T).tolist() == [len(range(*triple)) for triple in triples.tolist()]
    assert length(*np.array([[0], [5], [0]], dtype)).tolist() == [0], "such lanes have failed before"


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.uint32])
def test_range_length_with_plain_start(dtype):
    length = jax.jit(lambda n: iteration.range_length(0, n, 3))
    assert int(length(np.array(100, dtype))) == 34


def test_range_length_with_a_start_that_the_stop_cannot_hold():
    assert int(jax.jit(lambda n: iteration.range_length(-5, n, 1))(np.uint8(100))) == 105
    with pytest.raises(OverflowError):
        jax.jit(lambda n: iteration.range_length(-5, n, 1))(np.uint32(100))


def test_range_length_of_plain_values():
    assert iteration.range_length(2, np.int32(9), 3) == 3
    assert iteration.range_length(0, True, 1) == 1


def test_range_refuses_what_python_refuses():
    with pytest.raises(TypeError, match="stop of range"):
        iteration.range_length(0, 2.5, 1)
    with pytest.raises(TypeError, match="start of range"):
        iteration.range_length(jnp.float32(2), 3, 1)
    with pytest.raises(TypeError, match="must not be zero"):
        iteration.range_length(0, 3, 0)
    with pytest.raises(TypeError, match="step of range"):
        jax.jit(lambda s: iteration.range_length(0, 3, s))(2.0)


def test_truth():
    assert truth.truth([]) is False and truth.truth("x") is True and truth.truth(None) is False
    for value, expected in ((2, True), (0, False), (0.0, False), (float("nan"), True), (True, True)):
        assert bool(jax.jit(truth.truth)(value)) is expected
        assert bool(truth.truth(value)) is expected
        assert bool(jax.jit(operators.not_)(value)) is not expected
        assert bool(operators.not_(np.asarray(value))) is not expected
    with pytest.raises(TypeError, match="condition must be a scalar"):
        truth.truth(jnp.zeros(3))
    with pytest.raises(TypeError, match="condition must be a scalar"):
        operators.not_(np.zeros(1))


def test_contains():
    assert operators.contains(2, {2: 3}) is True and operators.lacks(2, "12".split()) is True
    inside = jax.jit(lambda x: operators.contains(x, (1, 5)))
    assert bool(inside(5)) and not bool(inside(4))
    assert bool(operators.contains(2, jnp.arange(3))) and not bool(jax.jit(lambda x: operators.contains(x, ()))(1))


def test_loops_over_arrays():
    assert iteration.iter_length(np.zeros((3, 2))) == 3 and iteration.iter_length(jnp.zeros(0)) == 0
    assert iteration.rows({"a": 1, "b": 2}) == ("a", "b") and iteration.rows(iter([1])) == (1,)
    assert iteration.rows({1, 2}) == [1, 2]
    for wrong in (3, None):
        with pytest.raises(TypeError, match="cannot go over"):
            iteration.rows(wrong)
    with pytest.raises(TypeError, match="scalar"):
        iteration.iter_length(jnp.float32(1))
    assert int(jax.jit(lambda k: iteration.row(np.array([4, 5, 6]), k))(1)) == 5


def test_values_that_python_would_change_in_place():
    assert changes.augmented("add", 3, 4) == 7 and changes.augmented("add", (1,), (2,)) == (1, 2)
    for value, name, more, after in (([1], "add", (2,), [1, 2]), ({1: 2}, "or_", {3: 4}, {1: 2, 3: 4})):
        before = value.copy()
        assert changes.augmented(name, value, more) == after and value == before
    assert iteration.single([7]) == 7
