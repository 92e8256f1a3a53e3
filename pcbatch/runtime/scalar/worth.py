"""The choice between lanes together and one lane after the other, by estimated time.

It is a function of the program, its types and the number of lanes alone, so that equal calls run equally. Constants are
nanoseconds, and were measured (docs/users/performance.md).
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace

from pcbatch.runtime.costs.plan_modes import WIDEST, BlockCost, Costs

VISIT = 4.0  # a visit of one lane: a jump, and its registers
TRIP, KERNEL = 1200.0, 70.0  # a visit of all lanes, and for each array that it touches
WORD = 0.15  # one word of one of many lanes that a visit of all moves
# Lanes together take so many times the estimate, since they wait for each other; in a loop of few blocks, without
# recursion, next to nothing more. A part of it is for the time to compile, two to eight times as long.
WAITING, FOR_EACH_BLOCK, FEW_WAIT, FEW_BLOCKS = 2.5, 0.25, 1.05, 4
# Gradients of lanes together write a tape of all lanes to memory, and have to be this many times as fast in their runs.
GRADIENT = 2.0
LOOPS = 4.0  # but lanes alone so many times, where a step holds a loop of JAX
ROUNDS = 60  # visits of a block for one that `often` counts: of loops in loops it counts those of the innermost alone
DEALT, LEAST_DEALT = 4e5, 32  # the time of a call from which on lanes are dealt to cores, and the fewest lanes of each
WIDTHS: tuple[int, ...] = tuple(1 << k for k in range(WIDEST.bit_length()))
# A block is visited for all lanes where one of them takes `HEAVY`, and all of them so many times as long as that visit,
# which begins with so many nanoseconds of kernels.
HEAVY, OUTSIDE, STARTED = 2500.0, 1.5, 1e5
# A word of a register that is cut out for each lane, and put back, around such a visit: of all lanes too many for the
# caches (3.1 and 3.5 measured), or not.
CUT, CUT_IN_CACHE, CACHED_WORDS = 2.5, 0.1, 1 << 19


@dataclass(frozen=True, slots=True)
class Widths:
    """Numbers of lanes, of which those from one power of two to the next are alike; the last power stands for more.

    Attributes:
        floors: The powers of two, ascending.
    """

    floors: tuple[int, ...] = ()

    @classmethod
    def below(cls, lanes: int) -> Widths:
        """Return the numbers below a power of two."""
        return cls(tuple(width for width in WIDTHS if width < lanes))

    def __contains__(self, lanes: int) -> bool:
        return floor(lanes) in self.floors if lanes else bool(self.floors)

    def __bool__(self) -> bool:
        return bool(self.floors)

    def __sub__(self, other: Widths) -> Widths:
        return Widths(tuple(width for width in self.floors if width not in other.floors))

    def __str__(self) -> str:
        """These numbers in words that stand in front of `lanes`."""
        if self.floors == WIDTHS:
            return "any number of"
        ends = [f for f in self.floors if 2 * f not in self.floors]
        starts = [f for f in self.floors if f // 2 not in self.floors]
        return " or ".join(map(_range_text, starts, ends))


def _range_text(start: int, end: int) -> str:
    if end == WIDEST:
        return f"{start:,} and more"
    return f"fewer than {2 * end:,}" if start == 1 else f"{start:,} to {2 * end - 1:,}"


def one_by_one(costs: Costs, schedule: str) -> Widths:
    """Return the numbers of lanes that are estimated to be faster one after the other than together.

    Args:
        costs: The costs of a program.
        schedule: The policy of lanes that run together.
    """
    return Widths(tuple(lanes for lanes in WIDTHS if times(costs, schedule, lanes) >= 1.0))


def undoes_one_by_one(costs: Costs, schedule: str, lanes: int, has_loops: bool) -> bool:
    """Return whether a gradient of so many lanes is estimated to be faster one after the other than together.

    Args:
        costs: The costs of a program.
        schedule: The policy of lanes that run together.
        lanes: The number of lanes.
        has_loops: Whether a block holds a loop of JAX, which is undone for a lane alone without vectors.
    """
    return times(costs, schedule, floor(lanes)) >= (LOOPS if has_loops else 1.0 / GRADIENT)


def floor(lanes: int) -> int:
    """Return the power of two whose estimate stands for so many lanes."""
    return min(WIDEST, 1 << max(0, lanes.bit_length() - 1))


def gathering(costs: Costs) -> Widths:
    """Return the numbers of lanes that gather for a block, while each runs the rest of the program by itself."""
    finite = [block for block in costs.blocks if math.isfinite(block.alone)]
    return Widths(tuple(lanes for lanes in WIDTHS if any(is_outside(block, lanes) for block in finite)))


def beside(widths: Widths, costs: Costs, has_tasks: bool) -> Widths:
    """Return those numbers of lanes that run one after the other where their calls may run side by side instead."""
    return widths - gathering(costs) if has_tasks else widths


def times(costs: Costs, schedule: str, lanes: int) -> float:
    """Return the time that lanes are estimated to take together, over the time that they take one after the other."""
    return _waiting(costs) * _together(costs, schedule, lanes) / _one_after_the_other(costs, lanes)


def _of_a_trip(costs: Costs, schedule: str) -> float:
    """Return what `often` counts of the block that each trip visits once."""
    blocks = [costs.blocks[k] for k in costs.expensive] if schedule == "drain" else []
    return max(block.often for block in blocks or costs.blocks)


def _together(costs: Costs, schedule: str, lanes: int) -> float:
    """Return the time of the visits that `often` counts, of lanes that never wait."""
    trip = _of_a_trip(costs, schedule)
    total = 0.0
    for block in costs.blocks:
        passes = block.often / trip
        any_comes = 1.0 - (1.0 - min(1.0, passes)) ** lanes
        visit = (TRIP + block.arrays * KERNEL) * (block.arrays > 0) + lanes * (block.together + block.words * WORD)
        total += max(1.0, passes) * any_comes * visit
    return total * trip


def _waiting(costs: Costs) -> float:
    """Return how many times as long lanes take that wait for each other."""
    blocks, recursion = len(costs.blocks), any(block.frames for block in costs.blocks)
    return FEW_WAIT if blocks <= FEW_BLOCKS and not recursion else WAITING + FOR_EACH_BLOCK * blocks


def is_outside(block: BlockCost, lanes: int) -> bool:
    """Whether a block is visited for all lanes at once while the rest of the program runs one lane after the other."""
    alone = of_one_lane(block)
    pays = lanes * alone - _cut_out(block, lanes) >= OUTSIDE * (STARTED + block.dense(lanes))
    return math.isinf(alone) or (block.expensive and alone >= HEAVY and pays)


def _cut_out(block: BlockCost, lanes: int) -> float:
    """Return the time to cut the registers of all lanes out, and to put them back."""
    words = lanes * block.cut
    return words * (CUT if words > CACHED_WORDS else CUT_IN_CACHE)


def _one_after_the_other(costs: Costs, lanes: int) -> float:
    """Return the time of the visits that `often` counts, expensive blocks for all lanes at once."""
    return sum(
        block.often
        * (
            STARTED + block.dense(lanes) + _cut_out(block, lanes)
            if is_outside(block, lanes)
            else lanes * of_one_lane(block)
        )
        for block in costs.blocks
    )


def with_blocked(costs: Costs, blocked: Collection[int]) -> Costs:
    """Return costs in which no lane alone can run some blocks."""
    blocks = (replace(block, alone=math.inf) if k in blocked else block for k, block in enumerate(costs.blocks))
    return replace(costs, blocks=tuple(blocks)) if blocked else costs


def chunks(costs: Costs, lanes: int, cores: int) -> int:
    """Return the number of chunks in which lanes run one after the other, each chunk on a core of its own."""
    if any(is_outside(block, lanes) for block in costs.blocks):
        return 1
    time = ROUNDS * lanes * _of_visits(costs)
    return max(1, min(cores, lanes // LEAST_DEALT)) if time >= DEALT else 1


def _of_visits(costs: Costs) -> float:
    """Return the time of the visits of one lane that `often` counts."""
    return sum(block.often * of_one_lane(block) for block in costs.blocks)


def of_one_lane(block: BlockCost) -> float:
    """Return the time of a visit of one lane."""
    return VISIT + block.alone
