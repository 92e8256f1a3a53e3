"""The choice between lanes together and one lane after the other, by estimated time.

It is a function of the program, its types and the number of lanes alone, so that equal calls run equally. Constants are
nanoseconds, and were measured (docs/users/performance.md).
"""

from __future__ import annotations

from pcbatch.runtime.costs import trip_time
from pcbatch.runtime.costs.plan_modes import WIDEST, BlockCost, Costs

VISIT = 12.0  # a visit of one lane: a jump, and its registers
OPERATION = 0.5  # one arithmetic operation in it
WORD = 0.1  # one word that it may move
# Lanes together take so many times the estimate of their trips, since they wait for each other; a part of it is for the
# time to compile their program, which is two to eight times as long.
WAITING = 6.0
SIDE_BY_SIDE = 512  # lanes, from which on independent calls are faster side by side
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
    together = WAITING * sum(trip_time.trip_times(costs, costs.modes(lanes), lanes, schedule))
    return together / (lanes * sum(block.often * of_one_lane(block) for block in costs.blocks))


def of_one_lane(block: BlockCost) -> float:
    """Return the time of a visit of one lane."""
    return VISIT + block.alone * OPERATION + block.words * WORD
