"""`port`: one switch per trip; frames stay outside it.

A stack that goes through a conditional is copied on every trip, so branches only read frames and return small values:
new registers, the lane's row of words, and who writes it. Rows are then written once, after the switch.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from pcbatch.runtime.blocks import Blocks
from pcbatch.runtime.code import BlockCode, Values
from pcbatch.runtime.emit.base import Stage, step, waits, wanted
from pcbatch.runtime.emit.guard import visited
from pcbatch.runtime.window import everyone


@dataclass(frozen=True, slots=True)
class Port:
    """One switch, frames written after it."""

    name: str = "port"

    def visit(self, blocks: Blocks, block: int, carry: Values) -> Values:
        """There is nothing to switch on."""
        return {**carry, **visited(blocks, blocks.layout.codes[block], carry)}

    def run(self, blocks: Blocks, block: jax.Array, carry: Values) -> Values:
        branches = [lambda c, code=code: _branch(blocks, code, c, block) for code in blocks.layout.codes]
        small, rows = jax.lax.switch(jnp.minimum(block, len(blocks) - 1), branches, carry)
        frames = blocks.layout.frames
        if frames is None:
            return dict(small)
        window = everyone(jnp.ones(carry["pc"].shape, bool))
        return {**carry, **small, **frames.put(carry, window, carry["depth"], rows)}


def _branch(blocks: Blocks, code: BlockCode, carry: Values, block: jax.Array) -> tuple[Values, Values]:
    """Small state (all of it, so that branches agree), and the rows of frames with who writes them."""
    frames = blocks.layout.frames
    window = everyone(waits(carry, code), careful=code.risky)
    stage = Stage(blocks.layout, blocks.shared, in_rows=True)
    buffers = () if frames is None else tuple(frames.widths)
    small = {k: v for k, v in carry.items() if k not in buffers}

    def compute() -> tuple[Values, Values]:
        # Under `vmap` all branches of a switch run: only the chosen one may print.
        new = step(stage, code, carry, window, block == code.index)
        return {k: new.get(k, v) for k, v in small.items()}, {k: new[k] for k in buffers}

    if not code.needs_lanes:
        return compute()
    nothing = small, {} if frames is None else frames.no_rows(window)
    once = lambda c: (jnp.zeros((), bool), compute())  # noqa: E731
    done: tuple[Values, Values] = jax.lax.while_loop(lambda c: c[0], once, (wanted(carry, code), nothing))[1]
    return done
