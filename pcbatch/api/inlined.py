"""Helpers that the compiler copies into the batched functions that call them."""

from __future__ import annotations

import functools
from types import FunctionType
from typing import Any


class Inline:
    """A function that the compiler copies into the batched functions that call it. Made by `pcbatch.inline`."""

    def __init__(self, fn: FunctionType) -> None:
        functools.update_wrapper(self, fn)
        self.fn = fn

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Bind the function to an object, as a method."""
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<pcbatch.Inline {self.fn.__qualname__}>"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the function, which stays plain Python."""
        return self.fn(*args, **kwargs)
