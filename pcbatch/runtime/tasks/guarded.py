"""Parts of a run that are made only sometimes, as loops that carry no more than what they write."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax import lax

from pcbatch.runtime.vm.block_body import Values

Body = Callable[[Values], Values]


def written(body: Body, s: Values) -> tuple[str, ...]:
    """Return the state keys that a function writes."""
    found: list[str] = []

    def probe(s: Values) -> int:
        out = body(s)
        found.extend(key for key in s if out[key] is not s[key])
        return 0

    jax.eval_shape(probe, s)
    return tuple(found)


def guarded(
    go: jax.Array,
    body: Body,
    s: Values,
    again: Callable[[Values], jax.Array] | None = None,
    keys: Sequence[str] | None = None,
) -> Values:
    """Return the state after a function that runs once if `go`, and then while `again`.

    It is a loop that carries what the function writes (`keys`, None: to be found out): XLA updates that in place, and
    copies nothing of the rest.
    """
    names = written(body, s) if keys is None else keys

    def step(c: tuple[jax.Array, Values]) -> tuple[jax.Array, Values]:
        out = body({**s, **c[1]})
        more = jnp.zeros((), bool) if again is None else again(out)
        return more, {key: out[key] for key in names}

    return {**s, **lax.while_loop(lambda c: c[0], step, (go, {key: s[key] for key in names}))[1]}
