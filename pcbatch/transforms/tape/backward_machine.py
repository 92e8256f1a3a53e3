"""The backward machine: lanes run their records, last to first, each at its own pace.

A lane stands at the block of its last record. A visit reads the records of the lanes that wait for the block, undoes it
(pushes, then the body, then pops) in the cotangents of registers and slots, and sends each lane to the block of the
record before. Blocks are chosen by the policies of the forward machine; nothing ties the order to that of the run.

Cotangents of large values that lanes share are not added up trip by trip (`kept.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.lowering.typing.jax_types import storage_type
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.frames import Frames
from pcbatch.runtime.vm.lane_window import Window
from pcbatch.runtime.vm.layout import Layout, reg
from pcbatch.runtime.vm.run_once import isolated
from pcbatch.runtime.vm.word_packing import is_float
from pcbatch.transforms.tape.block_ssa import POP, READ, SHARED, Load, Store
from pcbatch.transforms.tape.block_vjp import add, pull, replay, taken_in, zero_where_inactive
from pcbatch.transforms.tape.indexed_vjp import add_loaded, take_stored
from pcbatch.transforms.tape.plan import BlockTape, Tape
from pcbatch.transforms.tape.record_layout import append, ordered, together
from pcbatch.transforms.tape.uniform_cotangents import deferred_keys, kept, make_room, room, total

RECORD = "record"  # state key: the record that a lane undoes next


def ct(name: str) -> str:
    """The state key of the cotangents of a register, or of a buffer of frames."""
    return f"ct:{name}"


def own(name: str) -> str:
    """The state key of each lane's cotangent of a small shared value."""
    return f"own:{name}"


@dataclass(frozen=True, slots=True)
class BackCode:
    """A block of the backward machine; `index` is its program counter there."""

    index: int
    tape: BlockTape
    risky: bool = False
    unsafe_when_inactive: bool = False

    @property
    def scope(self) -> str:
        """What it is called in XLA's programs and profiles."""
        return f"undo {self.tape.code.scope}"

    @property
    def block(self) -> Any:
        """The block that it undoes."""
        return self.tape.code.block


@dataclass(frozen=True)
class BackwardLayout:
    """The state of a backward machine; see `start`."""

    forward: Layout
    tape: Tape
    codes: tuple[BackCode, ...]
    frames: Frames | None  # of floating slots
    floats: tuple[str, ...]  # registers with cotangents

    @property
    def exit(self) -> int:
        """The program counter of a lane that has nothing left to undo."""
        return len(self.codes)

    @property
    def owned(self) -> tuple[str, ...]:
        """Small shared values."""
        return tuple(dict.fromkeys(v for block in self.tape.blocks for v in block.owned))

    def type(self, name: str) -> Any:
        """How a variable is stored."""
        type_ = self.forward.program.vars[name].type
        assert type_ is not None
        return storage_type(type_)

    def lanes_last(self, name: str) -> bool:
        """Are the lanes of a register's cotangents the last axis?"""
        return reg(name) in self.forward.lanes_last


def layout_of(forward: Layout, tape: Tape) -> BackwardLayout:
    """The backward machine of a program: its blocks in the opposite order."""
    # Blocks are computed again: loops in them end only on records of lanes that are here.
    risks = ((block, block.code.risky) for block in reversed(tape.blocks))
    codes = tuple(BackCode(k, block, risky, unsafe_when_inactive=risky) for k, (block, risky) in enumerate(risks))
    slots = {v for block in tape.blocks for v in block.frames}
    frames = None
    if slots:
        assert forward.frames is not None
        columns = {v: column for v, column in forward.frames.columns.items() if v in slots}
        buffers = {column.buffer for column in columns.values()}
        frames = Frames(columns, {b: width for b, width in forward.frames.widths.items() if b in buffers})
    types = {v: forward.program.vars[v].type for v in forward.registers}
    floats = tuple(v for v, type_ in types.items() if type_ is not None and is_float(type_))
    return BackwardLayout(forward, tape, codes, frames, floats)


def at_records(layout: BackwardLayout, carry: Values, head: jax.Array) -> Values:
    """The state with lanes at these records, int32[lanes]; -1 for those that have none."""
    return {**carry, RECORD: head, "pc": _places(layout, head)}


def start(layout: BackwardLayout, cotangents: Mapping[str, Any], depth: int, lanes: int, known: Values) -> Values:
    """The state before the first trip, with no lane anywhere: `cotangents` of some registers, [lanes, ...]."""
    carry = at_records(layout, {}, jnp.full((lanes,), -1, jnp.int32))
    for v in layout.floats:
        type_ = layout.type(v)
        given = cotangents.get(v)
        first = jnp.zeros((lanes, *type_.shape), jnp.dtype(type_.dtype)) if given is None else given
        carry[ct(v)] = layout.forward.kept(reg(v), first)
    if layout.frames is not None:
        for buffer, width in layout.frames.widths.items():
            carry[ct(buffer)] = jnp.zeros(((depth + 2) * lanes, width), layout.frames.dtype(buffer))
    for v in layout.owned:
        type_ = layout.type(v)
        carry[own(v)] = jnp.zeros((lanes, *type_.shape), jnp.dtype(type_.dtype))
    for block in layout.tape.blocks:
        if block.kept:
            carry[kept(block, "n")] = jnp.zeros((), jnp.int32)
            carry |= {kept(block, name): x for name, x in block.kept_rows.empty(room(lanes)).items()}
            carry |= {total(v): jnp.zeros(jnp.shape(known[v]), known[v].dtype) for v in block.deferred}
    return carry


def _places(layout: BackwardLayout, record: jax.Array) -> jax.Array:
    """The program counters of lanes at these records."""
    blocks = len(layout.tape.blocks)
    dtype = next(np.dtype(t) for t in (np.int8, np.int16, np.int32) if layout.exit <= np.iinfo(t).max)
    place = blocks - 1 - record % blocks  # the opposite order: see `layout_of`
    return jnp.where(record >= 0, place, layout.exit).astype(dtype)


@dataclass(frozen=True, slots=True)
class BackwardContext:
    """What a step of the backward machine needs. `known`: the tape and the arguments, by state key, and shared values
    by name."""

    layout: BackwardLayout
    known: Values
    isolate_reads: bool = False
    stride: int = 1  # see `Backward`

    def written(self, code: BackCode) -> tuple[str, ...]:
        """The parts of the state that `step` gives."""
        tape = code.tape
        registers = [v for v in (*_reads(tape), *tape.body.updates, *_touched(tape)) if v in self.layout.floats]
        buffers = []
        if self.layout.frames is not None:
            buffers = [self.layout.frames.columns[v].buffer for v in tape.frames]
        names = [RECORD, "pc", *(ct(v) for v in (*registers, *buffers)), *(own(v) for v in tape.owned)]
        return (*dict.fromkeys(names), *(deferred_keys(tape) if tape.kept else ()))

    def step(
        self,
        code: BackCode,
        carry: Values,
        window: Window,
        chosen: bool | jax.Array = True,
        goes_on: bool | jax.Array = False,
    ) -> Values:
        """Undo one record of each lane of the window."""

        def compute() -> BlockCotangents:
            return _undone(self, code.tape, carry, window)

        mixes = bool(code.tape.frames) or not window.dense
        done = isolated(compute) if self.isolate_reads and mixes else compute()
        new = _written(self, code.tape, carry, window, done)
        return {name: new.get(name, carry[name]) for name in self.written(code)}  # what is only compared has none


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BlockCotangents:
    """What a step computes, before anything is written."""

    registers: Values  # new cotangents, [width, ...]
    placed: Values  # whole cotangents of registers that are touched in part
    slots: Values
    owned: Values
    kept: dict[int, Any]
    slot: jax.Array  # int32[width]: which record
    depth: jax.Array | None
    record: jax.Array  # the one before


def _reads(tape: BlockTape) -> list[str]:
    return [s.name for s in tape.body.sources if s.kind == READ and is_float(s.type)]


def _touched(tape: BlockTape) -> list[str]:
    return [step.register for step in tape.body.steps if isinstance(step, Load | Store)]


def _undone(stage: BackwardContext, tape: BlockTape, carry: Values, window: Window) -> BlockCotangents:
    layout, body, mask = stage.layout, tape.body, window.here
    slot = window.read(carry[RECORD]) // len(layout.tape.blocks)
    values = tape.read(stage.known, slot)
    depth, link = values.get("depth"), values["link"]
    values |= {s.key: window.read(stage.known[reg(s.name)]) for s in tape.constants}
    for v in tape.owned:
        values[f"{SHARED}:{v}"] = jnp.broadcast_to(stage.known[v], (window.width, *jnp.shape(stage.known[v])))
    env = replay(body, taken_in(body, values, stage.known, window.width), window.width)

    # In a fixed order, not that of a set: the text of the program is the key of JAX's persistent cache.
    entering = [v for v in dict.fromkeys((*_reads(tape), *body.updates)) if v in layout.floats]
    old = {v: window.read(carry[ct(v)], layout.lanes_last(v)) for v in entering}
    saved = {}
    if layout.frames is not None and tape.frames:
        assert depth is not None
        saved = layout.frames.read(_buffers(layout, carry), window, depth, tape.frames)
    cotangents: dict[int, Any] = {}
    for v, number in body.updates.items():
        add(cotangents, number, zero_where_inactive(mask, old[v]))
    for v, number in body.saves.items():
        add(cotangents, number, zero_where_inactive(mask, saved[v]))
    memory = _Registers(carry, window, mask, {})
    found = pull(body, env, cotangents, window.width, memory)

    registers, slots, owned = dict[str, Any](), dict[str, Any](), dict[str, Any]()
    for v in old:
        registers[v] = jnp.zeros_like(old[v]) if v in body.updates else old[v]
    for v in saved:
        slots[v] = jnp.zeros_like(saved[v]) if v in body.saves else saved[v]
    for source in body.sources:
        new = found.get(source.number)
        if new is None or not is_float(source.type):
            continue
        if source.kind == READ:
            registers[source.name] = registers[source.name] + new
        elif source.kind == POP:
            slots[source.name] = slots[source.name] + new
        elif source.kind == SHARED and source.name in tape.owned:
            owned[source.name] = window.read(carry[own(source.name)]) + new
    kept_cts = {n: found.get(n, cotangents.get(n)) for n in tape.kept}
    return BlockCotangents(
        registers,
        dict(memory.placed),
        slots,
        owned,
        {n: zero_where_inactive(mask, x) for n, x in kept_cts.items() if x is not None},
        slot,
        depth,
        link,
    )


def _buffers(layout: BackwardLayout, carry: Values) -> Values:
    assert layout.frames is not None
    return {buffer: carry[ct(buffer)] for buffer in layout.frames.widths}


@dataclass
class _Registers:
    """The cotangents of registers that are touched in part, in place."""

    carry: Values
    window: Window
    mask: jax.Array
    placed: dict[str, Any]

    def loaded(self, step: Load, indices: Sequence[Any], cotangent: Any) -> None:
        array = self._of(step.register)
        self.placed[step.register] = add_loaded(step.eqn, array, indices, cotangent, self.window, self.mask)

    def stored(self, step: Store, indices: Sequence[Any]) -> Any:
        array = self._of(step.register)
        taken, left = take_stored(step.eqn, array, indices[0], self.window, self.mask)
        self.placed[step.register] = left
        return taken

    def _of(self, register: str) -> Any:
        return self.placed.get(register, self.carry[ct(register)])


def _written(stage: BackwardContext, tape: BlockTape, carry: Values, window: Window, done: BlockCotangents) -> Values:
    layout, mask = stage.layout, window.here
    out: Values = {ct(v): array for v, array in done.placed.items()}
    for v, new in done.registers.items():
        out[ct(v)] = window.write(carry[ct(v)], new, mask, layout.lanes_last(v))
    if done.slots:
        assert layout.frames is not None and done.depth is not None
        buffers = layout.frames.write(_buffers(layout, carry), window, done.depth, done.slots, None, mask)
        out |= {ct(buffer): array for buffer, array in buffers.items()}
    for v, new in done.owned.items():
        out[own(v)] = window.write(carry[own(v)], new, mask)
    if done.kept:
        packed = tape.kept_rows.packed({**{str(n): x for n, x in done.kept.items()}, "record": done.slot})
        mine = make_room(
            tape, {key: carry[key] for key in deferred_keys(tape)}, stage.known, stage.stride, window.width
        )
        end, order = mine[kept(tape, "n")], together(window, mask)
        mine |= {kept(tape, name): append(mine[kept(tape, name)], end, ordered(x, order)) for name, x in packed.items()}
        out |= {**mine, kept(tape, "n"): end + jnp.sum(mask, dtype=jnp.int32)}
    record = window.write(carry[RECORD], done.record, mask)
    return {**out, RECORD: record, "pc": window.write(carry["pc"], _places(layout, done.record), mask)}
