"""Program-counter autobatching at run time: jitted programs per signature, stacks that grow between runs."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial, update_wrapper
from inspect import signature
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.ir.ops import Print
from pcbatch.ir.stack import StackProgram
from pcbatch.lowering.typing.jax_types import from_storage, is_key, is_symbolic
from pcbatch.options import Options
from pcbatch.runtime import emit
from pcbatch.runtime.costs import plan_modes, xla_options
from pcbatch.runtime.costs.memory import Memory
from pcbatch.runtime.execute import refill
from pcbatch.runtime.execute.chunk_runner import Chunk, ChunkPlan, ChunkRunner
from pcbatch.runtime.execute.host_loop import FOREVER, TripBudget
from pcbatch.runtime.execute.queue_runner import QueueRunner, started
from pcbatch.runtime.execute.refill import Queue
from pcbatch.runtime.execute.stack_depths import START_DEPTH, TRACED_DEPTH, Deepening
from pcbatch.runtime.sharding.lane_sharding import Devices, LaneSharding, ShardedArguments
from pcbatch.runtime.vm import layout, timeline, wide_counters
from pcbatch.runtime.vm.machine import Machine, State
from pcbatch.runtime.vm.policies import POLICIES, Policy
from pcbatch.runtime.vm.raw_result import KEEPING, RawResult, debug_checks
from pcbatch.runtime.vm.status import Status


@dataclass(slots=True, eq=False)
class PcExecutable(Deepening):
    """A program with the functions that run it; `depth` remembers how deep past calls went."""

    program: StackProgram
    options: Options
    schedule: str | Policy
    static_depth: int | None
    donated: frozenset[str] = frozenset()  # parameters whose arrays a run may use up
    machine: Machine = field(init=False)
    depth: int = field(init=False)
    kernel: float = field(init=False)
    costs: plan_modes.Costs = field(init=False)
    memory: Memory = field(init=False)
    timed: bool = False  # keep statistics over time?
    tapes: dict[Any, tuple[int, ...]] = field(default_factory=dict)  # room that gradients have needed
    _smooth: Machine | None = None
    _profiling: PcExecutable | None = None
    _jitted: dict[Any, Any] = field(default_factory=dict)
    _paces: dict[Any, TripBudget] = field(default_factory=dict)
    _depths: dict[Any, tuple[int, ...]] = field(
        default_factory=dict
    )  # that machines of one size had, one after the other

    def __post_init__(self) -> None:
        self.costs = plan_modes.costs(self.program, self.options.modes, self.schedule == "drain")
        self.machine = Machine(
            layout.make(self.program, self.options.max_steps, self.options.stats or self.timed, self.timed),
            emit.pick(self.options.emitter),
            POLICIES[self.schedule] if isinstance(self.schedule, str) else self.schedule,
            self.costs.expensive,
            self.costs.modes,
            isolate_reads=not xla_options.keeps_in_place(),
        )
        self.depth = self._first_depth(START_DEPTH)
        self.kernel = xla_options.typical_kernel(self.program)
        self.memory = Memory(self.machine.layout, self.options.memory)

    def _first_depth(self, open_ended: int) -> int:
        if self.options.max_depth is not None:
            return self.options.max_depth
        return open_ended if self.static_depth is None else self.static_depth

    @property
    def grows(self) -> bool:
        """May stacks grow between runs?"""
        return self.static_depth is None and self.options.max_depth is None

    def traced_depth(self) -> int:
        """The depth that a call inside `jit` gets."""
        return self._first_depth(TRACED_DEPTH)

    @property
    def _traced(self) -> Machine:
        """The machine for programs of which XLA's options are not ours to choose."""
        return replace(self.machine, isolate_reads=True)

    @property
    def smooth(self) -> Machine:
        """The machine for programs that JAX differentiates: what it saves has tangents. It does not print: the run
        that it differentiates does."""
        if self._smooth is None:
            apart = layout.make(self.program, self.options.max_steps, self.options.stats, floats_apart=True)
            silent = tuple(replace(code, prints=()) for code in apart.codes)
            self._smooth = replace(self._traced, layout=replace(apart, codes=silent))
        return self._smooth

    @property
    def prints(self) -> bool:
        """Do lanes print?"""
        return any(isinstance(op, Print) for block in self.program.blocks for op in block.ops)

    def jitted(self, function: Any, lanes: int, donate: tuple[int, ...] = ()) -> Any:
        """`function(executable, ...)` jitted as fits so many lanes, its keyword arguments static; the arguments behind
        the executable that `donate` counts give their buffers away. Only outside traces: JAX allows no options inside.
        """
        options = xla_options.compiler_options(self.kernel, lanes)
        key = function.__qualname__, options is None or tuple(options)
        if key not in self._jitted:
            static = [p.name for p in signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
            made = jax.jit(
                _named(function, self), static_argnames=static, donate_argnums=donate, compiler_options=options
            )
            self._jitted.setdefault(key, made)  # of several threads one comes first
        return self._jitted[key]

    def profiling(self) -> PcExecutable:
        """The same program with statistics over time: other programs for XLA, so that this one pays nothing."""
        if self._profiling is None:
            self._profiling = PcExecutable(self.program, self.options, self.schedule, self.static_depth, timed=True)
        return self._profiling

    def width(self, inputs: int) -> int:
        """Lanes of the machine that a plain call makes for so many inputs of a device."""
        return inputs if self.prints else self.costs.lanes(inputs)

    # All lanes at once

    def run(self, args: Mapping[str, Any], lanes: int, mesh: Devices = None) -> RawResult:
        """Run all lanes to their end. Outside traces."""
        spread = LaneSharding(mesh, lanes)
        width = self.width(spread.each)
        if width is not spread.each and width < spread.each:
            return self.map(args, lanes, width, mesh)
        key = "run", spread
        depth, *known = self.depths(key, spread, width, 0)
        given = self._given_away(args) if mesh is None else (self.placed(args, spread), {})
        # Programs that were compiled for stacks that grew are used again: those before the last pass the state on.
        go = np.bool_(not known) if self.grows else None
        out, state = self._start(spread.each)(*given, go, spread=spread, depth=depth, keep=self.grows)
        while state is not None:
            deeper = known.pop(0) if known else self.deeper(out.status, depth, spread)
            if deeper is None:
                break
            go = np.bool_(not known)
            out, state = self.jitted(PcExecutable._again, spread.each)(state, go, spread=spread, depth=deeper)
            self.grew(key, depth, deeper)
            depth = deeper
        self.remember(depth)
        return self.gathered(out, spread)

    def run_traced(
        self, given: ShardedArguments, lanes: int, through: int | None = None, smooth: bool = False
    ) -> RawResult:
        """A run on one device inside a trace, where stacks have a fixed depth and nothing can be decided between parts
        of it. `through`: the width of the machine, if not all lanes run at once; `smooth`: JAX differentiates it."""
        if not is_symbolic(lanes):
            self.fitting(
                LaneSharding(None, lanes), min(through or lanes, lanes), 0 if through is None else lanes, traced=True
            )
        if smooth:
            depth = self.traced_depth()
            args = self.natural({**given.mapped, **given.common})
            state = self.smooth.advance(self.smooth.start(args, lanes, depth, given.end, given.names))
            return self.read(state, depth)
        depth, spread = self.traced_depth(), LaneSharding(None, lanes)
        width = through or self.width(lanes)
        width = width if is_symbolic(lanes) else min(width, lanes)
        if through is None and (width is lanes or width == lanes):
            return self._whole(given, spread=spread, depth=depth, keep=False, traced=True)[0]
        end = jnp.int32(lanes) if given.end is None else given.end
        given = replace(given, end=end)
        begun, stored = started(self, given, given.common, spread, width, lanes, depth)
        return self.drained(refill.run(self._traced, begun, stored), depth)

    def traced_structure(self) -> Any:
        """The tree of what `traced` gives."""
        layout = self.machine.layout
        calls = None if layout.frames is None else 0
        values, counts = tuple(self.program.results), tuple(self.machine.counts)
        shown = dict.fromkeys(layout.shown, 0)
        return jax.tree.structure(RawResult(values, 0, 0, counts, 0, calls, calls, shown, self.traced_depth()))

    def _start(self, lanes: int) -> Any:
        return self.jitted(PcExecutable._whole, lanes, donate=(1,))

    def _given_away(self, args: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The arguments that a run must leave alone, and those that it may use up."""
        # Where a NaN came from is looked for in a second run.
        away = frozenset() if debug_checks() or KEEPING.get() else self.donated
        return {v: x for v, x in args.items() if v not in away}, {v: x for v, x in args.items() if v in away}

    def _whole(
        self,
        args: Mapping[str, Any] | ShardedArguments,
        away: Mapping[str, Any] | None = None,
        go: Any = None,
        *,
        spread: LaneSharding,
        depth: int,
        keep: bool,
        traced: bool = False,
    ) -> tuple[RawResult, State | None]:
        """`go`: bool[], run at all? None: yes."""
        given = args if isinstance(args, ShardedArguments) else self.dealt({**args, **(away or {})}, spread)
        machine = self._traced if traced else self.machine

        def body(given: ShardedArguments, control: tuple[Any, Any]) -> tuple[RawResult, State | None]:
            common, go = control
            state = machine.start({**given.mapped, **common}, spread.each, depth, given.end, given.names)
            state = machine.advance(state, go=go)
            return self.read(state, depth), state if keep else None

        return spread.run(body, given.without_common(), (given.common, go))  # type: ignore[no-any-return]

    def _again(self, state: State, go: Any, *, spread: LaneSharding, depth: int) -> tuple[RawResult, State]:
        def body(state: State, go: Any) -> tuple[RawResult, State]:
            state = self.machine.advance(self.machine.grow(state, depth), go=go)
            return self.read(state, depth), state

        return spread.run(body, state, go)  # type: ignore[no-any-return]

    def split(self, args: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arguments with a value per input, and those that all share."""
        mapped = {v for v, value in args.items() if jnp.ndim(value) > len(self._type(v).shape)}
        return {v: args[v] for v in args if v in mapped}, {v: args[v] for v in args if v not in mapped}

    def dealt(self, args: Mapping[str, Any], spread: LaneSharding) -> ShardedArguments:
        """The arguments of a call, dealt out to devices."""
        return spread.dealt(*self.split(args), self.prints)

    def placed(self, args: Mapping[str, Any], spread: LaneSharding) -> ShardedArguments:
        """The same, on these devices. Only outside traces."""
        if spread.over is None:
            return self.dealt(args, spread)
        mapped, common = self.split(args)
        # Each by itself, where it is: arguments may be on several devices.
        dealt = {v: self.jitted(_deal, spread.each)(spread.laid(x), spread=spread) for v, x in mapped.items()}
        names = spread.dealt({}, {}, self.prints).names
        return spread.placed(ShardedArguments(dealt, common, spread.ends(spread.inputs), names))

    def natural(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments of which keys may come as their raw words."""
        return {v: self.as_leaf(v, x) for v, x in args.items()}

    def as_leaf(self, name: str, value: Any) -> Any:
        """The value of a variable, of which keys may come as their raw words."""
        type_ = self._type(name)
        raw = is_key(type_) and not jnp.issubdtype(value.dtype, jax.dtypes.prng_key)
        return from_storage(value, type_) if raw else value

    def _type(self, name: str) -> Any:
        return self.program.vars[name].type

    def read(self, state: State, depth: int) -> RawResult:
        """What a run of all lanes at once has left."""
        carry = state.carry
        back = None if self.machine.layout.frames is None else self.machine.back(carry)
        left = {key: self.machine.layout.rows(key, x) for key, x in carry.items()}
        return self._outcome(left, back, state, depth)

    def _outcome(self, left: dict[str, Any], back: Any, state: State, depth: int) -> RawResult:
        """`left`: carried state, or what runs left behind, by input."""
        values, status = self.machine.results(left)
        counts = tuple(state.carry[key] for key in self.machine.counts)
        line = (*(state.carry[key] for key in timeline.KEYS), state.trips) if self.timed else ()
        shown = self.machine.shown(left, state.shared)
        pc = left["pc"].astype(jnp.int32)
        depths = left.get("depth")
        if depths is not None:  # of a lane that had no room: without the call that it could not make
            depths = depths - (status == int(Status.STACK_FULL)).astype(depths.dtype)
        return RawResult(values, status, state.trips, counts, pc, depths, back, shown, depth, line)

    def gathered(self, out: RawResult, spread: LaneSharding) -> RawResult:
        """The same of what is still on the devices. Outside traces."""
        if spread.over is None:
            return out
        if not spread.blocks:
            found: RawResult = self.jitted(PcExecutable.collected, spread.each)(spread.fetched(out), spread=spread)
            return found
        # The results of lanes stay where they are.
        rows: RawResult = self.jitted(_rows, spread.each)(replace(out, trips=None, counts=()), spread=spread)
        totals = spread.fetched((out.trips, out.counts))
        trips, counts = self.jitted(_totals, spread.each)(totals, spread=spread)
        return replace(rows, trips=trips, counts=counts)

    def collected(self, out: RawResult, *, spread: LaneSharding) -> RawResult:
        """What devices left, in the order of the inputs; counts are summed over them."""
        if spread.over is None:
            return out
        trips, counts = _totals(self, (out.trips, out.counts), spread=spread)
        return replace(_rows(self, out, spread=spread), trips=trips, counts=counts)

    def pace(self, lanes: int, how: str) -> TripBudget:
        """How fast a machine of so many lanes is, remembered from one run to the next."""
        return self._paces.setdefault((lanes, how), TripBudget())

    # Through fewer lanes

    def map(
        self,
        args: Mapping[str, Any],
        inputs: int,
        lanes: int | None = None,
        mesh: Devices = None,
    ) -> RawResult:
        """Run all inputs through so many lanes (on each device). Outside traces."""
        spread = LaneSharding(mesh, inputs)
        width = self.stream_width(lanes, spread)
        self.fitting(spread, width, spread.each)
        return QueueRunner(self, spread, width).run(self.placed(args, spread))

    def stream_width(self, lanes: int | None, spread: LaneSharding) -> int:
        """Lanes on each device, of which so many were asked for."""
        return min(lanes or self.costs.stream_lanes(spread.each), spread.each)

    def map_chunks(
        self,
        pieces: Iterable[Chunk],
        common: Mapping[str, Any],
        flow: ChunkPlan,
        mesh: Devices = None,
    ) -> RawResult:
        """Run inputs that come piece by piece from the host; what they leave is on the host, in NumPy arrays."""
        spread = LaneSharding(mesh, flow.size)
        total = FOREVER if flow.total is None else flow.total
        wanted = flow.lanes or self.costs.stream_lanes(total)
        width = min(wanted, -(-total // spread.devices))
        stream = QueueRunner(self, replace(spread, inputs=spread.each * spread.devices), width, flow.watch)
        return ChunkRunner(stream, flow.total, iter(pieces), flow.held).run(common)

    def drained(self, q: Queue, depth: int) -> RawResult:
        return self._outcome(q.out, q.out.get("back"), q.state, depth)

    # Looking at it

    def lower(self, args: Mapping[str, Any], lanes: int, mesh: Devices = None) -> Any:
        """`jax.stages.Lowered` of the whole run at the depth that a call would start with."""
        spread = LaneSharding(mesh, lanes)
        mapped, common = self.split(args)
        return self._start(spread.each).lower(
            spread.described(mapped, common), spread=spread, depth=self.depth, keep=False
        )

    def outcome(self, result: tuple[RawResult, State | None], depth: int, lanes: int, mesh: Devices) -> RawResult:
        """What the compiled form of `lower` gave."""
        return replace(self.collected(result[0], spread=LaneSharding(mesh, lanes)), depth=depth)

    def jaxpr(self, args: Mapping[str, Any], lanes: int, mesh: Devices = None) -> Any:
        """The jaxpr of the whole run."""
        whole = partial(self._whole, spread=LaneSharding(mesh, lanes), depth=self.depth, keep=False)
        return jax.make_jaxpr(lambda args: jax.tree.leaves(whole(args)))(args)


def _deal(executable: PcExecutable, array: Any, *, spread: LaneSharding) -> Any:
    return spread.deal(array)


def _rows(executable: PcExecutable, out: RawResult, *, spread: LaneSharding) -> RawResult:
    """What lanes left, in the order of the inputs."""
    lanes = (out.values, out.status, out.pc, out.depths, out.back, out.shown)
    values, status, pc, depths, back, shown = jax.tree.map(spread.collect, lanes)
    return replace(out, values=values, status=status, pc=pc, depths=depths, back=back, shown=shown)


def _totals(executable: PcExecutable, each: tuple[Any, Any], *, spread: LaneSharding) -> tuple[Any, Any]:
    """Trips and counts of all devices."""
    trips, counts = each
    plus = partial(functools.reduce, wide_counters.plus)
    return spread.total(jnp.sum, trips), tuple(spread.total(plus, count) for count in counts)


def _named(function: Any, executable: PcExecutable) -> Any:
    """The function of this executable, under a name that programs of equal text share."""
    bound: Any = partial(function, executable)
    return update_wrapper(bound, function)
