"""A function compiled for one signature: the stages, and the executable that runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import repeat
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding

from pcbatch.call.arguments import Arguments
from pcbatch.call.describe_lane import describe_lane
from pcbatch.call.out_axes import move_lane_axis
from pcbatch.call.placement import is_default, placement_of, platform_of_run, without_explicit_axes
from pcbatch.call.results import BlockStats, Result, Stats
from pcbatch.compiler.block_infos import block_infos
from pcbatch.compiler.fork import NOT_FORKED, Forked
from pcbatch.compiler.jax_errors import ErrorMapper
from pcbatch.compiler.pipeline import Stages
from pcbatch.compiler.result_axes import OutAxes, with_forms
from pcbatch.data.capacity import Room
from pcbatch.data.host.host_forms import in_host_form
from pcbatch.data.host.ragged import shortened
from pcbatch.data.objects.packed import mentions, with_packed
from pcbatch.decisions import NONE, Decisions
from pcbatch.errors import TooLargeError
from pcbatch.ir.ops import Print
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.abstract_values import Known, array_type
from pcbatch.lowering.typing.jax_types import as_result, is_symbolic, storage_type, zeros
from pcbatch.lowering.typing.trace import is_key_array
from pcbatch.options import Options
from pcbatch.runtime.execute.chunk_runner import Chunk, ChunkPlan, map_chunks
from pcbatch.runtime.execute.direct_run import DirectRun, direct_run
from pcbatch.runtime.execute.executor import PcExecutable
from pcbatch.runtime.local_strategy.executor import LocalExecutable, needs_pc
from pcbatch.runtime.lowering_platform import lowered_for
from pcbatch.runtime.scalar.worth import Widths
from pcbatch.runtime.sharding.lane_sharding import Devices, LaneSharding, ambient_mesh, partition_spec, run_without_mesh
from pcbatch.runtime.tasks.executable import TaskExecutable
from pcbatch.runtime.vm import wide_counters
from pcbatch.runtime.vm.raw_result import RawResult, is_staged, is_tracing, replaying
from pcbatch.runtime.vm.status import Site
from pcbatch.transforms import Notice, UnsharingProgram, forward_only, traced_run


class Executable(Protocol):
    """A program that a strategy has made: ways to run it, and to look at it."""

    @property
    def depth(self) -> int:
        """The nested calls that `lower` leaves room for."""

    @property
    def params(self) -> tuple[str, ...]:
        """The names of the arguments, in order."""

    def where(self, pc: int, back: int | None = None) -> Site:
        """Return where a lane stopped, by its final program counter and the return address of its last call."""

    def run(self, args: Any, lanes: int, mesh: Devices = None) -> RawResult:
        """Run all lanes to their end, spread over the devices of a mesh."""

    def lower(self, args: Any, lanes: int, mesh: Devices = None) -> Any:
        """`jax.stages.Lowered` of a run."""

    def outcome(self, result: Any, depth: int, lanes: int, mesh: Devices) -> RawResult:
        """The raw result of what the executable of `lower(...).compile()` returned, with stacks of this depth."""

    def jaxpr(self, args: Any, lanes: int, mesh: Devices = None) -> Any:
        """Return the jaxpr of a run."""


@dataclass(frozen=True, slots=True)
class Recompile:
    """Compiles a program again, for lanes that share less or whose containers have more room.

    Attributes:
        compile: compiles the function for the types of a call, names of an outer trace whose values lanes do not
            share, and the room of containers.
        types: the types of the call.
        captured: names of an outer trace whose values lanes do not share already.
        room: the room of the containers of the program.
        remember: lets later runs of this signature begin with a room.
        decisions: what has been decided about the source.
    """

    compile: Callable[[Arguments, frozenset[str], Room, Decisions], Program]
    types: Arguments
    captured: frozenset[str]
    room: Room
    remember: Callable[[Room], None]
    decisions: Decisions = NONE

    def __call__(self, program: Program, names: frozenset[str]) -> Program:
        """Return the program for lanes that share none of these arguments of `program`, captured ones included."""
        stages = program.stages
        owner = dict(zip(program.params, stages.owners, strict=False))
        shared = self.types.shared - {owner[v] for v in names if v in owner}
        divergent = self.captured | (names & set(stages.captures))
        return self.compile(replace(self.types, shared=shared), divergent, self.room, NONE)

    def together(self) -> Program:
        """Return the program of lanes that run together, whatever is estimated to be faster."""
        return self.compile(replace(self.types, alone=False), self.captured, self.room, self.decisions)

    def with_room(self, room: Room) -> Program:
        """Return the program whose containers have this room."""
        return self.compile(self.types, self.captured, room, self.decisions)


@dataclass(frozen=True, slots=True)
class Program:
    """One function compiled for one signature. Arguments enter by leaf name, results leave as leaves.

    Attributes:
        stages: the programs of the compiler.
        options: the options of the function.
        executable: the last of them, ready to run.
        infos: where every block comes from.
        axes: the axes of the lanes in the result.
        recompile: compiles it for lanes that share less, or whose containers have more room.
        notices: of failing lanes, inside `jit`.
        room_notes: why containers of its last run could not have more room, if lanes have needed it.
        may_be_full: whether a lane may end because a container of it has no room.
        forked: whether independent calls run side by side, and why.
        alone: how many lanes run one after the other, and others together; None: that was not asked.
    """

    stages: Stages
    options: Options
    executable: Executable
    infos: tuple[BlockStats, ...]
    axes: OutAxes
    recompile: Recompile
    notices: dict[str, Notice] = field(default_factory=dict, compare=False)
    room_notes: tuple[str, ...] = ()
    may_be_full: bool = False
    forked: Forked = NOT_FORKED
    alone: Widths | None = None

    @property
    def tasks(self) -> TaskExecutable | None:
        """The executable that runs independent calls side by side; None where lanes run alone."""
        return self.executable.tasks if isinstance(self.executable, PcExecutable) else None

    @property
    def is_alone_by_choice(self) -> bool:
        """Whether lanes run one after the other because that is estimated to be faster."""
        return self.alone is not None and self.options.plan.emitter == "scalar"

    @property
    def all_infos(self) -> tuple[BlockStats, ...]:
        """The origins of all blocks of lanes, followed by those of all blocks of tasks, if there are any."""
        return self.infos if self.tasks is None else (*self.infos, *block_infos(self.tasks.program))

    @property
    def room(self) -> Room:
        """The room that containers of a lane have, unless their size is that of an argument."""
        return self.recompile.room

    @property
    def ends(self) -> Iterator[object]:
        """The terminators of the program that runs."""
        if isinstance(self.executable, PcExecutable):
            return (block.terminator for block in self.stages.opt.blocks)
        return (block.terminator for f in self.stages.optimised_cfg.functions for block in f.blocks)

    @property
    def params(self) -> tuple[str, ...]:
        """The names that the executable has for its arguments."""
        return self.executable.params

    def unshared(self, names: frozenset[str]) -> Program:
        """Return the program for lanes that do not share these arguments of the executable."""
        return self.recompile(self, names)

    @property
    def out_axes(self) -> tuple[int | None, ...]:
        """The axis of the lanes in each leaf of the result, None where it comes without; refuses wrong `out_axes`."""
        return self.axes.leaves

    def args(self, given: Arguments) -> dict[str, Any]:
        """Return the array leaves of a call by parameter of the executable."""
        params = iter(self.params)
        out: dict[str, Any] = {}
        for name, inferred in self.stages.params.items():
            arrays = iter(given.arrays[name])
            for leaf, passed in zip(inferred.leaves, given.types[name].leaves, strict=True):
                # A default or static number is an array all the same if some call inside passes another one.
                value = passed.value if isinstance(passed, Known) else next(arrays)
                if isinstance(leaf, ArrayType):
                    out[next(params)] = value
        return {**out, **self.captures}

    @property
    def captures(self) -> Mapping[str, Any]:
        """The arguments that the function has captured of an outer trace."""
        return self.stages.captures if isinstance(self.executable, PcExecutable) else {}

    def execute(self, given: Arguments, mesh: Devices = None) -> RawResult:
        """Run a call. Of no lanes nothing runs, and every leaf of the result is empty."""
        where = self.placed(given, mesh)

        def run(args: Any, traced: bool) -> RawResult:
            if (program := self._operation(traced)) is not None:
                return traced_run(program, args, given.lanes, mesh=without_explicit_axes(where))
            outcome = self.executable.run(args, given.lanes, without_explicit_axes(where))
            return forward_only(outcome) if isinstance(self.executable, LocalExecutable) else outcome

        return self._execute(given, where, run)

    def direct(self, given: Arguments, mapped: tuple[bool, ...] | None = None) -> DirectRun | None:
        """The run of a call outside traces, on one device, if it is decided; `mapped`: which arguments have lanes."""
        if not given.lanes or not isinstance(self.executable, PcExecutable) or self._has_tasks_for(given):
            return None
        mapped = mapped or self.executable.arguments.mapped(self.args(given))
        try:
            return direct_run(self.executable, LaneSharding(None, given.lanes), mapped)
        except TooLargeError:  # the run itself says so, or takes a smaller program
            return None

    def runs_tasks(self, given: Arguments, mesh: Devices) -> bool:
        """Whether a call outside traces runs by tasks, on one device."""
        return bool(given.lanes) and self._has_tasks_for(given) and self.placed(given, mesh) is None

    def _has_tasks_for(self, given: Arguments) -> bool:
        """Whether tasks are to run a call outside traces."""
        return isinstance(self.executable, PcExecutable) and self.executable.tasks_for(given.lanes) is not None

    def _operation(self, traced: bool) -> UnsharingProgram | None:
        """The program that a run is an operation of, if JAX traces it, or runs what it has traced step by step."""
        return self.program() if isinstance(self.executable, PcExecutable) and (traced or replaying()) else None

    def program(self) -> UnsharingProgram:
        """The executable, for transformations."""
        return UnsharingProgram(self.with_pc("program"), lambda divergent: self.unshared(divergent).program())

    def stream(self, given: Arguments, lanes: int | None, mesh: Devices = None) -> RawResult:
        """Run the inputs of a call through `lanes` lanes on each device; None: the executable decides."""
        where = self.placed(given, mesh)

        def run(args: Any, traced: bool) -> RawResult:
            program = self._operation(traced)
            if program is None and lanes is None and self._has_tasks_for(given):
                return self.executable.run(args, given.lanes, without_explicit_axes(where))
            if program is None:
                return self.with_pc("map").map(args, given.lanes, lanes, without_explicit_axes(where))
            width = lanes or program.executable.costs.stream_lanes(LaneSharding(where, given.lanes).each)
            return traced_run(program, args, given.lanes, width, without_explicit_axes(where))

        return self._execute(given, where, run)

    def placed(self, given: Arguments, asked: Devices) -> Devices:
        """The devices that the lanes of a call run on; `asked`: those that the call names."""
        if isinstance(self.executable, LocalExecutable) or is_symbolic(given.lanes) or not given.lanes:
            return None if is_default(asked) else asked
        return placement_of(asked, given)

    def with_pc(self, what: str) -> PcExecutable:
        """Return the executable of strategy "pc"; `what` names in messages what needs it."""
        if not isinstance(self.executable, PcExecutable):
            raise needs_pc(f"`{what}`")
        return self.executable

    def stream_chunks(
        self, given: Arguments, pieces: Callable[[], Iterable[Chunk]], flow: ChunkPlan, mesh: Devices
    ) -> RawResult:
        """Run inputs that come in chunks. `given`: some of them, for what they share, or all."""
        if given.lanes == 0:
            empty: RawResult = jax.tree.map(lambda x: x if is_key_array(x) else np.asarray(x), self.empty())
            return empty
        mapped = self.mapped(self.args(given))
        common = {v: x for v, x in self.args(given).items() if v not in mapped}
        outcome = self._attempt(given, lambda: map_chunks(self.with_pc("map"), pieces(), common, flow, mesh)).run()
        self.flush()
        return outcome

    def mapped(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with a value per input, of those of a run (see `args`)."""
        types = self.stages.opt.vars
        return {v: x for v, x in args.items() if (t := types[v].type) is not None and np.ndim(x) > len(t.shape)}

    def _execute(self, given: Arguments, where: Devices, run: Callable[[Any, bool], RawResult]) -> RawResult:
        if given.lanes == 0:
            return self.empty()
        args = self.args(given)
        traced = is_staged() if given.on_one_device else is_tracing(args)
        attempt = self._attempt(given, partial(run, args, traced), args)
        if traced:
            return attempt.run()
        usual = where is None and ambient_mesh().empty and not self.prints  # nothing to ask, which costs time
        with lowered_for(platform_of_run(where, args.values())), nullcontext() if usual else run_without_mesh():
            outcome = attempt.run()
        self.flush()
        return _home(outcome, where)

    def flush(self) -> None:
        """Wait for what lanes print, so that it stands before what the caller prints next."""
        if self.prints:
            barrier: Any = jax.effects_barrier
            barrier()

    def attempt(self, given: Arguments, run: Callable[[], RawResult]) -> RawResult:
        """Call `run()`; errors of JAX become errors at the user's line."""
        return self._attempt(given, run).run()

    def is_refused(self, given: Arguments) -> bool:
        """Whether XLA cannot compile the program of a call."""
        return self._attempt(given, self.empty).is_refused()

    def mapping_errors(self, given: Arguments) -> AbstractContextManager[None]:
        """Turn errors of JAX about this program into errors at the user's line."""
        return self._attempt(given, partial(self.executable.run, self.args(given), given.lanes)).mapping_errors()

    def _attempt(
        self, given: Arguments, run: Callable[[], RawResult], args: Mapping[str, Any] | None = None
    ) -> ErrorMapper:
        args, lanes = self.args(given) if args is None else args, given.lanes
        describe = partial(describe_lane, given=given)
        lower = partial(self.executable.lower, args, lanes)
        return ErrorMapper(self.stages.cfg, run, lambda: lower().compile(), args, lanes, describe)

    def empty(self) -> RawResult:
        """The raw result of a run of no lanes."""
        counts = (wide_counters.zeros(len(self.infos)),) * 3 if self.options.stats else ()
        return _of_no_lanes(self.stages, counts)

    @property
    def prints(self) -> bool:
        """Whether a lane may print."""
        if isinstance(self.executable, PcExecutable):
            return self.executable.prints
        return any(isinstance(op, Print) for block in self.stages.opt.blocks for op in block.ops)

    def value(self, outcome: RawResult, given: Arguments | None = None, by_lane: bool = False) -> Any:
        """The result pytree; `given`: arguments whose tables it may lead into; `by_lane`: lanes are its first axis."""
        assert self.stages.result is not None
        tree, axes = self.stages.result.tree, (0,) * len(outcome.values) if by_lane else self.out_axes
        value = jax.tree.unflatten(tree, list(map(move_lane_axis, outcome.values, axes, repeat(outcome.status))))
        if given is not None and mentions(tree):
            value = with_packed(value, given.tables)
        return shortened(in_host_form(value)) if any(self.axes.containers) else value

    @property
    def plain_tree(self) -> Any:
        """The structure of a result that is nothing but its leaves, as runs give them, before lists in it are cut; None
        of another one."""
        assert self.stages.result is not None
        tree = self.stages.result.tree
        return None if any(self.out_axes) or None in self.out_axes or mentions(tree) else with_forms(tree)

    def result(self, outcome: RawResult, lanes: int, given: Arguments | None = None) -> Result:
        """Return the `Result` that users get of a run."""
        visits, active, offered = outcome.counts or (None, None, None)
        infos = self.all_infos if visits is not None and len(visits) > len(self.infos) else self.infos
        stats = Stats(outcome.trips, visits, active, offered, None if is_symbolic(lanes) else lanes, infos)
        return Result(self.value(outcome, given), outcome.status, stats)


def _of_no_lanes(stages: Stages, counts: tuple[Any, ...]) -> RawResult:
    """The raw result of a run of no lanes."""
    assert stages.result is not None
    types = [array_type(leaf) for leaf in stages.result.leaves]
    values = tuple(as_result(zeros(storage_type(t), (0,)), t) for t in types)
    none = jnp.zeros((0,), jnp.int32)
    return RawResult(values, none, jnp.zeros((), jnp.int32), counts, none, none, none, {}, 0)


def _home(outcome: RawResult, where: Devices) -> RawResult:
    """Put the results where their mesh, or the mesh around the call, wants them."""
    match where:
        case NamedSharding() if len(outcome.status) % LaneSharding(where, 0).devices == 0:
            sharding = where
        case Mesh() if not jax.sharding.get_mesh().empty:
            sharding = NamedSharding(jax.sharding.get_mesh(), partition_spec())
        case _:
            return outcome
    values, status = jax.device_put((outcome.values, outcome.status), sharding)
    return replace(outcome, values=values, status=status)
