"""The error about elements of a list of the lane that have no common type."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from pcbatch.containers.columns import one_level
from pcbatch.containers.container import Container
from pcbatch.diagnostics.lane_words import type_name
from pcbatch.errors import Refusal

ALIKE_HELP = "keep what differs in lists of their own, or in one tuple with a field for each kind"


class UnlikeError(Refusal):
    """Two elements of a list of the lane that have no common type."""

    def __init__(self, a: Any, b: Any) -> None:
        title = f"the elements of a list of the lane must be alike, not {describe(a)} and {describe(b)}"
        super().__init__("PCB304", title, helps=(ALIKE_HELP,))
        self.values = (a, b)


def describe(value: Any) -> str:
    """Return what a value is, in a few words."""
    if isinstance(value, Container):
        return f"a {getattr(value, 'python_name', 'list')}"
    children, tree = one_level(value)
    if value is None:
        return "None"
    if tree is None:
        return "a number" if jnp.shape(value) == () else f"an array of shape {jnp.shape(value)}"
    return f"a {type_name(value)} of {len(children)}"
