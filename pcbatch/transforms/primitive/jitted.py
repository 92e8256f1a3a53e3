"""An operation as a compiled function of JAX, made once."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import jax

if TYPE_CHECKING:
    from pcbatch.transforms.primitive.operation import Operation


@lru_cache(maxsize=512)
def jitted(operation: Operation, options: tuple[tuple[str, Any], ...] | None = None) -> Any:
    """The operation as a function of JAX, which keeps what it has traced: machines are traced once per type."""
    chosen = None if options is None else dict(options)
    return jax.jit(lambda *args: list(operation.lower(*args)), compiler_options=chosen)
