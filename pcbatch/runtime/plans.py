"""What blocks cost, and what follows: how each is computed, how many lanes a machine should have.

Times are estimates in nanoseconds for one CPU core; the constants were measured (docs/performance.md) and are part of
the program, not of the run, so that equal programs are planned, and compiled, equally.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from pcbatch.ir.stack import StackBlock, StackProgram
from pcbatch.ir.walk import block_uses, block_writes, pops, pushes
from pcbatch.lowering.frequency import flow, visits
from pcbatch.lowering.jax_types import storage_type
from pcbatch.lowering.order import block_cost, expensive_block
from pcbatch.runtime import parts
from pcbatch.runtime.modes import Dense, Few, Mode, Strips

OPERATION = 0.35  # one arithmetic operation of one lane, vectorised
WORD = 0.4  # moving one word of one lane: its share of a masked update, which reads twice and writes once
KERNEL = 150.0  # one more kernel in a trip
FIND = 1.2  # looking whether one lane waits
# Lanes to look up at a time: (relative visits, part of all lanes, least, most). Too few, and the same trip visits the
# block again and again; too many, and it computes lanes that do not wait.
FEW = ((0.5, 5, 16, 128), (0.05, 6, 8, 64), (0.0, 12, 4, 32))
STREAM_WIDTHS = ((4000.0, 128), (0.0, 512))  # lanes of a stream, by the time of one lane's trip
WIDEST = 1024  # lanes of one CPU machine: beyond it the cost of a trip only grows
NARROWS = 12  # blocks: a narrower machine is one more program to compile


@dataclass(frozen=True, slots=True)
class BlockCost:
    """One block. `often`: its expected visits, relative to the most visited block's."""

    label: str
    operations: float
    words: float  # per lane, that a visit reads or writes
    arrays: int  # registers and frames that it touches
    often: float
    expensive: bool
    loops: bool  # a lane may go from it to itself, by a jump or a return

    @property
    def lane(self) -> float:
        """Time per lane."""
        return self.operations * OPERATION + self.words * WORD

    def dense(self, lanes: int) -> float:
        """Time of a visit that computes all lanes."""
        return self.arrays * KERNEL + lanes * self.lane

    def few(self, lanes: int, width: int) -> float:
        """Time of a visit that looks up so many lanes."""
        return FIND * lanes + 2 * self.arrays * KERNEL + width * 2 * self.lane


@dataclass(frozen=True, slots=True)
class Costs:
    """The blocks of a program in order."""

    blocks: tuple[BlockCost, ...]

    @property
    def expensive(self) -> tuple[int, ...]:
        """Blocks worth waiting for."""
        return tuple(k for k, block in enumerate(self.blocks) if block.expensive)

    def modes(self, lanes: int) -> tuple[Mode, ...]:
        """How each block is computed in a machine of so many lanes."""
        return tuple(_mode(block, lanes) for block in self.blocks)

    def lanes(self, inputs: int) -> int:
        """Lanes for a plain call: all inputs at once while that is cheap."""
        return inputs if inputs <= WIDEST else self.stream_lanes(inputs)

    def stream_lanes(self, inputs: int) -> int:
        """Lanes for a stream of inputs."""
        trip = sum(block.lane * block.often for block in self.blocks)
        wanted = next(width for least, width in STREAM_WIDTHS if trip >= least)
        return min(inputs, wanted)

    @property
    def narrows(self) -> bool:
        """Is it worth compiling narrower machines for the end of a stream?"""
        return len(self.blocks) <= NARROWS


def costs(program: StackProgram) -> Costs:
    """The costs of an ordered program."""
    often = visits(program)
    most = max(often.values())
    last = expensive_block(program)
    graph = flow(program)
    return Costs(
        tuple(
            _cost(program, b, often[b.label] / most, b.label == last, b.label in graph[b.label]) for b in program.blocks
        )
    )


def _cost(program: StackProgram, block: StackBlock, often: float, expensive: bool, loops: bool) -> BlockCost:
    types = {v: var.type for v, var in program.vars.items()}
    registers = {
        v for v in block_uses(block) | block_writes(block) if (s := program.vars[v].storage) and s.has_register
    }
    slots = [op.dst for op in (*pops(block), *pushes(block))]
    touched = {v for op in block.ops for v in parts.in_part(op)}
    sizes = [storage_type(t).size for v in (*(registers - touched), *slots) if (t := types[v]) is not None]
    return BlockCost(
        block.label,
        block_cost(block, types),
        float(sum(sizes)),
        len(registers) + bool(slots),
        often,
        expensive,
        loops,
    )


def _mode(block: BlockCost, lanes: int) -> Mode:
    env = dict(x.split(":") for x in os.environ.get("PB_M", "").split("/") if x)
    if block.label in env:
        m = env[block.label]
        return Dense(spins=m == "s") if m in "ds" else Strips(-int(m)) if int(m) < 0 else Few(int(m))
    if block.expensive:
        return Dense()
    width = few_width(block.often, lanes)
    if width > lanes // 2 or block.few(lanes, width) > block.dense(lanes):
        return Dense(spins=block.loops)
    return Few(width)


def few_width(often: float, lanes: int) -> int:
    """How many lanes to look up at a time for a block of so many (relative) visits: a power of two."""
    part, low, high = next(row[1:] for row in FEW if often >= row[0])
    return min(high, max(low, 2 ** int(math.log2(max(1, lanes / part)))))
