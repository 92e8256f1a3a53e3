"""Cotangents of large values that lanes share.

They are not added up trip by trip: a product with a shared matrix would add a whole matrix for a few lanes each time.
The cotangents that they are made of are kept, and one pullback serves hundreds of records: one big product.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.layout import reg
from pcbatch.transforms.tape.block_ssa import SHARED
from pcbatch.transforms.tape.block_vjp import any_in_record, pull_shared, replay, taken_in, zero_where_inactive
from pcbatch.transforms.tape.plan import STATUS, BlockTape, Tape

RECORDS = 512  # of one pullback of what lanes share, unless there are more lanes


def total(name: str) -> str:
    """The state key of the sum of the cotangents of a shared value."""
    return f"total:{name}"


def kept(block: BlockTape, name: str) -> str:
    """The state key of the cotangents of what left a block: of a buffer, or of their number ("n")."""
    return f"kept:{block.index}:{name}"


def deferred_keys(block: BlockTape) -> list[str]:
    """State keys of what is kept of a block, and of the sums that it goes into."""
    return [*(kept(block, name) for name in ("n", *block.kept_rows.buffers)), *(total(v) for v in block.deferred)]


def room(lanes: int) -> int:
    """Rows for the cotangents that a block keeps: of one pullback, and of one more trip."""
    most: int = jax.core.max_dim(RECORDS, lanes)  # of sizes that may be left open
    return most + lanes


def make_room(block: BlockTape, mine: Values, known: Values, stride: int, width: int) -> Values:
    """The `deferred_keys` of a block, with room for `width` more: the first records are used up, if there is none."""
    rows = next(mine[kept(block, name)].shape[0] for name in block.kept_rows.buffers)

    def use(s: tuple[jax.Array, Values]) -> tuple[jax.Array, Values]:
        return jnp.zeros((), bool), used_up(block, s[1], known, stride)

    # A loop of at most one round: a conditional would copy the sums.
    made: Values = jax.lax.while_loop(lambda s: s[0], use, (mine[kept(block, "n")] + width > rows, mine))[1]
    return made


def used_up(block: BlockTape, mine: Values, known: Values, stride: int) -> Values:
    """The same, with the first records added to the sums. At most as many are left as there are lanes."""
    plan, n = block.kept_rows, kept(block, "n")
    rows = next(mine[kept(block, name)].shape[0] for name in plan.buffers)
    chunk = rows - known[STATUS].shape[0]  # see `room`
    given = plan.read({name: mine[kept(block, name)] for name in plan.buffers}, jnp.arange(chunk, dtype=jnp.int32))
    there = jnp.arange(chunk, dtype=jnp.int32) < mine[n]
    made = _pulled(block, given, there & any_in_record([given[str(number)] for number in block.kept]), known, stride)
    sums = {total(v): mine[total(v)] + made[v] for v in block.deferred if v in made}
    buffers = {key: mine[key] for key in (kept(block, name) for name in plan.buffers)}
    rest = {key: jax.lax.dynamic_update_slice_in_dim(x, x[chunk:], 0, 0) for key, x in buffers.items()}
    return {**mine, **sums, **rest, n: jnp.maximum(mine[n] - chunk, 0)}


def _pulled(block: BlockTape, given: Mapping[str, Any], here: jax.Array, known: Values, stride: int) -> dict[str, Any]:
    """Cotangents of shared values. Records without cotangents are replaced by one with some: `0 * inf` is no zero."""
    width = here.shape[0]
    values = block.read(known, given["record"].at[jnp.where(here, jnp.arange(width), jnp.argmax(here))].get())
    if block.constants:
        lane = values["lane"] // stride
        values |= {s.key: known[reg(s.name)].at[lane].get(mode="clip") for s in block.constants}
    values |= {f"{SHARED}:{v}": jnp.broadcast_to(known[v], (width, *jnp.shape(known[v]))) for v in block.owned}
    env = replay(block.body, taken_in(block.body, values, known, width), width)
    cotangents = {n: zero_where_inactive(here, given[str(n)]) for n in block.kept}
    cotangents |= {n: cotangents[other] for n, other in block.same.items()}
    found = pull_shared(block.body, env, cotangents, width)
    numbers = {s.name: s.number for s in block.body.sources if s.kind == SHARED}
    return {v: found[numbers[v]] for v in block.deferred if numbers[v] in found}


def settled(tape: Tape, carry: Values, known: Values, stride: int) -> Values:
    """The state with nothing kept: all of it has gone into the sums."""
    for block in tape.blocks:
        if block.kept:
            mine = {key: carry[key] for key in deferred_keys(block)}
            for _ in range(2):
                mine = used_up(block, mine, known, stride)
            carry = {**carry, **mine}
    return carry


def totals(tape: Tape, carry: Values) -> Values:
    """The cotangents of shared values, by name, when everything is `settled`."""
    return {v: carry[total(v)] for block in tape.blocks for v in block.deferred}
