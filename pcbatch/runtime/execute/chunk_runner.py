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
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.runtime.execute import refill
from pcbatch.runtime.execute.chunk_results import NOBODY, ChunkResults
from pcbatch.runtime.execute.host_loop import FOREVER, HostLoop, RunCounts
from pcbatch.runtime.execute.program_cache import device_program
from pcbatch.runtime.execute.queue_programs import QueueBuffers, load, with_shared
from pcbatch.runtime.execute.queue_run import QueueRun
from pcbatch.runtime.execute.refill import Queue
from pcbatch.runtime.execute.run_kinds import decoded, encoded
from pcbatch.runtime.execute.state_arrays import named, part, placed, trips_array
from pcbatch.runtime.sharding.lane_sharding import Devices, LaneSharding, ShardedArguments
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
        size: how many there are.
        number: chunks that have come, this one included.
        digest: a digest of all of them, if a checkpoint may ask for it.
    """

    sharded: ShardedArguments
    owners: np.ndarray
    first: int
    size: int
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
        return DeviceChunk(sharded, owners, first, chunk.inputs, self.number, digest)


def map_chunks(
    executable: PcExecutable, pieces: Iterable[Chunk], common: Mapping[str, Any], flow: ChunkPlan, mesh: Devices
) -> RawResult:
    """Run inputs that come in chunks from the host. The results are on the host too, in NumPy arrays."""
    sharding = LaneSharding(mesh, flow.size)
    total = FOREVER if flow.total is None else flow.total
    width = min(flow.lanes or executable.costs.stream_lanes(total), -(-total // sharding.devices))
    sharding = replace(sharding, inputs=sharding.each * sharding.devices)
    return ChunkRunner(executable, sharding, width, flow, iter(pieces), common).run()


class ChunkRunner:
    """One `map` over inputs that come in chunks.

    Attributes:
        executable: the program.
        sharding: which inputs of a chunk are on which device.
        lanes: lanes on each device, before they are fewer than that at the end.
        flow: how the inputs come.
        watch: the host's part.
        source: the chunks.
        results: the results so far.
        queue: runs the inputs of one chunk after the other.
        current: the chunk whose inputs the queue takes.
        ahead: the chunk after it, already sent; None if there is none.
        owners: int[devices, slots], the input that each slot of the queue is for.
    """

    queue: QueueRun
    current: DeviceChunk
    owners: np.ndarray

    def __init__(
        self,
        executable: PcExecutable,
        sharding: LaneSharding,
        lanes: int,
        flow: ChunkPlan,
        chunks: Iterator[Chunk],
        common: Mapping[str, Any],
    ) -> None:
        self.executable, self.sharding, self.lanes, self.flow = executable, sharding, lanes, flow
        self.watch = flow.watch or HostLoop(monitored=False)
        self.source = ChunkSource(chunks, common, sharding, executable.prints, self.watch.save is not None)
        self.results = ChunkResults(flow.total)
        self.ahead: DeviceChunk | None = None

    def run(self) -> RawResult:
        """Run every chunk, to the end of all its inputs, or until it is stopped. There must be one."""
        watch = self.watch
        if self.flow.held is None:
            self._begin()
        else:
            with watch.untimed():
                self._resume(self.flow.held)
        while watch.may_continue():
            self._step(more=True, meanwhile=self._meanwhile)
            while self.queue.counts.waiting and not watch.stopped:
                self._step(more=True)
            if self.ahead is None or watch.stopped:
                break
            with watch.untimed():
                self._next(self.ahead)
        while not self.queue.ended and watch.may_continue():
            self._step()
        if self.queue.ended:
            self.queue.remember()
        return self._outcome()

    def _step(self, more: bool = False, meanwhile: Callable[[], None] = lambda: None) -> None:
        self.queue = self.queue.moved(self.watch, more, meanwhile)
        self.watch.between(self.queue.counts, self._checkpoint)

    def _begin(self) -> None:
        first = self.source.next()
        assert first is not None
        self.current = first
        # Slots behind those of a chunk's inputs are for what lanes bring from the chunk before.
        self.owners = np.pad(first.owners, ((0, 0), (0, self.lanes)), constant_values=NOBODY)
        with self.watch.untimed():
            queue = QueueRun.before(self.executable, self.sharding, self.lanes, first.sharded, self.lanes)
        self.queue = replace(queue, counts=RunCounts(self.flow.total), size=first.size)

    def _checkpoint(self) -> ChunkCheckpoint:
        about = {"queue": encoded(self.queue), "pieces": self.current.number, "seen": self.current.digest}
        results = {"written": self.results.written, "results": self.results.leaves}
        return ChunkCheckpoint(about, named({"owners": self.owners, **results, "state": self.queue.state}))

    def _resume(self, held: ChunkCheckpoint) -> None:
        self.current = self.source.replay(held.about["pieces"])
        if self.current.digest != held.about["seen"]:
            raise StreamMismatch
        queue: QueueRun = decoded(held.about["queue"], self.executable, self.sharding.mesh)
        queue = replace(queue, sharding=self.sharding).typed(self.current.sharded, self.lanes)
        self.queue = replace(queue, state=placed(queue.state, part("state", held.arrays), self.sharding.mesh))
        self.results.restore([*part("results", held.arrays).values()], held.arrays["written"])
        self.owners = np.array(held.arrays["owners"])

    def _meanwhile(self) -> None:
        """Send the next chunk, and fetch the results of the last, while the devices run."""
        self.ahead = self.source.next()
        self.results.gather()

    def _next(self, chunk: DeviceChunk) -> None:
        """Give the queue its next chunk; the results of the last are left for `ChunkResults.gather`."""
        queue, owners = self.queue, self.owners
        q, shared, _ = queue.state
        items = np.asarray(q.item).reshape(len(owners), -1)  # before the program takes them
        program = self.executable.jitted(_next, self.lanes)
        rows, q, stored = program(q, shared, chunk.sharded, spread=self.sharding, depth=queue.depth)
        device, lane = np.nonzero(items < owners.shape[1])
        running = items[device, lane]
        carried = np.full(items.shape, NOBODY)
        carried[device, lane] = owners[device, running]
        owners[device, running] = NOBODY
        self.results.expect(rows, owners)
        self.owners = np.concatenate([chunk.owners, carried], axis=1)
        self.queue = replace(queue, state=QueueBuffers(q, shared, stored), first=chunk.first, size=chunk.size)
        self.current = chunk

    def _outcome(self) -> RawResult:
        queue, watch, executable = self.queue, self.watch, self.executable
        self.results.gather()
        if watch.save is not None and (self.flow.held is not None or queue.counts.trips):
            watch.save(self._checkpoint)
        q, shared, _ = queue.state
        out: RawResult = executable.jitted(_last, self.lanes)(q, shared, spread=self.sharding, depth=queue.depth)
        self.results.expect(replace(out, trips=None, counts=()), self._done(q))
        self.results.gather()
        rows, written = self.results.all(self.source.inputs if self.flow.total is None else self.flow.total)
        status = np.where(written, rows.status, int(Status.RUNNING)).astype(rows.status.dtype)
        known = [np.where(_rows_of(written, x), x, failed(x.dtype)).astype(x.dtype) for x in rows.values]
        values = tuple(map(executable.arguments.as_leaf, executable.program.results, known))
        trips = trips_array(queue.counts.trips) if watch.monitored else out.trips
        return replace(rows, values=values, status=status, trips=trips, counts=out.counts, depth=queue.depth)

    def _done(self, q: Queue) -> np.ndarray:
        """The owners of slots that have results."""
        owners = self.owners.copy()
        items = np.asarray(q.item).reshape(len(owners), -1)
        device, lane = np.nonzero(items < owners.shape[1])
        owners[device, items[device, lane]] = NOBODY
        for slots, following in zip(owners, np.asarray(q.following).reshape(-1), strict=True):
            slots[int(following) : self.sharding.each] = NOBODY
        return owners


def _rows_of(written: np.ndarray, values: np.ndarray) -> np.ndarray:
    return written.reshape(-1, *(1,) * (values.ndim - 1))


def _by_device(array: np.ndarray, sharding: LaneSharding) -> np.ndarray:
    """[inputs, ...] as [devices, each, ...], on the host."""
    return np.swapaxes(array.reshape(sharding.each, sharding.devices, *array.shape[1:]), 0, 1)


def _rows(out: RawResult) -> RawResult:
    """The parts of a raw result that every input has; keys as their raw words, which NumPy can hold."""
    key = jax.dtypes.prng_key
    values = tuple(jax.random.key_data(x) if jnp.issubdtype(x.dtype, key) else x for x in out.values)
    return replace(out, values=values, trips=None, counts=())


@device_program("spread", "depth", donate=(0,))
def _next(
    executable: PcExecutable, q: Queue, shared: Values, given: ShardedArguments, *, spread: LaneSharding, depth: int
) -> tuple[RawResult, Queue, Values]:
    def body(sharded: tuple[Queue, Values, ShardedArguments], common: Any) -> tuple[RawResult, Queue, Values]:
        q, shared, given = sharded
        _, stored = load(executable, given, common, spread)
        return _rows(executable.results.of_queue(with_shared(q, shared), depth)), refill.reopen(q, given.end), stored

    return spread.run(body, (q, shared, given.without_common()), given.common)  # type: ignore[no-any-return]


@device_program("spread", "depth")
def _last(executable: PcExecutable, q: Queue, shared: Values, *, spread: LaneSharding, depth: int) -> RawResult:
    def body(sharded: tuple[Queue, Values], _: None) -> RawResult:
        out = executable.results.of_queue(with_shared(*sharded), depth)
        return replace(_rows(out), trips=out.trips, counts=out.counts)

    out: RawResult = spread.run(body, (q, shared), None)
    if spread.mesh is None:
        return out
    counts = tuple(functools.reduce(wide_counters.plus, count) for count in out.counts)
    return replace(out, trips=jnp.sum(out.trips), counts=counts)
