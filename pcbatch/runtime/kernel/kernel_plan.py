"""The plan of a kernel: the blocks of a machine traced for a tile, and where its arrays are kept."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import jax.numpy as jnp

from pcbatch.ir.analysis.def_use import edges
from pcbatch.ir.ops import Jump
from pcbatch.runtime.kernel.block_kernel import BlockKernel, trace_block
from pcbatch.runtime.kernel.memory import Places, in_order
from pcbatch.runtime.vm.layout import Layout, reg

REPEATED = 256  # equations of the copies of a block
CARRIED = 8  # elements of a register that a lane keeps in registers of threads, at most


@dataclass(frozen=True, slots=True)
class KernelPlan:
    """A machine, as a kernel runs it.

    Attributes:
        layout: The arrays of the machine.
        blocks: Its blocks, each at its program counter.
        constants: Arrays that blocks close over, by their place in memory.
        policy: The name of the policy.
        expensive: The numbers of the blocks that lanes gather for.
        tile: The lanes of a tile.
        warps: The warps of threads that compute a tile.
        outside: The numbers of blocks that are computed between two kernels, for all lanes.
        repeats: How often a visit computes a block that lanes may come back to at once, by its number; else once.
    """

    layout: Layout
    blocks: tuple[BlockKernel, ...]
    constants: tuple[Any, ...]
    numbers: Mapping[int, tuple[int, ...]]  # block -> the numbers of its constants
    policy: str
    expensive: tuple[int, ...]
    tile: int
    warps: int
    outside: frozenset[int] = frozenset()
    repeats: Mapping[int, int] = field(default_factory=dict)

    @property
    def awaited(self) -> tuple[BlockKernel, ...]:
        """The blocks of the kernel that lanes may wait for."""
        return tuple(b for b in self.blocks if b.code.awaited and b.code.index not in self.outside)

    @property
    def carried(self) -> tuple[str, ...]:
        """The registers that the loop of trips carries: small ones that blocks both read and write.

        Parameters that stay as they are and results that nobody reads would hold registers of threads for nothing.
        """
        read = {v for block in self.awaited for v in block.code.reads}
        written = {v for block in self.awaited for v in block.code.updates}
        small = (v for v in self.layout.registers if self.layout.stored_type(v).size <= CARRIED)
        return tuple(v for v in small if v in read and v in written)

    @property
    def counters(self) -> tuple[str, ...]:
        """The state keys of numbers int32[lanes] that the loop carries besides program counters."""
        depth = [] if self.layout.frames is None else ["depth"]
        return (*depth, *([] if self.layout.max_steps is None else ["steps"]))

    @property
    def keys(self) -> frozenset[str]:
        """The state keys of the arrays that the kernel reads and writes."""
        return frozenset(("pc", *self.counters, *map(reg, self.layout.registers), *self.layout.buffers))

    @property
    def shared(self) -> tuple[str, ...]:
        """The shared values that blocks read."""
        return tuple(dict.fromkeys(v for block in self.awaited for v in block.code.shared))

    def shape_and_dtype(self, name: str) -> tuple[tuple[int, ...], Any]:
        """Return the shape and dtype of a variable of one lane, in storage form."""
        type_ = self.layout.stored_type(name)
        return tuple(type_.shape), jnp.dtype(type_.dtype)

    def places(self, name: str, lanes: int) -> Places:
        """Return the places of a register in the array of the state."""
        shape = tuple(self.layout.stored_type(name).shape)
        if reg(name) in self.layout.lanes_last:
            return Places(shape, 1, lanes)
        return Places(shape, math.prod(shape))

    def strides(self, name: str, lanes: int) -> tuple[int, ...]:
        """Return the elements from one place of a register [lanes, ...] to the next, along each axis."""
        places = self.places(name, lanes)
        return (places.row_stride, *(places.stride * stride for stride in in_order(places.shape)))

    def numbers_of(self, block: BlockKernel) -> tuple[int, ...]:
        """Return the numbers of the constants of a block."""
        return self.numbers[block.code.index]


def make(layout: Layout, policy: str, expensive: tuple[int, ...], tile: int, warps: int, spins: int = 1) -> KernelPlan:
    """Trace the blocks of a machine for tiles of so many lanes; `spins`: the most times that a visit repeats a loop."""
    in_memory = [v for v in layout.registers if layout.stored_type(v).size > CARRIED]
    blocks = tuple(trace_block(layout, code, tile, in_memory) for code in layout.codes)
    constants: list[Any] = []
    numbers: dict[int, tuple[int, ...]] = {}
    for block in blocks:
        places = []
        for x in block.constants:
            known = next((k for k, other in enumerate(constants) if other is x), len(constants))
            if known == len(constants):
                constants.append(x)
            places.append(known)
        numbers[block.code.index] = tuple(places)
    repeats = {block.code.index: times for block in blocks if (times := _times(block, spins)) > 1}
    plan = KernelPlan(layout, blocks, tuple(constants), numbers, policy, expensive, tile, warps)
    return replace(plan, repeats=repeats)


def _times(block: BlockKernel, spins: int) -> int:
    """Return how often a visit computes a block: its copies have `REPEATED` equations at most.

    A copy saves the test of every other block of the trip, and computes for lanes that have left the loop.
    """
    code = block.code
    if code.may_not_end:  # its inner loops may not end when all lanes have left
        return 1
    loops = any(isinstance(e, Jump) and e.target == code.block.label for e in edges(code.block.terminator))
    return max(1, min(spins, REPEATED // max(1, len(block.jaxpr.eqns)))) if loops else 1
