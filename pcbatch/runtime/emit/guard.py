"""`guard`: a block is a while loop that runs 0 or 1 times.

XLA must update a while loop's carry in place, but copies what goes through a conditional. So the loop carries what
the block writes and closes over what it reads: a block that is not taken costs one test, and no stack is ever copied.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from pcbatch.runtime.code import BlockCode, Values
from pcbatch.runtime.emit.base import step, wanted, written
from pcbatch.runtime.layout import Layout
from pcbatch.runtime.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Guard:
    """Guarded blocks."""

    name: str = "guard"

    def trip(self, layout: Layout, schedule: Schedule, carry: Values, shared: Values) -> Values:
        following = schedule.choose(carry["pc"], layout.exit)
        for code in layout.codes:
            go = wanted(carry, code) if following is None else following == code.index
            carry = guarded(layout, code, carry, shared, go)
        return carry


def guarded(layout: Layout, code: BlockCode, carry: Values, shared: Values, go: jax.Array) -> Values:
    """The state after running the block if `go`."""
    names = written(layout, code)
    rest = {k: v for k, v in carry.items() if k not in names}

    # `c[0]` is true here, except under `vmap`, where bodies also run for those whose loop has ended.
    def body(c: tuple[jax.Array, Values]) -> tuple[jax.Array, Values]:
        return jnp.zeros((), bool), step(layout, code, {**rest, **c[1]}, shared, c[0])

    _, new = jax.lax.while_loop(lambda c: c[0], body, (go, {k: carry[k] for k in names}))
    return {**rest, **new}


def visited(layout: Layout, code: BlockCode, carry: Values, shared: Values) -> Values:
    """What a visit to the block writes, without a test where the block may run with no lane waiting for it."""
    # Inner loops end only on values of lanes that are here; a callback for nobody would be a waste.
    if code.risky or code.prints:
        return guarded(layout, code, carry, shared, wanted(carry, code))
    return step(layout, code, carry, shared)
