"""Examples that tasks cannot finish are run again by lanes, which know how they end: with which failure, or never.

So the machine of lists need not keep Python's order of failures, nor end what a failed example has started.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax.numpy as jnp
import numpy as np

from pcbatch.data.capacity import rounded
from pcbatch.runtime.tasks.growing import Outcome
from pcbatch.runtime.vm import wide_counters
from pcbatch.runtime.vm.raw_result import RawResult

RunLanes = Callable[[Mapping[str, Any], int], RawResult]


def completed(outcome: Outcome, args: Mapping[str, Any], mapped: frozenset[str], run: RunLanes, exit: int) -> RawResult:
    """Return the results of a run by tasks, with those of unfinished examples by lanes.

    Args:
        outcome: What tasks have given.
        args: The arguments, by parameter of the program for lanes.
        mapped: Those with a value for each example.
        run: Runs examples by lanes: arguments and their number.
        exit: The program counter of lanes that have returned.
    """
    count = len(outcome.unfinished)
    which = np.flatnonzero(outcome.unfinished)
    if not len(which):
        return replace(outcome.raw, pc=_all_at(exit, count), counts=counted(outcome.raw.counts, (), exit))
    if 2 * len(which) > count:
        again = run(args, count)
        return replace(again, counts=counted(outcome.raw.counts, again.counts, exit))
    # The number of lanes is a power of two, so that few programs are compiled; the last example fills up.
    rows = np.concatenate([which, np.full(rounded(len(which)) - len(which), which[-1])]).astype(np.int32)
    given = {v: jnp.take(x, rows, axis=0) if v in mapped else x for v, x in args.items()}
    return merged_by_number(outcome.raw, run(given, len(rows)), which, count, exit)


@lru_cache(maxsize=256)
def _all_at(exit: int, count: int) -> np.ndarray:
    """Return the program counters of lanes that have all returned; no operation of JAX, which takes its time."""
    return np.full(count, exit, np.int32)


def merged_by_number(tasks: RawResult, lanes: RawResult, which: np.ndarray, count: int, exit: int) -> RawResult:
    """Return the result of all examples outside traces: of those that lanes have run again, what lanes say.

    Args:
        tasks: The results of all examples by tasks.
        lanes: Those of some, in the order of `which`, and maybe of more behind them.
        which: int[again]: the numbers of the examples that lanes have run.
        count: The number of all.
        exit: The program counter of lanes that have returned.
    """

    def spread(x: Any, fill: Any) -> Any:
        return None if x is None else jnp.full((count, *x.shape[1:]), fill, x.dtype).at[which].set(x[: len(which)])

    values = tuple(
        done.at[which].set(again[: len(which)]) for done, again in zip(tasks.values, lanes.values, strict=True)
    )
    return replace(
        lanes,
        values=values,
        status=spread(lanes.status, 0),
        trips=tasks.trips + lanes.trips,
        counts=counted(tasks.counts, lanes.counts, exit),
        pc=spread(jnp.asarray(lanes.pc), exit),
        depths=spread(lanes.depths, 0),
        back=spread(lanes.back, 0),
        shown={v: spread(x, 0) for v, x in lanes.shown.items()},
    )


def counted(tasks: tuple[Any, ...], lanes: tuple[Any, ...], blocks: int) -> tuple[Any, ...]:
    """Return the statistics of the blocks of lanes, of which there are so many, and then of those of tasks.

    Either is () where visits were not counted, or where lanes have not run.
    """
    if not tasks:
        return ()
    before = lanes or tuple(wide_counters.zeros(blocks) for _ in tasks)
    return tuple(jnp.concatenate(both) for both in zip(before, tasks, strict=True))
