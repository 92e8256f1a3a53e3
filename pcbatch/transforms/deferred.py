"""Cotangents of what lanes share, made at the end: one pullback for hundreds of records.

A product with a shared matrix, undone trip by trip, would add up a whole matrix for a few lanes each time. All records
of a block together are one big product.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.lowering.jax_types import storage_type
from pcbatch.runtime.code import Values
from pcbatch.runtime.layout import reg
from pcbatch.transforms.back import kept
from pcbatch.transforms.body import SHARED, Load, Store
from pcbatch.transforms.pull import any_in_record, pull, replay, taken_in
from pcbatch.transforms.tape import BlockTape, Tape

RECORDS = 512  # of one pullback


class _Nowhere:
    """Registers' cotangents, of which nothing is wanted."""

    def loaded(self, step: Load, indices: Any, cotangent: Any) -> None:
        """Nothing depends on it."""

    def stored(self, step: Store, indices: Any) -> Any:
        """It is among those that were kept."""
        aval = step.eqn.invars[2].aval
        return jnp.zeros((1, *aval.shape), aval.dtype)


def deferred(tape: Tape, carry: Values, known: Mapping[str, Any], stride: int) -> dict[str, Any]:
    """The cotangents of shared variables, from what the backward machine has kept. `stride`: see
    `Backward`."""
    names = dict.fromkeys(v for block in tape.blocks for v in block.deferred)
    sums = {v: jnp.zeros(jnp.shape(known[v]), known[v].dtype) for v in names}
    for block in tape.blocks:
        if block.deferred:
            sums |= _of_block(block, {v: sums[v] for v in block.deferred}, carry, known, stride)
    return sums


def _of_block(block: BlockTape, sums: dict[str, Any], carry: Values, known: Mapping[str, Any], stride: int) -> dict[str, Any]:
    plan = block.kept_rows
    buffers = {name: carry[kept(block, name)] for name in plan.buffers}
    width = min(RECORDS, next(iter(buffers.values())).shape[0])
    end = carry[kept(block, "n")]

    def chunk(c: tuple[jax.Array, dict[str, Any]]) -> tuple[jax.Array, dict[str, Any]]:
        begin, so_far = c
        place = begin + jnp.arange(width, dtype=jnp.int32)
        given = plan.read(buffers, place)
        here = (place < end) & any_in_record([given[str(number)] for number in block.kept])

        def add(s: tuple[jax.Array, dict[str, Any]]) -> tuple[jax.Array, dict[str, Any]]:
            made = _pulled(block, given, here, known, stride)
            return jnp.zeros((), bool), {v: s[1][v] + made[v] if v in made else s[1][v] for v in s[1]}

        # A loop of at most one round: a conditional would copy the sums.
        return begin + width, jax.lax.while_loop(lambda s: s[0], add, (jnp.any(here), so_far))[1]

    done: tuple[jax.Array, dict[str, Any]] = jax.lax.while_loop(lambda c: c[0] < end, chunk, (jnp.int32(0), sums))
    return done[1]


def _pulled(
    block: BlockTape, given: Mapping[str, Any], here: jax.Array, known: Mapping[str, Any], stride: int
) -> dict[str, Any]:
    """Of one chunk. Records with no cotangent are replaced by one that has some: `0 * inf` is no zero."""
    width = here.shape[0]
    values = block.read(known, given["record"].at[jnp.where(here, jnp.arange(width), jnp.argmax(here))].get())
    if block.constants:
        lane = values["lane"] // stride
        values |= {s.key: known[reg(s.name)].at[lane].get(mode="clip") for s in block.constants}
    values |= {
        f"{SHARED}:{v}": jnp.broadcast_to(known[v], (width, *jnp.shape(known[v]))) for v in block.owned
    }
    env = replay(block.body, taken_in(block.body, values, known, width), width)
    cotangents = {}
    for number, type_ in block.body.leaving.items():
        stored = storage_type(type_)
        mask = here.reshape(-1, *(1,) * len(stored.shape))
        zero = jnp.zeros((width, *stored.shape), jnp.dtype(stored.dtype))
        cotangents[number] = jnp.where(mask, given[str(number)], zero) if number in block.kept else zero
    found = pull(block.body, env, cotangents, width, _Nowhere(), shared=True)
    numbers = {s.name: s.number for s in block.body.sources if s.kind == SHARED}
    return {v: found[numbers[v]] for v in block.deferred if numbers[v] in found}
