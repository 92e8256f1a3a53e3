"""Errors of JAX that NumPy or the standard library swallowed while a primitive was traced.

    np.array_equal(x, y)      its code is    try: a, b = asarray(x), asarray(y)   except Exception: return False

JAX raises an error of its own wherever a traced value is asked for its number. While a primitive is traced, those that
are made on behalf of such a library are kept; if none of them comes out of the primitive, the first is raised again.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType, TracebackType
from typing import Any

import jax

ERRORS: tuple[type[Exception], ...] = (
    jax.errors.ConcretizationTypeError,
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerBoolConversionError,
    jax.errors.TracerIntegerConversionError,
)
JAX = frozenset({"jax", "jaxlib"})
LIBRARIES = sys.stdlib_module_names | {"numpy"}

_seen: ContextVar[list[tuple[Exception, TracebackType]] | None] = ContextVar("pcbatch_conversions", default=None)


@contextmanager
def noticed() -> Iterator[None]:
    """Raise, at the end, the first error of JAX that a library swallowed inside."""
    _look_at_errors()
    seen: list[tuple[Exception, TracebackType]] = []
    token = _seen.set(seen)
    failed: Exception | None = None
    try:
        yield
    except Exception as error:
        failed = error
    finally:
        _seen.reset(token)
    if seen and failed is not seen[0][0]:  # what fails afterwards may come of it
        first, place = seen[0]
        raise first.with_traceback(place) from None
    if failed is not None:
        raise failed


@functools.cache
def _look_at_errors() -> None:
    """Have the errors of JAX tell when they are made. (A profiling function would make tracing take twice as long.)"""
    for kind in ERRORS:
        setattr(kind, "__init__", _told(kind.__init__))  # noqa: B010


def _told(made: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(made)
    def init(self: Any, *args: Any, **options: Any) -> None:
        made(self, *args, **options)
        seen = _seen.get()
        if seen is not None and not seen and (place := _asked_by_a_library(sys._getframe(1))) is not None:
            seen.append((self, place))

    return init


def _asked_by_a_library(frame: FrameType | None) -> TracebackType | None:
    """The frames as a traceback, if NumPy or the standard library asked, and not on behalf of JAX."""
    frame = _outside(frame, JAX)
    caller = _outside(frame, LIBRARIES)
    if caller is frame or caller is None or _root(caller) in JAX:
        return None
    trace: TracebackType | None = None
    while frame is not None:
        trace = TracebackType(trace, frame, frame.f_lasti, frame.f_lineno)
        frame = frame.f_back
    return trace


def _outside(frame: FrameType | None, roots: frozenset[str]) -> FrameType | None:
    while frame is not None and _root(frame) in roots:
        frame = frame.f_back
    return frame


def _root(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
