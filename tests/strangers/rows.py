"""One row of the table: a function of one example in plain Python, examples for some lanes, and what they give.

A row holds nothing that pcbatch asks for: no decorator, no import, no rewriting. A lane that raises must fail.
"""

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

import pcbatch
from tests.oracles.plans import replanned

LISTS = (([3, 1, 2],), ([5, 4, 3, 2, 1],), ([7],))
FIVES = (([3, 1, 2, 5, 4],), ([5, 4, 3, 2, 1],), ([1, 1, 0, -3, 7],))


@dataclass(frozen=True, slots=True)
class Row:
    """A function with examples.

    Attributes:
        group: its module.
        function: the function.
        examples: the arguments of each lane.
        new: whether it did not run before lanes had lists, dicts and helpers of their own.
        rtol: how much floats may differ.
        refused: the code of the error that it gives still; empty if it runs.
    """

    group: str
    function: Callable[..., Any]
    examples: tuple[tuple[Any, ...], ...]
    new: bool
    rtol: float
    refused: str

    @property
    def name(self) -> str:
        """The name in test ids and in tables."""
        return f"{self.group}-{self.function.__name__}"

    def plain(self) -> list[Any]:
        """Return what plain Python gives for each example: a result, or the exception that it raises."""
        return [self._outcome(example) for example in self.examples]

    def _outcome(self, example: tuple[Any, ...]) -> Any:
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                result = self.function(*copy.deepcopy(example))
                return list(result) if hasattr(result, "__next__") else result
        except Exception as error:
            return error

    def arguments(self) -> list[Any]:
        """Return the arguments for one lane per example."""
        return [argument(list(column)) for column in zip(*self.examples, strict=True)]

    def differences(self, **options: Any) -> list[str]:
        """Run the batch, and name the lanes that differ from plain Python."""
        with contextlib.redirect_stdout(io.StringIO()):
            result = replanned(pcbatch.batch(self.function), **options).run(*self.arguments())
        statuses = np.asarray(result.status).tolist()
        found: list[str] = []
        for lane, want in enumerate(self.plain()):
            failed = statuses[lane] != int(pcbatch.Status.OK)
            if isinstance(want, Exception) or failed:
                same = isinstance(want, Exception) and failed
                got: Any = f"status {statuses[lane]}"
            else:
                got = as_plain(lane_of(result.value, lane))
                same = alike(got, as_plain(want), self.rtol)
            if not same:
                found.append(f"lane {lane}, {self.examples[lane]}: {got!r} instead of {want!r}")
        return found


def table(group: str, rows: list[Row]) -> Callable[..., Callable[[Callable[..., Any]], Callable[..., Any]]]:
    """Return a decorator that enters a function with its examples in a list of rows, and leaves it as it is."""

    def row(*examples: tuple[Any, ...], new: bool = True, rtol: float = 1e-4, refused: str = "") -> Any:
        def enter(function: Callable[..., Any]) -> Callable[..., Any]:
            rows.append(Row(group, function, examples, new, rtol, refused))
            return function

        return enter

    return row


def argument(column: Sequence[Any]) -> Any:
    """Return one argument of all lanes: containers and strings by `pcbatch.ragged`, numbers as an array; tuples of one
    length are taken apart, and those of several are lists."""
    match column[0]:
        case list() | str() | dict() | set():
            return pcbatch.ragged(list(column))
        case tuple() if len(set(map(len, column))) > 1:
            return pcbatch.ragged(list(map(list, column)))
        case tuple():
            return tuple(map(argument, zip(*column, strict=True)))
        case _:
            return jnp.array(column)


def lane_of(value: Any, lane: int) -> Any:
    """Return the result of one lane."""
    match value:
        case tuple() | list():
            return [lane_of(part, lane) for part in value]
        case dict():
            return {key: lane_of(part, lane) for key, part in value.items()}
        case None:
            return None
        case _ if hasattr(value, "tolist"):
            return value.tolist()[lane]
        case _:
            return value[lane]


def unlike_plain(function: Callable[[int], Any], numbers: Sequence[int]) -> list[int]:
    """Return the numbers for which a lane gives a result whose text is not that of plain Python's."""
    found = pcbatch.batch(function)(np.array(numbers))
    return [n for k, n in enumerate(numbers) if str(as_plain(lane_of(found, k))) != str(as_plain(function(n)))]


def as_plain(value: Any) -> Any:
    """Return a result with Python's numbers and lists in it: tuples become lists, sets sorted lists."""
    match value:
        case set() | frozenset():
            return ["set", *sorted(as_plain(part) for part in value)]
        case dict():
            return {key: as_plain(part) for key, part in value.items()}
        case list() | tuple():
            return [as_plain(part) for part in value]
        case _ if hasattr(value, "tolist"):
            return as_plain(value.tolist())
        case _:
            return value


def alike(got: Any, want: Any, rtol: float) -> bool:
    """Compare two plain results: integers and bools exactly, floats to rounding, dicts with their order."""
    match got, want:
        case list(), list():
            return len(got) == len(want) and all(alike(a, b, rtol) for a, b in zip(got, want, strict=True))
        case dict(), dict():
            return list(got) == list(want) and all(alike(got[key], want[key], rtol) for key in want)
        case (float(), int() | float()) | (int(), float()):
            return bool(np.isclose(got, want, rtol=rtol, atol=1e-6, equal_nan=True))
        case _:
            return type(got) is type(want) and bool(got == want)
