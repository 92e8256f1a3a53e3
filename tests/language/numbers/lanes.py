"""A function of numbers on columns of examples: what lanes give and raise, next to plain Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.checks import LIMIT, NumberRules, collecting, using
from pcbatch.data.functions.users_code import substitute
from pcbatch.data.origins import Origin, note, noting

ERRORS = (ValueError, ArithmeticError)
Outcome = Any
"""What a function gives, or the name of the error that it raises."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One example: its arguments, what plain Python makes of them, and what the lane does."""

    args: tuple[Any, ...]
    plain: Outcome
    lane: Outcome


def outcomes(fn: Callable[..., Any], *columns: Any, rules: NumberRules = NumberRules()) -> list[Lane]:
    """Run a function of the support module, or what replaces a function of a library, for each row of the columns.

    The examples of plain Python are those that the arrays of JAX hold.
    """
    raised: list[str] = []
    run = substitute

    def one(*args: Any) -> Any:
        with using(rules), noting(), collecting() as checks:
            for arg in args:
                note(arg, Origin.NUMBER)
            result = run(fn)(*args)
        raised[:] = [check.exception for check in checks]
        return result, [check.failed for check in checks]

    arrays = [jnp.asarray(column) for column in columns]
    values, failed = jax.jit(jax.vmap(one))(*arrays)
    rows = zip(*(np.asarray(array).tolist() for array in arrays), strict=True)
    return [Lane(row, _plain(fn, row), _lane(values, failed, raised, k)) for k, row in enumerate(rows)]


def _plain(fn: Callable[..., Any], row: Sequence[Any]) -> Outcome:
    try:
        return fn(*row)
    except ERRORS as error:
        return type(error).__name__


def _lane(values: Any, failed: Any, raised: Sequence[str], k: int) -> Outcome:
    for name, column in zip(raised, failed, strict=True):
        if bool(column[k]):
            return name
    return jax.tree.map(lambda column: np.asarray(column)[k].item(), values)


def fits(value: Any) -> bool:
    """Whether a result of plain Python is no integer, or one that a lane holds."""
    info = np.iinfo(np.dtype(jnp.result_type(int)))
    return not isinstance(value, int) or int(info.min) <= value <= int(info.max)


def exact(lane: Lane) -> bool:
    """Whether a lane gives what Python gives, to the last bit; it stops for what it cannot hold."""
    if not fits(lane.plain):
        return bool(lane.lane == LIMIT)
    return type(lane.lane) is type(lane.plain) and bool(lane.lane == lane.plain)


def near(lane: Lane, rtol: float) -> bool:
    """Whether a lane gives what Python gives, or raises the same; it stops for what is too large for a float."""
    if isinstance(lane.plain, str) or isinstance(lane.lane, str):
        large = isinstance(lane.plain, float) and abs(lane.plain) > float(jnp.finfo(jnp.result_type(float)).max)
        whole = not fits(lane.plain)
        # In 32 bits it is not always known whether Python raises OverflowError or has a number.
        unknown = jnp.result_type(float) != np.float64 and lane.plain == "OverflowError"
        return bool(lane.lane == lane.plain) or ((large or whole or unknown) and lane.lane == LIMIT)
    found, want = (np.asarray(jax.tree.leaves(one), complex) for one in (lane.lane, lane.plain))
    return bool(np.allclose(found, want, rtol=rtol, atol=3e-6, equal_nan=True))
