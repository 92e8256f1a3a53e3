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


@dataclass(frozen=True, slots=True)
class Mask:
    """Masked blocks. Where one block is named at run time, the others' lanes are held back."""

    name: str = "mask"

    def visit(self, blocks: Blocks, block: int, carry: Values) -> Values:
        return {**carry, **visited(blocks, blocks.layout.codes[block], carry)}

    def run(self, blocks: Blocks, block: jax.Array, carry: Values, among: Sequence[int]) -> Values:
        for code in (blocks.layout.codes[k] for k in among):
            # A lane elsewhere is shown as standing at no block, and then put back.
            nowhere = jnp.asarray(blocks.layout.nowhere, carry["pc"].dtype)
            held = jnp.where(block == code.index, carry["pc"], nowhere)
            out = visited(blocks, code, {**carry, "pc": held})
            pc = jnp.where(block == code.index, out["pc"], carry["pc"])
            carry = {**carry, **out, "pc": pc}
        return carry
