"""`map` over inputs that are on the host: they come in chunks, and so do the results.

While the devices run one chunk, the next is on its way to them and the results of the last are on their way back.
Lanes that still run when a chunk has no input left take their work along: slots 0 to C - 1 of a device are for the
results of its part of a chunk, slot C + k is for what lane k brought from an earlier one. The host remembers which
input each slot stands for.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.runtime import queue, wide
from pcbatch.runtime.code import Values
from pcbatch.runtime.outcome import Outcome
from pcbatch.runtime.queue import Queue
from pcbatch.runtime.spread import Dealt, Spread
from pcbatch.runtime.stream import Begun, Pause, Progress, Stream, clothed, load

if TYPE_CHECKING:
    from pcbatch.runtime.pc import PcExecutable

NOBODY = -1
FIRST_ROWS = 1024  # room for results where nobody knows how many there will be


class Piece(NamedTuple):
    """Some inputs: parameters, of which the first so many rows are real. All pieces of a run have as many rows."""

    rows: Mapping[str, Any]
    inputs: int


@dataclass(frozen=True, slots=True)
class Flow:
    """How inputs come: `size` at a time, `total` in all (None: nobody knows), through so many `lanes` (None: the
    program decides) on each device."""

    size: int
    total: int | None = None
    lanes: int | None = None
    progress: Progress | None = None


class _Sent(NamedTuple):
    """A piece on its devices; which inputs it holds, [devices, each]; the number of the first."""

    dealt: Dealt
    owners: np.ndarray
    first: int


class _Left(NamedTuple):
    """What runs left behind, by slot, and the input that each is for; `NOBODY` where it is for none, or not done."""

    rows: tuple[Any, ...]
    owners: np.ndarray


@dataclass
class Chunks:
    """One `map` over pieces."""

    stream: Stream
    total: int | None
    pieces: Iterator[Piece]
    came: int = field(init=False, default=0)  # inputs that have been sent
    ahead: _Sent | None = field(init=False, default=None)
    left: _Left | None = field(init=False, default=None)

    def run(self, common: Mapping[str, Any]) -> Outcome:
        """Every piece, to the end of all its inputs. There must be one."""
        stream, self.done = self.stream, _Gathered(self.total)
        here = self._sent(next(self.pieces), common)
        self.common = here.dealt.common
        begun = stream.begin(here.dealt, stream.spread.each + stream.lanes)
        owners = np.pad(here.owners, ((0, 0), (0, stream.lanes)), constant_values=NOBODY)
        while True:
            begun, pause = stream.turns(begun, 0, here.first, self.total, more=True, meanwhile=self._meanwhile)
            if self.ahead is None:
                break
            here = self.ahead
            begun, owners = self._next(begun, here, pause, owners)
        begun = stream.to_the_end(begun, here.first, self.total)
        stream.executable.remember(stream.depth)
        return self._outcome(begun, owners)

    def _meanwhile(self) -> None:
        """While the devices run."""
        piece = next(self.pieces, None)
        self.ahead = None if piece is None else self._sent(piece, self.common)
        self._gather()

    def _sent(self, piece: Piece, common: Mapping[str, Any]) -> _Sent:
        spread = self.stream.spread
        first, self.came = self.came, self.came + piece.inputs
        number = np.arange(spread.inputs)
        owners = _by_device(np.where(number < piece.inputs, first + number, NOBODY), spread)
        names = owners.astype(np.int32) if self.stream.executable.prints else None
        if spread.mesh is None:
            names = None if names is None else names[0]
            return _Sent(jax.device_put(Dealt(piece.rows, common, spread.ends(piece.inputs), names)), owners, first)
        mapped = {v: _by_device(x, spread) for v, x in piece.rows.items()}
        return _Sent(spread.placed(Dealt(mapped, common, spread.ends(piece.inputs), names)), owners, first)

    def _next(self, begun: Begun, here: _Sent, pause: Pause, owners: np.ndarray) -> tuple[Begun, np.ndarray]:
        """On to the next piece; what is done is left for `_gather`."""
        stream = self.stream
        rows, q, stored = stream.call(_next, begun.queue, begun.shared, here.dealt, depth=stream.depth, donate=(0,))
        items = np.asarray(pause.item).reshape(len(owners), -1)
        device, lane = np.nonzero(items < owners.shape[1])
        running = items[device, lane]
        carried = np.full(items.shape, NOBODY)
        carried[device, lane] = owners[device, running]
        owners[device, running] = NOBODY
        self.left = _Left(rows, owners)
        return Begun(q, begun.shared, stored), np.concatenate([here.owners, carried], axis=1)

    def _gather(self) -> None:
        """Bring results home."""
        if self.left is not None:
            there = np.flatnonzero(self.left.owners != NOBODY)
            self.done.put(self.left.owners.ravel()[there], there, self.left.rows)
            self.left = None

    def _outcome(self, begun: Begun, owners: np.ndarray) -> Outcome:
        executable, depth = self.stream.executable, self.stream.depth
        self._gather()
        rows, trips, counts = self.stream.call(_last, begun.queue, begun.shared, depth=depth)
        self.left = _Left(rows, owners)
        self._gather()
        values, status, pc, depths, back, shown = self.done.all(self.came)
        values = tuple(map(executable.as_leaf, executable.program.results, values))
        return Outcome(values, status, trips, counts, pc, depths, back, shown, depth)


class _Gathered:
    """Rows that arrive in any order."""

    def __init__(self, total: int | None) -> None:
        self.room = FIRST_ROWS if total is None else total
        self.tree: Any = None
        self.leaves: list[np.ndarray] = []

    def put(self, owners: np.ndarray, places: np.ndarray, rows: Any) -> None:
        """`rows`: [..., slots, ...] each; what is at `places` of them is for these inputs."""
        leaves, self.tree = jax.tree.flatten(rows)
        shape = (int(np.prod(rows[1].shape)),)  # a status for each slot of each device
        arrays = [np.asarray(leaf).reshape(shape + leaf.shape[rows[1].ndim :]) for leaf in leaves]
        if not self.leaves:
            self.leaves = [np.zeros((self.room, *x.shape[1:]), x.dtype) for x in arrays]
        needed = int(owners.max(initial=-1)) + 1
        if needed > self.room:
            more = max(needed, 2 * self.room) - self.room
            self.room += more
            self.leaves = [np.concatenate([x, np.zeros((more, *x.shape[1:]), x.dtype)]) for x in self.leaves]
        for kept, array in zip(self.leaves, arrays, strict=True):
            kept[owners] = array[places]

    def all(self, count: int) -> Any:
        """The first `count` rows."""
        return jax.tree.unflatten(self.tree, [x[:count] for x in self.leaves])


def _by_device(array: np.ndarray, spread: Spread) -> np.ndarray:
    """[inputs, ...] as [devices, each, ...], on the host."""
    return np.swapaxes(array.reshape(spread.each, spread.devices, *array.shape[1:]), 0, 1)


def _rows(out: Outcome) -> tuple[Any, ...]:
    """What there is of every input; keys as their raw words, which NumPy can hold."""
    key = jax.dtypes.prng_key
    values = tuple(jax.random.key_data(x) if jnp.issubdtype(x.dtype, key) else x for x in out.values)
    return values, out.status, out.pc, out.depths, out.back, out.shown


def _next(
    executable: PcExecutable, q: Queue, shared: Values, given: Dealt, *, spread: Spread, depth: int
) -> tuple[Any, Queue, Values]:
    def body(dealt: tuple[Queue, Values, Dealt], common: Any) -> tuple[Any, Queue, Values]:
        q, shared, given = dealt
        _, stored = load(executable, given, common, spread)
        return _rows(executable.drained(clothed(q, shared), depth)), queue.reopen(q, given.end), stored

    return spread.run(body, (q, shared, given.without_common()), given.common)  # type: ignore[no-any-return]


def _last(
    executable: PcExecutable, q: Queue, shared: Values, *, spread: Spread, depth: int
) -> tuple[Any, jax.Array, tuple[jax.Array, ...]]:
    def body(dealt: tuple[Queue, Values], _: None) -> tuple[Any, jax.Array, tuple[jax.Array, ...]]:
        out = executable.drained(clothed(*dealt), depth)
        return _rows(out), out.trips, out.counts

    rows, trips, counts = spread.run(body, (q, shared), None)
    if spread.mesh is not None:
        trips, counts = jnp.sum(trips), tuple(functools.reduce(wide.plus, count) for count in counts)
    return rows, trips, counts
