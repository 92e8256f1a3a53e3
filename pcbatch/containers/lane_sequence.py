"""Comparisons, unpacking and what else Python asks of a sequence of the lane, whatever changes it has."""

from __future__ import annotations

import operator
from typing import Any

import jax

from pcbatch.containers import list_order
from pcbatch.containers.checks import require
from pcbatch.containers.columns import Unset, element_text
from pcbatch.containers.elements import Rows
from pcbatch.diagnostics.lane_words import type_name
from pcbatch.errors import Refusal


class LaneSequence(Rows):
    """A sequence of the lane that can be compared and unpacked."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    # For subclasses.

    def _plain(self) -> Any:
        """Return the sequence with its elements from place 0 on, and no view."""
        raise NotImplementedError

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError

    # Comparisons.

    def __eq__(self, other: Any) -> Any:
        list_order.ask_about_lists(self, other)
        return list_order.equal(self, other)

    def __ne__(self, other: Any) -> Any:
        list_order.ask_about_lists(self, other)
        return list_order.not_(list_order.equal(self, other))

    def __lt__(self, other: Any) -> Any:
        return list_order.compare(operator.lt, self, other)

    def __le__(self, other: Any) -> Any:
        return list_order.compare(operator.le, self, other)

    def __gt__(self, other: Any) -> Any:
        return list_order.compare(operator.gt, self, other)

    def __ge__(self, other: Any) -> Any:
        return list_order.compare(operator.ge, self, other)

    # Unpacking.

    def unpacked(self, count: int) -> tuple[Any, ...]:
        """Return the elements of `a, b = xs`, as many as there are names."""
        n = self.length
        few = ("not enough values to unpack (expected ", str(count), ", got ", n, ")")
        require(n >= count, "ValueError", *few)
        require(n <= count, "ValueError", f"too many values to unpack (expected {count})")
        return tuple(self.element(k) for k in range(count))

    def unpacked_star(self, before: int, after: int) -> list[Any]:
        """Return the values of `a, *rest, z = xs`, with so many names before and after the star."""
        n = self.length
        few = ("not enough values to unpack (expected at least ", str(before + after), ", got ", n, ")")
        require(n >= before + after, "ValueError", *few)
        first = [self.element(k) for k in range(before)]
        last = [self.element(n - k) for k in range(after, 0, -1)]
        return [*first, self._plain()[before : n - after], *last]

    def __jax_array__(self) -> Any:
        """Return the elements as one array, where their number is known while compiling."""
        columns, n = self._plain().columns, self.length
        if isinstance(columns, jax.Array) and isinstance(n, int):
            return columns[:n]
        raise Refusal(
            "PCB306",
            "an array has a shape that is known while compiling, and the length of this list depends on the lane",
            helps=("keep the list, or make an array of the greatest length and store into it, `ys.at[k].set(x)`",),
        )

    def __repr__(self) -> str:
        kind = type_name(self)
        return f"empty {kind}" if isinstance(self._columns, Unset) else f"{kind} of {element_text(self._columns)}"
