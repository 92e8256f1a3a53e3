"""A loop over Python's own objects that is left in the middle: what comes then knows the element."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

import pcbatch


def _first(x: Any) -> Any:
    for function, least in ((math.sin, 2.0), (math.cos, 1.0), (math.exp, 0.0)):
        if x > least:
            y = function(x) + least
            return y * 2
    return -1.0


def _last(x: Any) -> Any:
    for function in (math.sin, math.cos, math.exp):
        x -= 1.0
        if x < 0:
            x = function(x) * 3
            break
    else:
        x = 100.0
    return x


def test_a_function_is_known_where_the_loop_is_left() -> None:
    xs = [-1.0, 0.5, 1.5, 2.5, 4.0]
    for function in (_first, _last):
        found = pcbatch.batch(function).trace(jnp.array(xs))
        assert found is not None
    result = pcbatch.batch(_first)(jnp.array(xs))
    np.testing.assert_allclose(np.asarray(result), [_first(x) for x in xs], rtol=1e-5)


def _break_for_continue(n: Any) -> Any:
    out = []
    for i in range(5):
        try:
            if i == n:
                continue
        finally:
            if i == 3:
                break
        out.append(i)
    return out


def _break_for_return(n: Any) -> Any:
    while n > 0:
        try:
            return n
        finally:
            n -= 1
            break
    return n * 100


def _continue_for_break(n: Any) -> Any:
    out = []
    for i in range(5):
        try:
            if i == n:
                break
            out.append(i)
        finally:
            if i == 3:
                continue
            out.append(-i)
    else:
        out.append(99)
    return out


def _nested(n: Any) -> Any:
    out = []
    for i in range(4):
        for j in range(3):
            try:
                if i + j == n:
                    return out
                out.append(10 * i + j)
            finally:
                if j == 1:
                    break
                out.append(j)
        out.append(100)
    return out


def _counted(n: Any, log: Any) -> Any:
    for i in range(n):
        try:
            if i == 2:
                return
        finally:
            log.append(i)
        yield i


def _generator_returns(n: Any) -> Any:
    log, out = [], []
    for v in _counted(n, log):
        out.append(v)
    return out + log


def test_a_jump_out_of_finally_takes_the_place_of_another() -> None:
    for function in (_break_for_continue, _break_for_return, _continue_for_break, _nested, _generator_returns):
        found = pcbatch.batch(function)(jnp.arange(6)).tolist()
        assert found == [function(n) for n in range(6)], function.__name__
