"""`port`: one switch per trip; frames stay outside it.

A stack that goes through a conditional is copied on every trip, so branches only read frames and return small values:
new registers, the lane's row of words, and who writes it. Rows are then written once, after the switch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp

from pcbatch.runtime.emit.guard import visited
from pcbatch.runtime.vm.block_body import BlockCode, Values
from pcbatch.runtime.vm.blocks import Blocks
from pcbatch.runtime.vm.lane_window import everyone
from pcbatch.runtime.vm.step import waits, wanted


@dataclass(frozen=True, slots=True)
class Port:
    """One switch, frames written after it."""

    name: str = "port"

    def visit(self, blocks: Blocks, block: int, carry: Values) -> Values:
        """There is nothing to switch on."""
        return {**carry, **visited(blocks, blocks.layout.codes[block], carry)}

    def run(self, blocks: Blocks, block: jax.Array, carry: Values, among: Sequence[int]) -> Values:
        codes = [blocks.layout.codes[k] for k in among]
        branches = [partial(_branch, blocks, block, code) for code in codes]
        nothing = partial(_nothing, blocks)
        small, rows = jax.lax.switch(_place(block, among, len(blocks)), [*branches, nothing], carry)
        frames = blocks.layout.frames
        if frames is None:
            return dict(small)
        window = everyone(jnp.ones(carry["pc"].shape, bool))
        return {**carry, **small, **frames.put(carry, window, carry["depth"], rows)}


def _branch(blocks: Blocks, block: jax.Array, code: BlockCode, carry: Values) -> tuple[Values, Values]:
    """Small state (all of it, so that branches agree), and the rows of frames with who writes them."""
    frames = blocks.layout.frames
    window = everyone(waits(carry, code), careful=code.risky)
    stage = replace(blocks.stage, apart=False, in_rows=True)
    buffers = () if frames is None else tuple(frames.widths)
    small = {k: v for k, v in carry.items() if k not in buffers}

    def compute() -> tuple[Values, Values]:
        # Under `vmap` all branches of a switch run: only the chosen one may print.
        with jax.named_scope(code.scope):
            new = stage.step(code, carry, window, block == code.index)
        return {k: new.get(k, v) for k, v in small.items()}, {k: new[k] for k in buffers}

    if not code.unsafe_when_inactive:
        return compute()
    once = lambda c: (jnp.zeros((), bool), compute())  # noqa: E731
    unless = wanted(carry, code), _nothing(blocks, carry)
    done: tuple[Values, Values] = jax.lax.while_loop(lambda c: c[0], once, unless)[1]
    return done


def _place(block: jax.Array, among: Sequence[int], every: int) -> jax.Array:
    """The branch of a block; the last one, where nothing happens, if it is none of those."""
    if list(among) == list(range(every)):
        return jnp.minimum(block, every)
    is_it = jnp.array(among, block.dtype) == block
    return jnp.where(jnp.any(is_it), jnp.argmax(is_it), len(among))


def _nothing(blocks: Blocks, carry: Values) -> tuple[Values, Values]:
    """What a branch gives in which no lane does anything."""
    frames = blocks.layout.frames
    if frames is None:
        return dict(carry), {}
    small = {k: v for k, v in carry.items() if k not in frames.widths}
    return small, frames.no_rows(everyone(jnp.zeros(carry["pc"].shape, bool)))
