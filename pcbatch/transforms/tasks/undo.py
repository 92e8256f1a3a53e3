"""A visit is undone: from the cotangents of what its rows have sent on to those of what their records held.

Rows of records leave cotangents at their own number, where the rows that pushed them look. Rows of joins leave those of
results at the place of the frame, where the tasks that ended there look, and of what was saved likewise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.lane_window import Window
from pcbatch.transforms.tape.block_ssa import Load, PoppedSlot, ReadRegister, Store
from pcbatch.transforms.tape.block_vjp import Env, add, pull_back, replay, zero_where_inactive
from pcbatch.transforms.tape.indexed_vjp import add_loaded
from pcbatch.transforms.tasks.exits import PushedRecord, exits
from pcbatch.transforms.tasks.task_tape import SERIALS, Link, TaskBlockTape, TaskTape

I32 = jnp.int32
TOTAL = "total:"  # before the names of shared values: the sums of their cotangents


@dataclass(frozen=True, slots=True)
class Undoing:
    """The inputs of all undone visits.

    Attributes:
        tape: the plan of the tape.
        parts: the tape by state key.
        fixed: constants of the examples and shared values, by variable in storage form.
        lanes: examples.
        pad: rows in front of the first one of each buffer.
        places: int32[serial numbers]: the row of cotangents of each frame and example, or -1.
        rows_of: by label, int32[places of pushes]: the row of the record that was pushed there, or -1.
        offsets: by label, where the rows of each kind of push look in that.
    """

    tape: TaskTape
    parts: Mapping[str, Any]
    fixed: Values
    lanes: int
    pad: int
    places: jax.Array
    rows_of: Mapping[str, jax.Array]
    offsets: Mapping[str, Mapping[Link, int]]

    @property
    def first_join(self) -> int:
        """The row of cotangents of the first join: those of examples stand before."""
        return self.lanes + self.pad

    @property
    def frames(self) -> int:
        """The rows of cotangents of a slot of all frames. They stand together, so that a visit writes a slice."""
        joins: int = self.parts[SERIALS].shape[0] - self.pad
        return self.first_join + joins


@dataclass(frozen=True, slots=True)
class TapeRows:
    """The rows of a block that are undone together.

    Attributes:
        at: int32[]: where they begin in the buffers.
        mask: bool[width]: those that there are.
        joins: int32[]: the number of joins up to the last of them.
    """

    at: jax.Array
    mask: jax.Array
    joins: jax.Array

    @property
    def width(self) -> int:
        """The number of places of a window of rows."""
        return self.mask.shape[0]


def of_place(key: str) -> str:
    """Return the state key of the cotangents of a place of frames."""
    return f"ct:{key}"


def of_record(label: str, name: str) -> str:
    """Return the state key of the cotangents of a value of the records of a block."""
    return f"in:{label}:{name}"


def of_constant(name: str) -> str:
    """Return the state key of the cotangents of a constant of the examples."""
    return f"constant:{name}"


def of_deferred(tape: TaskBlockTape, number: int) -> str:
    """Return the state key of the cotangents that those of shared values are made from."""
    return f"deferred:{tape.block.number}:{number}"


def vjp_of_rows(u: Undoing, tape: TaskBlockTape, c: Values, rows: TapeRows) -> Values:
    """Return the cotangents after some rows have been undone."""
    out = dict(c)
    values = read_rows(u, tape, rows)
    env = replay(tape.body, values, u.fixed, rows.width)
    outputs = _outputs(u, tape, c, values, rows)
    memory = _Constants(u, tape, c, values, rows)
    pulled = pull_back(tape.body, env, outputs, rows.width, memory)
    out |= memory.arrays
    for source in tape.body.sources:
        if isinstance(source, ReadRegister) and source.name in tape.moved and source.number in pulled:
            key = of_constant(source.name)
            out[key] = out[key].at[memory.window.targets(rows.mask)].add(pulled[source.number], mode="drop")
    fed = {s.name: pulled.get(s.number) for s in tape.body.sources if isinstance(s, PoppedSlot)}
    masked = {v: zero_where_inactive(rows.mask, ct) for v in tape.fed if (ct := fed[v]) is not None}
    out |= _of_frames(u, tape, out, masked, rows) if tape.joins else _of_records(tape, out, masked, rows)
    deferred = {n: pulled.get(n, outputs.get(n)) for n in tape.reads.deferred_cts}
    known = {n: zero_where_inactive(rows.mask, x) for n, x in deferred.items() if x is not None}
    if tape.late:
        return out | _added(tape, out, env, known, rows)
    return out | {of_deferred(tape, n): _put(out[of_deferred(tape, n)], rows.at, x) for n, x in known.items()}


def deferred_vjp(u: Undoing, tape: TaskBlockTape, c: Values, rows: TapeRows) -> Values:
    """Return the cotangents with those of shared values from some rows, whose own were left for later."""
    values = read_rows(u, tape, rows)
    env = replay(tape.body, values, u.fixed, rows.width)
    numbers = tape.reads.deferred_cts
    cts = {n: lax.dynamic_slice_in_dim(c[of_deferred(tape, n)], rows.at, rows.width) for n in numbers}
    return {**c, **_added(tape, c, env, {n: zero_where_inactive(rows.mask, x) for n, x in cts.items()}, rows)}


def _added(tape: TaskBlockTape, c: Values, env: Env, cts: Mapping[int, Any], rows: TapeRows) -> Values:
    """Add to the cotangents of shared values."""
    return {TOTAL + v: c[TOTAL + v] + x for v, x in tape.of_shared(env, cts, rows.width).items()}


def read_rows(u: Undoing, tape: TaskBlockTape, rows: TapeRows) -> dict[str, Any]:
    """Return the values of rows by key: what was recorded, and constants of their examples."""
    read = {
        name: lax.dynamic_slice_in_dim(u.parts[tape.key(name)], rows.at, rows.width)
        for name in tape.record_layout.buffers
    }
    if tape.block.code.may_not_end:  # inner loops may end only on the values of rows that there are
        source = jnp.where(rows.mask, jnp.arange(rows.width, dtype=I32), jnp.argmax(rows.mask).astype(I32))
        read = {name: x.at[source].get(mode="promise_in_bounds") for name, x in read.items()}
    values = tape.record_layout.unpacked(read)
    window = _window(u, values, rows)
    return values | {s.key: window.read(u.fixed[s.name]) for s in tape.constants}


def _window(u: Undoing, values: Mapping[str, Any], rows: TapeRows) -> Window:
    root = jnp.clip(values["root"], 0, u.lanes - 1) if "root" in values else jnp.zeros(rows.width, I32)
    return Window(u.lanes, rows.mask, root, root, dense=False, borrowed=True)


# Cotangents of what a block has sent on


def _outputs(u: Undoing, tape: TaskBlockTape, c: Values, values: Mapping[str, Any], rows: TapeRows) -> dict[int, Any]:
    """The cotangents of the values that the end of a block uses, by number."""
    found = _Found(u, tape, c, values, rows)
    for exit in exits(u.tape.plan, tape.block):
        here = rows.mask if exit.column is None else rows.mask & (values[exit.column] == exit.number)
        match exit.to:
            case PushedRecord():
                found.of_push(exit.to, exit.values, here)
            case "frame":
                for (key, slot), v in exit.values:
                    found.of_frame(key, slot, v, here)
            case "destination":
                for key, v in exit.values:
                    found.of_destination(key, v, here)
    outputs: dict[int, Any] = {}
    for v, number in tape.body.pushes.items():
        if v in found.cts:
            add(outputs, number, found.cts[v])
    return outputs


@dataclass
class _Found:
    """Cotangents of variables, added up from wherever their values went."""

    u: Undoing
    tape: TaskBlockTape
    c: Values
    values: Mapping[str, Any]
    rows: TapeRows
    cts: dict[str, Any] = field(default_factory=dict)

    def of_push(self, to: PushedRecord, values: Sequence[tuple[str, str]], here: jax.Array) -> None:
        """Add the cotangents of records that were pushed."""
        target = to.label
        wanted = [(p, v) for p, v in values if v in self.tape.sent and of_record(target, p) in self.c]
        if self.u.tape.linked(target) is None or not wanted:
            return
        offset = self.u.offsets[target][Link(self.tape.index, to.rank)]
        row = lax.dynamic_slice_in_dim(self.u.rows_of[target], offset - self.u.pad + self.rows.at, self.rows.width)
        for p, v in wanted:
            self._add(v, self.c[of_record(target, p)], self.u.pad + row, here & (row >= 0))

    def of_frame(self, key: str, slot: int | None, v: str, here: jax.Array) -> None:
        """Add the cotangents of values that were put into the open frame."""
        if v not in self.tape.sent or of_place(key) not in self.c:
            return
        place = self.u.places.at[self.values["frame"]].get(mode="clip")
        self._add(v, self.c[of_place(key)], (slot or 0) * self.u.frames + place, here & (place >= 0))

    def of_destination(self, key: str, v: str, here: jax.Array) -> None:
        """Add the cotangents of results."""
        if v not in self.tape.sent or of_place(key) not in self.c:
            return
        slots = I32(self.tape.block.results.slots)
        place = self.u.places.at[self.values["to"] // slots].get(mode="clip")
        at = self.values["to"] % slots * self.u.frames + place
        self._add(v, self.c[of_place(key)], at, here & (place >= 0))

    def _add(self, v: str, array: Any, at: jax.Array, mask: jax.Array) -> None:
        ct = zero_where_inactive(mask, array.at[jnp.where(mask, at, 0)].get(mode="clip"))
        self.cts[v] = self.cts[v] + ct if v in self.cts else ct


# Cotangents of what records held


def _of_records(tape: TaskBlockTape, c: Values, cts: Mapping[str, Any], rows: TapeRows) -> Values:
    label = tape.block.label
    keys = {v: of_record(label, v) for v in cts if of_record(label, v) in c}
    return {key: _put(c[key], rows.at, cts[v]) for v, key in keys.items()}


def _of_frames(u: Undoing, tape: TaskBlockTape, c: Values, cts: Mapping[str, Any], rows: TapeRows) -> Values:
    """The rows of cotangents of frames; places that the block does not read have none."""
    homes, out = u.tape.plan.sites.homes[tape.block.label], {}
    at = u.first_join + rows.joins - rows.width
    for key in dict.fromkeys(homes[v].key for v in cts):
        mine, array = {homes[v].slot: ct for v, ct in cts.items() if homes[v].key == key}, c[of_place(key)]
        if None in mine:
            out[of_place(key)] = _put(array, at, mine[None])
            continue
        nothing = jnp.zeros((rows.width, *array.shape[1:]), array.dtype)
        for slot in range(u.tape.plan.sites.slots_of[key]):
            array = _put(array, slot * u.frames + at, mine.get(slot, nothing))
        out[of_place(key)] = array
    return out


def _put(array: Any, at: Any, rows: Any) -> Any:
    return lax.dynamic_update_slice_in_dim(array, rows.astype(array.dtype), at, 0)


class _Constants:
    """The cotangents of constants of the examples that a block reads in part; a `Memory`."""

    def __init__(self, u: Undoing, tape: TaskBlockTape, c: Values, values: Mapping[str, Any], rows: TapeRows) -> None:
        self.moved, self.c, self.mask = tape.moved, c, rows.mask
        self.window = _window(u, values, rows)
        self.arrays: Values = {}

    def undo_load(self, step: Load, indices: Sequence[Any], cotangent: Any) -> None:
        """Add the cotangent of the loaded value, [width, ...], to that of the constant."""
        if step.register not in self.moved:
            return
        key = of_constant(step.register)
        array = self.arrays.get(key, self.c[key])
        self.arrays[key] = add_loaded(step.eqn, array, indices, cotangent, self.window, self.mask)

    def undo_store(self, step: Store, indices: Sequence[Any]) -> Any:
        """Refuse: no task writes a part of a constant."""
        raise NotImplementedError(step)
