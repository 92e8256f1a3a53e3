"""`mask`: every block runs in every trip for the lanes that wait for it; nothing is tested.

The choice where a test costs more than the work it would save.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from pcbatch.runtime.emit.guard import visited
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.blocks import Blocks
from pcbatch.runtime.vm.layout import Layout


@dataclass(frozen=True, slots=True)
class Mask:
    """The emitter that runs every block under its mask, without any test."""

    name: str = "mask"
    visits_singly: bool = False

    def visit(self, blocks: Blocks, block: int, carry: Values) -> Values:
        return {**carry, **visited(blocks, blocks.layout.codes[block], carry)}

    def run(self, blocks: Blocks, block: jax.Array, carry: Values, among: Sequence[int]) -> Values:
        assert isinstance(blocks.layout, Layout)
        for code in (blocks.layout.codes[k] for k in among if blocks.layout.codes[k].awaited):
            # The lanes of blocks that are not chosen wait for no block during the visit, and get their program counters
            # back after it.
            nowhere = jnp.asarray(blocks.layout.nowhere, carry["pc"].dtype)
            held = jnp.where(block == code.index, carry["pc"], nowhere)
            out = visited(blocks, code, {**carry, "pc": held})
            pc = jnp.where(block == code.index, out["pc"], carry["pc"])
            carry = {**carry, **out, "pc": pc}
        return carry
