"""One example on several devices: its tasks are dealt out, and their results brought together.

All devices begin with the same state, in which tasks wait on lists and frames wait for results. Each keeps every D-th
record of a list and runs to its end; frames that were open before (*boundary* frames) hold on, so that none goes on
where only some of its results arrive. Then each place of such a frame was written by one device at most, and each count
changed by all: the sum of the changes of bits, with those of the counts, is the state of all. What has come to wait for
nothing goes on. Tasks are dealt when there are many, and again whenever there are; no device takes work from another.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from pcbatch.runtime.tasks import lists, pool, steps
from pcbatch.runtime.tasks.sizes import Sizes
from pcbatch.runtime.tasks.task_plan import FRAME, TaskPlan
from pcbatch.runtime.tasks.visit import FAILED, VISITS
from pcbatch.runtime.vm import wide_counters
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.layout import PER_BLOCK

I32 = jnp.int32


def part(plan: TaskPlan, s: Values, device: jax.Array, devices: int) -> Values:
    """Return the state with which one device goes on: every `devices`-th record of each list.

    Args:
        plan: The program.
        s: The state of all.
        device: int32[]: the number of the device.
        devices: How many there are.
    """
    s = dict(s)
    for block in plan.blocks:
        count = lists.count(block.label)
        for name in block.columns:
            key = lists.column(block.label, name)
            mine = device + devices * jnp.arange(s[key].shape[0], dtype=I32)
            s[key] = s[key].at[mine].get(mode="clip")
        s[count] = (s[count] - device + (devices - 1)) // devices
    for key in (key for key in PER_BLOCK if key in s):
        s[key] = jnp.zeros_like(s[key])
    if plan.framed:
        s[pool.NEED] = s[pool.NEED] + 1  # boundary frames hold on; whoever opens a frame sets its count anew
    return s


def together(plan: TaskPlan, sizes: Sizes, before: Values, parts: Values) -> Values:
    """Return the state of all, after each device has run its part to the end.

    Args:
        plan: The program.
        sizes: The sizes of the arrays.
        before: The state of which `part` made the parts.
        parts: What each device has left, [devices, ...].
    """
    out = dict(before)
    for block in plan.blocks:
        out[lists.count(block.label)] = jnp.zeros((), I32)
    out[VISITS] = jnp.max(parts[VISITS])
    if FAILED in out:
        out[FAILED] = jnp.any(parts[FAILED], axis=0)
    if plan.max_steps is not None:  # with the limit after each sum, none of which overflows then
        counted = before[steps.STEPS]
        for mine in parts[steps.STEPS]:
            counted = counted + (mine - before[steps.STEPS])
            counted, out[FAILED] = steps.limited(counted, out[FAILED], plan.max_steps)
        out[steps.STEPS] = counted
    for key in (key for key in PER_BLOCK if key in out):
        out[key] = functools.reduce(wide_counters.plus, [*parts[key]], before[key])
    waited = _boundary(plan, sizes, before)
    sums = {key for block in plan.blocks if block.adds for key in block.results.keys}
    for key in _written(plan, before):
        begun = before[key] + 1 if key == pool.NEED else before[key]
        changes = _summed_changes(begun, parts[key])
        slots = plan.sites.slots_of.get(key, 1)
        here = jnp.repeat(waited, slots)[: before[key].shape[0]]
        if plan.program.exact and key in sums:  # which example it is of does not matter: there are few
            out[FAILED] = out[FAILED] | jnp.any(here & _too_much(before[key], parts[key]))
        out[key] = jnp.where(_wide(here, before[key]), _with_change(before[key], changes), before[key])
    if plan.framed:
        _reopen(plan, sizes, out, waited)
    return out


def _written(plan: TaskPlan, s: Values) -> list[str]:
    """The arrays of frames and examples to which their tasks write."""
    results = [key for one in plan.sites.results for key in one.keys]
    frames = [key for key in (pool.NEED, pool.AFTER, *plan.sites.cells) if key in s]
    return [*results, *frames]


def _boundary(plan: TaskPlan, sizes: Sizes, s: Values) -> jax.Array:
    """bool[examples + frames]: the frames that wait, and the places of all examples."""
    rows = sizes.lanes + sizes.frames
    if not plan.framed:
        return jnp.ones(rows, bool)
    return _used(plan, sizes, s) & ~_on_lists(plan, s, rows)


def _used(plan: TaskPlan, sizes: Sizes, s: Values) -> jax.Array:
    """bool[examples + frames]: frames that are not free, and examples."""
    rows = sizes.lanes + sizes.frames
    free = jnp.arange(s[pool.FREE].shape[0], dtype=I32) < s[pool.FREE_COUNT]
    return jnp.ones(rows, bool).at[jnp.where(free, s[pool.FREE], rows)].set(False, mode="drop")


def _on_lists(plan: TaskPlan, s: Values, rows: int) -> jax.Array:
    """bool[examples + frames]: frames that wait only for their turn; the device that gets the record ends them."""
    found = jnp.zeros(rows, bool)
    for label in plan.joins:
        frames = s[lists.column(label, FRAME)]
        here = jnp.arange(frames.shape[0], dtype=I32) < s[lists.count(label)]
        found = found.at[jnp.where(here, frames, rows)].set(True, mode="drop")
    return found


def _wide(mask: jax.Array, array: Any) -> jax.Array:
    return mask.reshape(-1, *(1,) * (array.ndim - 1))


def _bits(array: Any) -> Any:
    """An array of unsigned integers, in which sums of changes are exact."""
    if array.dtype == jnp.bool_:
        return array.astype(jnp.uint8)
    if jnp.issubdtype(array.dtype, jnp.complexfloating):
        return _bits(jnp.stack([array.real, array.imag], axis=-1))
    return lax.bitcast_convert_type(array, jnp.dtype(f"uint{8 * array.dtype.itemsize}"))


def _summed_changes(begun: Any, parts: Any) -> Any:
    return jnp.sum(_bits(parts) - _bits(begun)[None], axis=0, dtype=_bits(begun).dtype)


def _too_much(begun: Any, parts: Any) -> jax.Array:
    """Whether an integer and all changes of it are together more than half of what its dtype holds."""
    half = np.iinfo(begun.dtype).max / 2
    begun, parts = begun.astype(jnp.float32), parts.astype(jnp.float32)
    much: jax.Array = abs(begun) + jnp.sum(abs(parts - begun[None]), axis=0) > half
    return much


def _with_change(array: Any, change: Any) -> Any:
    """An array after a change of its bits."""
    bits = _bits(array) + change
    if array.dtype == jnp.bool_:
        return bits.astype(bool)
    if jnp.issubdtype(array.dtype, jnp.complexfloating):
        real, imag = (lax.bitcast_convert_type(bits[..., k], array.real.dtype) for k in (0, 1))
        return lax.complex(real, imag)
    return lax.bitcast_convert_type(bits, array.dtype)


def _reopen(plan: TaskPlan, sizes: Sizes, s: Values, waited: jax.Array) -> None:
    """Free all frames but those that wait, and push those that wait no longer."""
    rows = sizes.lanes + sizes.frames
    frame = jnp.arange(rows, dtype=I32) >= sizes.lanes
    free, n = lists.compacted(frame & ~waited, jnp.full((), rows, I32))
    s[pool.FREE] = lax.dynamic_update_slice_in_dim(s[pool.FREE], free[: sizes.frames], 0, 0)
    s[pool.FREE_COUNT] = n
    ready = frame & waited & (s[pool.NEED] == 0)
    for number, label in enumerate(plan.joins):
        here = ready if len(plan.joins) == 1 else ready & (s[pool.AFTER] == number)
        found, n = lists.compacted(here, jnp.full((), rows, I32))
        key = lists.column(label, FRAME)
        s[key] = lax.dynamic_update_slice_in_dim(s[key], found[: sizes.frames], 0, 0)
        s[lists.count(label)] = n
