"""`f.map`: many inputs through few lanes, at once or in chunks that come from the host."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.api.programs import Programs
from pcbatch.call.arguments import Arguments, on_device
from pcbatch.call.placement import mesh_for_sharding
from pcbatch.call.results import Result
from pcbatch.call.usage import usage
from pcbatch.compiler.growth import run_growing
from pcbatch.compiler.program import Program
from pcbatch.diagnostics.short_repr import short
from pcbatch.errors import UsageError
from pcbatch.lowering.typing.pytree import mapped
from pcbatch.lowering.typing.trace import is_key_array
from pcbatch.runs.monitored import run_monitored
from pcbatch.runs.monitored_chunks import resumed_program, run_chunks_monitored
from pcbatch.runs.run_options import RunOptions
from pcbatch.runtime.execute.chunk_runner import Chunk, ChunkPlan
from pcbatch.runtime.local_strategy.executor import needs_pc
from pcbatch.runtime.sharding.lane_sharding import Devices, LaneSharding
from pcbatch.runtime.vm import wide_counters
from pcbatch.runtime.vm.raw_result import RawResult, debug_checks, is_tracing

AT_ONCE = 2**28  # bytes of arguments on the host that are sent in one go
TRANSFER = 2**26  # bytes of a chunk of more
FEWEST = 1024  # inputs of a transfer from an iterator whose chunks are small


@dataclass(frozen=True, slots=True)
class MapOptions:
    """The options of one call of `f.map`."""

    lanes: int | None
    chunk: int | None
    mesh: Devices
    run_options: RunOptions | None

    @property
    def devices(self) -> int:
        """The number of devices that inputs are sent to."""
        return LaneSharding(self.mesh, 0).devices

    def multiple(self, inputs: int) -> int:
        """Round a number of inputs up to one that all devices share equally."""
        return -(-inputs // self.devices) * self.devices


def run_map(programs: Programs, args: tuple[Any, ...], kwargs: dict[str, Any], options: MapOptions) -> Result:
    """Run `f.map`: whole arrays at once, or in chunks that the host sends while the lanes run."""
    if programs.options.strategy == "local":
        raise needs_pc("`map`")
    _check_positive("lanes", options.lanes)
    _check_positive("chunk", options.chunk)
    streams = any(isinstance(arg, Iterator) for arg in args)
    if is_tracing((programs.fixed, [arg for arg in args if not isinstance(arg, Iterator)], kwargs)):
        _refuse_chunks(streams, options)
    if streams:
        return _map_iterator(programs, args, kwargs, options)
    call = programs.prepare(args, kwargs, host=True)
    size = _chunk_size(call, options)
    if size is None:
        return _map_at_once(programs, on_device(call), options)
    return _map_slices(programs, call, size, options)


def _check_positive(name: str, value: object) -> None:
    if value is not None and (not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1):
        title = f"{name} must be a positive integer or None, not {short(value)}"
        raise usage("PCB417", title, help=f"leave {name} out, or give a number such as {name}=128")


def _refuse_chunks(streams: bool, options: MapOptions) -> None:
    """Raise UsageError for what only the host can do, in a call that JAX traces."""
    if streams:
        raise _needs_host("an iterator")
    if options.chunk is not None:
        raise _needs_host("`chunk`")
    if options.run_options is not None:
        raise _needs_host(f"`{options.run_options.first_given}`")


def _needs_host(what: str) -> UsageError:
    title = f"`map` is given {what} inside a program that JAX traces"
    help = "call `map` outside `jax.jit` and other transformations, or give it whole arrays and no more"
    return usage("PCB419", title, "chunks and reports are made by the host, while the program runs", help=help)


def _map_at_once(programs: Programs, call: Arguments, options: MapOptions) -> Result:
    chooses = options.lanes is None and options.mesh is None
    program = programs.program(call := replace(call, alone=chooses))

    def run(program: Program) -> tuple[Program, RawResult]:
        if program.is_alone_by_choice:
            return run_growing(program, lambda program: program.execute(call))
        return run_growing(program, lambda program: program.stream(call, options.lanes, options.mesh))

    if options.run_options is None:
        program, raw = programs.run(program, call, run)
    else:
        alone = program.is_alone_by_choice
        lanes = options.lanes or (None if alone else _own_lanes(program, call, options.mesh))
        program, raw = run_monitored(programs.name, program, call, options.mesh, options.run_options, lanes, "inputs")
    return program.result(raw, call.lanes, call)


def _own_lanes(program: Program, call: Arguments, mesh: Devices) -> int | None:
    """The lanes on each device of a run that names none; None: it runs by tasks."""
    if program.runs_tasks(call, mesh):
        return None
    each = LaneSharding(program.placed(call, mesh), call.lanes).each
    return program.with_pc("map").costs.stream_lanes(each)


def _chunk_size(call: Arguments, options: MapOptions) -> int | None:
    """The number of inputs to send at a time; None: all of them."""
    if options.chunk is not None:
        return options.multiple(min(options.chunk, max(1, call.lanes)))
    on_host = [x for x in _mapped(call) if isinstance(x, np.ndarray)]
    if sum(x.nbytes for x in on_host) < AT_ONCE or not call.lanes:
        return None
    return options.multiple(_inputs_of_transfer(call))


def _inputs_of_transfer(call: Arguments) -> int:
    """The number of inputs in a transfer of `TRANSFER` bytes."""
    each: int = sum(math.prod(x.shape[1:]) * x.dtype.itemsize for x in _mapped(call))
    return max(1, TRANSFER // max(1, each))


def _mapped(call: Arguments) -> Iterator[Any]:
    for name, leaves in call.arrays.items():
        yield from (x for x, mapped in zip(leaves, call.mapped.get(name, ()), strict=False) if mapped)


def _map_slices(programs: Programs, call: Arguments, size: int, options: MapOptions) -> Result:
    """Send whole arrays on the host a slice at a time."""

    def parts() -> Iterator[Arguments]:
        return (call.part(slice(k, k + size)) for k in range(0, call.lanes, size))

    return _map_parts(programs.program(call), call, parts, ChunkPlan(size, call.lanes, options.lanes), options)


def _map_iterator(programs: Programs, args: tuple[Any, ...], kwargs: dict[str, Any], options: MapOptions) -> Result:
    """Send the chunks of an iterator."""
    if len(args) != 1:
        help = "let each chunk be a tuple of all arguments: `f.map(zip(chunks_of_x, chunks_of_y))`"
        raise usage("PCB418", "an iterator of chunks is not the only positional argument of `map`", help=help)
    chunks = _prepared(programs, args[0], kwargs)
    seen: list[Arguments] = []
    for call in chunks:
        seen.append(call)
        if call.lanes:
            break
    if not seen:
        help = "let the iterator give a chunk, if only one of no inputs: their types tell those of the result"
        raise usage("PCB418", "the iterator given to `map` has no chunks", help=help)
    first = seen[-1]
    if debug_checks():  # a NaN is looked for in a second run over the same inputs, which an iterator gives only once
        call = _joined([*seen, *chunks])
        return _map_slices(programs, call, options.multiple(options.chunk or max(1, first.lanes)), options)
    # Small chunks are sent several at a time, as a transfer costs the same for few inputs as for many.
    size = options.chunk or max(first.lanes, min(FEWEST * options.devices, _inputs_of_transfer(first)))

    def parts() -> Iterator[Arguments]:
        yield first
        yield from chunks

    program = programs.program(first)
    if program.may_be_full:
        if options.run_options is None:
            return _map_each(programs, parts(), options)
        program = programs.program(first, repeats=False)
    plan = ChunkPlan(options.multiple(size), None, options.lanes)
    return _map_parts(program, first, parts, plan, options, repeats=False)


def _map_each(programs: Programs, chunks: Iterator[Arguments], options: MapOptions) -> Result:
    """Send the chunks of an iterator one by one: the run of each may be repeated with more room for lists, and an
    iterator gives it only once."""
    results = [mapped(_on_host, _map_at_once(programs, on_device(chunk), options)) for chunk in chunks]
    return _joined_results(results)


def _joined_results(results: list[Result]) -> Result:
    """Concatenate the results of chunks; the lists in them get the room of the longest."""
    first, stats = results[0], [result.stats for result in results]

    def summed(counts: list[Any]) -> Any:
        return None if counts[0] is None else functools.reduce(lambda a, b: wide_counters.plus(a, b, np), counts)

    total = replace(
        first.stats,
        trips=np.sum([each.trips for each in stats], dtype=np.int32),
        visit_counts=summed([each.visit_counts for each in stats]),
        active_counts=summed([each.active_counts for each in stats]),
        offered_counts=summed([each.offered_counts for each in stats]),
        lanes=sum(each.lanes or 0 for each in stats),
    )
    value = mapped(_joined_leaves, *(result.value for result in results))
    return Result(value, np.concatenate([result.status for result in results]), total)


def _joined_leaves(*leaves: Any) -> Any:
    if is_key_array(leaves[0]):
        return jnp.concatenate(leaves)
    shape = np.max([leaf.shape[1:] for leaf in leaves], axis=0)
    widths = [[(0, 0), *((0, int(to - size)) for size, to in zip(x.shape[1:], shape, strict=True))] for x in leaves]
    return np.concatenate([np.pad(leaf, width) for leaf, width in zip(leaves, widths, strict=True)])


def _prepared(programs: Programs, chunks: Iterator[Any], kwargs: dict[str, Any]) -> Iterator[Arguments]:
    """Split chunks into leaves. All must have the types, and the shared values, of the first."""
    first: Arguments | None = None
    for number, chunk in enumerate(chunks):
        args = chunk if type(chunk) is tuple else (chunk,)
        call = programs.prepare(args, kwargs, host=True)
        if first is None:
            first = call
            _check_keywords(call, kwargs)
        _check_alike(first, call, number)
        yield call


def _check_keywords(call: Arguments, kwargs: dict[str, Any]) -> None:
    for name in kwargs:
        if any(call.mapped.get(name, ())):
            title = f"argument `{name}` has a value per input, and stands beside an iterator of chunks"
            help = f"put `{name}` into the chunks, or say `in_axes={{'{name}': None}}` if all inputs share it"
            raise usage("PCB418", title, help=help)


def _check_alike(first: Arguments, call: Arguments, number: int) -> None:
    for name, type_ in call.types.items():
        if type_ != first.types.get(name):
            title = f"chunk {number} has another type of `{name}`: {type_} instead of {first.types.get(name)}"
            help = "give all chunks the shapes and dtypes of the first, but for how many inputs they hold"
            raise usage("PCB418", title, help=help)
        mapped = call.mapped.get(name, ())
        for leaf, known, varies in zip(call.arrays[name], first.arrays[name], mapped, strict=False):
            if not varies and not _same(leaf, known):
                title = f"chunk {number} has another value of `{name}`, which all inputs share"
                help = "give the same in every chunk; lanes take their work along from one chunk to the next"
                raise usage("PCB418", title, help=help)


def _same(a: Any, b: Any) -> bool:
    return a is b or np.array_equal(_on_host(a), _on_host(b))


def _joined(parts: list[Arguments]) -> Arguments:
    """Concatenate all chunks into one."""

    def join(name: str, position: int, leaf: Any) -> Any:
        if not parts[0].mapped.get(name, (False,) * (position + 1))[position]:
            return leaf
        leaves = [part.arrays[name][position] for part in parts]
        return jnp.concatenate(leaves) if is_key_array(leaf) else np.concatenate([np.asarray(x) for x in leaves])

    arrays = {name: tuple(join(name, k, x) for k, x in enumerate(xs)) for name, xs in parts[0].arrays.items()}
    return replace(parts[0], arrays=arrays, lanes=sum(part.lanes for part in parts))


def _map_parts(
    program: Program,
    call: Arguments,
    parts: Callable[[], Iterator[Arguments]],
    plan: ChunkPlan,
    options: MapOptions,
    repeats: bool = True,
) -> Result:
    """Run `parts` of the inputs one after the other; `call` has the values that they share.

    `repeats`: whether `parts` gives the same when it is called again, so that a run may be repeated.
    """
    mesh = mesh_for_sharding(options.mesh)
    began, ran = time.monotonic(), list[Program]()

    def run(program: Program) -> RawResult:
        def chunks(stopped: Callable[[], bool] = lambda: False) -> Iterator[Chunk]:
            return regroup(((program.mapped(program.args(part)), part.lanes) for part in parts()), plan.size, stopped)

        if options.run_options is None:
            return program.stream_chunks(call, chunks, plan, mesh)
        ran.append(program)
        rest = options.run_options.after(time.monotonic() - began)
        return run_chunks_monitored(program, call, chunks, plan, mesh, rest, again=len(ran) > 1)

    program = resumed_program(program, options.run_options)
    program, raw = run_growing(program, run) if repeats else (program, run(program))
    return program.result(raw, len(raw.status), call)


def regroup(
    parts: Iterator[tuple[Mapping[str, Any], int]], size: int, stopped: Callable[[], bool] = lambda: False
) -> Iterator[Chunk]:
    """Copy rows into chunks of `size` (an iterator may use its buffers again); the last one may be smaller.

    When the run is `stopped`, rows that do not fill a chunk by then are left out, unless there is no other chunk.
    """
    rows: dict[str, np.ndarray] = {}
    filled, first = 0, True
    for arrays, count in parts:
        taken = 0
        on_host = {v: _on_host(x) for v, x in arrays.items()} if count else {}
        while taken < count:
            rows = rows or {v: np.zeros((size, *x.shape[1:]), _dtype(x)) for v, x in on_host.items()}
            step = min(count - taken, size - filled)
            for v, x in on_host.items():
                rows[v][filled : filled + step] = x[taken : taken + step]
            taken, filled = taken + step, filled + step
            if filled == size:
                yield Chunk(rows, size)
                rows, filled, first = {}, 0, False
        if stopped() and (filled or not first):
            break
    if filled and (first or not stopped()):
        yield Chunk(rows, filled)


def _on_host(array: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(array) if is_key_array(array) else array)


def _dtype(array: np.ndarray) -> Any:
    return jax.dtypes.canonicalize_dtype(array.dtype)
