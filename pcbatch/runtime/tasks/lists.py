"""Lists of records: an array for each column, the newest record last. Visits pop and push slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from pcbatch.runtime.tasks.plan import BlockPlan
from pcbatch.runtime.vm.block_body import Values

I32 = jnp.int32


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


def pop(s: Values, block: BlockPlan, k: jax.Array, width: int) -> Values:
    """Take the newest k records off a list: columns [width, ...], of which the first k are records."""
    label = block.label
    s[count(label)] = s[count(label)] - k
    return {name: lax.dynamic_slice_in_dim(s[column(label, name)], s[count(label)], width) for name in block.columns}


def push(s: Values, block: BlockPlan, entries: Sequence[Entry], k: jax.Array, ok: jax.Array) -> None:
    """Put records on a list: place by place, and of one place the entries in their order, the last on top.

    Args:
        s: The state, which is changed.
        block: Whose list it is.
        entries: The records.
        k: int32[]: the places that have popped a record, those in front.
        ok: bool[width]: the same as a mask.
    """
    label, several = block.label, len(entries)
    dense = all(entry.mask is None for entry in entries)
    if dense:
        source, n = None, k * several
    else:
        masks = [ok if entry.mask is None else entry.mask for entry in entries]
        source, n = compacted(jnp.stack(masks, axis=1).reshape(-1), k * several)
    for name in block.columns:
        key = column(label, name)
        values = [entry.columns[name].astype(s[key].dtype) for entry in entries]
        new = _picked([entry.columns[name] for entry in entries], values, source)
        s[key] = lax.dynamic_update_slice_in_dim(s[key], new, s[count(label)], 0)
    s[count(label)] = s[count(label)] + n


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


def compacted(mask: jax.Array, most: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the numbers of the places in a mask, in order, int32[width], and how many there are, int32[].

    `most`: places from this number on are not in the mask. On a CPU a sequential loop, which takes a third of the time
    of a prefix sum and a scatter.
    """
    found: tuple[jax.Array, jax.Array] = lax.platform_dependent(mask, most, cpu=_one_by_one, default=_prefix_sum)
    return found


def _one_by_one(mask: jax.Array, most: jax.Array) -> tuple[jax.Array, jax.Array]:
    def step(k: jax.Array, c: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        return c[0].at[c[1]].set(k, mode="promise_in_bounds"), c[1] + mask[k].astype(I32)

    start = (jnp.zeros(mask.shape[0], I32), jnp.zeros((), I32))
    end = jnp.where(jnp.any(mask), most, 0)  # often nothing is to be found, as where frames have all they wait for
    source, n = lax.fori_loop(jnp.zeros((), I32), end, step, start)
    return source, n


def _prefix_sum(mask: jax.Array, most: jax.Array) -> tuple[jax.Array, jax.Array]:
    place = jnp.arange(mask.shape[0], dtype=I32)
    behind = jnp.cumsum(mask, dtype=I32)
    target = jnp.where(mask, behind - 1, mask.shape[0] + place)
    source = jnp.zeros(mask.shape[0], I32).at[target].set(place, mode="drop", unique_indices=True)
    return source, behind[-1]
