"""Program-counter autobatching at run time: jitted programs per signature, stacks that grow between runs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial, update_wrapper
from inspect import signature
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.ir.ops import Print
from pcbatch.ir.stack import StackProgram
from pcbatch.lowering.jax_types import from_storage, is_key
from pcbatch.options import Options
from pcbatch.runtime import emit, layout, partition, plans, queue, timeline, wide, xla
from pcbatch.runtime.chunks import Chunks, Flow, Piece
from pcbatch.runtime.machine import Machine, State
from pcbatch.runtime.outcome import Outcome, tracing
from pcbatch.runtime.queue import Queue
from pcbatch.runtime.schedule import POLICIES, Policy
from pcbatch.runtime.spread import Dealt, Devices, Spread, seen
from pcbatch.runtime.status import Status
from pcbatch.runtime.stream import FOREVER, Progress, Stream, started
from pcbatch.runtime.surroundings import plainly

START_DEPTH = 32  # first guess for a recursive program outside `jit`
TRACED_DEPTH = 64  # what a recursive program gets inside `jit`, where stacks cannot grow
GROWTH_LIMIT = 2**30  # bytes of frames, beyond which stacks do not grow by themselves
DEPTH_LIMIT = 2**20  # nested calls, likewise


@dataclass(slots=True, eq=False)
class PcExecutable:
    """A program with the functions that run it; `depth` remembers how deep past calls went."""

    program: StackProgram
    options: Options
    schedule: str | Policy
    static_depth: int | None
    machine: Machine = field(init=False)
    depth: int = field(init=False)
    kernel: float = field(init=False)
    costs: plans.Costs = field(init=False)
    timed: bool = False  # keep statistics over time?
    _profiling: PcExecutable | None = None
    _jitted: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.costs = plans.costs(self.program, self.options.modes, self.schedule == "drain")
        self.machine = Machine(
            layout.make(self.program, self.options.max_steps, self.options.stats or self.timed, self.timed),
            emit.pick(self.options.emitter),
            POLICIES[self.schedule] if isinstance(self.schedule, str) else self.schedule,
            self.costs.expensive,
            self.costs.modes,
            apart=not xla.keeps_in_place(),
        )
        self.depth = self._first_depth(START_DEPTH)
        self.kernel = xla.typical_kernel(self.program)

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
        return replace(self.machine, apart=True)

    @property
    def prints(self) -> bool:
        """Do lanes print?"""
        return any(isinstance(op, Print) for block in self.program.blocks for op in block.ops)

    def jitted(self, function: Any, lanes: int, donate: tuple[int, ...] = ()) -> Any:
        """`function(executable, ...)` jitted as fits so many lanes, its keyword arguments static; the arguments behind
        the executable that `donate` counts give their buffers away. Only outside traces: JAX allows no options inside.
        """
        options = xla.compiler_options(self.kernel, lanes)
        key = function.__qualname__, options is None or tuple(options)
        if key not in self._jitted:
            static = [p.name for p in signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
            self._jitted[key] = jax.jit(
                _named(function, self), static_argnames=static, donate_argnums=donate, compiler_options=options
            )
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

    def run(self, args: Mapping[str, Any], lanes: int, mesh: Devices = None) -> Outcome:
        """Run all lanes to their end. Inside a trace stacks have a fixed depth."""
        spread = Spread(mesh, lanes)
        width = self.width(spread.each)
        if width < spread.each:
            return self.map(args, lanes, width, mesh)
        if tracing(args):
            return self._in_trace(partial(self._whole_in_trace, depth=self.traced_depth()), args, spread)
        given = args if mesh is None else self.placed(args, spread)
        out, state = self._start(spread.each)(given, spread=spread, depth=self.depth, keep=self.grows)
        depth = self.depth
        while state is not None and self.may_grow(out.status, depth, spread):
            depth *= 2
            out, state = self.jitted(PcExecutable._again, spread.each)(state, spread=spread, depth=depth)
        self.remember(depth)
        return self.gathered(out, spread)

    def _in_trace(self, run: Callable[..., Outcome], args: Mapping[str, Any], spread: Spread) -> Outcome:
        """`run(args, spread=...)`; if nobody has said where lanes run, XLA may spread them."""
        if spread.over is not None or self.prints:
            return self.collected(run(args, spread=spread), spread=spread)
        some: partition.Run = lambda args, lanes: run(args, spread=Spread(None, lanes))  # noqa: E731
        whole = partial(partition.split_by_xla, some, lanes=spread.inputs)
        out: Outcome = plainly(whole, *self.split(args))
        return out

    def _whole_in_trace(self, args: Mapping[str, Any], *, spread: Spread, depth: int) -> Outcome:
        return self._whole(args, spread=spread, depth=depth, keep=False, traced=True)[0]

    def _start(self, lanes: int) -> Any:
        return self.jitted(PcExecutable._whole, lanes)

    def _whole(
        self, args: Mapping[str, Any] | Dealt, *, spread: Spread, depth: int, keep: bool, traced: bool = False
    ) -> tuple[Outcome, State | None]:
        given = args if isinstance(args, Dealt) else self.dealt(args, spread)
        machine = self._traced if traced else self.machine

        def body(given: Dealt, common: Any) -> tuple[Outcome, State | None]:
            state = machine.start({**given.mapped, **common}, spread.each, depth, given.end, given.names)
            state = machine.advance(state)
            return self._read(state, depth), state if keep else None

        return spread.run(body, given.without_common(), given.common)  # type: ignore[no-any-return]

    def _again(self, state: State, *, spread: Spread, depth: int) -> tuple[Outcome, State]:
        def body(state: State, _: None) -> tuple[Outcome, State]:
            state = self.machine.advance(self.machine.grow(state, depth))
            return self._read(state, depth), state

        return spread.run(body, state, None)  # type: ignore[no-any-return]

    def split(self, args: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arguments with a value per input, and those that all share."""
        mapped = {v for v, value in args.items() if jnp.ndim(value) > len(self._type(v).shape)}
        return {v: args[v] for v in args if v in mapped}, {v: args[v] for v in args if v not in mapped}

    def dealt(self, args: Mapping[str, Any], spread: Spread) -> Dealt:
        """The arguments of a call, dealt out to devices."""
        return spread.dealt(*self.split(args), self.prints)

    def placed(self, args: Mapping[str, Any], spread: Spread) -> Dealt:
        """The same, on these devices. Only outside traces."""
        if spread.over is None:
            return self.dealt(args, spread)
        mapped, common = self.split(args)
        # Each by itself, where it is: arguments may be on several devices.
        dealt = {v: self.jitted(_deal, spread.each)(spread.laid(x), spread=spread) for v, x in mapped.items()}
        names = spread.dealt({}, {}, self.prints).names
        return spread.placed(Dealt(dealt, common, spread.ends(spread.inputs), names))

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

    def _read(self, state: State, depth: int) -> Outcome:
        carry = state.carry
        back = None if self.machine.layout.frames is None else self.machine.back(carry)
        left = {key: self.machine.layout.rows(key, x) for key, x in carry.items()}
        return self._outcome(left, back, state, depth)

    def _outcome(self, left: dict[str, Any], back: Any, state: State, depth: int) -> Outcome:
        """`left`: carried state, or what runs left behind, by input."""
        values, status = self.machine.results(left)
        counts = tuple(state.carry[key] for key in self.machine.counts)
        line = (*(state.carry[key] for key in timeline.KEYS), state.trips) if self.timed else ()
        shown = self.machine.shown(left, state.shared)
        pc = left["pc"].astype(jnp.int32)
        depths = left.get("depth")
        if depths is not None:  # of a lane that had no room: without the call that it could not make
            depths = depths - (status == int(Status.STACK_FULL)).astype(depths.dtype)
        return Outcome(values, status, state.trips, counts, pc, depths, back, shown, depth, line)

    def gathered(self, out: Outcome, spread: Spread) -> Outcome:
        """The same of what is still on the devices. Outside traces."""
        if spread.over is None:
            return out
        if not spread.blocks:
            found: Outcome = self.jitted(PcExecutable.collected, spread.each)(spread.fetched(out), spread=spread)
            return found
        # The results of lanes stay where they are.
        rows: Outcome = self.jitted(_rows, spread.each)(replace(out, trips=None, counts=()), spread=spread)
        totals = spread.fetched((out.trips, out.counts))
        trips, counts = self.jitted(_totals, spread.each)(totals, spread=spread)
        return replace(rows, trips=trips, counts=counts)

    def collected(self, out: Outcome, *, spread: Spread) -> Outcome:
        """What devices left, in the order of the inputs; counts are summed over them."""
        if spread.over is None:
            return out
        trips, counts = _totals(self, (out.trips, out.counts), spread=spread)
        return replace(_rows(self, out, spread=spread), trips=trips, counts=counts)

    def may_grow(self, status: Any, depth: int, spread: Spread) -> bool:
        """Has a lane no room, and may there be more? Waits for the run to end."""
        full = bool(np.any(seen(status) == int(Status.STACK_FULL)))
        return self.grows and full and 2 * depth <= self.deepest(spread.each)

    def remember(self, depth: int) -> None:
        if self.grows:
            self.depth = depth

    def deepest(self, lanes: int) -> int:
        frames = self.machine.layout.frames
        row = max(4, 0 if frames is None else frames.bytes())
        return min(DEPTH_LIMIT, max(START_DEPTH, GROWTH_LIMIT // (row * max(1, lanes))))

    # Through fewer lanes

    def map(
        self,
        args: Mapping[str, Any],
        inputs: int,
        lanes: int | None = None,
        mesh: Devices = None,
        progress: Progress | None = None,
    ) -> Outcome:
        """Run all inputs through so many lanes (on each device)."""
        spread = Spread(mesh, inputs)
        width = min(lanes or self.costs.stream_lanes(spread.each), spread.each)
        if tracing(args):
            return self._in_trace(partial(self._stream, lanes=width, depth=self.traced_depth()), args, spread)
        return Stream(self, spread, width, progress).run(self.placed(args, spread))

    def map_chunks(
        self,
        pieces: Iterable[Piece],
        common: Mapping[str, Any],
        flow: Flow,
        mesh: Devices = None,
    ) -> Outcome:
        """Run inputs that come piece by piece from the host; what they leave is on the host, in NumPy arrays."""
        spread = Spread(mesh, flow.size)
        total = FOREVER if flow.total is None else flow.total
        wanted = flow.lanes or self.costs.stream_lanes(total)
        width = min(wanted, -(-total // spread.devices))
        stream = Stream(self, replace(spread, inputs=spread.each * spread.devices), width, flow.progress)
        return Chunks(stream, flow.total, iter(pieces)).run(common)

    def _stream(self, args: Mapping[str, Any], *, spread: Spread, lanes: int, depth: int) -> Outcome:
        """One program, for traces: nothing can be decided between its parts."""
        given = self.dealt(args, spread)
        machine = self._traced

        def body(given: Dealt, common: Any) -> Outcome:
            begun, stored = started(self, given, common, spread, min(lanes, spread.each), spread.each, depth)
            return self.drained(queue.run(machine, begun, stored), depth)

        out: Outcome = spread.run(body, given.without_common(), given.common)
        return out

    def drained(self, q: Queue, depth: int) -> Outcome:
        return self._outcome(q.out, q.out.get("back"), q.state, depth)

    # Looking at it

    def lower(self, args: Mapping[str, Any], lanes: int, mesh: Devices = None) -> Any:
        """`jax.stages.Lowered` of the whole run at the depth that a call would start with."""
        spread = Spread(mesh, lanes)
        mapped, common = self.split(args)
        return self._start(spread.each).lower(
            spread.described(mapped, common), spread=spread, depth=self.depth, keep=False
        )

    def outcome(self, result: tuple[Outcome, State | None], depth: int, lanes: int, mesh: Devices) -> Outcome:
        """What the compiled form of `lower` gave."""
        return replace(self.collected(result[0], spread=Spread(mesh, lanes)), depth=depth)

    def jaxpr(self, args: Mapping[str, Any], lanes: int, mesh: Devices = None) -> Any:
        """The jaxpr of the whole run."""
        whole = partial(self._whole, spread=Spread(mesh, lanes), depth=self.depth, keep=False)
        return jax.make_jaxpr(lambda args: jax.tree.leaves(whole(args)))(args)


def _deal(executable: PcExecutable, array: Any, *, spread: Spread) -> Any:
    return spread.deal(array)


def _rows(executable: PcExecutable, out: Outcome, *, spread: Spread) -> Outcome:
    """What lanes left, in the order of the inputs."""
    lanes = (out.values, out.status, out.pc, out.depths, out.back, out.shown)
    values, status, pc, depths, back, shown = jax.tree.map(spread.collect, lanes)
    return replace(out, values=values, status=status, pc=pc, depths=depths, back=back, shown=shown)


def _totals(executable: PcExecutable, each: tuple[Any, Any], *, spread: Spread) -> tuple[Any, Any]:
    """Trips and counts of all devices."""
    trips, counts = each
    plus = partial(functools.reduce, wide.plus)
    return spread.total(jnp.sum, trips), tuple(spread.total(plus, count) for count in counts)


def _named(function: Any, executable: PcExecutable) -> Any:
    """The function of this executable, under a name that programs of equal text share."""
    bound: Any = partial(function, executable)
    return update_wrapper(bound, function)
