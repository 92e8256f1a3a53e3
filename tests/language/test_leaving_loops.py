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
