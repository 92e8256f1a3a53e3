"""The functions of libraries that are replaced for numbers of a lane, and what replaces them.

For values that are known while compiling the library's own function runs, so results and errors are Python's.
"""

from __future__ import annotations

import bisect
import cmath
import decimal
import fractions
import functools
import math
import statistics
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import jax
import jax.extend.source_info_util
import numpy as np

from pcbatch.data.functions import heaps
from pcbatch.data.functions.math_functions import arguments, complexes, integers, reals, several_numbers
from pcbatch.data.optional import unwrapped
from pcbatch.data.origins import Origin, Tracer, is_noted, number, of_lane, source_of
from pcbatch.data.values import Num, Value
from pcbatch.errors import Refusal

Function = Callable[..., Value]

for module in (arguments, complexes, integers, reals, several_numbers):
    jax.extend.source_info_util.register_exclusion(str(module.__file__))
jax.extend.source_info_util.register_exclusion(__file__)

INTEGERS = {
    f.__name__: f
    for f in (integers.isqrt, integers.gcd, integers.lcm, integers.factorial, integers.comb, integers.perm)
}
MODULES: tuple[tuple[ModuleType, Mapping[str, Function]], ...] = (
    (math, {**reals.FUNCTIONS, **several_numbers.FUNCTIONS, **INTEGERS}),
    (cmath, complexes.FUNCTIONS),
    (statistics, several_numbers.STATISTICS),
    (bisect, heaps.SEARCHES),
)


def replacement(fn: Any) -> Function | None:
    """Return what replaces a function of `math`, `cmath`, `statistics` or `bisect` while a primitive is traced."""
    if fn is fractions.Fraction or fn is decimal.Decimal:
        return _refusing(fn)
    name = getattr(fn, "__name__", None)
    if not isinstance(name, str):
        return None
    for module, functions in MODULES:
        if name in functions and getattr(module, name, None) is fn:
            return _of_lanes(fn, functions[name])
    return None


def _refusing(cls: Any) -> Function:
    """Return a constructor that refuses values of a lane."""

    def make(*args: Value, **options: Value) -> Value:
        if of_lane((args, options)):
            title = f"`{cls.__name__}` keeps integers without bound, and those of a lane have a fixed width"
            help = "keep a numerator and a denominator, divided by their `math.gcd`"
            if cls is decimal.Decimal:
                help = "count in the smallest unit, an integer such as cents, or compute with floats"
            raise Refusal("PCB304", title, helps=(help,))
        return cls(*args, **options)

    return make


@functools.cache
def _of_lanes(plain: Function, traced: Function) -> Function:
    """Return a function that is `traced` for values of a lane, and `plain` for all others."""

    @functools.wraps(plain)
    def run(*args: Value, **options: Value) -> Num:
        args = tuple(list(arg) if hasattr(arg, "__next__") else unwrapped(arg) for arg in args)
        if not of_lane((args, options)):
            return plain(*args, **options)
        sources = jax.tree.leaves((args, options))
        with jax.numpy_dtype_promotion("standard"):
            result = traced(*args, **options)
        return jax.tree.map(lambda leaf: _as_number(leaf, sources), result)

    return run


def _as_number(value: Num, sources: list[Num]) -> Num:
    """Record a result as a number of Python, which all these functions give, unless it is one of unknown type."""
    if isinstance(value, Tracer):
        unknown = is_noted(value) and not any(value is source for source in sources)
        return value if unknown and source_of(value) is Origin.UNKNOWN else number(value, *sources)
    return value.item() if isinstance(value, jax.Array | np.ndarray | np.generic) else value
