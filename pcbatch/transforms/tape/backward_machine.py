"""The backward machine: lanes undo their records, last to first, each at its own pace.

The program counter of a lane is the block of the record that it undoes next. A visit reads the records of the lanes
that wait for its block, undoes the block (pushes, then the body, then pops) in the cotangents of registers and slots,
and sends each lane to the block of the record before. Blocks are chosen by the policies of the forward machine; the
order of lanes among each other need not be that of the run.

Cotangents of large shared values are deferred (`uniform_cotangents.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_never

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.ir.stack import StackBlock
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.jax_types import storage_type, zeros
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.frames import Frames
from pcbatch.runtime.vm.lane_window import Window
from pcbatch.runtime.vm.layout import Layout, reg
from pcbatch.runtime.vm.run_once import isolated
from pcbatch.runtime.vm.word_packing import is_float
from pcbatch.transforms.tape.block_ssa import Body, Load, LoadedPart, PoppedSlot, ReadRegister, SharedValue, Store
from pcbatch.transforms.tape.block_vjp import Env, add, pull_back, replay, zero_where_inactive
from pcbatch.transforms.tape.indexed_vjp import InPlace
from pcbatch.transforms.tape.needs import PLAIN, Needs
from pcbatch.transforms.tape.tape_plan import BlockTape, Tape
from pcbatch.transforms.tape.uniform_cotangents import capacity, defer, deferred_key, deferred_keys, total

RECORD = "record"  # state key: the record that a lane undoes next
PLACE = (RECORD, "pc")  # state keys: where a lane is


def ct(name: str) -> str:
    """The state key of the cotangents of a register, or of a buffer of frames."""
    return f"ct:{name}"


def own(name: str) -> str:
    """The state key of each lane's cotangent of a small shared value."""
    return f"own:{name}"


@dataclass(frozen=True, slots=True)
class BackwardBlock:
    """A block of the backward machine; `index` is its program counter there."""

    index: int
    tape: BlockTape
    may_not_end: bool = False
    awaited: bool = True
    needs_active_lane: bool = False

    @property
    def scope(self) -> str:
        """The name of the block in XLA's programs and profiles."""
        return f"undo {self.tape.code.scope}"

    @property
    def block(self) -> StackBlock:
        """The block that is undone."""
        return self.tape.code.block


@dataclass(frozen=True)
class BackwardLayout:
    """The state of a backward machine; see `start`."""

    forward: Layout
    tape: Tape
    codes: tuple[BackwardBlock, ...]
    frames: Frames | None  # of floating slots
    floats: tuple[str, ...]  # registers with cotangents

    @property
    def exit(self) -> int:
        """The program counter of a lane with all records undone."""
        return len(self.codes)

    @property
    def small_shared(self) -> tuple[str, ...]:
        """The shared values of whose cotangent each lane has a sum of its own."""
        return tuple(dict.fromkeys(v for block in self.tape.blocks for v in block.small_shared))

    def type(self, name: str) -> ArrayType:
        """The type of a variable in storage form."""
        type_ = self.forward.program.vars[name].type
        assert type_ is not None
        return storage_type(type_)

    def lanes_last(self, name: str) -> bool:
        """Whether the lanes are the last axis of a register, and so of its cotangents."""
        return reg(name) in self.forward.lanes_last


def layout_of(forward: Layout, tape: Tape) -> BackwardLayout:
    """Lay out the backward machine of a program. Its blocks are in the opposite order: policies that sweep over blocks
    by number then follow the usual course of a lane."""
    # Blocks are computed again: a loop in one need not end for an inactive lane, whose record is any.
    risks = ((block, block.code.may_not_end) for block in reversed(tape.blocks))
    codes = tuple(BackwardBlock(k, block, risk, needs_active_lane=risk) for k, (block, risk) in enumerate(risks))
    slots = {v for block in tape.blocks for v in block.slots}
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
    """Set the records that lanes undo next, int32[lanes]; -1 for lanes that have none."""
    return {**carry, RECORD: head, "pc": _program_counters(layout, head)}


def start(
    layout: BackwardLayout, cotangents: Mapping[str, Any], depth: int, lanes: int, known: Values, defers: bool = True
) -> Values:
    """The state before the first trip, in which no lane has a record.

    `cotangents`: of some registers, [lanes, ...], the others' are zero; `depth`: nested calls that frames have room
    for; `known`: the shared values by name; `defers`: see `BackwardContext`.
    """
    carry = at_records(layout, {}, jnp.full((lanes,), -1, jnp.int32))
    for v in layout.floats:
        cotangent = cotangents.get(v)
        cotangent = zeros(layout.type(v), (lanes,)) if cotangent is None else cotangent
        carry[ct(v)] = layout.forward.kept(reg(v), cotangent)
    if layout.frames is not None:
        for buffer, width in layout.frames.widths.items():
            carry[ct(buffer)] = jnp.zeros(((depth + 2) * lanes, width), layout.frames.dtype(buffer))
    carry |= {own(v): zeros(layout.type(v), (lanes,)) for v in layout.small_shared}
    for block in layout.tape.blocks:
        if block.deferred:
            if defers and not block.keys:
                carry[deferred_key(block, "n")] = jnp.zeros((), jnp.int32)
                buffers = block.deferred_layout.empty(capacity(lanes))
                carry |= {deferred_key(block, name): x for name, x in buffers.items()}
            carry |= {total(v): jnp.zeros(jnp.shape(known[v]), known[v].dtype) for v in block.deferred}
    return carry


def _program_counters(layout: BackwardLayout, record_id: jax.Array) -> jax.Array:
    """The program counters of lanes at these records."""
    blocks = len(layout.tape.blocks)
    dtype = next(np.dtype(t) for t in (np.int8, np.int16, np.int32) if layout.exit <= np.iinfo(t).max)
    index = blocks - 1 - record_id % blocks  # the opposite order: see `layout_of`
    return jnp.where(record_id >= 0, index, layout.exit).astype(dtype)


@dataclass(frozen=True, slots=True)
class BackwardContext:
    """The context of a step of the backward machine.

    `known`: the tape and the arguments, by state key, and shared values by name. `isolate_reads`: they must be in a
    loop of their own, or XLA would copy the buffers (see `run_once.isolated`). `stride`: lanes of the recorded run for
    each lane here (see `Backward.stride`). `needs`: those of its masks. `defers`: whether cotangents of large shared
    values wait for those of other records; a lane alone adds them at once.
    """

    layout: BackwardLayout
    known: Values
    isolate_reads: bool = False
    stride: int = 1
    needs: Needs = PLAIN
    defers: bool = True

    @property
    def in_pieces(self) -> bool:
        """Whether blocks are undone in pieces (`lane_pieces.py`): not where cotangents have tangents."""
        return not self.needs.tangents

    def written(self, code: BackwardBlock) -> tuple[str, ...]:
        """The parts of the state that `step` gives."""
        tape = code.tape
        registers = [v for v in (*_reads(tape), *tape.body.updates, *_by_index(tape)) if v in self.layout.floats]
        buffers = []
        if self.layout.frames is not None:
            buffers = [self.layout.frames.columns[v].buffer for v in tape.slots]
        names = [RECORD, "pc", *(ct(v) for v in (*registers, *buffers)), *(own(v) for v in tape.small_shared)]
        return (*dict.fromkeys(names), *(deferred_keys(tape, self.defers) if tape.deferred else ()))

    def step(
        self,
        code: BackwardBlock,
        carry: Values,
        window: Window,
        chosen: bool | jax.Array = True,
        goes_on: bool | jax.Array = False,
    ) -> Values:
        """Undo one record of each active lane of the window. Nothing is printed or counted, so `chosen` and `goes_on`
        make no difference."""

        def compute() -> BlockCotangents:
            return _undo_records(self, code.tape, carry, window)

        mixes = bool(code.tape.slots) or not window.dense
        computed = isolated(compute) if self.isolate_reads and mixes else compute()
        new = _write(self, code.tape, carry, window, computed)
        # A register that is only compared has a key in `written`, but no cotangent from here.
        return {name: new.get(name, carry[name]) for name in self.written(code)}


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BlockCotangents:
    """The results of a step, all of them computed before anything is written."""

    registers: Values  # new cotangents, [width, ...]
    in_place: Values  # cotangents of registers that are accessed by index, of all lanes
    slots: Values  # [width, ...]
    small_shared: Values  # sums of each lane, [width, ...]
    deferred: dict[int, Any]  # by number of the value, [width, ...]
    record: jax.Array  # int32[width]: the number of the undone record among those of its block
    depth: jax.Array | None
    link: jax.Array  # int32[width]: the record before
    mask: jax.Array  # bool[width]: the places whose records are undone
    shared: Values  # of shared values, summed over these


@dataclass(frozen=True, slots=True)
class _Replayed:
    """Records that were read, and the values of the block, computed again from them."""

    record: jax.Array
    depth: jax.Array | None
    link: jax.Array
    mask: jax.Array
    env: Env


@dataclass(frozen=True, slots=True)
class _Incoming:
    """The cotangents of registers and slots as they are after the block, [width, ...]."""

    registers: Values
    slots: Values

    def of_values(self, body: Body, mask: jax.Array) -> dict[int, Any]:
        """The cotangents of the block's outputs, by number."""
        cotangents: dict[int, Any] = {}
        for v, number in body.updates.items():
            add(cotangents, number, zero_where_inactive(mask, self.registers[v]))
        for v, number in body.pushes.items():
            add(cotangents, number, zero_where_inactive(mask, self.slots[v]))
        return cotangents


def _reads(tape: BlockTape) -> list[str]:
    return [s.name for s in tape.body.sources if isinstance(s, ReadRegister) and is_float(s.type)]


def _by_index(tape: BlockTape) -> list[str]:
    return [step.register for step in tape.body.steps if isinstance(step, Load | Store)]


def _undo_records(context: BackwardContext, tape: BlockTape, carry: Values, window: Window) -> BlockCotangents:
    body = tape.body
    replayed = _replay(context, tape, carry, window)
    mask = replayed.mask
    incoming = _incoming(context.layout, tape, carry, window, replayed.depth)
    outputs = incoming.of_values(body, mask)
    cotangents = {v: carry[ct(v)] for v in _by_index(tape) if v in context.layout.floats}
    memory = InPlace(cotangents, window, mask, body.updates.keys())
    pulled = pull_back(body, replayed.env, outputs, window.width, memory, context.needs, context.in_pieces)
    registers, slots, small_shared = _distribute(tape, carry, window, incoming, pulled)
    cts = {n: x for n in tape.reads.deferred_cts if (x := pulled.get(n, outputs.get(n))) is not None}
    deferred = {n: zero_where_inactive(mask, x) for n, x in cts.items()}
    at_once = bool(tape.keys) or not context.defers
    return BlockCotangents(
        registers,
        memory.arrays,
        slots,
        small_shared,
        {} if at_once else deferred,
        replayed.record,
        replayed.depth,
        replayed.link,
        mask,
        tape.of_shared(replayed.env, deferred, window.width, context.needs) if at_once and deferred else {},
    )


def _replay(context: BackwardContext, tape: BlockTape, carry: Values, window: Window) -> _Replayed:
    """Read the records of a window, and compute the block again."""
    known, width = context.known, window.width
    # Not `//`, which looks at signs: a place without a record reads any.
    record = jax.lax.div(jnp.maximum(window.read(carry[RECORD]), 0), jnp.int32(len(context.layout.tape.blocks)))
    values = tape.read(known, record)
    depth, link = values.get("depth"), values["link"]
    values |= {s.key: window.read(known[reg(s.name)]) for s in tape.constants}
    # A copy for each lane, so that `pull_back` gives a cotangent for each lane.
    keys = {s.name: s.key for s in tape.body.sources if isinstance(s, SharedValue)}
    values |= {keys[v]: jnp.broadcast_to(known[v], (width, *jnp.shape(known[v]))) for v in tape.small_shared}
    mask, agreed = tape.agreeing(values, window.here)
    env = replay(tape.body, values, known, width, agreed, context.in_pieces)
    return _Replayed(record, depth, link, mask, env)


def _incoming(
    layout: BackwardLayout, tape: BlockTape, carry: Values, window: Window, depth: jax.Array | None
) -> _Incoming:
    """Read the cotangents of the registers and slots that the block reads or writes."""
    # In a fixed order, not that of a set: the text of the program is the key of JAX's persistent cache.
    names = [v for v in dict.fromkeys((*_reads(tape), *tape.body.updates)) if v in layout.floats]
    registers = {v: window.read(carry[ct(v)], layout.lanes_last(v)) for v in names}
    slots: Values = {}
    if layout.frames is not None and tape.slots:
        assert depth is not None
        slots = layout.frames.read(_buffers(layout, carry), window, depth, tape.slots)
    return _Incoming(registers, slots)


def _distribute(
    tape: BlockTape, carry: Values, window: Window, incoming: _Incoming, pulled: Mapping[int, Any]
) -> tuple[Values, Values, Values]:
    """The cotangents before the block, of registers, slots and small shared values: those of what the block writes
    start from zero, and each source adds its own."""
    body = tape.body
    registers = {v: jnp.zeros_like(old) if v in body.updates else old for v, old in incoming.registers.items()}
    slots = {v: jnp.zeros_like(old) if v in body.pushes else old for v, old in incoming.slots.items()}
    small_shared: Values = {}
    for source in body.sources:
        cotangent = pulled.get(source.number)
        if cotangent is None or not is_float(source.type):
            continue
        match source:
            case ReadRegister(name=v):
                registers[v] = registers[v] + cotangent
            case PoppedSlot(name=v):
                slots[v] = slots[v] + cotangent
            case SharedValue(name=v):
                if v in tape.small_shared:  # else it is deferred
                    small_shared[v] = window.read(carry[own(v)]) + cotangent
            case LoadedPart():  # in `InPlace`
                pass
            case _:
                assert_never(source)
    return registers, slots, small_shared


def _buffers(layout: BackwardLayout, carry: Values) -> Values:
    assert layout.frames is not None
    return {buffer: carry[ct(buffer)] for buffer in layout.frames.widths}


def _write(
    context: BackwardContext, tape: BlockTape, carry: Values, window: Window, computed: BlockCotangents
) -> Values:
    layout, mask = context.layout, computed.mask
    out: Values = {}
    for v, new in computed.registers.items():
        if v not in computed.in_place:
            out[ct(v)] = window.write(carry[ct(v)], new, mask, layout.lanes_last(v))
    out |= {ct(v): array for v, array in computed.in_place.items()}
    if computed.slots:
        assert layout.frames is not None and computed.depth is not None
        buffers = layout.frames.write(_buffers(layout, carry), window, computed.depth, computed.slots, None, mask)
        out |= {ct(buffer): array for buffer, array in buffers.items()}
    for v, new in computed.small_shared.items():
        out[own(v)] = window.write(carry[own(v)], new, mask)
    out |= {total(v): carry[total(v)] + x for v, x in computed.shared.items()}
    if computed.deferred:
        rows = {**{str(n): x for n, x in computed.deferred.items()}, "record": computed.record}
        out |= defer(tape, carry, rows, window, mask, context.known, context.stride, context.needs)
    link = window.write(carry[RECORD], computed.link, mask)
    return {**out, RECORD: link, "pc": window.write(carry["pc"], _program_counters(layout, computed.link), mask)}
