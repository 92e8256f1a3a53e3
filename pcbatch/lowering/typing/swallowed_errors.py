"""Detection of errors of JAX that NumPy or the standard library swallows while a primitive is traced.

    np.array_equal(x, y)      its code is    try: a, b = asarray(x), asarray(y)   except Exception: return False

The example above would give False for every lane. JAX raises an error of its own wherever a traced value is asked for
its number. While a primitive is traced, the first such error that is made on behalf of a library is recorded; if it
does not come out of the primitive by itself, it is raised at the end.
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
    """Raise, at the end of the block, the first error of JAX that a library swallowed inside.

    An error that leaves the block gives way to it, because it may be a consequence.
    """
    _patch_errors()
    seen: list[tuple[Exception, TracebackType]] = []
    token = _seen.set(seen)  # other threads trace with a list of their own
    failed: Exception | None = None
    try:
        yield
    except Exception as error:
        failed = error
    finally:
        _seen.reset(token)
    if seen and failed is not seen[0][0]:
        first, traceback = seen[0]
        raise first.with_traceback(traceback) from None
    if failed is not None:
        raise failed


@functools.cache
def _patch_errors() -> None:
    """Patch the error classes of JAX, once, to report when one is made.

    A profiling function would see as much without a patch, but makes tracing take twice as long.
    """
    for kind in ERRORS:
        setattr(kind, "__init__", _reporting(kind.__init__))  # noqa: B010


def _reporting(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def init(self: Any, *args: Any, **options: Any) -> None:
        original(self, *args, **options)
        seen = _seen.get()
        if seen is not None and not seen and (traceback := _library_traceback(sys._getframe(1))) is not None:
            seen.append((self, traceback))

    return init


def _library_traceback(frame: FrameType | None) -> TracebackType | None:
    """The traceback of an error made at `frame`, if NumPy or the standard library asked for the value; None if the
    user's code did, or JAX itself through such a library."""
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
    """The innermost frame from here outwards that belongs to none of these packages."""
    while frame is not None and _root(frame) in roots:
        frame = frame.f_back
    return frame


def _root(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
