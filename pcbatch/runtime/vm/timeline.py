"""Statistics of a run over time, in fixed memory: buckets of equally many trips, twice as many whenever all are full.

State keys: `timeline` uint32[BUCKETS, blocks, 3], the statistics of `layout.PER_BLOCK`; `crowd` uint32[BUCKETS, 2],
live lanes and all lanes, both summed over trips; `span` int32[], the trips in a bucket. The numbers of a trip are
counted from zero, and exact as long as a bucket's sum stays below 2**32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from pcbatch.runtime.vm import wide_counters
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.run_once import run_once

BUCKETS = 256
KEYS = ("timeline", "crowd", "span")


def empty(blocks: int, counts: int) -> Values:
    """Return the arrays before the first trip, by state key; `counts` is the number of statistics per block."""
    return {
        "timeline": jnp.zeros((BUCKETS, blocks, counts), jnp.uint32),
        "crowd": jnp.zeros((BUCKETS, 2), jnp.uint32),
        "span": jnp.ones((), jnp.int32),
    }


def recorded(
    trip: Callable[[Values], Values], carry: Values, trips: jax.Array, blocks: int, counted: Sequence[str]
) -> Values:
    """Return the state after one trip, with the trip recorded.

    Args:
        trip: Makes a trip of a state without the record.
        carry: The state.
        trips: int32[]: the trips before this one.
        blocks: The number of blocks.
        counted: The state keys of the statistics, which a trip adds to.
    """
    line = {key: carry[key] for key in KEYS}
    totals = {key: carry[key] for key in counted}
    rest = {key: value for key, value in carry.items() if key not in KEYS}
    live = jnp.sum(carry["pc"] < blocks, dtype=jnp.uint32)
    # The trip counts from zero: its own numbers fit in one word, and are added to the totals afterwards.
    after = trip({**rest, **{key: jnp.zeros_like(value) for key, value in totals.items()}})
    counts = jnp.stack([after[key][:, 0] for key in counted], axis=-1)
    crowd = jnp.stack([live, jnp.uint32(carry["pc"].shape[0])])
    added = {key: wide_counters.plus(totals[key], after[key]) for key in counted}
    return {**after, **added, **_added(line, trips, counts, crowd)}


def _added(line: Values, trips: jax.Array, counts: jax.Array, crowd: jax.Array) -> Values:
    full = trips >= BUCKETS * line["span"]
    line = run_once(full, _halved, line)
    bucket = trips // line["span"]
    return {
        "timeline": line["timeline"].at[bucket].add(counts),
        "crowd": line["crowd"].at[bucket].add(crowd),
        "span": line["span"],
    }


def _halved(line: Values) -> Values:
    """Merge neighbouring buckets, so that the second half is free again."""

    def pairs(x: jax.Array) -> jax.Array:
        sums = x.reshape(BUCKETS // 2, 2, *x.shape[1:]).sum(axis=1, dtype=x.dtype)
        return jnp.concatenate([sums, jnp.zeros_like(sums)])

    return {"timeline": pairs(line["timeline"]), "crowd": pairs(line["crowd"]), "span": 2 * line["span"]}
