"""What is told to write where a value of a lane cannot stand, in the words of the source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import CompileError

N = np.array([1, 2], np.int32)
XS = np.ones((2, 4), np.float32)

TOLD: dict[str, Callable[..., Any]] = {
    "use functions of `jnp` in place of that of NumPy, for example `jnp.sqrt(x)`": lambda n, xs: np.busday_count(n, n),
    "write `jnp.sqrt(n)`": lambda n, xs: np.sqrt(n),
    "write `jnp.asarray(xs)`": lambda n, xs: np.asarray(xs)[0],
    "or use the largest size and a mask": lambda n, xs: np.zeros(n).sum(),
    "make it a constant": lambda n, xs: xs.reshape(n, 2),
    "`jnp.nonzero(xs, size=N)`": lambda n, xs: np.nonzero(xs)[0],
    "`jnp.argwhere(xs, size=N)`": lambda n, xs: jnp.argwhere(xs)[0],
    "`jnp.repeat(xs, n, total_repeat_length=N)`": lambda n, xs: jnp.repeat(xs, n),
    "`jnp.where((n <= k), xs, 0)`": lambda n, xs: xs[n:],
    "`jnp.where((1 <= k) & (k < n), xs, 0)`": lambda n, xs: xs[1:n],
    "choose with `if`": lambda n, xs: [xs, n][n],
    "make them alike": lambda n, xs: len([xs, n][n:]),
    "`jnp.asarray(np.arange(3))[n]`": lambda n, xs: np.arange(3)[n],
    "in place of `xs[xs > 0]`": lambda n, xs: xs[xs > 0],
    "write `xs.sum()`": lambda n, xs: xs.sum().item(),
    "the array itself holds the numbers": lambda n, xs: xs.tolist()[0],
}


@pytest.mark.parametrize("told", TOLD)
def test_what_is_told(told: str) -> None:
    with pytest.raises(CompileError) as info:
        pcbatch.batch(TOLD[told])(N, XS)
    (fault,) = info.value.diagnostics
    assert fault.code == "PCB306"
    assert told in " / ".join(fault.helps)


ANSWERED: list[Callable[..., Any]] = [
    lambda n, xs: [1, 2, 3][n],
    lambda n, xs: sum([1, 2, 3][n:]),
    lambda n, xs: sum(list((1, 2, 3))[n:]),
    lambda n, xs: list(b"abc")[n],
    lambda n, xs: len("abc"[n]),
    lambda n, xs: {1: 2, 2: 4}[n],
    lambda n, xs: len({n, 1}),
    lambda n, xs: len([0] * n),
    lambda n, xs: len(bin(n)),
]


@pytest.mark.parametrize("fn", ANSWERED)
def test_what_needs_no_help(fn: Callable[..., Any]) -> None:
    np.testing.assert_array_equal(pcbatch.batch(fn)(N, XS), [fn(int(n), x) for n, x in zip(N, XS, strict=True)])
