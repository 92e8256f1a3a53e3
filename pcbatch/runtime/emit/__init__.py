"""Emitters: strategies for writing the visits of blocks in JAX.

`guard`  each block is a while loop of 0 or 1 iterations that carries only what the block writes (default on CPU);
`port`   one `lax.switch` whose branches return small values, frames are written after it (default elsewhere);

Both give the same results. `pick` gives the one for an option.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax

from pcbatch.runtime.emit.guard import Guard
from pcbatch.runtime.emit.port import Port
from pcbatch.runtime.lowering_platform import lowering_platform
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.blocks import Blocks, Emitter

EMITTERS: dict[str, Emitter] = {"guard": Guard(), "port": Port()}


@dataclass(frozen=True, slots=True)
class Auto:
    """The emitter for the platform that a program is lowered for: `guard` on CPUs, `port` elsewhere.

    A guard costs about 0.1 us on a CPU. On an accelerator each of its tests is a loop of its own, for which the host
    waits or which is a node of a CUDA graph, and one switch per trip needs a single one. This follows from how XLA runs
    loops on accelerators, and awaits measurement.
    """

    @property
    def chosen(self) -> Emitter:
        """The emitter for what is traced now."""
        return EMITTERS["guard" if lowering_platform() == "cpu" else "port"]

    @property
    def name(self) -> str:
        return self.chosen.name

    @property
    def visits_singly(self) -> bool:
        return self.chosen.visits_singly

    def visit(self, blocks: Blocks, block: int, carry: Values) -> Values:
        return self.chosen.visit(blocks, block, carry)

    def run(self, blocks: Blocks, block: jax.Array, carry: Values, among: Sequence[int]) -> Values:
        return self.chosen.run(blocks, block, carry, among)


@dataclass(frozen=True, slots=True)
class OfMachine(Auto):
    """The emitter of a machine that runs its blocks by itself; where single visits are asked for, it is another one."""

    name: str
    visits_singly: bool = False


def pick(name: object) -> Emitter:
    """Return the emitter that a plan names: one of `EMITTERS`, else `Auto`."""
    return EMITTERS[name] if isinstance(name, str) and name in EMITTERS else Auto()
