"""The state of a machine of lists: a dict of arrays. They are kept from run to run; only counts begin anew.

| key | array | present |
|---|---|---|
| `list:b:v` | [capacity + slices, ...]: a column of the list of block b | per block and column |
| `count:b` | int32[]: its records | per block |
| `serial` | int32[]: visits so far | always |
| `free`, `free:count` | int32[frames + width], int32[]: numbers of frames that nobody has | with frames |
| `frame:dest`, `frame:need`, ... | int32[examples + frames], see `pool.py` | with frames |
| `cell:type.k` | [examples + frames, ...]: what is saved across a `sync` | with frames |
| `result:c.k` | [(examples + frames) * slots, ...]: the places of results | always |
| `failed` | bool[examples]: some task of the example has failed | with failures |
| `steps` | uint32[examples], see `steps.py` | with `max_steps` |
| `visits`, `active`, `offered` | uint32[blocks, 2] | with statistics |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from pcbatch.lowering.typing.jax_types import storage_type, zeros
from pcbatch.runtime.tasks import lists, pool, steps
from pcbatch.runtime.tasks.sizes import Sizes
from pcbatch.runtime.tasks.task_plan import DEST, FROM, ROOT, TaskPlan
from pcbatch.runtime.tasks.visit import FAILED, VISITS
from pcbatch.runtime.vm import wide_counters
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.layout import PER_BLOCK

I32 = jnp.int32


def empty(plan: TaskPlan, sizes: Sizes, stats: bool, xp: Any = jnp) -> Values:
    """Return the arrays of a machine that has not run yet, of JAX or of NumPy (`xp`)."""
    s: Values = {VISITS: xp.zeros((), I32)}
    types = {v: storage_type(t) for v, t in plan.program.types.items() if t is not None}
    for block in plan.blocks:
        length = sizes.length(plan, block)
        for name in block.columns:
            column = zeros(types[name], (length,), xp) if name in types else xp.zeros(length, I32)
            s[lists.column(block.label, name)] = column
        s[lists.count(block.label)] = xp.zeros((), I32)
    rows = sizes.lanes + sizes.frames
    for results in plan.sites.results:
        for key, type_ in zip(results.keys, results.types, strict=True):
            s[key] = zeros(type_, ((rows if results.framed else sizes.lanes) * results.slots,), xp)
    if plan.framed:
        s[pool.FREE] = xp.arange(sizes.lanes, sizes.lanes + sizes.frames + sizes.width, dtype=I32)
        s[pool.FREE_COUNT] = xp.full((), sizes.frames, I32)
        several = (pool.AFTER,) if len(plan.joins) > 1 else ()
        known = (pool.ROOT,) if plan.roots else ()
        for key in (pool.DEST, pool.NEED, pool.LAST, *several, *known):
            s[key] = xp.zeros(rows, I32)
        for key, type_ in plan.sites.cells.items():
            s[key] = zeros(type_, (rows,), xp)
    if plan.fails:
        s[FAILED] = xp.zeros(sizes.lanes, bool)
    if plan.max_steps is not None:
        s[steps.STEPS] = steps.empty(sizes.lanes, xp)
    if stats:
        s |= {key: wide_counters.zeros(len(plan.blocks), xp) for key in PER_BLOCK}
    return s


def on_device(plan: TaskPlan, sizes: Sizes, stats: bool) -> Values:
    """Return what `empty` does, outside traces, without a program that XLA would compile for it."""
    placed: Values = jax.device_put(empty(plan, sizes, stats, np))
    return placed


def begin(plan: TaskPlan, sizes: Sizes, s: Values, args: Mapping[str, Any], end: jax.Array | None = None) -> Values:
    """Return the state before the first trip: a record for each example, and all frames free.

    Args:
        plan: The program.
        sizes: The sizes of the arrays.
        s: A state without records, after a run or before the first.
        args: The arguments by parameter, in storage form, [examples, ...] each.
        end: int32[]: the number of examples that run, those in front; None: all.
    """
    s = dict(s)
    end = jnp.full((), sizes.lanes, I32) if end is None else end
    entry, number = plan.entry, jnp.arange(sizes.lanes, dtype=I32)
    slots = entry.results.slots
    first = {DEST: number * I32(slots), ROOT: number, FROM: number}
    for name in entry.columns:
        key = lists.column(entry.label, name)
        values = first[name] if name in first else args.get(name)
        if values is not None:  # else it is the serial number, which is zero
            s[key] = lax.dynamic_update_slice_in_dim(s[key], values.astype(s[key].dtype), 0, 0)
        else:
            s[key] = lax.dynamic_update_slice_in_dim(s[key], jnp.zeros(sizes.lanes, s[key].dtype), 0, 0)
    for block in plan.blocks:
        s[lists.count(block.label)] = end if block is entry else jnp.zeros((), I32)
    s[VISITS] = jnp.zeros((), I32)
    if plan.framed:  # each example waits for its own task
        waits = (number < end).astype(I32)
        s[pool.NEED] = lax.dynamic_update_slice_in_dim(s[pool.NEED], waits, 0, 0)
    if plan.fails:
        s[FAILED] = jnp.zeros_like(s[FAILED])
    if plan.max_steps is not None:
        s[steps.STEPS] = steps.empty(sizes.lanes)
    if plan.framed and plan.fails:  # of examples that failed some frames have not come back
        s[pool.FREE] = jnp.arange(sizes.lanes, sizes.lanes + sizes.frames + sizes.width, dtype=I32)
        s[pool.FREE_COUNT] = jnp.full((), sizes.frames, I32)
    if entry.adds:
        for key in entry.results.keys:
            nothing = jnp.zeros((sizes.lanes * slots, *s[key].shape[1:]), s[key].dtype)
            s[key] = lax.dynamic_update_slice_in_dim(s[key], nothing, 0, 0)
    for key in PER_BLOCK:
        if key in s:
            s[key] = jnp.zeros_like(s[key])
    return s


def grown(plan: TaskPlan, old: Sizes, new: Sizes, s: Values, stats: bool) -> Values:
    """Return a state with larger arrays, from which the run goes on."""
    out = empty(plan, new, stats)
    for key, array in s.items():
        if array.ndim == 0 or array.shape == out[key].shape:
            out[key] = array
        elif key != pool.FREE:
            out[key] = lax.dynamic_update_slice_in_dim(out[key], array, 0, 0)
    if plan.framed and new.frames > old.frames:
        added = jnp.arange(old.lanes + old.frames, new.lanes + new.frames, dtype=I32)
        free = lax.dynamic_update_slice_in_dim(out[pool.FREE], s[pool.FREE][: old.frames], 0, 0)
        out[pool.FREE] = lax.dynamic_update_slice_in_dim(free, added, s[pool.FREE_COUNT], 0)
        out[pool.FREE_COUNT] = s[pool.FREE_COUNT] + (new.frames - old.frames)
    return out
