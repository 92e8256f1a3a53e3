"""Iterators of `itertools` that may be kept, as generator functions of a text like the user's."""

from __future__ import annotations

import itertools
import linecache
from types import FunctionType
from typing import Any

FILE = "<iterators of itertools>"
TEXT = """
def count(start=0, step=1):
    number = start
    while True:
        yield number
        number += step


def cycle(iterable):
    seen = []
    for value in iterable:
        seen.append(value)
        yield value
    while seen:
        for value in seen:
            yield value
"""


def _functions() -> dict[str, FunctionType]:
    linecache.cache[FILE] = (len(TEXT), None, TEXT.splitlines(True), FILE)
    found: dict[str, Any] = {"__name__": "iterators of itertools"}
    exec(compile(TEXT, FILE, "exec", dont_inherit=True), found)
    return {name: value for name, value in found.items() if isinstance(value, FunctionType)}


WRITTEN = _functions()


def written_iterator(value: object) -> FunctionType | None:
    """Return the generator function that does what a class of `itertools` does; None for other objects."""
    return next((function for name, function in WRITTEN.items() if value is getattr(itertools, name)), None)
