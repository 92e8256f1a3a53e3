"""What a test program is: a plain Python function for one example, and a maker of inputs for n lanes.

The programs live in themed modules beside this one; every suite takes them from `tests.programs.PROGRAMS`.
A sample is drawn once for the largest lane count, so that smaller batches are prefixes of larger ones.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from tests.oracles.plans import planned, replanned

MAX_LANES = 64
Sampler = Callable[[np.random.Generator, int], Any]


@dataclass(frozen=True, slots=True)
class Program:
    """One function under test. `sample` gives the tuple of arguments; `in_axes` is what `batch` gets.

    `raises` are the exceptions that some lanes end in.
    """

    name: str
    fn: Any
    sample: Sampler
    in_axes: Any = 0
    x64: bool = False
    recursive: bool = False
    rtol: float = 1e-5
    raises: tuple[type[Exception], ...] = ()

    def args(self, lanes: int) -> tuple[Any, ...]:
        """The arguments for a batch of that many lanes."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        full = self.sample(rng, MAX_LANES)
        return select(full, self.in_axes, slice(0, lanes))

    def batched(self, **options: Any) -> Any:
        """The program as a batched function with these options."""
        if isinstance(self.fn, pcbatch.Batched):
            return replanned(self.fn, in_axes=self.in_axes, **options)
        return pcbatch.batch(self.fn, **planned(in_axes=self.in_axes, **options))

    def plain(self, *example: Any) -> Any:
        """Run one example in plain Python."""
        return self.batched().plain(*example)

    def expected(self, lanes: int) -> list[Any]:
        """What plain Python gives for each lane: a result, or the exception that it raises."""
        args = self.args(lanes)
        return [self.outcome(as_jax(select(args, self.in_axes, lane))) for lane in range(lanes)]

    def outcome(self, example: tuple[Any, ...]) -> Any:
        """The result of one example in plain Python, or one of the exceptions in `raises`."""
        try:
            return self.plain(*example)
        except self.raises as error:
            return error

    @contextlib.contextmanager
    def mode(self) -> Iterator[None]:
        """The JAX configuration that the program runs under."""
        with jax.enable_x64(self.x64):
            yield


REGISTRY: dict[str, Program] = {}


def add(name: str, fn: Any, sample: Sampler, **settings: Any) -> None:
    """Register `fn` under a name of its own."""
    assert name not in REGISTRY, f"two programs are called {name}"
    REGISTRY[name] = Program(name, fn, sample, **settings)


def program(*samplers: Sampler, **settings: Any) -> Callable[[Any], Any]:
    """Decorator: register the function as it is, with one sampler per argument."""

    def register(fn: Any) -> Any:
        add(getattr(fn, "fn", fn).__name__, fn, each(*samplers), **settings)
        return fn

    return register


def select(tree: Any, axes: Any, index: Any) -> Any:
    """Lane `index` (or a slice of lanes) of every mapped leaf; leaves under an axis of None stay whole."""
    if axes is None:
        return tree
    if isinstance(axes, int):
        before = (slice(None),) * axes
        return jax.tree.map(lambda leaf: leaf[(*before, index)], tree)
    if isinstance(axes, dict):
        return {key: select(tree[key], axes[key], index) for key in tree}
    return tuple(select(part, axis, index) for part, axis in zip(tree, axes, strict=True))


def as_jax(tree: Any) -> Any:
    """NumPy leaves to JAX arrays, so that plain runs follow JAX's arithmetic and promotion."""
    return jax.tree.map(jnp.asarray, tree)


def each(*samplers: Sampler) -> Sampler:
    """A tuple of independent samples."""
    return lambda rng, lanes: tuple(sampler(rng, lanes) for sampler in samplers)


def ints(low: int, high: int, *shape: int, dtype: Any = np.int32) -> Sampler:
    """Uniform integers, both ends included."""
    return lambda rng, lanes: rng.integers(low, high + 1, (lanes, *shape)).astype(dtype)


def floats(low: float, high: float, *shape: int, dtype: Any = np.float32) -> Sampler:
    """Uniform floats."""
    return lambda rng, lanes: rng.uniform(low, high, (lanes, *shape)).astype(dtype)


def bools() -> Sampler:
    """Fair coins."""
    return lambda rng, lanes: rng.integers(0, 2, lanes).astype(bool)


def cycle(*values: Any, dtype: Any = np.int32) -> Sampler:
    """The given values first, then the same again until the lanes are full."""
    return lambda rng, lanes: np.array([values[lane % len(values)] for lane in range(lanes)], dtype)


def shared(value: Any) -> Sampler:
    """The same whole value for all lanes; goes with an axis of None."""
    return lambda rng, lanes: value


def keys(*, old: bool = False) -> Sampler:
    """One PRNG key per lane, typed or (old) raw uint32[2]."""

    def sampler(rng: np.random.Generator, lanes: int) -> Any:
        seed = int(rng.integers(2**31))
        root = jax.random.PRNGKey(seed) if old else jax.random.key(seed)
        return jax.random.split(root, lanes)

    return sampler
