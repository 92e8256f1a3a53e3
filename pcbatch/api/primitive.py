"""`pcbatch.primitive`: functions whose calls always stay one operation."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from pcbatch.call.usage import usage
from pcbatch.frontend.source.along import keep_primitive

F = TypeVar("F", bound=Callable[..., Any])


def primitive(fn: F) -> F:
    """Keep calls of `fn` in batched functions one operation, which JAX traces for one example.

    A function without a decorator is traced where that works, and compiled along, as if it were decorated with
    `pcbatch.batch`, where it branches on values of the lane or calls itself. Under this decorator it is never compiled:
    what tracing cannot do is an error.

    Args:
        fn: a plain Python function, or a `staticmethod` of one.

    Returns:
        The function itself.

    Raises:
        UsageError: something that is not a Python function.

    Example:
        >>> import jax.numpy as jnp, pcbatch
        >>> @pcbatch.primitive
        ... def norm(x):
        ...     return jnp.sqrt(jnp.sum(x * x))
        >>> @pcbatch.batch
        ... def f(x):
        ...     return x / norm(x) if norm(x) > 1 else x
        >>> f(jnp.array([[3.0, 4.0]])).tolist()
        [[0.6000000238418579, 0.800000011920929]]
    """
    inner = fn.__func__ if isinstance(fn, staticmethod) else fn
    if not isinstance(inner, FunctionType):
        title = f"pcbatch.primitive needs a Python function, not {type(inner).__name__}"
        raise usage("PCB409", title, help="decorate a `def`, which may call it")
    keep_primitive(inner)
    return fn
