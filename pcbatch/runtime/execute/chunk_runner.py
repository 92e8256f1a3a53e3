"""`map` over inputs that are on the host: they come in chunks, and so do the results.

While the devices run one chunk, the next is on its way to them and the results of the last are on their way back.
Lanes that still run when a chunk has no input left take their work along: slots 0 to C - 1 of a device are for the
results of its part of a chunk, slot C + k is for what lane k brought from an earlier one. The host remembers which
input each slot stands for.

A run that is saved (`ChunkCheckpoint`) goes on where it was: the pieces that it has seen are read again, and dropped.
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

from pcbatch.runtime.execute import queue_runner as streams
from pcbatch.runtime.execute import refill
from pcbatch.runtime.execute.host_loop import HostLoop, RunCounts
from pcbatch.runtime.execute.queue_runner import QueueBuffers, QueueRunner, QueueStatus, load, with_shared
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

NOBODY = -1
FIRST_ROWS = 1024  # room for results where nobody knows how many there will be


class Chunk(NamedTuple):
    """Some inputs: parameters, of which the first so many rows are real. All pieces of a run have as many rows."""

    rows: Mapping[str, Any]
    inputs: int


class ChunkCheckpoint(NamedTuple):
    """All of a run over pieces: what describes it, ready for JSON, and its arrays."""

    about: dict[str, Any]
    arrays: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ChunkPlan:
    """How inputs come: `size` at a time, `total` in all (None: nobody knows), through so many `lanes` (None: the
    program decides) on each device; who looks after them, and what was held when they came before."""

    size: int
    total: int | None = None
    lanes: int | None = None
    watch: HostLoop | None = None
    held: ChunkCheckpoint | None = None


class DeviceChunk(NamedTuple):
    """A piece on its devices; which inputs it holds, [devices, each]; the number of the first; how many
    pieces have come with it, and a digest of them."""

    dealt: ShardedArguments
    owners: np.ndarray
    first: int
    number: int
    mark: str


class StreamMismatch(Exception):
    """What comes is not what came when the run was saved."""


class _Left(NamedTuple):
    """What runs left behind, by slot, and the input that each is for; `NOBODY` where it is for none, or not done."""

    rows: tuple[Any, ...]
    owners: np.ndarray


@dataclass
class ChunkRunner:
    """One `map` over pieces. `held`: where it goes on from."""

    stream: QueueRunner
    total: int | None
    pieces: Iterator[Chunk]
    held: ChunkCheckpoint | None = None
    came: int = field(init=False, default=0)  # inputs that have been sent
    number: int = field(init=False, default=0)  # pieces, likewise
    ahead: DeviceChunk | None = field(init=False, default=None)
    left: _Left | None = field(init=False, default=None)

    def run(self, common: Mapping[str, Any]) -> RawResult:
        """Every piece, to the end of all its inputs, or until it is stopped. There must be one."""
        stream, self.done, self.seen = self.stream, _Gathered(self.total), hashlib.sha256()
        if self.held is None:
            begun, self.here, self.owners = self._begin(common)
        else:
            with stream.untimed():
                begun, self.here, self.owners = self._resumed(self.held, common)
        stream.snapshot = self._held
        while stream.watch is None or stream.watch.may_continue():
            turn = partial(stream.turns, before=self.here.first, total=self.total, meanwhile=self._meanwhile)
            begun, pause = turn(begun, 0, more=True)
            if self.ahead is None or stream.stopped:
                break
            begun, self.here = self._next(begun, self.ahead, pause), self.ahead
        if not stream.stopped:
            begun = stream.to_the_end(begun, self.here.first, self.total)
            stream.executable.remember(stream.depth)
        return self._outcome(begun)

    def _begin(self, common: Mapping[str, Any]) -> tuple[QueueBuffers, DeviceChunk, np.ndarray]:
        stream, here = self.stream, self._sent(next(self.pieces), common)
        self.common = here.dealt.common
        begun = stream.begin(here.dealt, stream.spread.each + stream.lanes)
        return begun, here, np.pad(here.owners, ((0, 0), (0, stream.lanes)), constant_values=NOBODY)

    def _held(self, begun: QueueBuffers) -> ChunkCheckpoint:
        stream, here = self.stream, self.here
        about = {
            "size": stream.spread.inputs,
            "lanes": stream.lanes,
            "width": int(begun.queue.item.shape[-1]),
            "depth": stream.depth,
            "grows": stream.grows,
            "standing": asdict(stream.standing),
            "pieces": here.number,
            "seen": here.mark,
        }
        left = {f"results/{k}": rows for k, rows in enumerate(self.done.leaves)}
        state = {f"state/{name}": x for name, x in named(begun).items()}
        return ChunkCheckpoint(about, {"owners": self.owners, "written": self.done.written, **left, **state})

    def _resumed(
        self, held: ChunkCheckpoint, common: Mapping[str, Any]
    ) -> tuple[QueueBuffers, DeviceChunk, np.ndarray]:
        about, stream = held.about, self.stream
        for _ in range(about["pieces"] - 1):
            self._mark(self._again())
        here = self._sent(self._again(), common)
        if here.mark != about["seen"]:
            raise StreamMismatch
        self.common = here.dealt.common
        stream.depth, stream.grows, stream.standing = about["depth"], about["grows"], RunCounts(**about["standing"])
        sizes = {"lanes": about["width"], "slots": stream.spread.each + stream.lanes, "depth": stream.depth}
        types = jax.eval_shape(partial(streams.begin, stream.executable, spread=stream.spread, **sizes), here.dealt)
        state = {name.removeprefix("state/"): x for name, x in held.arrays.items() if name.startswith("state/")}
        rows = [held.arrays[f"results/{k}"] for k in range(sum(name.startswith("results/") for name in held.arrays))]
        self.done.restore(rows, held.arrays["written"])
        return placed(QueueBuffers(*types), state, stream.spread.mesh), here, np.array(held.arrays["owners"])

    def _again(self) -> Chunk:
        """A piece that came before the run was saved."""
        piece = next(self.pieces, None)
        if piece is None:
            raise StreamMismatch
        return piece

    def _meanwhile(self) -> None:
        """While the devices run."""
        piece = next(self.pieces, None)
        self.ahead = None if piece is None else self._sent(piece, self.common)
        self._gather()

    def _mark(self, piece: Chunk) -> str:
        """Takes note that it came; a digest of all that have, if anybody may ask for it."""
        self.came, self.number = self.came + piece.inputs, self.number + 1
        if self.stream.watch is None or self.stream.watch.save is None:
            return ""
        for name, rows in sorted(piece.rows.items()):
            self.seen.update(f"{name} {rows.dtype} {rows.shape} {piece.inputs}".encode())
            self.seen.update(np.ascontiguousarray(rows[: piece.inputs]).tobytes())
        return self.seen.hexdigest()

    def _sent(self, piece: Chunk, common: Mapping[str, Any]) -> DeviceChunk:
        spread, first, mark = self.stream.spread, self.came, self._mark(piece)
        number = np.arange(spread.inputs)
        owners = _by_device(np.where(number < piece.inputs, first + number, NOBODY), spread)
        names = owners.astype(np.int32) if self.stream.executable.prints else None
        ends = spread.ends(piece.inputs)
        if spread.mesh is None:
            dealt = jax.device_put(ShardedArguments(piece.rows, common, ends, None if names is None else names[0]))
        else:
            mapped = {v: _by_device(x, spread) for v, x in piece.rows.items()}
            dealt = spread.placed(ShardedArguments(mapped, common, ends, names))
        return DeviceChunk(dealt, owners, first, self.number, mark)

    def _next(self, begun: QueueBuffers, here: DeviceChunk, pause: QueueStatus) -> QueueBuffers:
        """On to the next piece; what is done is left for `_gather`."""
        stream, owners = self.stream, self.owners
        rows, q, stored = stream.brief(_next, begun.queue, begun.shared, here.dealt, depth=stream.depth, donate=(0,))
        items = np.asarray(pause.item).reshape(len(owners), -1)
        device, lane = np.nonzero(items < owners.shape[1])
        running = items[device, lane]
        carried = np.full(items.shape, NOBODY)
        carried[device, lane] = owners[device, running]
        owners[device, running] = NOBODY
        self.left = _Left(rows, owners)
        self.owners = np.concatenate([here.owners, carried], axis=1)
        return QueueBuffers(q, begun.shared, stored)

    def _gather(self) -> None:
        """Bring results home."""
        if self.left is not None:
            there = np.flatnonzero(self.left.owners != NOBODY)
            self.done.put(self.left.owners.ravel()[there], there, self.left.rows)
            self.left = None

    def _outcome(self, begun: QueueBuffers) -> RawResult:
        executable, depth, watch = self.stream.executable, self.stream.depth, self.stream.watch
        self._gather()
        if watch is not None and watch.save is not None and (self.held is not None or self.stream.standing.trips):
            watch.save(partial(self._held, begun))
        rows, trips, counts = self.stream.call(_last, begun.queue, begun.shared, depth=depth)
        self.left = _Left(rows, self._done(begun.queue))
        self._gather()
        leaves, written = self.done.all(self.came if self.total is None else self.total)
        values, status, pc, depths, back, shown = leaves
        status = np.where(written, status, int(Status.RUNNING)).astype(status.dtype)
        values = [np.where(_rows_of(written, x), x, failed(x.dtype)).astype(x.dtype) for x in values]
        values = tuple(map(executable.as_leaf, executable.program.results, values))
        trips = trips if watch is None else trips_array(self.stream.standing.trips)
        return RawResult(values, status, trips, counts, pc, depths, back, shown, depth)

    def _done(self, q: Queue) -> np.ndarray:
        """The owners of slots that have results."""
        owners = self.owners.copy()
        items = np.asarray(q.item).reshape(len(owners), -1)
        device, lane = np.nonzero(items < owners.shape[1])
        owners[device, items[device, lane]] = NOBODY
        for slots, following in zip(owners, np.asarray(q.following).reshape(-1), strict=True):
            slots[int(following) : self.stream.spread.each] = NOBODY
        return owners


class _Gathered:
    """Rows that arrive in any order."""

    def __init__(self, total: int | None) -> None:
        self.room = FIRST_ROWS if total is None else total
        self.tree: Any = None
        self.leaves: list[np.ndarray] = []
        self.written = np.zeros(self.room, bool)

    def put(self, owners: np.ndarray, places: np.ndarray, rows: Any) -> None:
        """`rows`: [..., slots, ...] each; what is at `places` of them is for these inputs."""
        leaves, self.tree = jax.tree.flatten(rows)
        shape = (int(np.prod(rows[1].shape)),)  # a status for each slot of each device
        arrays = [np.asarray(leaf).reshape(shape + leaf.shape[rows[1].ndim :]) for leaf in leaves]
        if not self.leaves:
            self.leaves = [np.zeros((self.room, *x.shape[1:]), x.dtype) for x in arrays]
        self._make_room(int(owners.max(initial=-1)) + 1)
        for kept, array in zip(self.leaves, arrays, strict=True):
            kept[owners] = array[places]
        self.written[owners] = True

    def restore(self, leaves: list[np.ndarray], written: np.ndarray) -> None:
        """What was there when the run was saved."""
        self.leaves, self.written = [np.array(x) for x in leaves], np.array(written)
        self.room = len(self.written)

    def _make_room(self, needed: int) -> None:
        if needed > self.room:
            more = max(needed, 2 * self.room) - self.room
            self.room += more
            self.leaves = [np.concatenate([x, np.zeros((more, *x.shape[1:]), x.dtype)]) for x in self.leaves]
            self.written = np.concatenate([self.written, np.zeros(more, bool)])

    def all(self, count: int) -> tuple[Any, np.ndarray]:
        """The first `count` rows, and which of them have been written."""
        self._make_room(count)
        return jax.tree.unflatten(self.tree, [x[:count] for x in self.leaves]), self.written[:count]


def _rows_of(written: np.ndarray, values: np.ndarray) -> np.ndarray:
    return written.reshape(-1, *(1,) * (values.ndim - 1))


def _by_device(array: np.ndarray, spread: LaneSharding) -> np.ndarray:
    """[inputs, ...] as [devices, each, ...], on the host."""
    return np.swapaxes(array.reshape(spread.each, spread.devices, *array.shape[1:]), 0, 1)


def _rows(out: RawResult) -> tuple[Any, ...]:
    """What there is of every input; keys as their raw words, which NumPy can hold."""
    key = jax.dtypes.prng_key
    values = tuple(jax.random.key_data(x) if jnp.issubdtype(x.dtype, key) else x for x in out.values)
    return values, out.status, out.pc, out.depths, out.back, out.shown


def _next(
    executable: PcExecutable, q: Queue, shared: Values, given: ShardedArguments, *, spread: LaneSharding, depth: int
) -> tuple[Any, Queue, Values]:
    def body(dealt: tuple[Queue, Values, ShardedArguments], common: Any) -> tuple[Any, Queue, Values]:
        q, shared, given = dealt
        _, stored = load(executable, given, common, spread)
        return _rows(executable.drained(with_shared(q, shared), depth)), refill.reopen(q, given.end), stored

    return spread.run(body, (q, shared, given.without_common()), given.common)  # type: ignore[no-any-return]


def _last(
    executable: PcExecutable, q: Queue, shared: Values, *, spread: LaneSharding, depth: int
) -> tuple[Any, jax.Array, tuple[jax.Array, ...]]:
    def body(dealt: tuple[Queue, Values], _: None) -> tuple[Any, jax.Array, tuple[jax.Array, ...]]:
        out = executable.drained(with_shared(*dealt), depth)
        return _rows(out), out.trips, out.counts

    rows, trips, counts = spread.run(body, (q, shared), None)
    if spread.mesh is not None:
        trips, counts = jnp.sum(trips), tuple(functools.reduce(wide_counters.plus, count) for count in counts)
    return rows, trips, counts
