"""Functions of `math` and `statistics` on several numbers of a lane: tuples, lists and arrays of one axis."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.checks import require
from pcbatch.data.columns import room
from pcbatch.data.container import in_order
from pcbatch.data.functions.builtins import sorted_
from pcbatch.data.functions.math_functions.arguments import real, require_range, scalar
from pcbatch.data.functions.math_functions.integers import exact_product
from pcbatch.data.functions.python_numbers import finfo, mul
from pcbatch.data.origins import Origin, Tracer, kind_of, note
from pcbatch.data.rounding import once, to_float
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.sequences.lane_range import LaneRange
from pcbatch.data.sequences.list_reductions import exact_sum
from pcbatch.data.values import Index, Num, Value
from pcbatch.errors import Refusal


def numbers(name: str, values: Value) -> list[Value]:
    """Return the numbers of a sequence, or of an array of one axis."""
    if isinstance(values, Tracer) and values.ndim != 1:
        title = f"`{name}` takes a sequence of numbers, not an array of shape {values.shape}"
        raise Refusal("PCB306", title, helps=("pass a tuple of numbers, or an array of one axis",))
    return [scalar(name, value) for value in values]


def column(name: str, values: Value, neutral: float = 0) -> Value:
    """Return the numbers of a sequence as one array, in the type that holds them all.

    A list of the lane is one with room for more: there the array has the neutral number.
    """
    if isinstance(values, LaneList):
        return _filled(name, values, neutral)
    if isinstance(values, Tracer) and values.ndim == 1:
        return values
    found = numbers(name, values)
    return jnp.stack([jnp.asarray(value) for value in found]) if found else jnp.zeros(0)


def _filled(name: str, values: LaneList, neutral: float) -> Value:
    columns = values.columns
    if room(columns, 0) in (None, 0):
        return jnp.zeros(0)
    if not isinstance(columns, jax.Array) or columns.ndim != 1:
        title = f"`{name}` takes numbers, and the elements of this list are no numbers"
        raise Refusal("PCB306", title, helps=("make a list of the numbers of its elements",))
    return jnp.where(jnp.arange(columns.shape[0]) < values.length, columns, jnp.asarray(neutral, columns.dtype))


def _size(values: Value) -> Value:
    """Return the number of numbers in a sequence."""
    return values.length if isinstance(values, LaneList) else len(values)


def floats(name: str, values: Value) -> Value:
    """Return the numbers of a sequence as one array of floats; zero where a list of the lane has none."""
    if isinstance(values, LaneList):
        return _filled(name, values, 0).astype(float)
    if isinstance(values, Tracer) and values.ndim == 1:
        return values.astype(float)
    found = [jnp.asarray(real(name, value), float) for value in numbers(name, values)]
    return jnp.stack(found) if found else jnp.zeros(0)


def _is_integers(array: Value) -> bool:
    return kind_of(array.dtype) in (bool, int)


def prod(values: Value, *, start: Num = 1) -> Value:
    """The function `math.prod`; of integers it is exact, or the lane raises OverflowError."""
    if isinstance(values, LaneList) or (isinstance(values, Tracer) and values.ndim == 1):
        return _prod(values, start)
    if any(isinstance(value, Tracer) and value.ndim for value in values):
        return math.prod(values, start=start)  # an array, computed by the operator of arrays
    return _prod(values, start)


def _prod(values: Value, start: Num) -> Value:
    items = column("math.prod", values, 1)
    first = scalar("math.prod", start)
    both = jnp.result_type(items, first) if isinstance(first, Tracer) or items.size else items.dtype
    if items.size == 0:
        return first
    if kind_of(both) in (bool, int):
        wide = jnp.promote_types(both, np.int32) if kind_of(both) is int else np.dtype(jnp.result_type(int))
        return exact_product("math.prod", jnp.concatenate([jnp.asarray(first, wide)[None], items.astype(wide)]))
    return reduce(mul, list(items), first)


def sumprod(p: Value, q: Value) -> Value:
    """The function `math.sumprod`; of integers it is exact, or the lane raises OverflowError."""
    require(_size(p) == _size(q), "ValueError", "Inputs are not the same length")
    a, b = _as_long(column("math.sumprod", p), column("math.sumprod", q))
    if not (_is_integers(a) and _is_integers(b)):
        return _compensated(a.astype(float) * b.astype(float))
    wide = jnp.promote_types(jnp.result_type(a, b), np.int32)
    products = [
        exact_product("math.sumprod", jnp.stack([x, y])) for x, y in zip(a.astype(wide), b.astype(wide), strict=True)
    ]
    return exact_sum("math.sumprod", jnp.stack(products)) if products else 0


def fsum(values: Value) -> Value:
    """The function `math.fsum`: the sum with the rounding errors of all additions added at the end."""
    terms = floats("math.fsum", values)
    result = _compensated(terms)
    holds = ~(jnp.all(jnp.isfinite(terms)) & ~jnp.isfinite(result))
    require_range(holds, terms.dtype, message="intermediate overflow in fsum")
    inf = jnp.any(terms == jnp.inf) & jnp.any(terms == -jnp.inf)
    require(~inf, "ValueError", "-inf + inf in fsum")
    return result


def _compensated(terms: Value) -> Value:
    """Return a sum with three words of precision: errors of additions are summed up likewise."""

    def step(state: tuple[Value, Value, Value], term: Value) -> tuple[tuple[Value, Value, Value], None]:
        total, errors, rests = state
        total, error = _two_sum(total, term)
        errors, rest = _two_sum(errors, error)
        return (total, errors, rests + rest), None

    zero = jnp.zeros((), terms.dtype)
    (total, errors, rests), _ = jax.lax.scan(step, (zero, zero, zero), terms)
    exact = total + (errors + rests)
    return jnp.where(jnp.isfinite(exact), exact, jnp.sum(terms))


def _two_sum(a: Value, b: Value) -> tuple[Value, Value]:
    """Return a sum as it is rounded, and the error of rounding."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def hypot(*coordinates: Value) -> Value:
    """The function `math.hypot`, of any number of coordinates."""
    return _norm(floats("math.hypot", list(coordinates)))


def norm_of(values: Value) -> Value:
    """The call `math.hypot(*values)`."""
    listed = in_order(values)
    return _norm(floats("math.hypot", list(values) if listed is None else listed))


def dist(p: Value, q: Value) -> Value:
    """The function `math.dist`."""
    require(_size(p) == _size(q), "ValueError", "both points must have the same number of dimensions")
    a, b = _as_long(floats("math.dist", p), floats("math.dist", q))
    return _norm(a - b)


def _as_long(a: Value, b: Value) -> tuple[Value, Value]:
    """Return two arrays with zeros behind the end of the shorter one."""
    size = max(a.size, b.size)
    return jnp.pad(a, (0, size - a.size)), jnp.pad(b, (0, size - b.size))


FEW = 8  # numbers that are better added one by one


def _norm(xs: Value) -> Value:
    """Return the length of a vector, scaled by a power of two where squares would overflow or vanish.

    The power is one of three, as the exponent of the largest number takes longer than all else.
    """
    if not xs.size:
        return 0.0
    # Numbers one by one: a lane alone needs no loops for them.
    parts = [xs[k] for k in range(xs.size)] if xs.size <= FEW else [xs]
    largest = reduce(jnp.maximum, [jnp.max(jnp.abs(jax.lax.stop_gradient(part))) for part in parts])
    usual = jnp.isfinite(largest) & (largest > 0)
    form = finfo(xs.dtype)
    half = form.maxexp // 2
    least = form.nmant + 5 - half  # the squares of what counts beside it are normal numbers
    large, small = largest > 2.0 ** (half - 16), largest < 2.0**least

    def power(of_large: int, of_small: int) -> Value:
        return jnp.where(large, 2.0**of_large, jnp.where(small, 2.0**of_small, 1.0)).astype(xs.dtype)

    scale, back = power(-half - 16, half - least - 6), power(half + 16, least + 6 - half)
    squares = [jnp.sum(jnp.where(usual, part * scale, 1.0) ** 2) for part in parts]
    length = jnp.sqrt(reduce(jnp.add, squares)) * back
    infinite = reduce(jnp.logical_or, [jnp.any(jnp.isinf(part)) for part in parts])
    others = reduce(jnp.add, [jnp.sum(jnp.abs(part)) for part in parts])
    return jnp.where(usual, length, jnp.where(infinite, jnp.inf, others))


def mean(data: Value) -> Value:
    """The functions `statistics.mean` and `fmean`: of integers it may be one in Python, here it is a float."""
    items = column("statistics.mean", data)
    size = _some("mean", data)
    if not items.size:
        return 0.0
    if kind_of(items.dtype) is bool:
        title = "the mean of bools is a bool in `statistics`"
        raise Refusal("PCB306", title, helps=("count them: `sum(values) / len(values)`",))
    if _is_integers(items):
        total: Value = exact_sum("statistics.mean", items.astype(jnp.promote_types(items.dtype, np.int32)))
    else:
        total = _compensated(items.astype(float))
    return note(once(operator.truediv, "/", to_float(total), size), Origin.UNKNOWN)


def fmean(data: Value) -> Value:
    """The function `statistics.fmean`, without weights."""
    items = floats("statistics.fmean", data)
    return once(operator.truediv, "/", _compensated(items), _some("fmean", data))


def _some(name: str, data: Value) -> Value:
    """Return the number of data; the lane raises StatisticsError, a ValueError, where there are none."""
    size = _size(data)
    require(size > 0, "ValueError", f"{name} requires at least one data point")
    return _at_least_one(size)


def _at_least_one(size: Index) -> Index:
    return max(size, 1) if isinstance(size, int) else jnp.maximum(size, 1)


def variance_of(name: str, less: int, root: bool = False) -> Callable[..., Value]:
    """Return a function of the squares of what data differ from their mean, or from a number that is given: the sum of
    these, divided by the size of the data, or by so much less than that, or the root of it."""

    def run(data: Value, center: Value = None) -> Value:
        items, size = column(f"statistics.{name}", data), _size(data)
        words = "one data point" if less == 0 else "two data points"
        require(size > less, "ValueError", f"{name} requires at least {words}")
        if not items.size:
            return 0.0
        if kind_of(items.dtype) is bool:
            title = f"the {name} of bools may be a bool in `statistics`"
            raise Refusal("PCB306", title, helps=("make them integers: `[int(value) for value in values]`",))
        result = once(operator.truediv, "/", _squares(items, size, center), _at_least_one(size - less))
        if root:
            return jnp.sqrt(result)
        return note(result, Origin.UNKNOWN) if _is_integers(items) else result

    return run


def _squares(items: Value, size: Index, center: Value) -> Value:
    """Return the sum of the squares of what so many first items differ from a number, or from their mean."""
    there = jnp.arange(items.shape[0]) < size
    if center is not None:
        away = items.astype(float) - real("statistics.variance", center)
        return _compensated(jnp.where(there, away, 0.0) ** 2)
    # The mean is near the first item, beside which large numbers that differ by little are exact.
    away = jnp.where(there, _away(items, items[0]), 0.0)
    away = jnp.where(there, away - _compensated(away) / jnp.maximum(size, 1), 0.0)
    return _compensated(away**2) - _compensated(away) ** 2 / jnp.maximum(size, 1)


def _away(items: Value, first: Value) -> Value:
    """Return what items differ from one of them, as floats; differences of integers do not wrap around."""
    if not _is_integers(items):
        return items.astype(float) - first.astype(float)
    unsigned = jax.dtypes.canonicalize_dtype(np.uint64)
    size = jnp.maximum(items, first).astype(unsigned) - jnp.minimum(items, first).astype(unsigned)
    return jnp.where(items < first, -1.0, 1.0) * size.astype(float)


def median_of(low: Callable[[int], int], high: Callable[[int], int]) -> Callable[[Value], Value]:
    """Return a function of the order: the mean of two places, or the number at one."""

    def run(data: Value) -> Value:
        if isinstance(data, LaneList):
            require(data.length > 0, "ValueError", "no median for empty data")
            ordered = sorted_(data)
            a, b = (ordered[jnp.clip(place(data.length), 0, data.length - 1)] for place in (low, high))
            return (a + b) / 2 if low(2) != high(2) else a
        items: Sequence[Value] = sorted_(numbers("statistics.median", data))
        if not items:
            raise ValueError("no median for empty data")
        a, b = items[low(len(items))], items[high(len(items))]
        return a if low(len(items)) == high(len(items)) else (a + b) / 2

    return run


def first_only(function: Callable[[Value], Value]) -> Callable[..., Value]:
    """Return a function of one sequence, which is gone over once."""

    def run(values: Value, *rest: Value, **options: Value) -> Value:
        return function(_kept(values), *rest, **options)

    return run


def _kept(values: Value) -> Value:
    """Return a sequence that may be gone over again; arrays and lists of the lane as they are."""
    if isinstance(values, LaneRange):
        return values.as_list()
    return values if isinstance(values, Tracer | np.ndarray | LaneList) else list(values)


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "prod": first_only(prod),
    "fsum": first_only(fsum),
    "sumprod": lambda p, q: sumprod(_kept(p), _kept(q)),
    "hypot": hypot,
    "dist": lambda p, q: dist(_kept(p), _kept(q)),
}
STATISTICS: dict[str, Callable[..., Value]] = {
    "mean": first_only(mean),
    "fmean": first_only(fmean),
    "pvariance": first_only(variance_of("pvariance", 0)),
    "variance": first_only(variance_of("variance", 1)),
    "pstdev": first_only(variance_of("pstdev", 0, root=True)),
    "stdev": first_only(variance_of("stdev", 1, root=True)),
    "median": first_only(median_of(lambda n: (n - 1) // 2, lambda n: n // 2)),
    "median_low": first_only(median_of(lambda n: (n - 1) // 2, lambda n: (n - 1) // 2)),
    "median_high": first_only(median_of(lambda n: n // 2, lambda n: n // 2)),
}
