"""Lists of records: an array for each column, the newest record last. Visits pop and push slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from pcbatch.runtime.tasks.task_plan import ListBlock
from pcbatch.runtime.vm.block_body import Values

I32 = jnp.int32
MOST_PARTS = 16  # of masks in one loop: one that touches a kilobyte in a round is no function of XLA's any more


def column(label: str, name: str) -> str:
    """Return the state key of a column of a list."""
    return f"list:{label}:{name}"


def count(label: str) -> str:
    """Return the state key of the number of records of a list."""
    return f"count:{label}"


@dataclass(frozen=True, slots=True)
class Entry:
    """Records to be pushed, one for each place of a visit that is in the mask; None: for all that it has popped."""

    mask: jax.Array | None
    columns: Mapping[str, Any]


def pop(s: Values, block: ListBlock, k: jax.Array, width: int) -> Values:
    """Take the newest k records off a list: columns [width, ...], of which the first k are records."""
    label = block.label
    s[count(label)] = s[count(label)] - k
    return {name: lax.dynamic_slice_in_dim(s[column(label, name)], s[count(label)], width) for name in block.columns}


def push(s: Values, pushed: Sequence[tuple[ListBlock, Sequence[Entry]]], k: jax.Array, ok: jax.Array) -> None:
    """Put records on lists: place by place, and of one place the entries in their order, the last on top.

    Args:
        s: The state, which is changed.
        pushed: The records, by list.
        k: int32[]: the places that have popped a record, those in front.
        ok: bool[width]: the same as a mask.
    """
    sparse = [entries for _, entries in pushed if not all(entry.mask is None for entry in entries)]
    found = iter(compacted_each([[ok if e.mask is None else e.mask for e in entries] for entries in sparse], k))
    for block, entries in pushed:
        dense = all(entry.mask is None for entry in entries)
        source, n = (None, k * len(entries)) if dense else next(found)
        for name in block.columns:
            key = column(block.label, name)
            values = [entry.columns[name].astype(s[key].dtype) for entry in entries]
            new = _picked([entry.columns[name] for entry in entries], values, source)
            s[key] = lax.dynamic_update_slice_in_dim(s[key], new, s[count(block.label)], 0)
        s[count(block.label)] = s[count(block.label)] + n


def _picked(given: Sequence[Any], values: Sequence[Any], source: jax.Array | None) -> Any:
    """The values of all entries, those of one place beside each other, and of these the ones at `source`."""
    several = len(values)
    if several == 1:
        return values[0] if source is None else _rows(values[0], source)
    if source is not None and all(x is given[0] for x in given):  # each place has one value for all its entries
        return _rows(values[0], source // several)
    stacked = jnp.stack(values, axis=1)
    stacked = stacked.reshape(-1, *stacked.shape[2:])
    return stacked if source is None else _rows(stacked, source)


def _rows(array: Any, source: jax.Array) -> Any:
    return array.at[source].get(mode="promise_in_bounds")


Found = tuple[jax.Array, jax.Array]


def compacted_each(masks: Sequence[Sequence[jax.Array]], most: jax.Array) -> list[Found]:
    """Return `compacted` of several masks, each of parts whose places lie beside each other.

    On a CPU one loop finds all of them: a visit of some dozen records is as long as it has kernels.
    """
    if len(masks) < 2 or sum(map(len, masks)) > MOST_PARTS:
        return [compacted(_beside(parts), most * len(parts)) for parts in masks]

    def one_by_one(masks: Sequence[Sequence[jax.Array]], most: jax.Array) -> list[Found]:
        def step(k: jax.Array, c: list[Found]) -> list[Found]:
            out = []
            for parts, (source, n) in zip(masks, c, strict=True):
                for j, mask in enumerate(parts):
                    source = source.at[n].set(k * len(parts) + j, mode="promise_in_bounds")
                    n = n + mask[k].astype(I32)
                out.append((source, n))
            return out

        start = [(jnp.zeros(len(parts) * parts[0].shape[0], I32), jnp.zeros((), I32)) for parts in masks]
        found: list[Found] = lax.fori_loop(jnp.zeros((), I32), most, step, start)
        return found

    def prefix_sums(masks: Sequence[Sequence[jax.Array]], most: jax.Array) -> list[Found]:
        return [_prefix_sum(_beside(parts), most) for parts in masks]

    found: list[Found] = lax.platform_dependent(masks, most, cpu=one_by_one, default=prefix_sums)
    return found


def _beside(parts: Sequence[jax.Array]) -> jax.Array:
    return parts[0] if len(parts) == 1 else jnp.stack(parts, axis=1).reshape(-1)


def compacted(mask: jax.Array, most: jax.Array) -> Found:
    """Return the numbers of the places in a mask, in order, int32[width], and how many there are, int32[].

    `most`: places from this number on are not in the mask. On a CPU a sequential loop, which takes a third of the time
    of a prefix sum and a scatter.
    """
    found: Found = lax.platform_dependent(mask, most, cpu=_one_by_one, default=_prefix_sum)
    return found


def _one_by_one(mask: jax.Array, most: jax.Array) -> Found:
    def step(k: jax.Array, c: Found) -> Found:
        return c[0].at[c[1]].set(k, mode="promise_in_bounds"), c[1] + mask[k].astype(I32)

    start = (jnp.zeros(mask.shape[0], I32), jnp.zeros((), I32))
    end = jnp.where(jnp.any(mask), most, 0)  # often nothing is to be found, as where frames have all they wait for
    source, n = lax.fori_loop(jnp.zeros((), I32), end, step, start)
    return source, n


def _prefix_sum(mask: jax.Array, most: jax.Array) -> Found:
    place = jnp.arange(mask.shape[0], dtype=I32)
    behind = jnp.cumsum(mask, dtype=I32)
    target = jnp.where(mask, behind - 1, mask.shape[0] + place)
    source = jnp.zeros(mask.shape[0], I32).at[target].set(place, mode="drop", unique_indices=True)
    return source, behind[-1]
