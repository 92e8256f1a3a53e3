"""Runs of many examples by tasks, some thousand at a time, so that pools stay small."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

import jax.numpy as jnp
import numpy as np

from pcbatch.runtime.tasks.growing import Outcome
from pcbatch.runtime.vm import wide_counters

CHUNK = 4096  # examples; more side by side gain nothing, and each needs frames


class Runs(Protocol):
    """A program of tasks on some devices."""

    def run(self, args: Mapping[str, Any], lanes: int) -> Outcome:
        """Run all examples to their end, as far as they have one."""


def run_chunks(tasks: Runs, args: Mapping[str, Any], mapped: frozenset[str], lanes: int, chunk: int = CHUNK) -> Outcome:
    """Run any number of examples by tasks, a chunk after the other.

    Args:
        tasks: The program.
        args: The arguments by parameter.
        mapped: Those with a value for each example.
        lanes: The number of examples.
        chunk: The most that run at once.
    """
    if lanes <= chunk:
        return tasks.run(args, lanes)
    outcomes = []
    for first in range(0, lanes, chunk):
        # The last example fills up, so that one program serves all chunks.
        rows = np.minimum(np.arange(first, first + chunk, dtype=np.int32), lanes - 1)
        outcomes.append(tasks.run({v: jnp.take(x, rows, axis=0) if v in mapped else x for v, x in args.items()}, chunk))
    return _joined(outcomes, lanes)


def _joined(outcomes: list[Outcome], lanes: int) -> Outcome:
    raws = [outcome.raw for outcome in outcomes]
    values = tuple(jnp.concatenate(parts)[:lanes] for parts in zip(*(raw.values for raw in raws), strict=True))
    status, pc = (jnp.concatenate([getattr(raw, name) for raw in raws])[:lanes] for name in ("status", "pc"))
    trips = sum((raw.trips for raw in raws[1:]), raws[0].trips)
    unfinished = np.concatenate([outcome.unfinished for outcome in outcomes])[:lanes]
    counts = tuple(
        functools.reduce(wide_counters.plus, each) for each in zip(*(raw.counts for raw in raws), strict=True)
    )
    return Outcome(replace(raws[0], values=values, status=status, pc=pc, trips=trips, counts=counts), unfinished)
