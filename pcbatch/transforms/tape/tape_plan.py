"""The plan of a tape: what the blocks of a program record for a gradient.

Every block that floating numbers go through has buffers of its own. A visit appends a record for each of its active
lanes: the values that the block's pullback reads, and a link to the lane's record before it (one number, see
`Tape.record_id`). So no trace of program counters and no masks are recorded, and lanes may be undone in any order.
Counters do not stop where the room ends: a tape that was too short tells how long it must be.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.ir.ops import PureOp
from pcbatch.ir.roles import reads, writes
from pcbatch.ir.stack import StackBlock
from pcbatch.runtime.vm.block_body import BlockCode, Values
from pcbatch.runtime.vm.lane_window import agreeing
from pcbatch.runtime.vm.layout import Layout
from pcbatch.runtime.vm.word_packing import is_float
from pcbatch.transforms.tape.block_ssa import LoadedPart, PoppedSlot, ReadRegister, SharedValue, body_of
from pcbatch.transforms.tape.pullback_reads import reads_of
from pcbatch.transforms.tape.record_layout import RecordLayout, record_layout, stored_as
from pcbatch.transforms.tape.recorded_block import RecordedBlock

SMALL = 32  # elements of a shared value of whose cotangent each lane has a sum of its own
STATUS = "tape:status"  # int32[lanes]
HEAD = "tape:head"  # state key: the lane's last record


@dataclass(frozen=True, eq=False)
class BlockTape(RecordedBlock):
    """The records of one block of lanes, whose number is its program counter.

    `numbers`: `link`, the lane's record before; where frames are undone, `depth`, the nested calls; and, where
    constants are read for many records at once, the `lane`.
    """

    code: BlockCode
    slots: tuple[str, ...]  # floating slots that it pops or pushes
    small_shared: tuple[str, ...]  # shared values of whose cotangent each lane has a sum of its own

    @property
    def source(self) -> StackBlock:
        return self.code.block

    @property
    def keys(self) -> dict[str, str]:
        """The registers in which the lanes of a visit agree, by their keys in a record."""
        return {s.key: s.name for s in self.recorded if isinstance(s, ReadRegister) and s.name in self.code.keys}

    def agreeing(self, values: Mapping[str, Any], mask: jax.Array) -> tuple[jax.Array, dict[str, jax.Array]]:
        """The records in the mask that agree with the first of them, and the registers in which they do."""
        mask, agreed = agreeing({key: values[key] for key in self.keys}, mask)
        return mask, {self.keys[key]: x for key, x in agreed.items()}

    @cached_property
    def deferred_layout(self) -> RecordLayout:
        """The columns of the deferred cotangents of one record, and of the number of the record."""
        types = {**self.body.outputs, **self.body.edge}
        columns = {str(number): stored_as(types[number]) for number in self.reads.deferred_cts}
        return record_layout({**columns, "record": ((), np.int32)}) if columns else RecordLayout({}, {})

    def read(self, known: Mapping[str, Any], record: jax.Array) -> dict[str, Any]:
        """The values of the records `record`, int32[width], by key of a source; `known` has the tape by state key."""
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
        return (HEAD, *(key for block in self.blocks for key in block.state_keys))

    def empty(self, lanes: int, rows: Sequence[int]) -> Values:
        """The tape before the first trip. `rows` of each block's buffers: its records at most, and `lanes` more."""
        state: Values = {HEAD: jnp.full((lanes,), -1, jnp.int32)}
        for block, count in zip(self.blocks, rows, strict=True):
            state |= block.empty(count)
        return state


def plan_tape(layout: Layout, shared: frozenset[str]) -> Tape:
    """Plan the tape for gradients that go through the shared variables `shared`, and through any arguments per lane."""
    wanted = {v for v in shared if is_float(_type(layout, v))}
    updated = {v for code in layout.codes for v in code.updates}
    constant = {v for v in layout.registers if v not in updated and v in layout.program.params}
    blocks = (_plan_block(layout, code, wanted, constant) for code in layout.codes)
    return Tape(tuple(block for block in blocks if block is not None), shared)


def computed_of(variables: Collection[str], prologue: Sequence[PureOp]) -> frozenset[str]:
    """Some variables, and those that are computed of them before the first trip."""
    found = set(variables)
    for op in prologue:
        if found & set(reads(op)):
            found |= set(writes(op))
    return frozenset(found)


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
    found = reads_of(body, small)
    deferred = deferred if found.deferred_cts else ()
    unchanging = frozenset(constant - {*code.keys})
    block = BlockTape(code.index, body, found, unchanging, deferred, ("link",), code, slots, small)
    numbers = ("link", *(["depth"] if slots else []), *(["lane"] if deferred and block.constants else []))
    return replace(block, numbers=numbers)
