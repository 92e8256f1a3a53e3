"""Evaluation of a jaxpr, traced for a tile of lanes, by operations that Pallas Triton lowers.

The door: `hoisted` and `check` before a kernel is built, `evaluate` inside of it, on arrays of `padded_shape`. Each
family of primitives has a module of rules; `RULES` is the table of all.
"""

from __future__ import annotations

from . import (
    arithmetic,
    control_flow,
    cumulative,
    elementwise,
    gamma_draws,
    indexing,
    products,
    random,
    reductions,
    reshapes,
    shape,
    sorting,
    special,
)
from .checking import check
from .evaluation import evaluate
from .hoisting import hoisted
from .padding import logical_shape, padded_shape
from .registry import RULES
from .unsupported import Unsupported

FAMILIES = (
    arithmetic,
    control_flow,
    cumulative,
    elementwise,
    gamma_draws,
    indexing,
    products,
    random,
    reductions,
    reshapes,
    shape,
    sorting,
    special,
)

__all__ = ["FAMILIES", "RULES", "Unsupported", "check", "evaluate", "hoisted", "logical_shape", "padded_shape"]
