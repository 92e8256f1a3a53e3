"""The stamps of the places of a hash table, which give the order of its entries.

A place that is in use has the number of insertions before it; one that is free, a negative number.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from pcbatch.data.values import Column, Flag, Index, Value

FREE = -1  # the stamp of a place that was never in use: behind it in its bucket no other one was
HOLE = -(2**31)  # the stamp of a place that is free again, where no order depends on it
LAST = 2**31 - 1


def ranks(stamps: Column, has_gaps: Flag) -> Value:
    """Return the stamps, int32[places], of which those of entries are 0, 1, 2, ...; without gaps they are the order."""
    stamps = stamps.reshape(-1)

    def sort(state: tuple[Value, Value]) -> tuple[Value, Value]:
        places = jnp.argsort(jnp.where(state[0] < 0, LAST, state[0]))
        ranks = jnp.zeros_like(places).at[places].set(jnp.arange(places.size, dtype=places.dtype))
        return jnp.where(state[0] < 0, -1, ranks.astype(jnp.int32)), jnp.bool_(False)

    # Without gaps the stamps are the order. A loop that is made once or not at all, because a conditional would
    # sort for all lanes, whether one of them needs it or not.
    return jax.lax.while_loop(lambda state: state[1], sort, (stamps, has_gaps))[0]


def by_stamp(stamps: Column) -> Value:
    """Return the places in the order of their stamps 0, 1, 2, ..., int32[places], and then the first one."""
    places = jnp.arange(stamps.size, dtype=jnp.int32)
    return jnp.zeros_like(places).at[jnp.where(stamps < 0, LAST, stamps)].set(places, mode="drop")


def last_stamp_again(
    stamps: Column, clock: Value, stamp: Index, gone: Value, count: Index = None
) -> tuple[Value, Value]:
    """Return stamps and clock after an entry of so many is gone.

    The order of the others stays if the last stamp is given again: so programs that take back what they stored last
    never leave a gap, and their entries need no sorting.
    """
    return stamps, jnp.where(gone & (stamp == clock - 1), stamp, clock)


def stamps_without_gap(stamps: Column, clock: Value, stamp: Index, gone: Value, count: Index) -> tuple[Value, Value]:
    """Return stamps and clock after an entry of so many is gone, where those behind it move up: none needs sorting.

    A clock that is ahead is that of a table that a loop goes over, and never has the same value again.
    """
    later = gone & (stamps > stamp)
    return stamps - later.astype(jnp.int32), clock - (gone & (clock == count)).astype(jnp.int32)
