"""One program: a function of one example, and arguments for a number of lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Program:
    """A function with a way to make arguments.

    Attributes:
        function: takes one example.
        make: makes the arguments of all lanes, from a generator and the number of lanes.
        smooth: whether its results are floats that have a gradient by the first argument.
    """

    function: Callable[..., Any]
    make: Callable[[np.random.Generator, int], tuple[Any, ...]]
    smooth: bool = False

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.function.__name__

    def arguments(self, lanes: int) -> tuple[Any, ...]:
        """Return the same arguments in each process."""
        return self.make(np.random.default_rng(0), lanes)


def uniform(low: float, high: float) -> Callable[[np.random.Generator, int], Any]:
    """Make floats of single precision, one for each lane."""
    return lambda rng, lanes: rng.uniform(low, high, lanes).astype(np.float32)


def integers(low: int, high: int, *shape: int) -> Callable[[np.random.Generator, int], Any]:
    """Make arrays of 32-bit integers, one of this shape for each lane."""
    return lambda rng, lanes: rng.integers(low, high, (lanes, *shape)).astype(np.int32)


def vectors(low: float, high: float, *shape: int) -> Callable[[np.random.Generator, int], Any]:
    """Make arrays of floats of single precision, one of this shape for each lane."""
    return lambda rng, lanes: rng.uniform(low, high, (lanes, *shape)).astype(np.float32)


def each(*makers: Callable[[np.random.Generator, int], Any]) -> Callable[[np.random.Generator, int], tuple[Any, ...]]:
    """Make one argument by each."""
    return lambda rng, lanes: tuple(make(rng, lanes) for make in makers)
