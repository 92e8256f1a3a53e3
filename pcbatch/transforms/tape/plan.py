"""The plan of a tape: what the blocks of a program record for a gradient.

Every block that floating numbers go through has buffers of its own. A visit appends a record for each of its active
lanes: the values that the block's pullback reads, and a link to the lane's record before it (one number, see
`Tape.record_id`). So no trace of program counters and no masks are recorded, and lanes may be undone in any order.
Counters do not stop where the room ends: a tape that was too short tells how long it must be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.runtime.vm.block_body import BlockCode, Values
from pcbatch.runtime.vm.lane_window import agreeing
from pcbatch.runtime.vm.layout import Layout
from pcbatch.runtime.vm.word_packing import is_float
from pcbatch.transforms.tape.block_ssa import (
    Body,
    LoadedPart,
    PoppedSlot,
    ReadRegister,
    Recordable,
    SharedValue,
    body_of,
)
from pcbatch.transforms.tape.pullback_reads import reads_of
from pcbatch.transforms.tape.record_layout import RecordedBlock, RecordLayout, record_layout, stored_as

SMALL = 32  # elements of a shared value of whose cotangent each lane has a sum of its own
STATUS = "tape:status"  # int32[lanes]
HEAD = "tape:head"  # state key: the lane's last record


@dataclass(frozen=True)
class BlockTape(RecordedBlock):
    """The records of one block: which values they hold, and what its pullback does with shared values."""

    index: int  # the program counter of the block
    code: BlockCode
    body: Body
    recorded: tuple[Recordable, ...]
    constants: tuple[ReadRegister, ...]  # registers that never change (arguments of the run): read, and not recorded
    slots: tuple[str, ...]  # floating slots that it pops or pushes
    small_shared: tuple[str, ...]  # shared values of whose cotangent each lane has a sum of its own
    deferred: tuple[str, ...]  # other shared values, whose cotangents are pulled back from many records at once
    deferred_cts: tuple[int, ...]  # numbers of values whose cotangents are deferred, and made into those of `deferred`
    alias_of: Mapping[int, int]  # numbers of other values, with the same cotangent as one of `deferred_cts`

    @property
    def keys(self) -> dict[str, str]:
        """The registers in which the lanes of a visit agree, by their keys in a record."""
        return {s.key: s.name for s in self.recorded if isinstance(s, ReadRegister) and s.name in self.code.keys}

    def agreeing(self, values: Mapping[str, Any], mask: jax.Array) -> tuple[jax.Array, dict[str, jax.Array]]:
        """The records in the mask that agree with the first of them, and the registers in which they do."""
        mask, agreed = agreeing({key: values[key] for key in self.keys}, mask)
        return mask, {self.keys[key]: x for key, x in agreed.items()}

    @cached_property  # the host asks for it in every gradient
    def record_layout(self) -> RecordLayout:
        """The columns of one record, with the lane's link to the record before."""
        types: dict[str, tuple[tuple[int, ...], Any]] = {s.key: stored_as(s.type) for s in self.recorded}
        types["link"] = (), np.int32
        if self.slots:
            types["depth"] = (), np.int32
        if self.deferred and self.constants:
            types["lane"] = (), np.int32
        return record_layout(types)

    @cached_property
    def deferred_layout(self) -> RecordLayout:
        """The columns of the deferred cotangents of one record, and of the number of the record."""
        types = {**self.body.outputs, **self.body.edge}
        columns = {str(number): stored_as(types[number]) for number in self.deferred_cts}
        return record_layout({**columns, "record": ((), np.int32)}) if columns else RecordLayout({}, {})

    def read(self, known: Mapping[str, Any], record: jax.Array) -> dict[str, Any]:
        """The values of the records `record`, int32[width], by `Source.key`; `known` has the tape by state key."""
        return self.record_layout.read({name: known[key] for name, key in self.buffers.items()}, record)


@dataclass(frozen=True, eq=False)
class Tape:
    """The plan of a program's tape, for gradients that reach the shared variables `shared`."""

    blocks: tuple[BlockTape, ...]
    shared: frozenset[str] = frozenset()

    def block(self, index: int) -> BlockTape | None:
        """The records of the block with this program counter, or None if it records nothing."""
        return next((block for block in self.blocks if block.index == index), None)

    def record_id(self, record: Any, block: BlockTape) -> Any:
        """One number for record number `record` of a block, which tells the block too."""
        return record * len(self.blocks) + self.blocks.index(block)

    def keys(self) -> tuple[str, ...]:
        """The state keys of the tape: the lanes' last records, and the count and buffers of each block."""
        return (HEAD, *(key for block in self.blocks for key in (block.count, *block.buffers.values())))

    def empty(self, lanes: int, rows: Sequence[int]) -> Values:
        """The tape before the first trip. `rows` of each block's buffers: its records at most, and `lanes` more."""
        state: Values = {HEAD: jnp.full((lanes,), -1, jnp.int32)}
        for block, count in zip(self.blocks, rows, strict=True):
            state[block.count] = jnp.zeros((), jnp.int32)
            state |= {block.key(name): array for name, array in block.record_layout.empty(count).items()}
        return state


def plan_tape(layout: Layout, shared: frozenset[str]) -> Tape:
    """Plan the tape for gradients that go through the shared variables `shared`, and through any arguments per lane."""
    wanted = {v for v in shared if is_float(_type(layout, v))}
    changed = {v for code in layout.codes for v in code.updates}
    constant = {v for v in layout.registers if v not in changed and v in layout.program.params}
    blocks = (_plan_block(layout, code, wanted, constant) for code in layout.codes)
    return Tape(tuple(block for block in blocks if block is not None), shared)


def _type(layout: Layout, name: str) -> Any:
    return layout.program.vars[name].type


def _plan_block(layout: Layout, code: BlockCode, wanted: set[str], constant: set[str]) -> BlockTape | None:
    body = body_of(code)
    pops = [s.name for s in body.sources if isinstance(s, PoppedSlot) and is_float(s.type)]
    slots = tuple(dict.fromkeys([*pops, *body.pushes]))
    loads = [s for s in body.sources if isinstance(s, LoadedPart) and is_float(s.type)]
    if not (body.updates or slots or loads or any(is_float(_type(layout, s.register)) for s in body.stores())):
        return None
    shared = [s for s in body.sources if isinstance(s, SharedValue) and s.name in wanted]
    small = tuple(s.name for s in shared if s.type.size <= SMALL)
    deferred = tuple(s.name for s in shared if s.type.size > SMALL)
    if deferred:  # cut once more, where it meets them
        body = body_of(code, frozenset(deferred))
    reads, sources = reads_of(body, small)
    constants = tuple(s for s in sources if isinstance(s, ReadRegister) and s.name in constant - {*code.keys})
    recorded = tuple(s for s in sources if s not in constants)
    return BlockTape(
        code.index,
        code,
        body,
        recorded,
        constants,
        slots,
        small,
        deferred if reads.deferred_cts else (),
        reads.deferred_cts,
        reads.alias_of,
    )
