"""The first half of a visit: records are popped and their block is computed, before anything is written.

A `Recorder` gets what visits compute, as gradients need it. The rows of a block are numbered in the order of its
visits. A frame gets a new serial number each time it is opened, because its own is used again; examples, which results
can go to as well, have the first ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

from pcbatch.runtime.tasks import lists, pool
from pcbatch.runtime.tasks.sites import Home
from pcbatch.runtime.tasks.sizes import Sizes
from pcbatch.runtime.tasks.task_plan import DEST, FRAME, ROOT, ListBlock, TaskPlan
from pcbatch.runtime.vm.block_body import BodyResults, Values
from pcbatch.runtime.vm.lane_window import Window
from pcbatch.runtime.vm.run_once import isolated


class Seen(NamedTuple):
    """The values that a visit has read and computed: [width, ...] each."""

    window: Window
    registers: Values  # constants of the examples that the block reads, [examples, ...]
    record: Values  # what the list or the frame holds
    frame: jax.Array | None
    dest: jax.Array | None
    root: jax.Array | None
    done: BodyResults


class Recorder(Protocol):
    """The methods that a machine of lists calls in each visit of a block, in this order."""

    @property
    def plan(self) -> TaskPlan:
        """The plan of the program, with the columns that are recorded besides."""

    def rows(self, block: ListBlock, s: Values, seen: Seen, shared: Values) -> Values:
        """Return what is recorded of a visit, by state key, before anything of the state is written."""

    def opened(self, s: Values, frames: jax.Array, k: jax.Array, ok: jax.Array) -> None:
        """Note that the first k of these frames are opened."""

    def origin(self, s: Values, block: ListBlock, target: str, rank: int, width: int) -> jax.Array:
        """Return the column `FROM` of what a visit pushes, by the rank of the push."""

    def append(self, s: Values, block: ListBlock, rows: Values, k: jax.Array) -> None:
        """Append the rows of a visit, of which the first k are records."""


I32 = jnp.int32


@dataclass(frozen=True, slots=True)
class TaskMachine:
    """The inputs of a visit besides the state: the same for all visits of a run.

    Attributes:
        plan: the program.
        sizes: the sizes of the arrays.
        fixed: constants of the examples [examples, ...] and shared values, by variable in storage form.
        stats: whether visits are counted.
        isolate: whether a visit reads in a loop of its own, where XLA would copy what it also writes.
        recorder: records visits.
    """

    plan: TaskPlan
    sizes: Sizes
    fixed: Values
    stats: bool = False
    isolate: bool = False
    recorder: Recorder | None = None


class Read(NamedTuple):
    """The values that a visit reads and computes before it writes any, [width, ...] each."""

    frame: jax.Array | None  # int32[width]: the frame in the record
    values: Values  # variables that the end of the block uses
    dest: jax.Array | None  # int32[width]: where the task's results go
    root: jax.Array | None  # int32[width]: its example
    rows: Values  # what is recorded, by state key


def read(machine: TaskMachine, block: ListBlock, s: Values, k: jax.Array, ok: jax.Array) -> Read:
    """Take the newest k records off the list of a block, and compute it for them.

    Args:
        machine: The machine.
        block: The block.
        s: The state; the list's count is changed.
        k: int32[]: how many records are popped.
        ok: bool[width]: the same as a mask.
    """
    before = dict(s)

    def compute() -> Read:
        scratch = dict(before)
        return _computed(machine, block, scratch, lists.pop(scratch, block, k, ok.shape[0]), ok)

    found = isolated(compute) if machine.isolate else compute()
    s[lists.count(block.label)] = s[lists.count(block.label)] - k
    return found


def _computed(machine: TaskMachine, block: ListBlock, s: Values, record: Values, ok: jax.Array) -> Read:
    plan, code, width = machine.plan, block.code, ok.shape[0]
    if code.may_not_end:  # inner loops may end only on the values of records
        source = jnp.where(ok, jnp.arange(width, dtype=I32), 0)
        record = {name: x.at[source].get(mode="promise_in_bounds") for name, x in record.items()}
    frame = record.get(FRAME)
    dest, root = record.get(DEST), record.get(ROOT)
    if frame is not None and plan.framed:
        dest = s[pool.DEST].at[frame].get(mode="promise_in_bounds")
        if plan.roots and root is None:
            root = s[pool.ROOT].at[frame].get(mode="promise_in_bounds")
    if block.block.joins:
        assert frame is not None
        record = record | _held(plan, block, s, frame)
    dest = root if dest is None else dest  # without frames all results go to examples
    zeros = jnp.zeros(width, I32)
    source = zeros if root is None else root
    window = Window(machine.sizes.lanes, ok, source, zeros, dense=False, borrowed=True)
    registers, shared = ({v: machine.fixed[v] for v in names} for names in (code.reads, code.shared))
    done = code.run(window, registers, {v: record[v] for v in code.pops}, shared, ok)
    rows: Values = {}
    if machine.recorder is not None:
        seen = Seen(window, registers, record, frame, dest, root, done)
        rows = machine.recorder.rows(block, s, seen, shared)
    return Read(frame, done.saved, dest, root, rows)


def _held(plan: TaskPlan, block: ListBlock, s: Values, frame: jax.Array) -> Values:
    """Return the values that frames hold for the block after the `sync`."""
    homes, slots = plan.sites.homes[block.label], plan.sites.slots_of
    arrays = {home.key: pool.rows(s[home.key], slots[home.key]) for home in homes.values() if home.slot is not None}
    arrays |= {home.key: s[home.key] for home in homes.values() if home.slot is None}
    rows = {key: array.at[frame].get(mode="promise_in_bounds") for key, array in arrays.items()}
    return {v: _at_home(rows[home.key], home) for v, home in homes.items()}


def _at_home(frames: Any, home: Home) -> Any:
    """The value that frames hold at a place, of their rows [width, ...]."""
    if home.slot is None:
        return frames
    return frames[:, home.slot] if home.rows is None else frames[:, home.slot : home.slot + home.rows]
