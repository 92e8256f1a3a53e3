"""Open runs: a machine whose inputs come one by one, and whose results are read as soon as their lanes have ended.

The host comes back after each *turn*, some trips between which nothing is asked of it. It then takes the results of
lanes that have ended, and gives their lanes to inputs that wait. Stacks grow between two turns.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np

from pcbatch.call.arguments import Arguments
from pcbatch.compiler.program import Program
from pcbatch.data.objects.tables import TABLES
from pcbatch.lowering.analysis.block_frequency import flow, has_cycle
from pcbatch.lowering.typing.trace import is_key_array
from pcbatch.runtime.execute.executor import PcExecutable
from pcbatch.runtime.execute.host_loop import FIRST, FOREVER, TripBudget
from pcbatch.runtime.execute.queue_programs import read_lanes, resize_queue, serve_queue
from pcbatch.runtime.execute.queue_run import QueueRun
from pcbatch.runtime.scalar import ScalarMachine
from pcbatch.runtime.scalar.worth import gathering
from pcbatch.runtime.sharding.lane_sharding import LaneSharding, ShardedArguments, run_without_mesh
from pcbatch.runtime.vm.raw_result import RawResult, debug_checks

HOST = 3e-4  # seconds that a turn takes the host
IDLE = 2e-3  # seconds that all lanes may be idle in a turn, summed over lanes that have ended, in shares of all
SLOWER = 1.1  # times as long as before a trip may seem to take: now and then something else runs meanwhile


def waits(program: Program, lanes: int) -> bool:
    """Whether so many lanes of the program that a call would run wait for each other: not if they run one after the
    other, unless they gather for a block."""
    executable = program.executable
    if not isinstance(executable, PcExecutable):
        return False
    return not isinstance(executable.machine, ScalarMachine) or lanes in gathering(executable.machine.costs)


def suits(program: Program, call: Arguments) -> bool:
    """Whether a program of lanes together can run openly, and lanes of a call may take different times in it.

    Tasks do not wait for each other anyway. What lanes print would come in another order.
    """
    executable = program.executable
    if not isinstance(executable, PcExecutable) or isinstance(executable.machine, ScalarMachine):
        return False
    plain = not executable.prints and not executable.donated and TABLES not in call.types and not debug_checks()
    here = program.placed(call, None) is None and executable.tasks_for(call.lanes) is None
    return plain and here and executable.machine.waits_for_lanes and has_cycle(flow(executable.program))


@dataclass(slots=True)
class OpenRun:
    """A run whose inputs come one by one, on one device.

    Attributes:
        program: the program.
        run: the arrays, and what it takes to continue them.
        given: the inputs of the last turn.
        owners: for each lane something of the caller's that stands for the input which it runs; None: it is idle.
        left: the lanes whose inputs are not wanted any more.
    """

    program: Program
    run: QueueRun
    given: ShardedArguments
    owners: list[Any]
    left: set[int] = field(default_factory=set)

    @staticmethod
    def before(program: Program, call: Arguments) -> OpenRun:
        """Return a run before its first turn. `call`: one of as many inputs as there are to be lanes.

        Raises:
            TooLargeError: there is no memory for it.
        """
        executable, sharding = program.with_pc("ask"), LaneSharding(None, call.lanes)
        with _running(program, call):
            given = replace(executable.arguments.sharded(program.args(call), sharding), end=np.int32(0))
            run = QueueRun.before(executable, sharding, call.lanes, given, carried=call.lanes)
        return OpenRun(program, run, given, [None] * call.lanes)

    @property
    def lanes(self) -> int:
        """The number of lanes."""
        return len(self.owners)

    @property
    def live(self) -> list[int]:
        """The lanes that run an input."""
        return [lane for lane, owner in enumerate(self.owners) if owner is not None]

    @property
    def compiles(self) -> bool:
        """Whether the next turn is compiled first."""
        return (self.run.depth, self.run.grows) not in self._pace.met

    def was_compiled(self, lanes: int) -> bool:
        """Whether there are programs for so many lanes."""
        return bool(self.run.executable.pace(lanes, "open").met)

    @property
    def _pace(self) -> TripBudget:
        return self.run.executable.pace(self.lanes, "open")

    def leave(self, lane: int) -> None:
        """Let a lane be idle: its input is not wanted any more."""
        self.owners[lane] = None
        self.left.add(lane)

    def resize(self, call: Arguments) -> None:
        """Change the number of lanes to that of the inputs of a call, at least those that are live."""
        executable, lanes = self.run.executable, call.lanes
        owners = [owner for owner in self.owners if owner is not None]
        sharding = LaneSharding(None, lanes)
        with _running(self.program, call):
            program = executable.jitted(resize_queue, lanes)
            state = self.run.state._replace(queue=program(self.run.state.queue, self._mask(), width=lanes))
        self.run = replace(self.run, state=state, sharding=sharding, lanes=lanes, width=lanes, size=lanes)
        self.owners = owners + [None] * (lanes - len(owners))
        self.given = executable.arguments.sharded(self.program.args(call), sharding)

    def turn(
        self, call: Arguments | None, owners: Sequence[Any], seconds: float, on_device: bool = False
    ) -> tuple[list[Any], RawResult]:
        """Make some trips.

        Args:
            call: new inputs, filled up to as many as there are lanes; None: there are none.
            owners: for each of them that is real something that stands for it; no more than there are idle lanes.
            seconds: how long it should take, at most.
            on_device: whether results stay there; those of more lanes than have ended may then be behind them.

        Returns:
            What stands for the inputs that have ended, and their results.
        """
        run, executable = self.run, self.run.executable
        if call is not None:
            self.given = executable.arguments.sharded(self.program.args(call), run.sharding)
        given = replace(self.given, end=np.int32(len(owners)))
        trips, patience = self._budget(seconds)
        program = executable.jitted(serve_queue, self.lanes)
        began, (q, shared, _) = time.perf_counter(), run.state
        with _running(self.program, call):
            control = self._mask(), np.int32(trips), np.int32(patience)
            before = int(q.state.trips)
            q, out, full = program(q, shared, given, *control, depth=run.depth, grows=run.grows)
            item = np.asarray(q.item)
        self._took(int(q.state.trips) - before, time.perf_counter() - began)
        self.run = replace(run, state=run.state._replace(queue=q))
        slots = [*owners, *[None] * (self.lanes - len(owners)), *self.owners]
        self.owners = [slots[k] if k < len(slots) else None for k in item]
        running = set(item.tolist())
        ended = [k for k, owner in enumerate(slots) if owner is not None and k not in running]
        if full:
            with _running(self.program, call):
                self.run = self.run.grown()
        return [slots[k] for k in ended], _taken(out, ended, self.lanes if on_device else 0)

    def as_it_is(self, lane: int) -> RawResult:
        """Read a lane that runs."""
        (q, shared, _), depth = self.run.state, self.run.depth
        with _running(self.program, None):
            out: RawResult = self.run.executable.jitted(read_lanes, self.lanes)(q, shared, depth=depth)
        return out.of_lanes(lambda x: x[lane : lane + 1])

    def close(self) -> None:
        """Let later runs begin with stacks as deep as these."""
        self.run.remember()

    def _mask(self) -> np.ndarray:
        mask = np.zeros(self.lanes, bool)
        mask[list(self.left)] = True
        self.left.clear()
        return mask

    def _budget(self, seconds: float) -> tuple[int, int]:
        """The trips of a turn, and the trips of lanes that have ended in it at which it ends.

        A turn costs the host as much as some trips, and lanes that have ended cost some of what others do.
        """
        if (trip := self._pace.each) is None:
            return FIRST, FOREVER
        trips = min(FOREVER, max(1, int(seconds / trip)))
        return trips, min(FOREVER, max(1, int(self.lanes * IDLE / trip)))

    def _took(self, trips: int, seconds: float) -> None:
        pace = self._pace
        if not self.compiles and trips:
            each = max(seconds - HOST, seconds / 8) / trips
            pace.each = each if pace.each is None else min(each, SLOWER * pace.each)
        pace.met.add((self.run.depth, self.run.grows))


@contextmanager
def _running(program: Program, call: Arguments | None) -> Iterator[None]:
    """A context for programs of a run outside of traces: errors of JAX in compiling are at the user's line."""
    with jax.debug_nans(False), run_without_mesh():
        if call is None:
            yield
        else:
            with program.mapping_errors(call):
                yield


def _taken(out: RawResult, slots: Sequence[int], width: int) -> RawResult:
    """The results in some slots, on the host, or on the device and filled up to a width; trips and counts as they
    are."""
    places = np.asarray([*slots, *[0] * (width - len(slots))], np.int32)

    def taken(x: Any) -> Any:
        return x[places] if width or is_key_array(x) else np.asarray(x)[places]

    return out.of_lanes(taken)
