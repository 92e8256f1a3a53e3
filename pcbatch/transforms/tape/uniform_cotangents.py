"""Deferred cotangents: those of large shared values.

They are not added up trip by trip: a product with a shared matrix would add a whole matrix for a few lanes each time.
Instead a trip stores the cotangents that they are computed from (`Body.edge`), and one pullback serves a hundred
records or more: one big product. Where the lanes of a visit agree in the part that they use (`BlockTape.keys`), the
product of two matrices is there, and is added at once: other records have other parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.lane_window import Window
from pcbatch.runtime.vm.layout import reg
from pcbatch.transforms.tape.block_ssa import SharedValue
from pcbatch.transforms.tape.block_vjp import replay, zero_where_inactive
from pcbatch.transforms.tape.needs import Needs, any_in_record
from pcbatch.transforms.tape.record_layout import active_first, append, reordered
from pcbatch.transforms.tape.tape_plan import STATUS, BlockTape, Tape

RECORDS = 128  # records of one pullback, unless there are more lanes


def total(name: str) -> str:
    """The state key of the sum of the cotangents of a shared value."""
    return f"total:{name}"


def deferred_key(block: BlockTape, name: str) -> str:
    """The state key of a buffer of a block's deferred cotangents, or of their number ("n")."""
    return f"deferred:{block.index}:{name}"


def deferred_keys(block: BlockTape, defers: bool = True) -> list[str]:
    """State keys of the deferred cotangents of a block, and of the sums that they are pulled back into."""
    waits = defers and not block.keys
    buffers = [deferred_key(block, name) for name in ("n", *block.deferred_layout.buffers) if waits]
    return [*buffers, *(total(v) for v in block.deferred)]


def capacity(lanes: int) -> int:
    """Rows for the deferred cotangents of a block: those of one pullback, and of one more trip."""
    most: int = jax.core.max_dim(RECORDS, lanes)  # of sizes that may be left open
    return most + lanes


def defer(
    block: BlockTape,
    carry: Values,
    values: Values,
    window: Window,
    mask: jax.Array,
    known: Values,
    stride: int,
    needs: Needs,
) -> Values:
    """Append the deferred cotangents of the records in a mask, and their numbers, to those of a block; `values` are
    [width, ...] each, by column."""
    state = {key: carry[key] for key in deferred_keys(block)}
    state = make_room(block, state, known, stride, window.width, needs)
    n = deferred_key(block, "n")
    end, order = state[n], active_first(window, mask)
    for name, rows in block.deferred_layout.packed(values).items():
        key = deferred_key(block, name)
        # The whole window is written; the next one overwrites what is behind the active lanes.
        state[key] = append(state[key], end, reordered(rows, order))
    return {**state, n: end + jnp.sum(mask, dtype=jnp.int32)}


def make_room(block: BlockTape, state: Values, known: Values, stride: int, width: int, needs: Needs) -> Values:
    """Pull back the oldest deferred cotangents of a block if there is no room for `width` more.

    `state` has the `deferred_keys` of the block, `known` the tape and the arguments by state key, and shared values by
    name.
    """
    rows = next(state[deferred_key(block, name)].shape[0] for name in block.deferred_layout.buffers)

    def flush_oldest(s: tuple[jax.Array, Values]) -> tuple[jax.Array, Values]:
        return jnp.zeros((), bool), _flush_chunk(block, s[1], known, stride, needs)

    # A loop of at most one iteration: a conditional would copy the sums.
    full = state[deferred_key(block, "n")] + width > rows
    flushed: Values = jax.lax.while_loop(lambda s: s[0], flush_oldest, (full, state))[1]
    return flushed


def _flush_chunk(block: BlockTape, state: Values, known: Values, stride: int, needs: Needs) -> Values:
    """Pull back the oldest deferred cotangents and add the results to the sums; at most as many as lanes remain."""
    layout, n = block.deferred_layout, deferred_key(block, "n")
    rows = next(state[deferred_key(block, name)].shape[0] for name in layout.buffers)
    chunk = rows - known[STATUS].shape[0]  # see `capacity`
    buffers = {name: state[deferred_key(block, name)] for name in layout.buffers}
    columns = layout.read(buffers, jnp.arange(chunk, dtype=jnp.int32))
    filled = jnp.arange(chunk, dtype=jnp.int32) < state[n]
    if not needs.tangents:  # else the pullback masks those with tangents of zero, too
        filled = filled & any_in_record([columns[str(number)] for number in block.reads.deferred_cts])
    pulled = _pull_chunk(block, columns, filled, known, stride, needs)
    sums = {total(v): state[total(v)] + pulled[v] for v in block.deferred if v in pulled}
    rest = {deferred_key(block, name): _without_first(state[deferred_key(block, name)], chunk) for name in buffers}
    return {**state, **sums, **rest, n: jnp.maximum(state[n] - chunk, 0)}


def _without_first(rows: Any, chunk: int) -> Any:
    return jax.lax.dynamic_update_slice_in_dim(rows, rows[chunk:], 0, 0)


def _pull_chunk(
    block: BlockTape, columns: Mapping[str, Any], mask: jax.Array, known: Values, stride: int, needs: Needs
) -> dict[str, Any]:
    """The cotangents of shared values by name, summed over the records in `mask`, bool[records]."""
    width = mask.shape[0]
    # Other records are replaced by one of the mask: their cotangents are zero, but `0 * inf` is not.
    record = columns["record"].at[jnp.where(mask, jnp.arange(width), jnp.argmax(mask))].get()
    values = block.read(known, record)
    if block.constants:
        lane = values["lane"] // stride
        values |= {s.key: known[reg(s.name)].at[lane].get(mode="clip") for s in block.constants}
    for source in block.body.sources:
        if isinstance(source, SharedValue) and source.name in block.small_shared:
            shared = known[source.name]
            values[source.key] = jnp.broadcast_to(shared, (width, *jnp.shape(shared)))
    env = replay(block.body, values, known, width)
    deferred = {n: zero_where_inactive(mask, columns[str(n)]) for n in block.reads.deferred_cts}
    return block.of_shared(env, deferred, width, needs)


def flush(tape: Tape, carry: Values, known: Values, stride: int, needs: Needs) -> Values:
    """Pull back all deferred cotangents, so that the sums are complete."""
    for block in tape.blocks:
        if block.deferred and not block.keys:
            n = deferred_key(block, "n")

            def more(s: Values, n: str = n) -> Any:
                return s[n] > 0

            def flush_oldest(s: Values, block: BlockTape = block) -> Values:
                return _flush_chunk(block, s, known, stride, needs)

            state: Values = {key: carry[key] for key in deferred_keys(block)}
            flushed: Values = jax.lax.while_loop(more, flush_oldest, state)
            carry = {**carry, **flushed}
    return carry


def totals(tape: Tape, carry: Values) -> Values:
    """The cotangents of deferred variables by name, once they are complete (`flush`)."""
    return {v: carry[total(v)] for block in tape.blocks for v in block.deferred}
