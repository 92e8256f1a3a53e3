"""The machine that records: a step of a block appends a record for each active lane."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, assert_never

import jax
import jax.numpy as jnp

from pcbatch.runtime.vm.block_body import BlockCode, Values
from pcbatch.runtime.vm.lane_reductions import count_lanes
from pcbatch.runtime.vm.lane_window import Window
from pcbatch.runtime.vm.layout import Layout
from pcbatch.runtime.vm.step import Computed, StepContext, Visit
from pcbatch.transforms.tape.block_ssa import (
    Body,
    ExpensiveResult,
    LoadedPart,
    PoppedSlot,
    ReadRegister,
    Recordable,
    SharedValue,
)
from pcbatch.transforms.tape.block_vjp import replay, spread_over
from pcbatch.transforms.tape.record_layout import active_first, reordered
from pcbatch.transforms.tape.tape_plan import HEAD, BlockTape, Tape

MOST_COUNTED = 2**30  # records: counters stop here, before int32 overflows
ORDER = "order"  # among the rows of a step: the places of the window whose rows they are, int32[width]


@dataclass(frozen=True, slots=True)
class RecordingContext(StepContext):
    """The context of steps that record."""

    def step(
        self,
        code: BlockCode,
        carry: Values,
        window: Window,
        chosen: bool | jax.Array = True,
        goes_on: bool | jax.Array = False,
    ) -> Values:
        out, computed = Visit(self, code, carry, window).run(chosen, goes_on)
        assert isinstance(self.layout, RecordingLayout)
        block = self.layout.tape.block(code.index)
        return out if block is None else out | _append_records(self.layout, block, carry, window, computed)

    def extra(self, code: BlockCode, carry: Values, window: Window, popped: Values, computed: Computed) -> Values:
        """The records of the window, as rows of each buffer: read before anything is written."""
        assert isinstance(self.layout, RecordingLayout)
        block = self.layout.tape.block(code.index)
        if block is None:
            return {}

        def register(v: str) -> Any:
            return window.read(self.register(carry, v), v in block.code.lanes_last)

        body, loaded = block.body, computed.done.loaded
        read = popped.__getitem__
        values = recorded_values(
            body, block.recorded, self.shared, window.width, register, read, loaded, computed.agreed
        )
        values |= {"link": window.read(carry[HEAD]), "depth": computed.depth, "lane": window.source}
        order = active_first(window, computed.mask)
        rows = {name: reordered(rows, order) for name, rows in block.record_layout.packed(values).items()}
        return rows if order is None else {**rows, ORDER: order}

    def written(self, code: BlockCode) -> tuple[str, ...]:
        names = StepContext.written(self, code)
        assert isinstance(self.layout, RecordingLayout)
        block = self.layout.tape.block(code.index)
        return names if block is None else (*names, HEAD, block.count, *block.buffers.values())


@dataclass(frozen=True, slots=True)
class RecordingLayout(Layout):
    """The layout of a machine that records; `tape_rows`: of each block's buffers."""

    tape: Tape = Tape(())
    tape_rows: tuple[int, ...] = ()

    def extra(self, lanes: int) -> Values:
        """The part of the state that is the tape, before the first trip."""
        return self.tape.empty(lanes, self.tape_rows)


def recording_layout(layout: Layout, tape: Tape, rows: Sequence[int]) -> RecordingLayout:
    """Extend the layout of a machine by a tape with buffers of `rows` rows."""
    parts = {f.name: getattr(layout, f.name) for f in fields(layout)}
    codes = tuple(replace(code, keeps_loads=True) for code in layout.codes)
    return RecordingLayout(**{**parts, "codes": codes}, tape=tape, tape_rows=tuple(rows))


def recorded_values(
    body: Body,
    recorded: Sequence[Recordable],
    shared: Values,
    width: int,
    register: Callable[[str], Any],
    popped: Callable[[str], Any],
    loaded: Values,
    agreed: Mapping[str, Any] = MappingProxyType({}),
) -> Values:
    """The sources of a block, in storage form, by key, and the results among what is recorded.

    Shared values are left out, which no record holds.

    Args:
        body: The block.
        recorded: What is recorded of it.
        shared: The shared values.
        width: The number of places.
        register: Reads a register.
        popped: Reads a slot of the frame.
        loaded: The parts that the block has loaded.
        agreed: The values of registers that are the same in all active lanes, unbatched.
    """
    values: Values = {}
    for source in body.sources:
        match source:
            case ReadRegister(name=v):
                values[source.key] = register(v)
            case PoppedSlot(name=v):
                values[source.key] = popped(v)
            case LoadedPart(name=load):
                values[source.key] = loaded[load]
            case SharedValue():
                pass
            case _:
                assert_never(source)
    if expensive := [s for s in recorded if isinstance(s, ExpensiveResult)]:
        # The block has computed them already: XLA merges the two computations.
        env = replay(body, values, shared, width, agreed)
        values |= {s.key: spread_over(env[s.number], width) for s in expensive}
    return values


def _append_records(
    layout: RecordingLayout, block: BlockTape, carry: Values, window: Window, computed: Computed
) -> Values:
    mask, before, order = computed.mask, carry[block.count], computed.extra.get(ORDER)
    out = block.appended(carry, computed.extra)
    out[block.count] = jnp.minimum(before, MOST_COUNTED) + count_lanes(mask)
    # The records of active lanes stand behind the last one in this order.
    record = layout.tape.record_id(before + jnp.arange(window.width, dtype=jnp.int32), block)
    if order is None:
        out[HEAD] = window.write(carry[HEAD], record, mask)
    else:
        lane = order if window.dense else window.targets(mask).at[order].get(mode="fill", fill_value=window.lanes)
        out[HEAD] = carry[HEAD].at[lane].set(record, mode="drop", unique_indices=False)
    return out


def round_up(records: int) -> int:
    """The room for at least this many records: a power of two, or one and a half of one, so that few sizes are
    compiled."""
    size = 16
    while size < records:
        size = size * 3 // 2 if size & (size - 1) == 0 else size * 4 // 3
    return size
