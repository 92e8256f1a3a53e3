"""`map` over inputs that are on the host: they come in chunks, and so do the results.

While the devices run one chunk, the next is on its way to them and the results of the last are on their way back.
Lanes that still run when a chunk has no input left take their work along: slots 0 to C - 1 of a device are for the
results of its part of a chunk, slot C + k is for what lane k brought from an earlier one. The host remembers which
input each slot stands for.

A run that is continued from a `ChunkCheckpoint` reads the chunks that it has seen again, and drops them.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.runtime.execute import queue_programs, refill
from pcbatch.runtime.execute.chunk_results import NOBODY, ChunkResults
from pcbatch.runtime.execute.host_loop import HostLoop, RunCounts
from pcbatch.runtime.execute.program_cache import device_program
from pcbatch.runtime.execute.queue_programs import QueueBuffers, QueueStatus, load, with_shared
from pcbatch.runtime.execute.queue_runner import QueueRunner
from pcbatch.runtime.execute.refill import Queue
from pcbatch.runtime.execute.state_arrays import named, placed, trips_array
from pcbatch.runtime.sharding.lane_sharding import LaneSharding, ShardedArguments
from pcbatch.runtime.vm import wide_counters
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.machine import failed
from pcbatch.runtime.vm.raw_result import RawResult
from pcbatch.runtime.vm.status import Status

if TYPE_CHECKING:
    from pcbatch.runtime.execute.executor import PcExecutable


class Chunk(NamedTuple):
    """Some inputs, by parameter; the first `inputs` rows are real. All chunks of a run have as many rows."""

    rows: Mapping[str, Any]
    inputs: int


class ChunkCheckpoint(NamedTuple):
    """A run over chunks between two programs: what describes it, ready for JSON, and its arrays."""

    about: dict[str, Any]
    arrays: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ChunkPlan:
    """The way in which inputs come.

    Attributes:
        size: inputs of a chunk.
        total: inputs in all; None: unknown.
        lanes: lanes on each device; None: the program decides.
        watch: the host's part, if the run is monitored.
        held: the checkpoint that the run is continued from.
    """

    size: int
    total: int | None = None
    lanes: int | None = None
    watch: HostLoop | None = None
    held: ChunkCheckpoint | None = None


class DeviceChunk(NamedTuple):
    """A chunk that has been sent to its devices.

    Attributes:
        sharded: the arguments.
        owners: int[devices, each], the number of the input in each slot.
        first: the number of the first input.
        number: chunks that have come, this one included.
        digest: a digest of all of them, if a checkpoint may ask for it.
    """

    sharded: ShardedArguments
    owners: np.ndarray
    first: int
    number: int
    digest: str


class StreamMismatch(Exception):
    """The inputs that come are not those that came when the run was saved."""


@dataclass
class ChunkSource:
    """The chunks of a run in their order: each is counted, added to a digest, and sent to the devices.

    Attributes:
        chunks: the chunks that are to come.
        common: what all inputs share; on the devices once the first chunk is there.
        sharding: which inputs of a chunk are on which device.
        prints: whether lanes tell the numbers of their inputs.
        digests: whether a checkpoint may ask for a digest.
        inputs: inputs that have come.
        number: chunks that have come.
    """

    chunks: Iterator[Chunk]
    common: Mapping[str, Any]
    sharding: LaneSharding
    prints: bool
    digests: bool
    inputs: int = field(init=False, default=0)
    number: int = field(init=False, default=0)
    _seen: Any = field(init=False, default_factory=hashlib.sha256)

    def next(self) -> DeviceChunk | None:
        """Send the next chunk; None if there is none."""
        chunk = next(self.chunks, None)
        return None if chunk is None else self._send(chunk)

    def replay(self, number: int) -> DeviceChunk:
        """Read `number` chunks that came before the run was saved, and send the last of them.

        Raises:
            StreamMismatch: there are not as many.
        """
        for _ in range(number - 1):
            self._count(self._again())
        return self._send(self._again())

    def _again(self) -> Chunk:
        chunk = next(self.chunks, None)
        if chunk is None:
            raise StreamMismatch
        return chunk

    def _count(self, chunk: Chunk) -> str:
        self.inputs, self.number = self.inputs + chunk.inputs, self.number + 1
        if not self.digests:
            return ""
        for name, rows in sorted(chunk.rows.items()):
            self._seen.update(f"{name} {rows.dtype} {rows.shape} {chunk.inputs}".encode())
            self._seen.update(np.ascontiguousarray(rows[: chunk.inputs]).tobytes())
        return str(self._seen.hexdigest())

    def _send(self, chunk: Chunk) -> DeviceChunk:
        sharding, first, digest = self.sharding, self.inputs, self._count(chunk)
        number = np.arange(sharding.inputs)
        owners = _by_device(np.where(number < chunk.inputs, first + number, NOBODY), sharding)
        names = owners.astype(np.int32) if self.prints else None
        ends = sharding.ends(chunk.inputs)
        if sharding.mesh is None:
            arguments = ShardedArguments(chunk.rows, self.common, ends, None if names is None else names[0])
            sharded = jax.device_put(arguments)
        else:
            mapped = {v: _by_device(x, sharding) for v, x in chunk.rows.items()}
            sharded = sharding.placed(ShardedArguments(mapped, self.common, ends, names))
        self.common = sharded.common  # sent once
        return DeviceChunk(sharded, owners, first, self.number, digest)


class ChunkRunner:
    """One `map` over inputs that come in chunks.

    Attributes:
        queue: runs the inputs of one chunk after the other.
        total: inputs in all; None: unknown.
        held: the checkpoint that the run is continued from.
        source: the chunks.
        results: the results so far.
        current: the chunk whose inputs the queue takes.
        ahead: the chunk after it, already sent; None if there is none.
        owners: int[devices, slots], the input that each slot of the queue is for.
    """

    current: DeviceChunk
    owners: np.ndarray

    def __init__(
        self,
        queue: QueueRunner,
        total: int | None,
        chunks: Iterator[Chunk],
        common: Mapping[str, Any],
        held: ChunkCheckpoint | None = None,
    ) -> None:
        digests = queue.watch is not None and queue.watch.save is not None
        self.queue, self.total, self.held = queue, total, held
        self.source = ChunkSource(chunks, common, queue.sharding, queue.executable.prints, digests)
        self.results = ChunkResults(total)
        self.ahead: DeviceChunk | None = None

    def run(self) -> RawResult:
        """Run every chunk, to the end of all its inputs, or until it is stopped. There must be one."""
        queue = self.queue
        if self.held is None:
            buffers = self._begin()
        else:
            with queue.untimed():
                buffers = self._resume(self.held)
        queue.snapshot = self._checkpoint
        while queue.watch is None or queue.watch.may_continue():
            self._count_from(self.current)
            buffers, status = queue.until_taken(buffers, self._meanwhile)
            if self.ahead is None or queue.stopped:
                break
            buffers, self.current = self._next(buffers, self.ahead, status), self.ahead
        if not queue.stopped:
            self._count_from(self.current)
            buffers = queue.to_the_end(buffers)
            queue.growth.remember()
        return self._outcome(buffers)

    def _count_from(self, chunk: DeviceChunk) -> None:
        self.queue.finished, self.queue.total = chunk.first, self.total

    def _begin(self) -> QueueBuffers:
        first = self.source.next()
        assert first is not None
        queue, self.current = self.queue, first
        # Slots behind those of a chunk's inputs are for what lanes bring from the chunk before.
        self.owners = np.pad(first.owners, ((0, 0), (0, queue.lanes)), constant_values=NOBODY)
        return queue.begin(first.sharded, queue.sharding.each + queue.lanes)

    def _checkpoint(self, buffers: QueueBuffers) -> ChunkCheckpoint:
        queue, current = self.queue, self.current
        about = {
            "size": queue.sharding.inputs,
            "lanes": queue.lanes,
            "width": int(buffers.queue.item.shape[-1]),
            "depth": queue.depth,
            "grows": queue.growth.grows,
            "standing": asdict(queue.counts),
            "pieces": current.number,
            "seen": current.digest,
        }
        results = {f"results/{k}": rows for k, rows in enumerate(self.results.leaves)}
        state = {f"state/{name}": x for name, x in named(buffers).items()}
        return ChunkCheckpoint(about, {"owners": self.owners, "written": self.results.written, **results, **state})

    def _resume(self, held: ChunkCheckpoint) -> QueueBuffers:
        about, queue = held.about, self.queue
        self.current = self.source.replay(about["pieces"])
        if self.current.digest != about["seen"]:
            raise StreamMismatch
        queue.growth.depth, queue.growth.grows = about["depth"], about["grows"]
        queue.counts = RunCounts(**about["standing"])
        sizes = {"lanes": about["width"], "slots": queue.sharding.each + queue.lanes, "depth": queue.depth}
        make = partial(queue_programs.begin, queue.executable, spread=queue.sharding, **sizes)
        types = jax.eval_shape(make, self.current.sharded)
        state = {name.removeprefix("state/"): x for name, x in held.arrays.items() if name.startswith("state/")}
        rows = [held.arrays[f"results/{k}"] for k in range(sum(name.startswith("results/") for name in held.arrays))]
        self.results.restore(rows, held.arrays["written"])
        self.owners = np.array(held.arrays["owners"])
        buffers: QueueBuffers = placed(QueueBuffers(*types), state, queue.sharding.mesh)
        return buffers

    def _meanwhile(self) -> None:
        """Send the next chunk, and fetch the results of the last, while the devices run."""
        self.ahead = self.source.next()
        self.results.gather()

    def _next(self, buffers: QueueBuffers, chunk: DeviceChunk, status: QueueStatus) -> QueueBuffers:
        """Give the queue its next chunk; the results of the last are left for `ChunkResults.gather`."""
        queue, owners = self.queue, self.owners
        rows, q, stored = queue.brief(_next, buffers.queue, buffers.shared, chunk.sharded, depth=queue.depth)
        items = np.asarray(status.item).reshape(len(owners), -1)
        device, lane = np.nonzero(items < owners.shape[1])
        running = items[device, lane]
        carried = np.full(items.shape, NOBODY)
        carried[device, lane] = owners[device, running]
        owners[device, running] = NOBODY
        self.results.expect(rows, owners)
        self.owners = np.concatenate([chunk.owners, carried], axis=1)
        return QueueBuffers(q, buffers.shared, stored)

    def _outcome(self, buffers: QueueBuffers) -> RawResult:
        queue, watch = self.queue, self.queue.watch
        executable, depth = queue.executable, queue.depth
        self.results.gather()
        if watch is not None and watch.save is not None and (self.held is not None or queue.counts.trips):
            watch.save(partial(self._checkpoint, buffers))
        rows, trips, counts = queue.call(_last, buffers.queue, buffers.shared, depth=depth)
        self.results.expect(rows, self._done(buffers.queue))
        self.results.gather()
        leaves, written = self.results.all(self.source.inputs if self.total is None else self.total)
        values, status, pc, depths, back, shown = leaves
        status = np.where(written, status, int(Status.RUNNING)).astype(status.dtype)
        values = [np.where(_rows_of(written, x), x, failed(x.dtype)).astype(x.dtype) for x in values]
        values = tuple(map(executable.arguments.as_leaf, executable.program.results, values))
        trips = trips if watch is None else trips_array(queue.counts.trips)
        return RawResult(values, status, trips, counts, pc, depths, back, shown, depth)

    def _done(self, q: Queue) -> np.ndarray:
        """The owners of slots that have results."""
        owners = self.owners.copy()
        items = np.asarray(q.item).reshape(len(owners), -1)
        device, lane = np.nonzero(items < owners.shape[1])
        owners[device, items[device, lane]] = NOBODY
        for slots, following in zip(owners, np.asarray(q.following).reshape(-1), strict=True):
            slots[int(following) : self.queue.sharding.each] = NOBODY
        return owners


def _rows_of(written: np.ndarray, values: np.ndarray) -> np.ndarray:
    return written.reshape(-1, *(1,) * (values.ndim - 1))


def _by_device(array: np.ndarray, sharding: LaneSharding) -> np.ndarray:
    """[inputs, ...] as [devices, each, ...], on the host."""
    return np.swapaxes(array.reshape(sharding.each, sharding.devices, *array.shape[1:]), 0, 1)


def _rows(out: RawResult) -> tuple[Any, ...]:
    """The parts of a raw result that every input has; keys as their raw words, which NumPy can hold."""
    key = jax.dtypes.prng_key
    values = tuple(jax.random.key_data(x) if jnp.issubdtype(x.dtype, key) else x for x in out.values)
    return values, out.status, out.pc, out.depths, out.back, out.shown


@device_program("spread", "depth", donate=(0,))
def _next(
    executable: PcExecutable, q: Queue, shared: Values, given: ShardedArguments, *, spread: LaneSharding, depth: int
) -> tuple[Any, Queue, Values]:
    def body(sharded: tuple[Queue, Values, ShardedArguments], common: Any) -> tuple[Any, Queue, Values]:
        q, shared, given = sharded
        _, stored = load(executable, given, common, spread)
        return _rows(executable.results.of_queue(with_shared(q, shared), depth)), refill.reopen(q, given.end), stored

    return spread.run(body, (q, shared, given.without_common()), given.common)  # type: ignore[no-any-return]


@device_program("spread", "depth")
def _last(
    executable: PcExecutable, q: Queue, shared: Values, *, spread: LaneSharding, depth: int
) -> tuple[Any, jax.Array, tuple[jax.Array, ...]]:
    def body(sharded: tuple[Queue, Values], _: None) -> tuple[Any, jax.Array, tuple[jax.Array, ...]]:
        out = executable.results.of_queue(with_shared(*sharded), depth)
        return _rows(out), out.trips, out.counts

    rows, trips, counts = spread.run(body, (q, shared), None)
    if spread.mesh is not None:
        trips, counts = jnp.sum(trips), tuple(functools.reduce(wide_counters.plus, count) for count in counts)
    return rows, trips, counts
