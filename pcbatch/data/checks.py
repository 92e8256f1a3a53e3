"""Checks that a primitive makes while it runs: a lane raises an exception of Python's where one does not hold.

    require(index < length, "IndexError", "list index out of range")

While a primitive is traced its checks are collected. They become further results of the primitive, and `flatten` ends
the block with a branch to a block that fails the lane. Until then the lane computes on, so what follows a check must
have some harmless value where it fails: an index is clamped, a divisor replaced.

The rules about numbers say which faults of arithmetic are checked: lanes compute with numbers of a fixed width, Python
with integers of any size, and JAX gives infinity or NaN where Python raises.
"""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import reduce

import jax
import numpy as np

from pcbatch.contexts import setting
from pcbatch.data.capacity import FullError, Room
from pcbatch.data.values import Flag, Index, Value

CAPACITY, CHARACTERS, RECORDS, LIMIT = "capacity", "characters", "records", "limit"
INNER, INNER_CHARACTERS, ENTRIES, INNER_ENTRIES = "inner", "inner_characters", "entries", "inner_entries"
TABLE = "table"
OF_ROOM = (CAPACITY, CHARACTERS, RECORDS, INNER, INNER_CHARACTERS, ENTRIES, INNER_ENTRIES)
NO_EXCEPTIONS = (*OF_ROOM, TABLE, LIMIT)
"""Names in place of an exception's, for what is no fault of the program: a container that is full, and a value that
Python has and a lane cannot hold. Neither is an exception of the program, so no `except` of it sees them."""


@dataclass(frozen=True, slots=True)
class PrimitiveCheck:
    """One check of a primitive.

    Attributes:
        failed: bool[], whether the lane raises.
        exception: the name of the exception, or one of `NO_EXCEPTIONS`.
        message: texts and scalars, in the order in which they are shown.
        argument: makes the argument of the exception where the message is no text that Python shows: a key, say.
    """

    failed: Value
    exception: str
    message: tuple[Value, ...]
    argument: Callable[[], Value] | None = None


_collected: ContextVar[list[PrimitiveCheck] | None] = ContextVar("pcbatch_checks", default=None)
_catching: ContextVar[bool] = ContextVar("pcbatch_catching", default=False)


@contextlib.contextmanager
def collecting() -> Iterator[list[PrimitiveCheck]]:
    """Collect the checks of one primitive within the context, in the order in which they are made."""
    checks: list[PrimitiveCheck] = []
    with setting(_collected, checks):
        yield checks


def catching() -> bool:
    """Return whether the exceptions of the primitive that is traced are caught."""
    return _catching.get()


def going_on(where: Flag = True) -> Value:
    """Return where the lane changes objects: where a condition holds, unless it has raised what a `try` catches.

    Whatever changes a container asks it, so that objects stay as they were at the moment of the raise. Lanes that raise
    elsewhere end, and what they change then is seen by nobody.
    """
    made = (_collected.get() or []) if _catching.get() else []
    failed = [check.failed for check in made if check.exception not in NO_EXCEPTIONS]
    return where if not failed else jax.numpy.logical_and(where, ~reduce(jax.numpy.logical_or, failed))


@contextlib.contextmanager
def making() -> Iterator[None]:
    """Make a new container within the context, or the same one with other storage: that changes no object."""
    with setting(_catching, False):
        yield


def require(holds: Flag, exception: str, *message: Value, argument: Callable[[], Value] | None = None) -> None:
    """Let the lane raise an exception where a condition does not hold.

    Args:
        holds: bool[], a value of the lane or known while compiling.
        exception: the name of a builtin exception.
        message: texts and scalars, shown one after the other.
        argument: makes the argument of the exception where the message is no text that Python shows: a key, say.

    Raises:
        Exception: the exception itself, if the condition is known not to hold; with no message of values of the lane.
    """
    if isinstance(holds, bool | np.bool_):
        if not holds:
            known = not any(isinstance(part, jax.core.Tracer) for part in message)
            raise getattr(builtins, exception)(*["".join(map(str, message))] * known)
        return
    record(holds, exception, message, argument)


def limit(holds: Flag, *message: Value) -> None:
    """Let the lane stop where a condition does not hold that Python does not ask for, such as a number in 32 bits.

    Args:
        holds: bool[], a value of the lane or known while compiling.
        message: texts and scalars, shown one after the other.

    Raises:
        OverflowError: if the condition is known not to hold, outside of primitives.
    """
    if not (isinstance(holds, bool | np.bool_) and holds):
        record(jax.numpy.asarray(holds), LIMIT, message)


def require_room(needed: Index, capacity: int, kind: str = CAPACITY, name: str = "") -> None:
    """Let the lane stop where a container has no room, so that the run is repeated with a larger capacity.

    Args:
        needed: int32[], the number of elements that must fit.
        capacity: the number that fits.
        kind: of the container: a list that is inside of others (`INNER`), a dict or set that is (`INNER_ENTRIES`) or is
            not (`ENTRIES`), or one of which that is not known (`TABLE`).
        name: of the class, of records.

    Raises:
        FullError: if the number is known to be too large, with which compiling starts again.
    """
    if not isinstance(needed, int):
        record(needed <= capacity, kind, (needed, name) if name else (needed,))
    elif needed > capacity:
        raise FullError(room_of(kind, needed, name))


def require_characters(needed: Index, room: int, kind: str = CHARACTERS) -> None:
    """Let the lane stop where a text has no room for `needed` characters, as `require_room` does for elements."""
    require_room(needed, room, kind)


def require_records(needed: Index, room: int, name: str) -> None:
    """Let the lane stop where the heap has no room for `needed` records of a class, as `require_room` does."""
    require_room(needed, room, RECORDS, name)


def room_of(kind: str | None, size: int, name: str = "") -> Room:
    """Return the room of so much of what a check of this kind is about; that of elements where it is not known.

    `name`: of the class, of records.
    """
    if kind == RECORDS and name:
        return Room(rows=((name, size),))
    sizes = [size if kind == each or (kind == TABLE and each in (ENTRIES, INNER_ENTRIES)) else 0 for each in OF_ROOM]
    return Room(*sizes) if any(sizes) else Room(elements=size)


def record(holds: Flag, exception: str, message: Sequence[Value], argument: Callable[[], Value] | None = None) -> None:
    """Collect a check whose condition is an array; without a context to collect in, a known one is made at once."""
    checks = _collected.get()
    if checks is not None:
        checks.append(PrimitiveCheck(jax.numpy.logical_not(holds), exception, tuple(message), argument))
    elif not isinstance(holds, jax.core.Tracer):
        errors = dict.fromkeys((*OF_ROOM, TABLE), "MemoryError") | {LIMIT: "OverflowError"}
        require(bool(holds), errors.get(exception, exception), *message)


def pass_on(check: PrimitiveCheck) -> None:
    """Add a check that an inner context has collected to those of this context."""
    checks = _collected.get()
    if checks is not None:
        checks.append(check)


@contextlib.contextmanager
def only_where(reached: Callable[[], Flag]) -> Iterator[None]:
    """Let the checks within the context count only where a condition holds, which is asked if there are any."""
    with collecting() as made:
        yield
    for check in made:
        holds = jax.numpy.logical_not(jax.numpy.logical_and(check.failed, reached()))
        record(holds, check.exception, check.message, check.argument)


@dataclass(frozen=True, slots=True)
class NumberRules:
    """The rules that are in force while a primitive is traced.

    Attributes:
        overflow: "fail" where an integer of Python leaves the range of its dtype, or "wrap".
        math_errors: "raise" where a function of `math` raises, or "nan" for what JAX gives there.
        division: whether a division of Python's numbers by zero raises.
    """

    overflow: str = "fail"
    math_errors: str = "raise"
    division: bool = False


_PLAIN = NumberRules()
_rules: ContextVar[NumberRules] = ContextVar("pcbatch_number_rules", default=_PLAIN)


def rules() -> NumberRules:
    """Return the rules in force."""
    return _rules.get()


def using(new: NumberRules) -> AbstractContextManager[None]:
    """Put rules into force within the context."""
    return setting(_rules, new)


@contextlib.contextmanager
def attempting() -> Iterator[list[PrimitiveCheck]]:
    """Collect the checks of a primitive in the body of a `try`; divisions of Python's numbers by zero raise there."""
    with setting(_catching, True), collecting() as made, using(replace(rules(), division=True)):
        yield made
