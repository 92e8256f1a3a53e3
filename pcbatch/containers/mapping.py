"""A function applied to each element of a list of the lane, with its checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.containers.by_width import by_width
from pcbatch.containers.checks import Check, collecting, record
from pcbatch.containers.columns import with_row
from pcbatch.containers.elements import element_at, prepare


def mapped(fn: Callable[[Any], Any], values: Any) -> Any:
    """Return the columns of the results of a function of one element; places behind the end hold anything."""
    found: list[Check] = []

    def run(place: Any) -> Any:
        with collecting() as checks:
            result = jax.tree.map(jnp.asarray, prepare(fn(element_at(values, place))))
        found[:] = checks
        shown = [[part for part in check.message if not isinstance(part, str)] for check in checks]
        return result, [check.failed for check in checks], shown

    places = jnp.arange(values.capacity, dtype=np.int32)

    def alone(n: Any) -> Any:
        types = jax.eval_shape(run, jnp.int32(0))
        empty = jax.tree.map(lambda x: jnp.zeros((values.capacity, *x.shape), x.dtype), types)
        return jax.lax.fori_loop(0, n, lambda k, out: with_row(out, k, run(k)), empty)

    has_keys = any(jnp.issubdtype(x.dtype, jax.dtypes.prng_key) for x in jax.tree.leaves(values.columns))
    form = None if has_keys or not values.capacity else alone
    result, failed, shown = by_width(lambda n: jax.vmap(run)(places), form)(values.length)
    for check, failing, parts in zip(list(found), failed, shown, strict=True):
        failing = jnp.logical_and(failing, places < values.length)
        first = jnp.argmax(failing)
        scalars = iter(part[first] for part in parts)
        message = [part if isinstance(part, str) else next(scalars) for part in check.message]
        record(jnp.logical_not(jnp.any(failing)), check.exception, message)
    return result
