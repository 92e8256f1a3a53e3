"""How users' programs look to a type checker: `mypy tests/api/typed_use.py` (in `make lint`) finds nothing to say.

Nothing here is run. What a checker must refuse has a `type: ignore`, and one that is not needed is a fault as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_type

import jax
import jax.numpy as jnp

import pcbatch
from pcbatch.api.batched import BoundMethod

XS = jnp.arange(3.0)


@pcbatch.batch
def scaled(x: jax.Array, factor: float = 2.0) -> jax.Array:
    """Decorated as it is."""
    return x * factor


@pcbatch.batch(max_depth=8, static_argnames=("name",))
def named(x: jax.Array, *, name: str) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Decorated with options."""
    return x, {name: x}


def one(x: float) -> bool:
    """To be batched in an expression."""
    return x > 0


class Model:
    """With batched methods."""

    @pcbatch.batch
    def step(self, x: jax.Array, n: int) -> jax.Array:
        """As it is."""
        return x * n

    @pcbatch.batch(in_axes=(None, 0))
    def read(self, x: jax.Array) -> bool:
        """With options."""
        return bool(x > 0)

    @staticmethod
    @pcbatch.batch
    def free(x: jax.Array) -> jax.Array:
        """Without an object."""
        return x

    @pcbatch.batch
    @classmethod
    def made(cls, x: jax.Array) -> jax.Array:
        """Of the class."""
        return x


def calls() -> None:
    """What comes of a call."""
    assert_type(scaled(XS), jax.Array)
    assert_type(scaled(XS, devices="all", save_to="run.npz"), jax.Array)
    assert_type(named(XS, name="a")[1], dict[str, jax.Array])
    assert_type(scaled.run(XS), pcbatch.Result)
    assert_type(scaled.map(XS, lanes=2), pcbatch.Result)
    assert_type(scaled.start(XS), pcbatch.Run)


def plain() -> None:
    """The plain function keeps its signature."""
    assert_type(scaled.plain(XS[0]), jax.Array)
    assert_type(scaled.plain(XS[0], factor=3.0), jax.Array)
    scaled.plain("text")  # type: ignore[arg-type]
    scaled.plain(XS[0], 1.0, 2.0)  # type: ignore[call-arg]
    named.plain(XS[0])  # type: ignore[call-arg]


def objects() -> None:
    """What `batch` gives."""
    keeps: pcbatch.Batched[[float], bool] = pcbatch.batch(one)
    keeps = pcbatch.batch(one, max_steps=3)
    keeps = pcbatch.batch(max_steps=3)(one)
    assert_type(pcbatch.batch(keeps), pcbatch.Batched[[float], bool])
    assert_type(keeps.with_options(stats=True), pcbatch.Batched[[float], bool])
    other: pcbatch.Batched[[str], bool] = pcbatch.batch(one)  # type: ignore[arg-type]
    usual: Callable[..., bool] = other
    if isinstance(usual, pcbatch.Batched):
        usual.lower(XS)


def methods(model: Model) -> None:
    """Bound to an object."""
    bound: BoundMethod[[jax.Array, int], jax.Array] = model.step
    assert_type(bound.plain(XS[0], 2), jax.Array)
    assert_type(model.step(XS, 2), jax.Array)
    assert_type(model.step.plain(XS[0], 2), jax.Array)
    assert_type(model.step.run(XS, 2), pcbatch.Result)
    assert_type(model.read(XS), bool)
    assert_type(Model.step.plain(model, XS[0], 2), jax.Array)
    assert_type(Model.free(XS), jax.Array)
    assert_type(Model.made(XS), jax.Array)
    model.step.plain(XS[0], "two")  # type: ignore[arg-type]
    model.step.plain(XS[0])  # type: ignore[call-arg]


@pcbatch.inline
def clipped(x: float, limit: float) -> float:
    """A helper stays what it is."""
    return min(x, limit)


assert_type(clipped(1.0, 2.0), float)
