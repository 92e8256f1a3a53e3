"""How a batched function is given more inputs than lanes, in one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def streams(f: Any) -> bool:
    """Can `f` stream inputs through a fixed number of lanes?"""
    return hasattr(f, "map")


def ours(f: Any, lanes: int | None = None) -> Callable[..., Any]:
    """`f` over any number of inputs: by `f.map` if there is one, else a lane for each input."""
    if not streams(f):
        return f
    return lambda *xs: f.map(*xs, lanes=lanes).value
