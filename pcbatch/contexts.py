"""Context variables that have a value within a `with` statement."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

plainly: ContextVar[bool] = ContextVar("pcbatch_plainly", default=False)  # whether batched functions run as plain ones


@contextlib.contextmanager
def setting(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Let a context variable have a value within the context, and the one from before after it."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
