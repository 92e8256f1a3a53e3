"""The settings of JAX that decide what a function becomes when it is traced, a part of the key of every cache."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import jax
import jax.extend.core

SETTINGS = (
    "jax_enable_x64",
    "jax_explicit_x64_dtypes",
    "jax_numpy_dtype_promotion",
    "jax_numpy_rank_promotion",
    "jax_default_matmul_precision",
    "jax_default_prng_impl",
    "jax_enable_custom_prng",
    "jax_threefry_partitionable",
)
_settings: Any = attrgetter(*SETTINGS)
_state: Any = getattr(jax.extend.core, "get_opaque_trace_state", None)  # not in all releases of JAX


def settings() -> tuple[Any, ...]:
    """Return the values of the settings that a traced program depends on, besides types."""
    try:
        found: tuple[Any, ...] = _settings(jax.config)  # sooner than one by one: every call asks
        return found
    except AttributeError:
        return tuple(getattr(jax.config, name, None) for name in SETTINGS)


def trace_state() -> Any:
    """Return a value that is equal where JAX traces the same computation; None in releases that do not tell."""
    return None if _state is None else _state(convention="nnx")
