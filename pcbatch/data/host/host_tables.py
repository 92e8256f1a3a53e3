"""Dicts and sets of all lanes, filled on the host as lanes fill theirs (`data/mappings/hash_table.py`)."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np

from pcbatch.data.capacity import rounded
from pcbatch.data.host.ragged import Kind, Ragged
from pcbatch.data.host.ragged_forms import in_tables
from pcbatch.data.mappings import key_hashes
from pcbatch.data.mappings import keys as lane_keys
from pcbatch.data.mappings.bucket_search import COLUMNS, FIRST, WIDTH, buckets_of
from pcbatch.data.mappings.hash_table import HashTable, buckets_for
from pcbatch.data.mappings.stamps import FREE

Places = tuple[np.ndarray, np.ndarray, np.ndarray]  # of each key: its table, bucket and column


def tables(keys: Any, values: Any, lengths: np.ndarray, kind: Kind) -> Ragged:
    """Return the dicts or sets of lanes.

    Args:
        keys: the columns of the keys of all of them, which come one after the other there, each once in its own.
        values: those of the values; None for sets.
        lengths: int32[lanes], the number of the keys of each.
        kind: "dict", "set" or "frozenset".
    """
    if not lengths.any():
        return Ragged(None, lengths, kind)
    keys, values = lane_keys.plain(in_tables(keys)), in_tables(values)
    capacity = rounded(int(lengths.max()))
    while (found := _places(keys, lengths, buckets_for(capacity))) is None:
        capacity *= 2
    shape = len(lengths), buckets_for(capacity), WIDTH

    def placed(column: Any) -> Any:
        out = np.zeros((*shape, *column.shape[1:]), column.dtype)
        out[found] = column
        return out

    stamps = np.full(shape, FREE, np.int32)
    stamps[found] = _numbered(lengths)
    keys, values = jax.tree.map(placed, (keys, values))
    return Ragged(HashTable(keys, values, stamps, lengths, lengths.copy(), capacity), lengths, kind)


def _numbered(lengths: np.ndarray) -> Any:
    """The number of each key in its own dict or set, int32."""
    return np.arange(lengths.sum(), dtype=np.int32) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def _places(keys: Any, lengths: np.ndarray, buckets: int) -> Places | None:
    """The places of keys in tables of so many buckets; None if both buckets of a key are full."""
    # Keys are counted in powers of two, for the program of XLA that hashes them is one for each number of them.
    more = rounded(len(owners := np.repeat(np.arange(len(lengths)), lengths))) - len(owners)
    roomy = jax.tree.map(lambda leaf: np.concatenate([leaf, np.zeros((more, *leaf.shape[1:]), leaf.dtype)]), keys)
    with jax.ensure_compile_time_eval():
        both = [np.asarray(x) for x in _buckets(lane_keys.parts(roomy)[0], buckets)]
    numbers, taken = _numbered(lengths), np.zeros((len(lengths), buckets, WIDTH), bool)
    bucket, column = np.empty((2, len(owners)), np.int64)
    for k in range(int(lengths.max())):
        here = np.flatnonzero(numbers == k)
        *homes, start = (np.broadcast_to(x, rounded(len(owners)))[here] for x in both)
        around = (start[:, None] + COLUMNS) & (WIDTH - 1)
        near = [
            np.argmin(held, 1) + WIDTH * held.all(1)
            for held in (taken[owners[here, None], home[:, None], around] for home in homes)
        ]
        other = (near[0] >= FIRST) & (near[1] < near[0])
        distance = np.where(other, near[1], near[0])
        if (distance >= WIDTH).any():
            return None
        bucket[here], column[here] = np.where(other, homes[1], homes[0]), (distance + start) & (WIDTH - 1)
        taken[owners[here], bucket[here], column[here]] = True
    return owners, bucket, column


@partial(jax.jit, static_argnums=1)
def _buckets(leaves: list[Any], buckets: int) -> tuple[Any, Any, Any]:
    return buckets_of(key_hashes.hashed(leaves), buckets)
