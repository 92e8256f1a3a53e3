"""One batched function compiled for one signature: the stages, and what runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from types import FunctionType
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding

from pcbatch.call.arguments import Arguments
from pcbatch.call.describe_lane import describe_lane
from pcbatch.call.in_axes import is_axis
from pcbatch.call.out_axes import checked, move_lane_axis
from pcbatch.call.placement import is_default, placement_of, without_explicit_axes
from pcbatch.call.results import BlockStats, Result, Stats
from pcbatch.compiler.jax_errors import ErrorMapper
from pcbatch.compiler.pipeline import Stages, compile_stages
from pcbatch.frontend.source.callee import BatchedTest
from pcbatch.ir.callgraph import static_depth
from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.def_use import AnyOp, calls
from pcbatch.ir.ops import Fail, Prim, Print
from pcbatch.ir.stack import Push, StackProgram
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.analysis.divergence import same_results
from pcbatch.lowering.passes.flatten import array_leaves
from pcbatch.lowering.typing.abstract_values import Known, array_type
from pcbatch.lowering.typing.jax_types import as_result, is_symbolic, storage_type, zeros
from pcbatch.lowering.typing.trace import is_key_array
from pcbatch.options import Options
from pcbatch.runtime.execute.chunk_runner import Chunk, ChunkPlan
from pcbatch.runtime.execute.executor import PcExecutable
from pcbatch.runtime.local_strategy.executor import LocalExecutable, needs_pc
from pcbatch.runtime.sharding.ambient_mesh import ambient_mesh, run_without_mesh
from pcbatch.runtime.sharding.lane_sharding import Devices, LaneSharding, partition_spec
from pcbatch.runtime.vm import wide_counters
from pcbatch.runtime.vm.raw_result import RawResult, is_tracing, replaying
from pcbatch.runtime.vm.status import Site, Status
from pcbatch.transforms import Notice, UnsharingProgram, forward_only, traced_run


class Executable(Protocol):
    """What a strategy gives: a way to run all lanes, and to look at the program that does."""

    @property
    def depth(self) -> int:
        """The nested calls that `lower` leaves room for."""

    def run(self, args: Any, lanes: int, mesh: Devices = None) -> RawResult:
        """Run all lanes to their end, spread over the devices of a mesh."""

    def map(self, args: Any, inputs: int, lanes: int | None, mesh: Devices) -> RawResult:
        """Run all inputs through so many lanes."""

    def map_chunks(self, pieces: Iterable[Chunk], common: Any, flow: ChunkPlan, mesh: Devices) -> RawResult:
        """Run inputs that come piece by piece."""

    def lower(self, args: Any, lanes: int, mesh: Devices = None) -> Any:
        """`jax.stages.Lowered` of a run."""

    def outcome(self, result: Any, depth: int, lanes: int, mesh: Devices) -> RawResult:
        """What the executable of `lower(...).compile()` gave, with room for so many nested calls."""

    def jaxpr(self, args: Any, lanes: int, mesh: Devices = None) -> Any:
        """The jaxpr of a run."""


@dataclass(frozen=True, slots=True)
class Program:
    """A signature's program. Arguments enter by leaf name, results leave as leaves."""

    stages: Stages
    options: Options
    executable: Executable
    infos: tuple[BlockStats, ...]
    params: tuple[str, ...]  # what the executable calls its arguments
    where: Callable[[int, int | None], Site]  # a final pc and return address -> where the lane stopped
    places: Callable[[], tuple[int | None, ...]]  # the axes of the lanes in each leaf of the result; refuses some
    unshared: Callable[[frozenset[str]], Program]  # the same for lanes that do not share some arguments
    notices: dict[str, Notice] = field(default_factory=dict, compare=False)  # of failing lanes, inside `jit`

    @property
    def out_axes(self) -> tuple[int | None, ...]:
        """The axis of the lanes in each leaf of the result, None where it comes without."""
        return self.places()

    def args(self, given: Arguments) -> dict[str, Any]:
        """Array leaves of a call by the parameter that the executable takes them for."""
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
        """Arguments that the function has captured of an outer trace."""
        return self.stages.captures if isinstance(self.executable, PcExecutable) else {}

    def execute(self, given: Arguments, mesh: Devices = None) -> RawResult:
        """Run a call. No lanes: nothing runs, and every leaf of the result is empty."""
        where = self.placed(given, mesh)

        def run(args: Any) -> RawResult:
            program = self._operation(args)
            if program is not None:
                return traced_run(program, args, given.lanes, mesh=without_explicit_axes(where))
            outcome = self.executable.run(args, given.lanes, without_explicit_axes(where))
            return forward_only(outcome) if isinstance(self.executable, LocalExecutable) else outcome

        return self._execute(given, where, run)

    def _operation(self, args: Any) -> UnsharingProgram | None:
        """What a run is an operation of, if JAX traces it."""
        if not isinstance(self.executable, PcExecutable) or not (is_tracing(args) or replaying()):
            return None
        return self.program()

    def program(self) -> UnsharingProgram:
        """The executable, for transformations."""
        assert isinstance(self.executable, PcExecutable)
        return UnsharingProgram(self.executable, lambda apart: self.unshared(apart).program())

    def stream(self, given: Arguments, lanes: int | None, mesh: Devices = None) -> RawResult:
        """Run the inputs of a call through so many lanes."""
        where = self.placed(given, mesh)

        def run(args: Any) -> RawResult:
            program = self._operation(args)
            if program is None:
                return self.executable.map(args, given.lanes, lanes, without_explicit_axes(where))
            width = lanes or program.executable.costs.stream_lanes(LaneSharding(where, given.lanes).each)
            return traced_run(program, args, given.lanes, width, without_explicit_axes(where))

        return self._execute(given, where, run)

    def placed(self, given: Arguments, asked: Devices) -> Devices:
        """Where the lanes of a call run."""
        if isinstance(self.executable, LocalExecutable) or is_symbolic(given.lanes) or not given.lanes:
            return None if is_default(asked) else asked
        return placement_of(asked, given)

    def with_pc(self, what: str) -> PcExecutable:
        """The executable, for `what` (in messages) that strategy "local" cannot do."""
        if not isinstance(self.executable, PcExecutable):
            raise needs_pc(f"`{what}`")
        return self.executable

    def stream_chunks(
        self, given: Arguments, pieces: Callable[[], Iterable[Chunk]], flow: ChunkPlan, mesh: Devices
    ) -> RawResult:
        """Run inputs that come piece by piece. `given`: some of them, for what they share, or all."""
        if given.lanes == 0:
            empty: RawResult = jax.tree.map(_on_host, self.empty())
            return empty
        mapped = self.mapped(given)
        common = {v: x for v, x in self.args(given).items() if v not in mapped}
        outcome = self._attempt(given, lambda: self.executable.map_chunks(pieces(), common, flow, mesh)).run()
        self.flush()
        return outcome

    def mapped(self, given: Arguments) -> dict[str, Any]:
        """The arguments with a value per input."""
        types = self.stages.opt.vars
        args = self.args(given)
        return {v: x for v, x in args.items() if (t := types[v].type) is not None and np.ndim(x) > len(t.shape)}

    def _execute(self, given: Arguments, where: Devices, run: Callable[[Any], RawResult]) -> RawResult:
        if given.lanes == 0:
            return self.empty()
        args = self.args(given)
        attempt = self._attempt(given, partial(run, args))
        usual = where is None and ambient_mesh().empty and not self.prints  # nothing to ask, which costs time
        if usual or is_tracing(args):
            return attempt.run()
        with run_without_mesh():
            outcome = attempt.run()
        self.flush()
        return _home(outcome, where)

    def flush(self) -> None:
        """What lanes print stands before what the caller prints next."""
        if self.prints:
            barrier: Any = jax.effects_barrier
            barrier()

    def attempt(self, given: Arguments, run: Callable[[], RawResult]) -> RawResult:
        """`run()`, with errors of JAX told at the user's line."""
        return self._attempt(given, run).run()

    def mapping_errors(self, given: Arguments) -> AbstractContextManager[None]:
        """Turn what JAX raises about this program into an error at the user's line."""
        return self._attempt(given, partial(self.executable.run, self.args(given), given.lanes)).mapping_errors()

    def _attempt(self, given: Arguments, run: Callable[[], RawResult]) -> ErrorMapper:
        args, lanes = self.args(given), given.lanes
        lower = partial(self.executable.lower, args, lanes)
        return ErrorMapper(
            self.stages.cfg, run, lambda: lower().compile(), args, lanes, partial(describe_lane, given=given)
        )

    def empty(self) -> RawResult:
        """What a run of no lanes leaves."""
        assert self.stages.result is not None
        types = [array_type(leaf) for leaf in self.stages.result.leaves]
        values = tuple(as_result(zeros(storage_type(t), (0,)), t) for t in types)
        none = jnp.zeros((0,), jnp.int32)
        counts = (wide_counters.zeros(len(self.infos)),) * 3 if self.options.stats else ()
        return RawResult(values, none, jnp.zeros((), jnp.int32), counts, none, none, none, {}, 0)

    @property
    def prints(self) -> bool:
        """Do lanes print?"""
        return any(isinstance(op, Print) for block in self.stages.opt.blocks for op in block.ops)

    def value(self, outcome: RawResult) -> Any:
        """The result pytree of a run."""
        assert self.stages.result is not None
        leaves = zip(outcome.values, self.out_axes, strict=True)
        return jax.tree.unflatten(
            self.stages.result.tree, [move_lane_axis(x, axis, outcome.status) for x, axis in leaves]
        )

    def result(self, outcome: RawResult, lanes: int) -> Result:
        """The `Result` of a run."""
        visits, active, offered = outcome.counts or (None, None, None)
        known = None if is_symbolic(lanes) else lanes
        stats = Stats(outcome.trips, visits, active, offered, known, self.infos)
        return Result(self.value(outcome), outcome.status, stats)


def compile_signature(
    fn: FunctionType,
    is_batched: BatchedTest,
    options: Options,
    given: Arguments,
    compile: Callable[[Arguments, frozenset[str]], Program],
    apart: frozenset[str] = frozenset(),
) -> Program:
    """Compile `fn` for the types of a call; `apart`: values of an outer trace that lanes do not share. `compile` does
    so for other types."""
    types = replace(given, arrays={}, mapped={})

    def unshared(names: frozenset[str]) -> Program:
        whose = dict(zip(compiled.params, _owners(stages), strict=False))
        shared = types.shared - {whose[v] for v in names if v in whose}
        return compile(replace(types, shared=shared), apart | (names & set(stages.captures)))

    stages = compile_stages(fn, is_batched, given.types, given.shared, order_for(options), apart)
    # Asked for by calls alone: elements of a `vmap` may differ in what their lanes share.
    axes = cache(partial(_out_axes, fn.__name__, stages, options, given.shared))
    if options.strategy == "local":
        local = LocalExecutable(stages.optimised_cfg, options)
        infos = _cfg_infos(stages.optimised_cfg)
        return (compiled := Program(stages, options, local, infos, local.params, local.where, axes, unshared))
    policy = stages.schedule if isinstance(options.schedule, str) else options.schedule
    donated = frozenset(_leaves(stages, options.donate_argnames))
    executable = PcExecutable(stages.opt, options, policy, static_depth(stages.inlined_cfg), donated)
    where = partial(_where, stages.opt)
    compiled = Program(stages, options, executable, block_infos(stages.opt), stages.opt.params, where, axes, unshared)
    return compiled


def _owners(stages: Stages) -> list[str]:
    """The parameter of the function that each argument of the executable is a leaf of."""
    return [name for name, found in stages.params.items() for _ in array_leaves(name, found)]


def _leaves(stages: Stages, names: tuple[str, ...]) -> Iterator[str]:
    """What the program calls the array leaves of these parameters."""
    for param, owner in zip(stages.opt.params, _owners(stages), strict=False):
        if owner in names:
            yield param


def _out_axes(name: str, stages: Stages, options: Options, shared: frozenset[str]) -> tuple[int | None, ...]:
    assert stages.result is not None
    if is_axis(options.out_axes) and options.out_axes == 0:
        return (0,) * len(stages.result.leaves)
    leaves = {leaf for p in shared for leaf, _ in array_leaves(p, stages.params[p])}
    return checked(name, options.out_axes, stages.result, same_results(stages.cfg, frozenset(leaves)))


def _home(outcome: RawResult, where: Devices) -> RawResult:
    """With the results as fits the mesh that they are on, or that is around."""
    match where:
        case NamedSharding() if len(outcome.status) % LaneSharding(where, 0).devices == 0:
            sharding = where
        case Mesh() if not jax.sharding.get_mesh().empty:
            sharding = NamedSharding(jax.sharding.get_mesh(), partition_spec())
        case _:
            return outcome
    values, status = jax.device_put((outcome.values, outcome.status), sharding)
    return replace(outcome, values=values, status=status)


def _on_host(leaf: Any) -> Any:
    return leaf if is_key_array(leaf) else np.asarray(leaf)


def order_for(options: Options) -> str:
    """The schedule that blocks are ordered for; a policy of the user's gets the order that ours would have."""
    return options.schedule if isinstance(options.schedule, str) else "auto"


def block_infos(program: StackProgram) -> tuple[BlockStats, ...]:
    """Where every block comes from."""
    return tuple(_info(block.label, block.function, block.ops) for block in program.blocks)


def _cfg_infos(program: CfgProgram) -> tuple[BlockStats, ...]:
    return tuple(_info(f"{f.name}:{block.label}", f.name, block.ops) for f in program.functions for block in f.blocks)


def _info(label: str, function: str, ops: Sequence[AnyOp]) -> BlockStats:
    lines = sorted({op.loc.line for op in ops if op.loc is not None})
    texts = tuple(op.expr.text for op in ops if isinstance(op, Prim))
    sources = tuple(op.expr.written for op in ops if isinstance(op, Prim) and op.expr.written is not None)
    return BlockStats(label, function, tuple(lines), texts, sources=sources)


def _where(program: StackProgram, pc: int, back: int | None) -> Site:
    """Where a lane stopped. One whose stack was full stands behind the call: its return address tells which it was."""
    count = len(program.blocks) + 1
    block = program.blocks[pc % count]
    begins: list[object] = [*block.ops]
    places: list[object] = [block.terminator, *begins]
    match pc // count:
        case Status.STACK_FULL if back is not None:
            ret = program.blocks[back].label
            block, call = next((b, call) for b in program.blocks for call in calls(b.terminator) if call.ret == ret)
            places = [call, *block.ops]
        case Status.STEP_LIMIT | 0:  # it has not run the block yet
            places = [*begins, block.terminator]
    loc = next((loc for place in places if (loc := getattr(place, "loc", None)) is not None), None)
    held = ", ".join(f"`{op.dst}` {program.vars[op.dst].type}" for op in block.ops if isinstance(op, Push))
    fail = block.terminator if isinstance(block.terminator, Fail) else None
    return Site(loc, held, fail, block.label)
