"""Runs of lanes one after the other, decided before they begin: one program, whose results are few arrays.

The host pays some ten microseconds for a program and three for each array that it gives, as much as many a small
function computes. So the program takes the arguments as they are, keeps no state, and gives what only messages of
failures need in one array. Where stacks are to grow, the run begins anew: that is once for each depth, which has to be
compiled then anyway.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from pcbatch.lowering.typing.jax_types import storage_type
from pcbatch.runtime.execute.batch_programs import run_whole
from pcbatch.runtime.execute.dealt_program import cores, dealt
from pcbatch.runtime.execute.program_cache import DeviceProgram, device_program
from pcbatch.runtime.execute.stack_depths import StackGrowth
from pcbatch.runtime.lowering_platform import lowering_platform
from pcbatch.runtime.scalar import ScalarMachine, worth
from pcbatch.runtime.scalar.words import array_for, from_word, to_word
from pcbatch.runtime.sharding.lane_sharding import LaneSharding
from pcbatch.runtime.vm.raw_result import RawResult, unsought
from pcbatch.runtime.vm.status import Status

if TYPE_CHECKING:
    from pcbatch.runtime.execute.executor import PcExecutable

ONE_TRIP = np.ones((), np.int32)  # of a run without limits
Outputs = tuple[tuple[Any, ...], Any, Mapping[str, Any], Any]
"""`RawResult.values`, `.status` and `.shown`, and `.rows` with those of `DirectRun.words` behind them."""


@dataclass(frozen=True, slots=True, eq=False)
class DirectRun:
    """A run of all lanes at one depth of stacks, as one program on JAX's default device.

    Attributes:
        program: the jitted program, a function of the arguments in order.
        depth: the depth of stacks.
        grows: whether they may grow.
        mapped: which arguments have an axis of lanes.
        words: the dtypes of the scalars that messages of failures show, which come as further rows.
    """

    program: Any
    depth: int
    grows: bool
    mapped: tuple[bool, ...]
    words: Mapping[str, np.dtype]

    def raw(self, outputs: Outputs) -> RawResult:
        """Return the raw result of what the program gave, packed; waits for it."""
        values, status, shown, rows = outputs
        on_host = np.asarray(rows)
        ends = on_host[: len(on_host) - len(self.words)]
        words = zip(self.words, on_host[len(ends) :], strict=True)
        shown = {**shown, **{v: from_word(row, self.words[v]) for v, row in words}}
        return RawResult(values, status, ONE_TRIP, (), None, None, None, shown, self.depth, (), ends)


@dataclass(slots=True)
class DirectRuns:
    """The direct runs of one executable, by number of lanes, depth of stacks and shared arguments."""

    _made: dict[tuple[int, int, tuple[bool, ...]], DirectRun] = field(default_factory=dict)

    def at(self, executable: PcExecutable, growth: StackGrowth, mapped: tuple[bool, ...]) -> DirectRun:
        """Return the run of an executable with stacks as deep as they are now, of arguments that have an axis of lanes
        or not."""
        key = growth.sharding.each, growth.depth, mapped
        if key not in self._made:
            grows = growth.grows and executable.stacks.next(growth.depth, growth.sharding, key[0]) is not None
            words = _words(executable)
            program = _program(executable, growth.sharding.each, growth.depth, mapped, words)
            self._made.setdefault(key, DirectRun(program, growth.depth, grows, mapped, words))
        return self._made[key]


def direct_run(executable: PcExecutable, sharding: LaneSharding, mapped: tuple[bool, ...]) -> DirectRun | None:
    """Return the direct run of so many lanes, of arguments that are `mapped`; None where a run has more to decide.
    Outside traces."""
    lanes, machine = sharding.inputs, executable.machine
    native = isinstance(machine, ScalarMachine) and lowering_platform() == "cpu" and not machine.counts
    if not native or sharding.over is not None or executable.donated or executable.width(lanes) < lanes:
        return None
    return executable.direct.at(executable, executable.stacks.last_growth("run", sharding, lanes, 0), mapped)


def run_directly(executable: PcExecutable, direct: DirectRun, args: Sequence[Any], sharding: LaneSharding) -> RawResult:
    """Run all lanes to their end, or until stacks may not grow any more."""
    growth = executable.stacks.last_growth("run", sharding, sharding.inputs, 0)
    outputs = direct.program(*args)
    while growth.grow_if_full(outputs[1]):
        direct = executable.direct.at(executable, growth, direct.mapped)
        outputs = direct.program(*args)
    growth.remember()
    values, status, *rest = outputs
    if (np.asarray(status) != int(Status.OK)).any():  # hardly ever: the program does not go over all results once more
        with unsought():
            values = executable.jitted(masked, sharding.inputs)(values, status)
    return direct.raw((values, status, *rest))


@device_program()
def masked(executable: PcExecutable, values: tuple[Any, ...], status: Any) -> tuple[Any, ...]:
    """Return results with NaN, or the smallest number of their dtype, for lanes that failed."""
    return executable.results.masked(values, status)


def _words(executable: PcExecutable) -> Mapping[str, np.dtype]:
    """Return the dtypes of the values of messages that fit a row: each output costs the host some microseconds."""
    types = {v: executable.program.vars[v].type for v in executable.machine.layout.shown}
    stored = {v: storage_type(type_) for v, type_ in types.items() if type_ is not None}
    dtypes = {v: np.dtype(type_.dtype) for v, type_ in stored.items() if type_.shape == ()}
    return {v: dtype for v, dtype in dtypes.items() if array_for(dtype) == "words"}


def _program(
    executable: PcExecutable, lanes: int, depth: int, mapped: Sequence[bool], words: Mapping[str, np.dtype]
) -> Any:
    """Return the program of all lanes, dealt to cores where they are estimated to be worth it."""
    most = min(executable.options.plan.cores or cores(), cores())  # the pool has no more threads
    width = -(-lanes // worth.chunks(executable.costs, lanes, most))
    function = partial(_run, spread=LaneSharding(None, width), depth=depth, words=tuple(words))
    function.__name__ = function.__qualname__ = "run_whole_direct"  # type: ignore[attr-defined]
    jitted = executable.jitted(DeviceProgram(function, ()), width)
    return jitted if width == lanes else dealt(jitted, lanes, width, mapped)


def _run(executable: PcExecutable, *arrays: Any, spread: LaneSharding, depth: int, words: tuple[str, ...]) -> Outputs:
    args = dict(zip(executable.params, arrays, strict=True))
    out: RawResult = run_whole(executable, args, spread=spread, depth=depth, keep=False, masked=False)[0]
    ends = (jnp.broadcast_to(out.trips, out.pc.shape), out.pc, out.depths, out.back)
    rows = [x.astype(jnp.int32) for x in ends if x is not None]
    rows += [to_word(out.shown[v], np.dtype(np.int32)) for v in words]
    return out.values, out.status, {v: x for v, x in out.shown.items() if v not in words}, jnp.stack(rows)
