"""The work that blocks may do for lanes of other paths.

A trip of many lanes costs more than some operations that nobody needs. A visit of one lane costs a jump, so that hardly
any such work pays there, and no selection between two arrays.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass

from pcbatch.contexts import setting


@dataclass(frozen=True, slots=True)
class Speculated:
    """Limits of speculation; costs are those of one lane, in about one arithmetic operation each.

    Attributes:
        arm: The cost of an arm that becomes selections.
        selected: The elements of a variable that such an arm selects.
        block: The cost of all that a block computes for lanes of other paths.
        on_exit: The cost of one copy on the path out of a loop, which each iteration would pay.
    """

    arm: float
    selected: int
    block: float
    on_exit: float


TOGETHER = Speculated(arm=64.0, selected=1024, block=24.0, on_exit=8.0)
ONE_BY_ONE = Speculated(arm=8.0, selected=4, block=6.0, on_exit=2.0)

_limits: ContextVar[Speculated] = ContextVar("pcbatch_speculated", default=TOGETHER)


def limits() -> Speculated:
    """Return the limits of the program that is compiled."""
    return _limits.get()


def limits_for(emitter: object) -> Speculated:
    """Return the limits for an option `emitter`."""
    return ONE_BY_ONE if emitter == "scalar" else TOGETHER


def within(limits: Speculated) -> AbstractContextManager[None]:
    """Compile within these limits in the context."""
    return setting(_limits, limits)
