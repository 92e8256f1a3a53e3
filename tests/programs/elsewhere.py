"""Helpers that another module than their callers' defines, none of them decorated."""

from __future__ import annotations

from typing import Any


def half(x: Any) -> Any:
    """Half of a positive number."""
    if x > 0:
        return 0.5 * x
    return x


def factorial(n: Any) -> Any:
    """n!"""
    if n < 1:
        return 1
    return n * factorial(n - 1)
