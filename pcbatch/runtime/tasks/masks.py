"""Masks of the places of a visit, and what is computed with them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

I32 = jnp.int32
Mask = jax.Array | None  # None: all places that have popped a record


@dataclass
class Tally:
    """A number for each place of a visit, the sum of masks."""

    width: int
    every: int = 0  # masks that are all places
    masks: list[jax.Array] = field(default_factory=list)

    def add(self, mask: Mask) -> None:
        if mask is None:
            self.every += 1
        else:
            self.masks.append(mask)

    @property
    def some(self) -> bool:
        """Whether there is any mask."""
        return bool(self.every or self.masks)

    @property
    def always(self) -> bool:
        """Whether the number is above zero at every place."""
        return self.every > 0

    def total(self, ok: jax.Array) -> jax.Array:
        """Return the number at each place, int32[width]."""
        out = jnp.full(self.width, self.every, I32)
        for mask in self.masks:
            out = out + mask.astype(I32)
        return out


def wide(mask: jax.Array, value: Any) -> jax.Array:
    """Return a mask with an axis for each of a value's, to select whole values."""
    return mask.reshape(-1, *(1,) * (value.ndim - 1))


def select(mask: jax.Array, a: Any, b: Any) -> Any:
    """Return `a` at the places in the mask, and `b` at the others."""
    return a if a is b else jnp.where(wide(mask, a), a, b)


def either(a: Mask, b: Mask | bool) -> Mask:
    """Return the places that are in one of two masks."""
    if a is None or b is None:
        return None
    assert not isinstance(b, bool)
    return a | b
