"""`jax_debug_nans` and `jax_debug_infs` for a batch: an error for what a lane returned, and for nothing else.

JAX looks at all that leaves a compiled program. Here that includes NaN which no lane computed: what stands for the
result of a lane that failed or waits for more stack, values made once for all lanes though no lane came to need them.
So its own check is off while lanes run, and the results of the lanes that ended well are looked at afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.runtime.status import Status

CHECKS: dict[str, tuple[str, Callable[..., Any]]] = {
    "jax_debug_nans": ("nan", jnp.isnan),
    "jax_debug_infs": ("inf", jnp.isinf),
}


@contextmanager
def unchecked() -> Iterator[None]:
    """JAX's own checks are off inside."""
    with jax.debug_nans(False), jax.debug_infs(False):
        yield


def check(name: str, values: Sequence[Any], status: Any) -> None:
    """Raise FloatingPointError if a lane that ended well returned what the configuration forbids; not in a trace."""
    wanted = [CHECKS[option] for option in CHECKS if getattr(jax.config, option)]
    if not wanted or isinstance(status, jax.core.Tracer):
        return
    well = np.asarray(status) == int(Status.OK)
    with unchecked():
        for kind, test in wanted:
            for value in values:
                if jnp.issubdtype(value.dtype, jnp.inexact):
                    found = np.asarray(test(value)).reshape(len(well), -1).any(axis=1) & well
                    if found.any():
                        raise FloatingPointError(f"lane {int(np.argmax(found))} of `{name}` returned {kind}")
