"""The error about elements of a list of the lane that have no common type."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from pcbatch.containers.columns import one_level
from pcbatch.containers.container import Container
from pcbatch.diagnostics.lane_words import type_name
from pcbatch.errors import Refusal

ALIKE_HELP = "keep what differs in lists of their own, or in one tuple with a field for each kind"
_SAME_KEYS = (
    "give all these dicts the same keys, or keep pairs in place of each dict: a list `[(key, value), ...]`, and "
    "`for key, value in pairs` in place of `.items()`"
)
_PATHS = (
    "for dicts in dicts keep one dict whose keys are whole paths: `table[path]` with `path = path + (key,)`, of texts "
    "`path + key`, in place of `node = node[key]`; keep what a node holds beside other nodes in a dict of its own"
)
_SPECIAL = {  # by what is unlike
    frozenset({"dict"}): _SAME_KEYS,
    frozenset({"list", "tuple"}): "make all of them lists: `[]` in place of `()`, `[a, b]` in place of `(a, b)`",
    frozenset({"str", "number"}): f"write numbers as texts, `str(n)`, and read them by `int(text)`; or {ALIKE_HELP}",
}


class UnlikeError(Refusal):
    """Two elements of a list of the lane that have no common type."""

    def __init__(self, a: Any, b: Any) -> None:
        title = f"the elements of a list of the lane must be alike, not {describe(a)} and {describe(b)}"
        kinds = frozenset(describe(value).split()[:2][-1] for value in (a, b))
        special = _SPECIAL.get(kinds, _PATHS if "dict" in kinds and kinds & {"str", "number", "list"} else None)
        super().__init__("PCB304", title, helps=(special,) if special else (ALIKE_HELP,))
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
