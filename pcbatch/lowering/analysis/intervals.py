"""Intervals of integers: the least and the greatest result of an operation, from those of its operands.

An end that is not known is infinite. Ends are exact integers. A result that may leave its dtype wraps around, so that
nothing is known of it, but where a check or a mark says that it does not.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

Interval = tuple[float, float]

ANY: Interval = (-math.inf, math.inf)


@cache
def of_dtype(dtype: str) -> Interval:
    """Return the interval of a dtype; `ANY` for those that hold more than whole numbers."""
    if dtype == "bool":
        return 0, 1
    if not np.issubdtype(np.dtype(dtype), np.integer):
        return ANY
    info = np.iinfo(np.dtype(dtype))
    return int(info.min), int(info.max)


def within(a: Interval, b: Interval) -> bool:
    """Return whether an interval lies in another one."""
    return b[0] <= a[0] and a[1] <= b[1]


def meet(a: Interval, b: Interval) -> Interval:
    """Return what lies in both of two intervals; the first where nothing does."""
    both = max(a[0], b[0]), min(a[1], b[1])
    return both if both[0] <= both[1] else a


def widened(old: Interval, new: Interval) -> Interval:
    """Return an interval whose ends are those of `new` that have not moved."""
    return (new[0] if new[0] >= old[0] else -math.inf, new[1] if new[1] <= old[1] else math.inf)


def computed(name: str, operands: Sequence[Interval]) -> Interval:
    """Return the interval of the whole number that an operation gives; `ANY` for operations without a rule."""
    rule = RULES.get(name)
    return ANY if rule is None else rule(*operands)


def _product(a: Interval, b: Interval) -> Interval:
    ends = [0 if 0 in (x, y) else x * y for x, y in itertools.product(a, b)]
    return min(ends), max(ends)


def _quotient(a: Interval, b: Interval) -> Interval:
    if b[0] != b[1] or b[0] <= 0:
        return (0, a[1]) if a[0] >= 0 and b[0] > 0 else ANY
    low, high = (end if math.isinf(end) else int(end) // int(b[0]) for end in a)
    return low, high


def _rest(a: Interval, b: Interval) -> Interval:
    if b[0] > 0:
        return 0, min(b[1] - 1, a[1]) if a[0] >= 0 else b[1] - 1
    return (b[0] + 1, 0) if b[1] < 0 else ANY


def _bits_of_both(a: Interval, b: Interval) -> Interval:
    most = [end[1] for end in (a, b) if end[0] >= 0]
    return (0, min(most)) if most else ANY


def _bits_of_either(a: Interval, b: Interval) -> Interval:
    most = max(a[1], b[1])
    if min(a[0], b[0]) < 0 or math.isinf(most):
        return ANY
    return 0, 2 ** int(most).bit_length() - 1


def _shifted_right(a: Interval, b: Interval) -> Interval:
    if b[0] < 0 or math.isinf(b[1]) or a == ANY:
        return (0, a[1]) if a[0] >= 0 and b[0] >= 0 else ANY
    ends = [end if math.isinf(end) else int(end) >> int(by) for end in a for by in b]
    return min(ends), max(ends)


def _size(a: Interval) -> Interval:
    most = max(abs(a[0]), abs(a[1]))
    return (0 if a[0] <= 0 <= a[1] else min(abs(a[0]), abs(a[1])), most)


RULES: dict[str, Callable[..., Interval]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": _product,
    "neg": lambda a: (-a[1], -a[0]),
    "abs": _size,
    "sign": lambda a: (-1, 1),
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "floor_divide": _quotient,
    "remainder": _rest,
    "and": _bits_of_both,
    "or": _bits_of_either,
    "xor": _bits_of_either,
    "shift_right_arithmetic": _shifted_right,
    "shift_right_logical": lambda a, b: _shifted_right(a, b) if a[0] >= 0 else ANY,
    "shift_left": lambda a, b: _product(a, (2 ** b[0], 2 ** b[1])) if 0 <= b[0] <= b[1] <= 64 else ANY,
    "between": lambda x, low, high: meet(x, (low[0], high[1])),
}
