"""The search of a hash table: lanes together, a lane alone, and the host find and choose the same places."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcbatch.data.host import host_tables
from pcbatch.data.mappings import key_hashes
from pcbatch.data.mappings.bucket_search import WIDTH, buckets_of, in_second, places_alone, places_together
from pcbatch.data.mappings.stamps import FREE, HOLE

KEYS = 64  # different keys, which is more than any table of the tests has room for


def _homes(buckets: int) -> tuple[np.ndarray, ...]:
    return tuple(
        np.broadcast_to(np.asarray(x), KEYS)
        for x in buckets_of(key_hashes.hashed([jnp.arange(KEYS, dtype=jnp.int32)]), buckets)
    )


def _decisions(search: Any, buckets: int) -> Any:
    def decided(stamps: jax.Array, column: jax.Array, key: jax.Array, homes: jax.Array, start: jax.Array) -> Any:
        places = search(stamps, [column], [key], [], (homes[0], homes[1]), start, ())
        other = in_second(places)
        distance = jnp.where(other, places[1], places[0])
        return (
            jnp.where(other, homes[1], homes[0]),
            (distance + start) & (WIDTH - 1),
            distance < WIDTH,
            distance // WIDTH,
        )

    return jax.jit(jax.vmap(decided, (None, None, 0, 0, 0)))


@pytest.mark.parametrize("buckets", [1, 2, 4])
@pytest.mark.parametrize("removals", [0.0, 0.3, 0.6])
def test_lanes_together_and_alone_decide_alike(buckets: int, removals: float) -> None:
    """After each of many insertions and removals, every key is found, or would be stored, at one place."""
    *homes, start = _homes(buckets)
    arguments = jnp.arange(KEYS, dtype=jnp.int32), jnp.stack(homes, 1), jnp.asarray(start)
    together, alone = _decisions(places_together, buckets), _decisions(places_alone, buckets)
    random = np.random.default_rng(buckets)
    stamps = np.full((buckets, WIDTH), FREE, np.int32)
    column = np.zeros((buckets, WIDTH), np.int32)
    where: dict[int, tuple[int, int]] = {}
    refused = 0
    for step in range(150):
        bucket, place, present, kind = (np.asarray(x) for x in together(stamps, column, *arguments))
        for one, other in zip((bucket, place, present, kind), alone(stamps, column, *arguments), strict=True):
            np.testing.assert_array_equal(np.where(kind < 2, one, 0), np.where(kind < 2, other, 0))
        assert {k: (int(bucket[k]), int(place[k])) for k in np.flatnonzero(present)} == where
        key = int(random.integers(KEYS))
        if where and random.random() < removals:
            stamps[where.pop(list(where)[key % len(where)])] = HOLE if key % 2 else -2 - step
        elif kind[key] == 2:
            refused += 1
        elif not present[key]:
            where[key] = int(bucket[key]), int(place[key])
            stamps[where[key]], column[where[key]] = step, key
    assert refused or removals


@pytest.mark.parametrize("buckets", [2, 8])
def test_the_host_places_keys_where_lanes_would(buckets: int) -> None:
    keys = np.random.default_rng(0).permutation(KEYS)[: 5 * buckets].astype(np.int32)
    found = host_tables._places(keys, np.array([len(keys)]), buckets)
    *homes, start = _homes(buckets)
    together = _decisions(places_together, buckets)
    stamps = np.full((buckets, WIDTH), FREE, np.int32)
    column = np.zeros((buckets, WIDTH), np.int32)
    places = []
    for stamp, key in enumerate(keys):
        bucket, place, present, kind = (
            int(x[0])
            for x in together(
                stamps, column, jnp.array([key]), jnp.stack(homes, 1)[key][None], jnp.array(start)[key][None]
            )
        )
        assert (present, kind) == (0, 1)
        stamps[bucket, place], column[bucket, place] = stamp, key
        places.append((bucket, place))
    assert found is not None
    assert list(zip(found[1].tolist(), found[2].tolist(), strict=True)) == places
