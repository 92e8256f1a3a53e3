"""Estimated costs of blocks, and the plans that follow from them: the mode of each block, the lanes of a machine.

Times are estimates in nanoseconds for one CPU core; the constants were measured (docs/users/performance.md), and are
part of the program, not of the run, so that equal programs are planned, and compiled, equally.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.diagnostics.short_repr import short
from pcbatch.errors import UsageError
from pcbatch.ir.analysis.def_use import block_uses, block_writes, edges, holds, pops, pushes
from pcbatch.ir.ops import Jump, Prim
from pcbatch.ir.stack import StackBlock, StackProgram
from pcbatch.lowering.analysis.block_frequency import flow, has_cycle, inner_loops, visits
from pcbatch.lowering.analysis.lane_time import ALONE, TOGETHER, lane_time
from pcbatch.lowering.stack_passes.block_layout import block_cost, expensive_blocks
from pcbatch.lowering.typing.jax_types import is_symbolic, storage_type
from pcbatch.plan import Dense, Few, Mode, Strips
from pcbatch.runtime.vm import indexed_access
from pcbatch.runtime.vm.block_body import lanes_last_registers

OPERATION = 0.06  # one arithmetic operation of one lane, vectorised
WORD = 0.25  # moving one word of one lane: its share of a masked update, which reads twice and writes once
KERNEL = 150.0  # one more kernel in a trip
LOOKED_UP = 1000.0  # one more array in a visit that looks lanes up: about four kernels, gather and scatter among them
LOOKED_UP_DRAINED = 300.0  # the same where a trip drains: a dense visit is repeated more often than `DRAINED` says
# One word of an array with the lanes last, of a lane that is looked up, if the array is larger than the first cache:
# each word is in a cache line of its own, and for 1024 lanes all of them want the same places of that cache.
STRIDED, CACHED = 4.0, 8192
# To ask whether a lane waits takes longer than to compute so much, of so few arrays, for nothing; and where fewer lanes
# than that are expected at a block, it is computed for nothing most of the time.
ASKED, ASKED_ARRAYS, EXPECTED = 100.0, 6, 0.5
FIND = 1.2  # looking whether one lane waits
WAITING = 0.5  # the share of the lanes that a trip finds waiting for a block of the innermost loop
INNER = 4  # so many times as often as the expensive blocks, a cheap block is in a loop inside of theirs
DRAINED = 4  # visits that a cheap block gets in one trip which drains it
# Lanes to look up at a time: (relative visits, part of all lanes, least, most). Too few, and the same trip visits the
# block again and again; too many, and it computes lanes that do not wait.
FEW = ((0.5, 5, 8, 128), (0.05, 6, 8, 64), (0.0, 12, 4, 32))
FILLED = 2.0  # a group of lanes that are looked up is computed for so many times as long as it took to find them
STRIP, STRIP_LANE, STRIP_VISIT = 128, 15.0, 6000.0  # lanes; worth it from that time per lane and per visit
# From that time per lane on, for more lanes than so many, strips of an eighth of them, within bounds, waste less.
NARROW_STRIP_LANE, NARROW_STRIP_LANES, NARROW_STRIP, STRIPS = 1000.0, 32, (8, 32), 8
LOOK = 3000.0  # in a visit that takes longer, the cost of counting waiting lanes is negligible
MOST_LEFT = 0.5  # of the live lanes
STREAM = 512  # lanes of a stream
LONG_STREAM = 768  # of one with so many inputs for each lane that its end, where few lanes are left, does not matter:
LONG = 16
LIGHT = 1024.0  # words that a visit of any block reads or writes per lane, of a program whose lanes are no heavier
WIDEST = 1024  # lanes of one CPU machine: beyond it the cost of a trip only grows
NARROWS = 12  # blocks: a narrower machine is one more program to compile
# The last lanes of a run go on in a machine of an eighth, if that has so many lanes. It takes as long to compile as the
# first machine, so it is done for small programs alone: so many registers that their blocks touch, in sum. The smallest
# have a machine of a half before that, where computing takes so many times as long as starting kernels.
EIGHTH, LEAST_NARROW, NARROW_ARRAYS, HALF_ARRAYS, HALF_SHARE = 8, 8, 20, 12, 3.0


def most_lanes(inputs: int) -> int:
    """Return the most lanes that a plain call has for so many inputs, whatever the program."""
    return inputs if is_symbolic(inputs) or inputs <= WIDEST else _stream_lanes(inputs, light=True)


def _stream_lanes(inputs: int, light: bool) -> int:
    return LONG_STREAM if light and inputs >= LONG * LONG_STREAM else min(inputs, STREAM)


@dataclass(frozen=True, slots=True)
class BlockCost:
    """The estimated cost of one block. Times are in nanoseconds."""

    label: str
    operations: float  # per lane
    words: float  # per lane, that a visit reads or writes
    arrays: int  # registers and frames that it touches
    often: float  # expected visits, relative to the most visited block's
    expensive: bool  # lanes should gather before it runs
    loops: bool  # it is its own successor, by a jump or a return
    inner: bool = False  # on a loop of cheap blocks alone
    jumps: bool = False  # it jumps to itself
    stores: bool = False  # into parts of registers
    last: tuple[int, ...] = ()  # the sizes, for a lane, of the arrays with the lanes last
    rounds: int = 1  # of a loop, that a visit computes
    alone: float = 0.0  # what it computes for a lane that runs alone
    together: float = 0.0  # what it computes for one of many lanes, without kernels
    frames: bool = False  # it pushes or pops
    cut: float = 0.0  # words of a lane's registers that are cut out and put back where it alone is for all lanes

    @property
    def lane(self) -> float:
        """The time per lane of a visit."""
        return self.operations * OPERATION + self.words * WORD

    def dense(self, lanes: int) -> float:
        """Return the time of a visit that computes all lanes."""
        return self.arrays * KERNEL + lanes * self.lane

    def is_small(self, lanes: int) -> bool:
        """Whether a visit for all lanes takes no longer than to find out whether any lane waits.

        A block that stores into an array in place is never small: XLA might copy the array.
        """
        return lanes * self.lane <= ASKED and self.arrays <= ASKED_ARRAYS and not self.stores

    def few(self, lanes: int, width: int, waiting: float, array: float = LOOKED_UP) -> float:
        """Return the time of a visit for which `waiting` lanes wait, when `width` of them are looked up at a time.

        `array`: the time for each array that the block touches.
        """
        found = self._found(lanes, array) + width * (2 * self.lane + self.strided(lanes))
        return math.ceil(waiting / width) * found

    def strided(self, lanes: int) -> float:
        """Return the time per lane that is looked up to move arrays with the lanes last."""
        return STRIDED * sum(size for size in self.last if size * lanes > CACHED)

    def filled(self, lanes: int, array: float = LOOKED_UP) -> int:
        """Return the lanes to look up at a time, a power of two, so that computing them takes longer than finding them.

        It is not known how many lanes will wait. Fewer at a time save next to nothing when few do, and when many do
        each group of them is looked up by itself.
        """
        computed = 2 * max(self.lane, WORD)
        return int(2 ** math.floor(math.log2(max(1.0, FILLED * self._found(lanes, array) / computed))))

    def _found(self, lanes: int, array: float) -> float:
        """Return the time to look some lanes up, and of the kernels that gather and scatter their values."""
        return FIND * lanes + self.arrays * array


@dataclass(frozen=True, slots=True)
class Costs:
    """The estimated costs of a program, and the plans for machines of any number of lanes."""

    blocks: tuple[BlockCost, ...]  # in order
    chosen: Mapping[int, Mode]  # number of a block -> the mode that the user has chosen
    drains: bool  # a trip visits cheap blocks until no lane waits for any
    sweeps: bool = False  # a trip visits every block
    goes_round: bool = True  # a lane may visit a block twice

    @property
    def expensive(self) -> tuple[int, ...]:
        """The numbers of the blocks that lanes should gather for."""
        return tuple(k for k, block in enumerate(self.blocks) if block.expensive)

    def modes(self, lanes: int) -> tuple[Mode, ...]:
        """Return the mode of each block in a machine of `lanes` lanes."""
        return tuple(mode for mode, _ in self.choices(lanes))

    def choices(self, lanes: int) -> tuple[tuple[Mode, str], ...]:
        """Return the mode of each block with the reason for it in a few words, see `modes`."""
        if is_symbolic(lanes):
            lanes = WIDEST
        said = {k: (mode, "as `modes` says") for k, mode in self.chosen.items()}
        return tuple(said.get(k) or self._choice(block, lanes) for k, block in enumerate(self.blocks))

    def _choice(self, block: BlockCost, lanes: int) -> tuple[Mode, str]:
        dense = Dense(spins=_turns(block, lanes) if self._spins(block) else 0)
        if block.expensive:
            return _expensive_choice(block, lanes, dense)
        if block.rounds > 1:
            return dense, "unrolled, so cheap that looking lanes up costs more"
        if not dense.spins and _is_dear(block, lanes):
            return _narrow_strips(lanes), "so dear that narrow strips pay when few come"
        visits, array = (DRAINED, LOOKED_UP_DRAINED) if self.drains else (1, LOOKED_UP)
        if self._always(block, lanes) and not dense.spins:
            return Dense(always=True), "cheap: to ask whether a lane waits takes longer"
        width = max(few_width(block.often, lanes), block.filled(lanes, array))
        if width > lanes // 2:
            return dense, "cheap: looking lanes up costs more"
        if self.drains and block.often >= INNER * max((b.often for b in self.blocks if b.expensive), default=math.inf):
            return dense, "in a loop that lanes go round together, between two visits of what they wait for"
        waiting = max(1.0, lanes * block.often * WAITING)
        if block.few(lanes, width, waiting, array) > visits * block.dense(lanes):
            return dense, "cheap: looking lanes up costs more"
        return Few(width), "few lanes wait at a time"

    def _always(self, block: BlockCost, lanes: int) -> bool:
        """Whether a sweep should compute the block without asking whether any lane waits for it."""
        expected = lanes * block.often / sum(other.often for other in self.blocks)
        return self.sweeps and block.is_small(lanes) and expected >= EXPECTED

    def _spins(self, block: BlockCost) -> bool:
        """Whether a visit should repeat the block, where a trip is not a visit of one block that the policy chose."""
        most_visited = all(other is block or other.often < block.often for other in self.blocks)
        # In a recursion like Fibonacci's, whose blocks are visited equally often, few lanes return to the same block at
        # once; to repeat blocks for those took 1.7 times as long.
        hottest = all(other.often <= block.often for other in self.blocks)
        swept = self.sweeps and (block.jumps or not hottest)
        return block.loops and (self.drains or swept or most_visited)

    def left_behind(self, lanes: int) -> float:
        """Return the share of the live lanes for which a drain makes no further sweep.

        To wait for the last lanes in a loop of cheap blocks takes a sweep over the loop for each round, and saves the
        part of an expensive visit that they would have had to themselves.
        """
        lanes = WIDEST if is_symbolic(lanes) else lanes
        expensive = [self.blocks[k].dense(lanes) for k in self.expensive]
        if not expensive:
            return 0.0
        sweep = sum(block.dense(lanes) / block.rounds for block in self.blocks if block.inner)
        return min(MOST_LEFT, sweep * len(expensive) / sum(expensive))

    def lanes(self, inputs: int) -> int:
        """Return the number of lanes for a plain call: all inputs at once while that is cheap."""
        return inputs if is_symbolic(inputs) or inputs <= WIDEST else self.stream_lanes(inputs)

    def stream_lanes(self, inputs: int) -> int:
        """Return the number of lanes for a stream of `inputs` inputs."""
        if is_symbolic(inputs):
            return STREAM
        return _stream_lanes(inputs, all(block.words <= LIGHT for block in self.blocks))

    def narrows(self, wanted: bool | None) -> bool:
        """Whether narrower machines for the end of a stream are worth compiling; `wanted` is `narrow` of the plan."""
        return len(self.blocks) <= NARROWS if wanted is None else wanted

    def narrower(self, lanes: int, wanted: bool | None = None) -> tuple[int, ...]:
        """Return the lanes of the machines in which the last lanes of so many should go on, from wide to narrow.

        It pays where a trip takes as long for the lanes as to start its kernels, and lanes end at different times. The
        second is not known; if they end together, the run takes a few per cent longer. `wanted`: `narrow` of the plan.
        """
        eighth = 0 if is_symbolic(lanes) else lanes // EIGHTH
        share = self._computed_share(lanes) if eighth >= LEAST_NARROW and self._arrays <= NARROW_ARRAYS else 0.0
        if wanted is False or not self.goes_round or not (wanted or share >= 1):
            return ()
        half = (lanes // 2,) if share >= HALF_SHARE and self._arrays <= HALF_ARRAYS else ()
        # In whole vectors of the processor, most operations round like those of all lanes.
        whole = (width - width % LEAST_NARROW if width > LEAST_NARROW else width for width in (*half, eighth))
        return tuple(width for width in whole if width)

    def _computed_share(self, lanes: int) -> float:
        """Return the time of a trip that lanes take, relative to the time to start its kernels."""
        computed = sum(block.often * lanes * block.lane for block in self.blocks)
        return computed / max(1.0, sum(block.often * block.arrays * KERNEL for block in self.blocks))

    @property
    def _arrays(self) -> int:
        return sum(block.arrays for block in self.blocks)


def costs(
    program: StackProgram, modes: Mapping[str, Mode] | Mode | None = None, drains: bool = False, sweeps: bool = False
) -> Costs:
    """Estimate the costs of a typed program whose blocks are in order.

    Args:
        program: The program.
        modes: The modes that the user chose, see `Options.modes`.
        drains: Whether the policy visits cheap blocks until no lane waits for any.
        sweeps: Whether it visits every block in a trip.

    Raises:
        UsageError: PCB416: a key of `modes` names no block.
    """
    often = visits(program)
    most = max(often.values())
    expensive = expensive_blocks(program)
    graph, inner = flow(program), inner_loops(program, expensive)
    last = lanes_last_registers(program)
    blocks = [
        _cost(
            program, b, often[b.label] / most, b.label in expensive, b.label in graph[b.label], b.label in inner, last
        )
        for b in program.blocks
    ]
    uses = _uses(program, blocks)
    blocks = [replace(one, cut=_cut(uses, one)) if one.expensive else one for one in blocks]
    return Costs(tuple(blocks), _chosen(program, modes), drains, sweeps, has_cycle(graph))


def _uses(program: StackProgram, costs: Sequence[BlockCost]) -> list[tuple[float, int]]:
    """Return how often lanes use each register, and its size in words."""
    uses: dict[str, float] = {}
    for block, cost in zip(program.blocks, costs, strict=True):
        for v in (*block_uses(block), *block_writes(block)):
            uses[v] = uses.get(v, 0.0) + cost.often
    registers = {v: var.type for v, var in program.vars.items() if var.has_register}
    return [(uses.get(v, 0.0), storage_type(type_).size) for v, type_ in registers.items() if type_]


def _cut(uses: Sequence[tuple[float, int]], block: BlockCost) -> float:
    """Return the words of the registers that lanes use so often, between two visits of a block, that each is cut out
    for the lane (`runtime/scalar/outside.py`)."""
    return float(sum(size for often, size in uses if often > 2 * block.often))


def _chosen(program: StackProgram, modes: Mapping[str, Mode] | Mode | None) -> dict[int, Mode]:
    if modes is None:
        return {}
    if not isinstance(modes, Mapping):
        return dict.fromkeys(range(len(program.blocks)), modes)
    chosen: dict[int, Mode] = {}
    for text, mode in modes.items():
        blocks = [k for k, block in enumerate(program.blocks) if text == block.label or holds(block, text)]
        if not blocks:
            title = f"modes: no block is called {short(text)} or holds an expression with that in its text"
            help = "`f.explain_schedule(...)` lists the blocks and what they hold"
            raise UsageError(Diagnostic("PCB416", title, helps=(help,)))
        chosen |= dict.fromkeys(blocks, mode)
    return chosen


def _cost(
    program: StackProgram,
    block: StackBlock,
    often: float,
    expensive: bool,
    loops: bool,
    inner: bool,
    last: Collection[str],
) -> BlockCost:
    types = {v: var.type for v, var in program.vars.items()}
    used = block_uses(block) | block_writes(block)
    registers = {v for v in used if program.vars[v].has_register}
    slots = [*(op.dst for op in pops(block)), *(op.dst for op in pushes(block))]
    touched = {v for op in block.ops for v in indexed_access.in_part(op)}
    sizes = [storage_type(t).size for v in (*(registers - touched), *slots) if (t := types[v]) is not None]
    alone, together = (
        len(slots) * prices.access + sum(lane_time(op, types, prices) for op in block.ops)
        for prices in (ALONE, TOGETHER)
    )
    cuts = [indexed_access.cut(op) for op in block.ops if isinstance(op, Prim)]
    return BlockCost(
        block.label,
        block_cost(block, types),
        float(sum(sizes)),
        len(registers) + bool(slots),
        often,
        expensive,
        loops,
        inner,
        jumps=any(isinstance(edge, Jump) and edge.target == block.label for edge in edges(block.terminator)),
        stores=any(cut is not None and cut.stored for cut in cuts),
        last=tuple(storage_type(t).size for v in sorted(registers & set(last)) if (t := types[v]) is not None),
        rounds=block.rounds,
        alone=alone,
        together=together,
        frames=bool(slots),
    )


def _expensive_choice(block: BlockCost, lanes: int, dense: Dense) -> tuple[Mode, str]:
    """Choose strips where they save more than looking lanes up, gathering and scattering cost."""
    if _is_dear(block, lanes):
        return _narrow_strips(lanes), "waited for; so dear that narrow strips pay when few come"
    if dense.spins:
        return dense, "waited for; lanes go round in it"
    worth = block.lane >= STRIP_LANE and block.dense(lanes) >= max(STRIP_VISIT, 2 * STRIP * block.strided(lanes))
    if worth and lanes > 2 * STRIP:
        return Strips(STRIP), "waited for; strips when few come"
    return dense, "waited for: most lanes take part"


def _is_dear(block: BlockCost, lanes: int) -> bool:
    return block.lane >= NARROW_STRIP_LANE and lanes > NARROW_STRIP_LANES


def _narrow_strips(lanes: int) -> Strips:
    low, high = NARROW_STRIP
    return Strips(min(high, max(low, 1 << (lanes // STRIPS).bit_length() - 1)))


def _turns(block: BlockCost, lanes: int) -> int:
    """Return the repetitions of a block between two counts of its waiting lanes: a count costs a few kernels."""
    return 4 if lanes * block.lane < LOOK else 1


def few_width(often: float, lanes: int) -> int:
    """Return the number of lanes to look up at a time, a power of two, for a block with these relative visits."""
    part, low, high = next(row[1:] for row in FEW if often >= row[0])
    return int(min(high, max(low, 2 ** int(math.log2(max(1, lanes / part))))))
