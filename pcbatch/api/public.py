"""The decorator of public methods: pcbatch's own errors leave them without the frames of this package."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from pcbatch.errors import PcbatchError

P = ParamSpec("P")
T = TypeVar("T")


def public(method: Callable[P, T]) -> Callable[P, T]:
    """Strip the traceback of a `PcbatchError`, which names the user's lines itself. Other errors pass unchanged."""

    @functools.wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        __tracebackhide__ = True  # pytest and IPython leave this frame out
        try:
            return method(*args, **kwargs)
        except PcbatchError as error:
            raise error.with_traceback(None) from None

    return call
