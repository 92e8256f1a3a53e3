"""The table of rules: how each primitive is computed on padded values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

Rule = Callable[..., Sequence[jax.Array]]

# Primitive -> function of (equation, padded operands) that returns the padded results. A rule may use only what Pallas
# Triton lowers WITH THE MEANING that XLA gives it: where the two differ (a maximum of NaN, minus zero, a division by
# zero, a shift too far) the rule says it in operations where they agree.
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Enter a function as the rule of primitives; each may have one only."""

    def enter(fn: Rule) -> Rule:
        for name in names:
            assert name not in RULES, name
            RULES[name] = fn
        return fn

    return enter


def is_key(aval: Any) -> bool:
    """Return whether a value is an array of random keys."""
    return bool(jax.numpy.issubdtype(aval.dtype, jax.dtypes.prng_key))
