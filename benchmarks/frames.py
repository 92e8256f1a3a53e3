"""The most frames in use at once, against their bounds: `python -m benchmarks.frames [--only queens] [--width 64]`

Free frames lie on a stack, so one that is never needed is never touched: the most in use at once, as seen between two
visits, is the number of frames of which the place for the task's own results was ever written. Those places are marked
before a run by the program of every plain run, and counted after it. Columns:

- depth: the most frames at once of an example whose calls end one after the other (by the reference interpreter);
- bound: what a machine needs at most that takes the newest records first, which is depth x (width + 1) (Blelloch,
  Gibbons, Matias). Where records gather for expensive blocks, it is the pool: when few frames are left, one record runs
  at a time;
- all calls: the frames that calls open, together.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from benchmarks.tasks import halves, interval, quadrature
from examples.treelstm.data import generate
from examples.treelstm.model import initial_weights, sentiment
from pcbatch.api.learn_schedule import sampled
from pcbatch.ir.tasks import OpenFrame
from pcbatch.learning.learn import examples_of
from pcbatch.runtime.tasks import TaskExecutable, pool, state
from tests.oracles.interpret_tasks import interpret_tasks

UNTOUCHED = -1  # no place of results has this number
HIDDEN, EPS = 16, 1e-4


@dataclass(frozen=True)
class Frames:
    """The frames of a run.

    Attributes:
        width: the most records of a visit.
        pool: the frames that there are.
        peak: the most that were in use at once.
        depth: the most of one example in a sequential evaluation.
        calls: those that all calls open, together.
        gathers: whether records gather for expensive blocks.
    """

    width: int
    pool: int
    peak: int
    depth: int
    calls: int
    gathers: bool

    @property
    def bound(self) -> int:
        """The most frames that may be in use at once."""
        return self.pool if self.gathers else min(self.pool, self.depth * (self.width + 1))


def queens(board, columns, left, right):
    """Ways to place the rest of the queens, as a float: sums of floats are made in order, by frames."""
    if columns == board:
        return 1.0
    return queens_on(board, columns, left, right, board & ~(columns | left | right))


def queens_on(board, columns, left, right, free):
    """The same with a queen on one of the free columns of this row."""
    if free == 0:
        return 0.0
    queen = free & -free
    here = queens(board, columns | queen, (left | queen) << 1, (right | queen) >> 1)
    return here + queens_on(board, columns, left, right, free ^ queen)


def tree_lstm(batch: int) -> tuple[Any, ...]:
    """A TreeLSTM on so many sentences."""
    return sentiment, initial_weights(HIDDEN, 0), jax.device_put(generate(batch, 1))


def queens_of(size: int) -> tuple[Any, ...]:
    """A board of so many rows."""
    zero = jnp.zeros(1, jnp.int32)
    return pcbatch.batch(queens), zero + ((1 << size) - 1), zero, zero, zero


CASES: Mapping[str, tuple[Callable[[int], tuple[Any, ...]], int]] = {
    "tree_lstm": (tree_lstm, 64),
    "queens": (queens_of, 7),
    "fib": (lambda n: (pcbatch.batch(halves), jnp.full(1, n, jnp.int32)), 16),
    "quadrature": (lambda n: (pcbatch.batch(quadrature), *interval(EPS / n)), 1),
}
SMALL_POOL = {"tree_lstm": 256}  # frames of a second run, which has to be sparing


def measure(f: Any, args: Sequence[Any], width: int | None, frames: int | None) -> Frames:
    """Run a program by tasks, with visits of a width and a pool to begin with; None: as the machine chooses."""
    program, given = sampled(f.with_options(plan=pcbatch.Plan(fork="always")), tuple(args), {})
    assert program.tasks is not None
    options = replace(program.tasks.options, width=width, frames=frames)
    tasks, lanes = TaskExecutable(program.tasks.program, options), given.lanes
    named = program.with_pc("measure").named(tasks)
    values = program.args(given)
    values = {v: values[name] for v, name in named.items()}
    tasks.run(values, lanes)  # what grows has grown
    now = tasks.begins_with(lanes)
    peak = most_in_use(tasks, values, lanes)
    runs = [interpret_tasks(tasks.program, list(example.values()))[1] for example in examples_of(program, tasks, given)]
    opening = [block.label for block in tasks.program.blocks if any(isinstance(op, OpenFrame) for op in block.ops)]
    calls = sum(run.blocks.get(label, 0) for run in runs for label in opening)
    gathers = any(block.expensive for block in tasks.plan(lanes == 1).blocks)
    return Frames(now.width, now.frames, peak, max(run.frames for run in runs), calls, gathers)


def most_in_use(tasks: TaskExecutable, values: Mapping[str, Any], lanes: int) -> int:
    """Return the most frames that a run has in use at once."""
    now = tasks.begins_with(lanes)
    s = state.on_device(tasks.plan(lanes == 1), now, tasks.options.stats)
    if pool.DEST not in s:
        return 0
    s[pool.DEST] = jnp.full_like(s[pool.DEST], UNTOUCHED)
    tasks._kept.arrays[None, now] = s
    tasks.run(values, lanes)
    if tasks.begins_with(lanes) != now:
        raise SystemExit("the pool has grown: a run differs from the one before")
    return int(np.sum(np.asarray(tasks._kept.arrays[None, now][pool.DEST][lanes:]) != UNTOUCHED))


def row(name: str, found: Frames) -> str:
    """A line of the table."""
    cells = (found.width, found.pool, found.peak, found.depth, found.bound, found.calls)
    return f"| {name} | " + " | ".join(f"{n:,}" for n in cells) + f" | {found.peak / found.bound:.2f} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=CASES, default=list(CASES))
    parser.add_argument("--width", type=int, nargs="*", help="of visits; default: 16, 64 and what the machine chooses")
    parser.add_argument("--frames", type=int, help="of the pool; default: what the machine chooses")
    options = parser.parse_args(arguments)
    columns = ("program", "width", "pool", "most in use", "depth", "bound", "all calls", "of the bound")
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns), flush=True)
    for name in options.only:
        make, size = CASES[name]
        f, *args = make(size)
        sizes = [(width, options.frames) for width in options.width or (16, 64, None)]
        if options.frames is None and name in SMALL_POOL:
            sizes.append((sizes[-1][0], SMALL_POOL[name]))
        for width, frames in sizes:
            print(row(f"{name} {size}", measure(f, args, width, frames)), flush=True)


if __name__ == "__main__":
    main()
