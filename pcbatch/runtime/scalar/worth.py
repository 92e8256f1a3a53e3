"""The choice between lanes together and one lane after the other, by estimated time.

It is a function of the program, its types and the number of lanes alone, so that equal calls run equally. Constants are
nanoseconds, and were measured (docs/users/performance.md).
"""

from __future__ import annotations

from dataclasses import replace

from pcbatch.runtime.costs import trip_time
from pcbatch.runtime.costs.plan_modes import WIDEST, BlockCost, Costs

VISIT = 5.0  # a visit of one lane: a jump, and its registers
OPERATION = 0.5  # one arithmetic operation in it
WORD = 0.1  # one word that it may move
# Lanes together take so many times the estimate of their trips, since they wait for each other, and so many more for
# each block. Where they gather for a block that takes one of them `HEAVY`, the kernels of trips take so many times
# theirs, and the rest as long as estimated. A part of it is for the time to compile, two to eight times as long.
WAITING, FOR_EACH_BLOCK, GATHERED = 5.5, 0.25, 2.5
HEAVY = 3000.0
ROUNDS = 24  # visits of a block for one that `often` counts: of loops in loops it counts those of the innermost alone
DEALT, LEAST_DEALT = 4e5, 32  # the time of a call from which on lanes are dealt to cores, and the fewest lanes of each
WIDTHS: tuple[int, ...] = tuple(1 << k for k in range(WIDEST.bit_length()))
ALWAYS = 1 << 62  # more lanes than the widest machine has are rounds of no more


def crossover(costs: Costs, schedule: str) -> int:
    """Return the number of lanes from which on they are estimated to be faster together.

    Args:
        costs: The costs of a program.
        schedule: The policy of lanes that run together.
    """
    return next((lanes for lanes in WIDTHS if times(costs, schedule, lanes) < 1.0), ALWAYS)


def times(costs: Costs, schedule: str, lanes: int) -> float:
    """Return the time that lanes are estimated to take together, over the time that they take one after the other."""
    kernels = replace(costs, blocks=tuple(replace(block, operations=0.0, words=0.0) for block in costs.blocks))
    modes = costs.modes(lanes)
    started, total = (sum(trip_time.trip_times(each, modes, lanes, schedule)) for each in (kernels, costs))
    heavy = any(of_one_lane(costs.blocks[k]) >= HEAVY for k in costs.expensive)
    waiting = WAITING + FOR_EACH_BLOCK * len(costs.blocks)
    together = GATHERED * started + total - started if heavy else waiting * total
    return together / (lanes * _of_visits(costs))


def chunks(costs: Costs, lanes: int, cores: int) -> int:
    """Return the number of chunks in which lanes run one after the other, each chunk on a core of its own."""
    time = ROUNDS * lanes * _of_visits(costs)
    return max(1, min(cores, lanes // LEAST_DEALT)) if time >= DEALT else 1


def _of_visits(costs: Costs) -> float:
    """Return the time of the visits of one lane that `often` counts."""
    return sum(block.often * of_one_lane(block) for block in costs.blocks)


def of_one_lane(block: BlockCost) -> float:
    """Return the time of a visit of one lane."""
    return VISIT + block.alone * OPERATION + block.words * WORD
