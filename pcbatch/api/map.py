"""`f.map`: what its options mean, and inputs that come from the host in chunks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.call.arguments import Arguments, on_device, usage
from pcbatch.call.placement import mesh_for_sharding
from pcbatch.call.results import Result
from pcbatch.diagnostics.short_repr import short
from pcbatch.errors import UsageError
from pcbatch.lowering.typing.trace import is_key_array
from pcbatch.runs.monitored import run_monitored
from pcbatch.runs.monitored_chunks import run_chunks_monitored
from pcbatch.runs.run_options import RunOptions
from pcbatch.runtime.costs.plan_modes import STREAM
from pcbatch.runtime.execute.chunk_runner import Chunk, ChunkPlan
from pcbatch.runtime.local_strategy.executor import needs_pc
from pcbatch.runtime.sharding.lane_sharding import Devices, LaneSharding
from pcbatch.runtime.vm.raw_result import debug_checks, is_tracing

if TYPE_CHECKING:
    from pcbatch.api.batch import Batched
    from pcbatch.compiler.program import Program

AT_ONCE = 2**28  # bytes of arguments on the host that are sent in one go
TRANSFER = 2**26  # bytes of a chunk of more
FEWEST = 1024  # inputs of a transfer from an iterator whose chunks are small


@dataclass(frozen=True, slots=True)
class MapOptions:
    """The options of `f.map`, checked."""

    lanes: int | None
    chunk: int | None
    mesh: Devices
    wishes: RunOptions | None

    @property
    def devices(self) -> int:
        """How many there are."""
        return LaneSharding(self.mesh, 0).devices

    def whole(self, inputs: int) -> int:
        """So many inputs or a few more: as many for each device."""
        return -(-inputs // self.devices) * self.devices


def run_map(
    batched: Batched[..., Any], fixed: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any], **options: Any
) -> Result:
    """`batched.map(...)`. `fixed`: arguments before those of the caller, the same for all inputs."""
    if batched.options.strategy == "local":
        raise needs_pc("`map`")
    _positive("lanes", options["lanes"])
    _positive("chunk", options["chunk"])
    streams = any(isinstance(arg, Iterator) for arg in args)
    wishes: RunOptions | None = options["wishes"]
    if is_tracing((fixed, [a for a in args if not isinstance(a, Iterator)], kwargs)):
        asked = {"an iterator": streams, "`chunk`": options["chunk"] is not None}
        wanted = [what for what, there in asked.items() if there] + (
            [] if wishes is None else [f"`{wishes.first_given}`"]
        )
        if wanted:
            raise _needs_host(wanted[0])
    chosen = MapOptions(options["lanes"], options["chunk"], options["mesh"], wishes)
    if streams:
        return _chunks(batched, fixed, args, kwargs, chosen)
    given = batched.prepared((*fixed, *args), kwargs, host=True)
    size = _size(given, chosen)
    if size is None:
        return _at_once(batched, on_device(given), chosen)
    return _slices(batched, given, size, chosen)


def _positive(name: str, value: object) -> None:
    if value is not None and (not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1):
        title = f"{name} must be a positive integer or None, not {short(value)}"
        raise usage("PCB417", title, help=f"leave {name} out, or give a number such as {name}=128")


def _needs_host(what: str) -> UsageError:
    title = f"`map` is given {what} inside a program that JAX traces"
    help = "call `map` outside `jax.jit` and other transformations, or give it whole arrays and no more"
    return usage("PCB419", title, "chunks and reports are made by the host, while the program runs", help=help)


def _at_once(batched: Batched[..., Any], given: Arguments, options: MapOptions) -> Result:
    compiled = batched.program(given)
    if options.wishes is None:
        return compiled.result(compiled.stream(given, options.lanes, options.mesh), given.lanes)
    lanes = options.lanes or STREAM
    return compiled.result(
        run_monitored(batched.__name__, compiled, given, options.mesh, options.wishes, lanes), given.lanes
    )


def _size(given: Arguments, options: MapOptions) -> int | None:
    """How many inputs to send at a time; None: all of them."""
    if options.chunk is not None:
        return options.whole(min(options.chunk, max(1, given.lanes)))
    held = [x for x in _mapped(given) if isinstance(x, np.ndarray)]
    if sum(x.nbytes for x in held) < AT_ONCE or not given.lanes:
        return None
    return options.whole(_affordable(given))


def _affordable(given: Arguments) -> int:
    """Inputs in a transfer of the usual size."""
    each: int = sum(math.prod(x.shape[1:]) * x.dtype.itemsize for x in _mapped(given))
    return max(1, TRANSFER // max(1, each))


def _mapped(given: Arguments) -> Iterator[Any]:
    for name, leaves in given.arrays.items():
        yield from (x for x, mapped in zip(leaves, given.mapped.get(name, ()), strict=False) if mapped)


def _slices(batched: Batched[..., Any], given: Arguments, size: int, options: MapOptions) -> Result:
    """Whole arrays on the host, a slice at a time."""
    compiled = batched.program(given)

    def parts() -> Iterator[Arguments]:
        return (_part(given, slice(k, k + size)) for k in range(0, given.lanes, size))

    return _streamed(compiled, given, parts, ChunkPlan(size, given.lanes, options.lanes), options)


def _part(given: Arguments, rows: slice) -> Arguments:
    arrays = {
        name: tuple(x[rows] if mapped else x for x, mapped in zip(leaves, given.mapped[name], strict=True))
        if name in given.mapped
        else leaves
        for name, leaves in given.arrays.items()
    }
    return replace(given, arrays=arrays, lanes=len(range(given.lanes)[rows]))


def _chunks(
    batched: Batched[..., Any],
    fixed: tuple[Any, ...],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    options: MapOptions,
) -> Result:
    """An iterator of chunks."""
    if len(args) != 1:
        help = "let each chunk be a tuple of all arguments: `f.map(zip(chunks_of_x, chunks_of_y))`"
        raise usage("PCB418", "an iterator of chunks is not the only positional argument of `map`", help=help)
    coming = _prepared(batched, fixed, args[0], kwargs)
    held: list[Arguments] = []
    for given in coming:
        held.append(given)
        if given.lanes:
            break
    if not held:
        help = "let the iterator give a chunk, if only one of no inputs: their types tell those of the result"
        raise usage("PCB418", "the iterator given to `map` has no chunks", help=help)
    first = held[-1]
    if debug_checks():  # what goes wrong is looked for in a second run
        held += coming
        whole = _joined(held)
        return _slices(batched, whole, options.whole(options.chunk or max(1, first.lanes)), options)
    usual = options.chunk or max(first.lanes, min(FEWEST * options.devices, _affordable(first)))

    def parts() -> Iterator[Arguments]:
        yield first
        yield from coming

    flow = ChunkPlan(options.whole(usual), None, options.lanes)
    return _streamed(batched.program(first), first, parts, flow, options)


def _prepared(
    batched: Batched[..., Any], fixed: tuple[Any, ...], chunks: Iterator[Any], kwargs: dict[str, Any]
) -> Iterator[Arguments]:
    """Chunks taken apart. All must have the types, and the shared values, of the first."""
    first: Arguments | None = None
    for number, chunk in enumerate(chunks):
        args = chunk if type(chunk) is tuple else (chunk,)
        given = batched.prepared((*fixed, *args), kwargs, host=True)
        if first is None:
            first = given
            _check_keywords(given, kwargs)
        _check_alike(first, given, number)
        yield given


def _check_keywords(given: Arguments, kwargs: dict[str, Any]) -> None:
    for name in kwargs:
        if any(given.mapped.get(name, ())):
            title = f"argument `{name}` has a value per input, and stands beside an iterator of chunks"
            help = f"put `{name}` into the chunks, or say `in_axes={{'{name}': None}}` if all inputs share it"
            raise usage("PCB418", title, help=help)


def _check_alike(first: Arguments, given: Arguments, number: int) -> None:
    for name, type_ in given.types.items():
        if type_ != first.types.get(name):
            title = f"chunk {number} has another type of `{name}`: {type_} instead of {first.types.get(name)}"
            help = "give all chunks the shapes and dtypes of the first, but for how many inputs they hold"
            raise usage("PCB418", title, help=help)
        mapped = given.mapped.get(name, ())
        for leaf, known, varies in zip(given.arrays[name], first.arrays[name], mapped, strict=False):
            if not varies and not _same(leaf, known):
                title = f"chunk {number} has another value of `{name}`, which all inputs share"
                help = "give the same in every chunk; lanes take their work along from one chunk to the next"
                raise usage("PCB418", title, help=help)


def _same(a: Any, b: Any) -> bool:
    return a is b or np.array_equal(_on_host(a), _on_host(b))


def _joined(parts: list[Arguments]) -> Arguments:
    """All chunks in one."""

    def join(name: str, position: int, leaf: Any) -> Any:
        if not parts[0].mapped.get(name, (False,) * (position + 1))[position]:
            return leaf
        leaves = [part.arrays[name][position] for part in parts]
        return jnp.concatenate(leaves) if is_key_array(leaf) else np.concatenate([np.asarray(x) for x in leaves])

    arrays = {name: tuple(join(name, k, x) for k, x in enumerate(xs)) for name, xs in parts[0].arrays.items()}
    return replace(parts[0], arrays=arrays, lanes=sum(part.lanes for part in parts))


def _streamed(
    compiled: Program, given: Arguments, parts: Callable[[], Iterator[Arguments]], flow: ChunkPlan, options: MapOptions
) -> Result:
    def pieces(stopped: Callable[[], bool] = lambda: False) -> Iterator[Chunk]:
        return regroup(((compiled.mapped(part), part.lanes) for part in parts()), flow.size, stopped)

    if options.wishes is None:
        outcome = compiled.stream_chunks(given, pieces, flow, mesh_for_sharding(options.mesh))
    else:
        outcome = run_chunks_monitored(compiled, given, pieces, flow, mesh_for_sharding(options.mesh), options.wishes)
    return compiled.result(outcome, len(outcome.status))


def regroup(
    parts: Iterator[tuple[Mapping[str, Any], int]], size: int, stopped: Callable[[], bool] = lambda: False
) -> Iterator[Chunk]:
    """Rows in pieces of `size`. They are copied: an iterator may use its buffers again. When the run is `stopped`, what
    is not a whole piece by then is left out, unless it is all that there is."""
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
