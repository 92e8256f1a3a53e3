"""`map` outside traces: programs that run one after another, with decisions on the host between them.

A queue runs until its inputs are used up. Where a lane has no room for a call, stacks grow and it goes on; where few
lanes live and no input is left, they go on in a narrower machine; where inputs come in chunks, lanes that still run
take their work along into the next chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.runtime import queue
from pcbatch.runtime.code import Values
from pcbatch.runtime.outcome import Outcome
from pcbatch.runtime.queue import Queue
from pcbatch.runtime.spread import Spread

if TYPE_CHECKING:
    from pcbatch.runtime.pc import PcExecutable

Progress = Callable[[int, int | None], None]

NARROWER = 4  # a machine that no input is left for narrows by this factor
NARROWEST = 16  # lanes: below, a trip costs its overhead whatever the width
STAGES = 2  # narrowings, each of which is a program to compile
REPORTS = 64  # refills between two reports of progress


@partial(jax.tree_util.register_dataclass, data_fields=["full", "left", "live", "done"], meta_fields=[])
@dataclass(frozen=True, slots=True)
class Pause:
    """How a queue stands, on each device."""

    full: jax.Array  # does a lane wait for room?
    left: jax.Array  # inputs that no lane has taken
    live: jax.Array  # lanes that run
    done: jax.Array  # inputs that have results


@dataclass
class Stream:
    """One `map`. `lanes` are those of one device."""

    executable: PcExecutable
    spread: Spread
    lanes: int
    progress: Progress | None = None
    depth: int = field(init=False)
    grows: bool = field(init=False)

    def __post_init__(self) -> None:
        self.depth, self.grows = self.executable.depth, self.executable.grows

    def run(self, args: Mapping[str, Any]) -> Outcome:
        """Every input, in device memory, to its end."""
        q, stored = self._call(_begin, args, lanes=self.lanes, slots=self.spread.each, depth=self.depth)
        q = self._to_the_end(q, stored, 0, self.spread.inputs)
        self.executable.remember(self.depth)
        return self._call(_finish, q, depth=self.depth)  # type: ignore[no-any-return]

    def _call(self, function: Any, *args: Any, **static: Any) -> Any:
        return self.executable.jitted(function, self.lanes)(*args, spread=self.spread, **static)

    def _to_the_end(self, q: Queue, stored: Values, before: int, total: int | None) -> Queue:
        """Until every input of this queue has its results, in ever narrower machines."""
        for width, narrower in _widths(self.lanes, self.executable):
            if width < q.item.shape[-1]:
                q = self._call(_narrow, q, width=width)
            q = self._turns(q, stored, narrower, False, before, total)
        return q

    def _turns(self, q: Queue, stored: Values, narrower: int, more: bool, before: int, total: int | None) -> Queue:
        """Until no input is left (and, unless there are `more` to come, few lanes live)."""
        turns = None if self.progress is None else REPORTS
        while True:
            q, pause = self._call(_run, q, stored, narrower=narrower, grows=self.grows, turns=turns, more=more)
            if self.progress is None and not self.grows and narrower == 0 and not more:
                return q  # nothing to decide: the caller need not wait
            if self.progress is not None:
                self.progress(before + int(np.sum(pause.done)), total)
            if self.grows and bool(np.any(pause.full)):
                q = self._grown(q)
            elif _ended(pause, narrower, more):
                return q

    def _grown(self, q: Queue) -> Queue:
        """With deeper stacks; or, if they may not get deeper, no longer waiting for that."""
        if 2 * self.depth > self.executable.deepest(int(q.item.shape[-1])):
            self.grows = False
            return q
        self.depth *= 2
        return self._call(_grow, q, depth=self.depth)  # type: ignore[no-any-return]


def _widths(lanes: int, executable: PcExecutable) -> Iterator[tuple[int, int]]:
    """Widths of the machine, and how few live lanes make the next one worth it."""
    widths = [lanes]
    while len(widths) <= STAGES and widths[-1] >= NARROWER * NARROWEST and executable.costs.narrows:
        widths.append(widths[-1] // NARROWER)
    yield from zip(widths, [*widths[1:], 0], strict=True)


def _ended(pause: Pause, narrower: int, more: bool) -> bool:
    left, live = np.asarray(pause.left), np.asarray(pause.live)
    return bool(np.all(left == 0)) and (more or bool(np.all(live <= narrower)))


# The programs. Queues have the devices in front where there are several.


def _begin(
    executable: PcExecutable, args: Mapping[str, Any], *, spread: Spread, lanes: int, slots: int, depth: int
) -> tuple[Queue, Values]:
    dealt, common = executable.dealt(args, spread)

    def body(given: tuple[Any, Any], common: Any) -> tuple[Queue, Values]:
        inputs, end = given
        shared, stored = executable.machine.stored(inputs | common, spread.each)
        return queue.start(executable.machine, shared, lanes, slots, depth, end), stored

    begun: tuple[Queue, Values] = spread.run(body, (dealt, spread.ends()), common)
    return begun


def _run(
    executable: PcExecutable,
    q: Queue,
    stored: Values,
    *,
    spread: Spread,
    narrower: int,
    grows: bool,
    turns: int | None,
    more: bool,
) -> tuple[Queue, Pause]:
    machine = executable.machine

    def body(given: tuple[Queue, Values], _: None) -> tuple[Queue, Pause]:
        q = queue.run(machine, given[0], given[1], narrower, grows, turns, more)
        blocks = machine.blocks(q.state)
        live = jnp.sum(q.state.carry["pc"] < len(blocks), dtype=jnp.int32)
        held = jnp.sum(q.item < q.slots, dtype=jnp.int32)
        return q, Pause(jnp.any(queue.is_full(q, blocks)), q.end - q.following, live, q.following - held)

    ran: tuple[Queue, Pause] = spread.run(body, (q, stored), None)
    return ran


def _grow(executable: PcExecutable, q: Queue, *, spread: Spread, depth: int) -> Queue:
    machine = executable.machine
    grown: Queue = spread.run(lambda q, _: replace(q, state=machine.grow(q.state, depth)), q, None)
    return grown


def _narrow(executable: PcExecutable, q: Queue, *, spread: Spread, width: int) -> Queue:
    narrowed: Queue = spread.run(lambda q, _: queue.narrow(executable.machine, q, width), q, None)
    return narrowed


def _finish(executable: PcExecutable, q: Queue, *, spread: Spread, depth: int) -> Outcome:
    out: Outcome = spread.run(lambda q, _: executable.drained(q, depth), q, None)
    return executable.collected(out, spread)
