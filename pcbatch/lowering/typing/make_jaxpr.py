"""Jaxprs of functions whose errors leave JAX as they are.

Where an error passes the border of JAX, JAX looks at the file of every frame to hide its own, which takes several
milliseconds. Most errors of primitives are only read, for the decision how to compile, and `user_frames` leaves out the
frames of JAX by itself. So the error is carried over the border as a value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend.core as jex


def make_jaxpr(fn: Callable[..., list[Any]], avals: Sequence[Any]) -> jex.ClosedJaxpr:
    """Return the jaxpr of a function of arrays that gives a list of arrays; raises the error of the function."""
    errors: list[Exception] = []

    def run(*arrays: Any) -> list[Any]:
        try:
            return fn(*arrays)
        except Exception as error:
            if getattr(jax.config, "jax_check_tracer_leaks", False):  # a traceback holds tracers, which JAX would find
                raise
            errors.append(error)
            return []

    closed = jax.make_jaxpr(run)(*avals)
    if errors:
        raise errors[0]
    return closed
