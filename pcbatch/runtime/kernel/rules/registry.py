"""The table of rules: how each primitive is computed on padded values; and the refusal of one that is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.extend import source_info_util

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


class Unsupported(Exception):
    """An equation has no form that the kernel can hold: the program needs another emitter.

    Args:
        reason: why, as a clause: "complex numbers", "a one-hot selection of 65536 x 32 elements".
        primitive: the name of the primitive; empty until `of` fills it in.
        source: where the user's code made the equation, "file:line:column (function)"; empty where JAX does not say.

    Example:
        >>> str(Unsupported("it factorises a matrix", "cholesky"))
        '`cholesky` has no form in a kernel: it factorises a matrix'
    """

    def __init__(self, reason: str, primitive: str = "", source: str = "") -> None:
        super().__init__(reason, primitive, source)
        self.reason, self.primitive, self.source = reason, primitive, source

    def __str__(self) -> str:
        place = f" ({self.source})" if self.source else ""
        return f"`{self.primitive}` has no form in a kernel: {self.reason}{place}"

    def of(self, eqn: Any) -> Unsupported:
        """Name the equation where none inside of it is named, and the line of the innermost that has one."""
        return Unsupported(self.reason, self.primitive or eqn.primitive.name, self.source or where(eqn))


def where(eqn: Any) -> str:
    """Return where the user's code made an equation, empty if JAX does not say."""
    try:
        return str(source_info_util.summarize(eqn.source_info))
    except Exception:  # an aid to messages alone: no change of JAX there may turn a refusal into a failure
        return ""
