"""Evaluation of a jaxpr, traced for a tile of lanes, by operations that Pallas Triton lowers.

The door: `hoisted` and `check` before a kernel is built, `evaluate` inside of it, on arrays of `padded_shape`. Each
family of primitives has a module of rules; `RULES` is the table of all.
"""

from __future__ import annotations

from importlib import import_module

from pcbatch.runtime.kernel.rules.evaluation import evaluate
from pcbatch.runtime.kernel.rules.hoisting import check, hoisted
from pcbatch.runtime.kernel.rules.padding import logical_shape, padded_shape
from pcbatch.runtime.kernel.rules.registry import RULES, Unsupported

FAMILIES = tuple(
    import_module(f"{__name__}.{name}")
    for name in (
        "arithmetic control_flow elementwise indexing random reductions reshapes shape sorting special"
    ).split()
)

__all__ = ["FAMILIES", "RULES", "Unsupported", "check", "evaluate", "hoisted", "logical_shape", "padded_shape"]
