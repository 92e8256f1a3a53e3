"""Primitives that move elements, in a kernel: every bit arrives, and no junk with it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from pcbatch.runtime.kernel.rules import check, hoisted
from tests.runtime.kernel.arrays import floats, ints, odd
from tests.runtime.kernel.kernels import lower, run, same

pytestmark = pytest.mark.share(16)

BOTH = [(4, 8), (3, 5)]  # sizes that are powers of two, and that are not

MOVES = {
    "transpose": lambda x: x.T,
    "broadcast": lambda x: (jnp.broadcast_to(x, (3, *x.shape)), jnp.broadcast_to(x[0, 0], (3, 5))),
    "expand": lambda x: (x[:, None], jnp.squeeze(x[:, :1], 1)),
    "slice": lambda x: (x[:, 1:4], x[1:], x[:, :2], x[:, 2], x[1:3, 2:4], x[:, 3:4]),
    "strides": lambda x: (x[:, ::2], x[::2, 1::3], x[:, 1:4:2]),
    "empty": lambda x: (x[:, 2:2], jnp.concatenate([x[:, :0], x], 1)),
    "reverse": lambda x: (x[::-1], x[:, ::-1], x[::-1, ::-1]),
    "concatenate": lambda x: (jnp.concatenate([x, x], 1), jnp.concatenate([x, x[:1], x[:2]], 0)),
    "stack": lambda x: (jnp.stack([x, -x], 1), jnp.stack([x[0], x[1], x[2]]), jnp.stack([x[0], x[1]], -1)),
    "unstack": lambda x: tuple(x),
    "split": lambda x: (*jnp.split(x, [1, 3], 1), *jnp.array_split(x, 2, 1)),
    "tile": lambda x: (jnp.tile(x, (2, 3)), jnp.repeat(x, 2, 0)),
    "roll": lambda x: (jnp.roll(x, 2, 1), jnp.roll(x, 1)),
    "pad": lambda x: jnp.pad(x, ((1, 2), (0, 3)), constant_values=-0.0),
    "pad_wrap": lambda x: (jnp.pad(x, 1, mode="edge"), jnp.pad(x, ((0, 0), (2, 1)), mode="reflect")),
    "pad_between": lambda x: lax.pad(x, jnp.float32(7), ((1, 0, 2), (-1, 3, 1))),
    "pad_cut": lambda x: lax.pad(x, jnp.float32(7), ((-1, -1, 0), (0, -2, 0))),
    "triangles": lambda x: (jnp.tril(x), jnp.triu(x, 1), jnp.rot90(x)),
}


@pytest.mark.parametrize("shape", BOTH)
@pytest.mark.parametrize("name", MOVES)
def test_moves(name: str, shape: tuple[int, ...]) -> None:
    same(MOVES[name], odd(*shape))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.bool_, np.float16])
def test_types(dtype: Any) -> None:
    x = ints(3, 5).astype(dtype)
    same(lambda x: (x[:, 1:4], x[:, ::-1], jnp.concatenate([x, x], 1), x.reshape(5, 3), x[:, 2]), x)


def test_types_of_64_bits() -> None:
    with jax.enable_x64(True):
        for x in (odd(3, 5).astype(np.float64), ints(3, 5).astype(np.int64) << 40):
            same(lambda x: (x[:, 1:4], x[:, ::-1], jnp.concatenate([x, x], 1), x.reshape(5, 3), x[:, 2]), x)


RESHAPES = [
    *[((4, 3, 5), s) for s in [(12, 5), (4, 15), (60,), (2, 2, 3, 5), (3, 20), (5, 3, 4), (4, 3, 5, 1), (6, 10)]],
    *[((2, 8), s) for s in [(16,), (4, 4), (8, 2)]],
    *[((3, 4), s) for s in [(12,), (6, 2), (2, 6), (1, 12, 1)]],
    *[((1, 1), s) for s in [(), (1,), (1, 1, 1)]],
    *[((0, 3), s) for s in [(3, 0), (0,)]],
]


@pytest.mark.parametrize(("old", "new"), RESHAPES)
def test_reshapes(old: tuple[int, ...], new: tuple[int, ...]) -> None:
    same(lambda x: lax.reshape(x, new), odd(*old) if old != (1, 1) else np.float32([[-0.0]]))


def test_long_axes_are_moved_in_turn() -> None:
    """Beyond the size of one selection, source by source: nothing is larger than the arrays themselves."""
    x = odd(32, 100)
    same(lambda x: (x[:, 1:], x[:, ::-1], jnp.concatenate([x[:, :3], x], 1), x.reshape(32, 4, 25)), x)
    assert "128x128" not in lower(lambda x: x[:, 1:], x)


def test_the_longest() -> None:
    jaxpr, _ = hoisted(jax.make_jaxpr(lambda x: x[1:])(np.zeros(5000, np.float32)))
    (refused,) = check(jaxpr)
    assert (refused.primitive, refused.reason) == ("slice", "a selection of 67108864 elements, from an axis of 8192")


def test_numbers_of_positions() -> None:
    def fn(x: Any) -> Any:
        return jnp.arange(5), jnp.arange(3.0) + x[0], lax.broadcasted_iota(jnp.uint8, (3, 5), 1), jnp.eye(3)

    same(fn, floats(2))


def test_junk_stays_out() -> None:
    """The test's arrays hold NaN, infinities and large numbers beyond their lengths."""
    x = floats(3, 5)
    (padded,) = run(lambda x: lax.pad(x, jnp.float32(0), ((0, 5, 0), (0, 3, 0))), x)
    assert np.array_equal(padded, np.pad(x, ((0, 5), (0, 3))))


def test_a_reshape_that_also_transposes() -> None:
    same(lambda x: lax.reshape(x, (15,), (1, 0)), odd(3, 5))
