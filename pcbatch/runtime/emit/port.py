"""`port`: one switch per trip, whatever the policy; frames stay outside it.

A stack that goes through a conditional is copied on every trip, so branches only read frames and return small values:
new registers, the lanes' rows of words, and the mask of the lanes that write them. Rows are then written once, after
the switch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.runtime.emit.guard import visited
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.blocks import Blocks
from pcbatch.runtime.vm.frames import Frames
from pcbatch.runtime.vm.lane_window import everyone
from pcbatch.runtime.vm.layout import Layout
from pcbatch.runtime.vm.run_once import run_once
from pcbatch.runtime.vm.step import StepContext, waits, wanted


@dataclass(frozen=True, slots=True)
class Port:
    """The emitter that writes a trip as one switch, with frames written after it."""

    name: str = "port"
    visits_singly: bool = True

    def visit(self, blocks: Blocks, block: int, carry: Values) -> Values:
        """Return the state after a visit of a block that is known while tracing, which needs no switch."""
        return {**carry, **visited(blocks, blocks.layout.codes[block], carry)}

    def run(self, blocks: Blocks, block: jax.Array, carry: Values, among: Sequence[int]) -> Values:
        assert isinstance(blocks.layout, Layout)
        codes = [blocks.layout.codes[k] for k in among]
        no_visit = partial(_no_visit, blocks)
        branches = [partial(_branch, blocks, block, code) if code.awaited else no_visit for code in codes]
        small, rows = jax.lax.switch(_place(block, among, len(blocks)), [*branches, no_visit], carry)
        frames = blocks.layout.frames
        if frames is None:
            return dict(small)
        window = everyone(jnp.ones(carry["pc"].shape, bool))
        return {**carry, **small, **frames.put(carry, window, carry["depth"], rows)}


def _branch(blocks: Blocks, block: jax.Array, code: Any, carry: Values) -> tuple[Values, Values]:
    """Return the state without frames (all of it, so that branches agree), and by buffer the rows of frames with the
    mask of the lanes that write them."""
    frames = _frames(blocks)
    assert isinstance(blocks.stage, StepContext)
    window = everyone(waits(carry, code), careful=code.may_not_end)
    stage = replace(blocks.stage, isolate_reads=False, in_rows=True)
    buffers = () if frames is None else tuple(frames.widths)
    small = {k: v for k, v in carry.items() if k not in buffers}

    def compute() -> tuple[Values, Values]:
        # Under `vmap` all branches of a switch run: only the chosen one may print.
        with jax.named_scope(code.scope):
            new = stage.step(code, carry, window, block == code.index)
        return {k: new.get(k, v) for k, v in small.items()}, {k: new[k] for k in buffers}

    if not code.needs_active_lane:
        return compute()
    # Under `vmap` the branch is computed for elements that run another block, too.
    return run_once(wanted(carry, code), lambda _: compute(), _no_visit(blocks, carry))


def _place(block: jax.Array, among: Sequence[int], every: int) -> jax.Array:
    """Return the number of the branch of a block: the last one, in which no lane does anything, for all others."""
    if list(among) == list(range(every)):
        return jnp.minimum(block, every)
    is_it = jnp.array(among, block.dtype) == block
    return jnp.where(jnp.any(is_it), jnp.argmax(is_it), len(among))


def _frames(blocks: Blocks) -> Frames | None:
    assert isinstance(blocks.layout, Layout)
    return blocks.layout.frames


def _no_visit(blocks: Blocks, carry: Values) -> tuple[Values, Values]:
    """Return what `_branch` gives when no lane is active."""
    frames = _frames(blocks)
    if frames is None:
        return dict(carry), {}
    small = {k: v for k, v in carry.items() if k not in frames.widths}
    return small, frames.no_rows(everyone(jnp.zeros(carry["pc"].shape, bool)))
