"""One row of the table: a function of one example in plain Python, and what draws examples for it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Examples = list[tuple[Any, ...]]
Entering = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclass(frozen=True, slots=True)
class Program:
    """A function of one example, and what makes the examples of so many lanes from a generator of random numbers."""

    name: str
    function: Callable[..., Any]
    examples: Callable[[random.Random, int], Examples]


def entering(programs: list[Program]) -> Callable[[str, Callable[[random.Random], tuple[Any, ...]]], Entering]:
    """Return a decorator with a name and a draw of one example, which enters a function into a list and leaves it as it
    is."""

    def program(name: str, example: Callable[[random.Random], tuple[Any, ...]]) -> Entering:
        def enter(function: Callable[..., Any]) -> Callable[..., Any]:
            programs.append(Program(name, function, lambda rng, lanes: [example(rng) for _ in range(lanes)]))
            return function

        return enter

    return program
