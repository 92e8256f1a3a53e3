"""The machine of one tile of lanes, inside a kernel: what it carries, one visit of a block, and the trips.

Program counters, depths, steps and small registers are registers of threads, carried by the loop of trips. Larger
registers and the frames stay where the state of the machine has them, in the memory of the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import jax
import jax.numpy as jnp
from jax import lax

from pcbatch.runtime.kernel.block_kernel import REGISTER, SHARED, BlockKernel
from pcbatch.runtime.kernel.kernel_plan import KernelPlan
from pcbatch.runtime.kernel.memory import (
    SCALAR,
    KernelMemory,
    KernelRows,
    Places,
    from_stored,
    from_words,
    in_order,
    to_stored,
    to_words,
)
from pcbatch.runtime.kernel.rules.padding import any_, picked
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.frames import Column
from pcbatch.runtime.vm.layout import reg
from pcbatch.runtime.vm.status import Status, parked
from pcbatch.runtime.vm.step import Jumps

TRIPS = "trips"


@dataclass(frozen=True, slots=True)
class Tile:
    """The lanes of one tile.

    Attributes:
        plan: The program.
        memory: The arrays of the kernel: those of the state by state key, shared values and constants.
        lanes: The number of lanes of all tiles.
        depth: The nested calls that frames have room for.
        first: int32[]: the number of the first lane.
        ids: int32[tile]: the numbers of the lanes.
        there: bool[tile]: whether there is such a lane.
    """

    plan: KernelPlan
    memory: KernelMemory
    lanes: int
    depth: int
    first: jax.Array
    ids: jax.Array
    there: jax.Array

    @classmethod
    def of(cls, plan: KernelPlan, memory: KernelMemory, lanes: int, depth: int, number: jax.Array) -> Tile:
        """Return the tile of a number, int32[]."""
        first = number * plan.tile
        ids = first + lax.broadcasted_iota(jnp.int32, (plan.tile,), 0)
        return cls(plan, memory, lanes, depth, first, ids, ids < lanes)

    # The state

    def begin(self) -> Values:
        """Return what the loop of trips carries, read from memory."""
        exit_ = jnp.int32(self.plan.layout.exit)
        pc = self.memory.load("pc", SCALAR, self.ids, self.there).astype(jnp.int32)
        carry: Values = {"pc": jnp.where(self.there, pc, exit_), TRIPS: jnp.int32(0)}
        for key in self.plan.counters:
            carry[key] = self.memory.load(key, SCALAR, self.ids, self.there)
        return carry | {reg(v): self._row(v, self.there) for v in self.plan.carried}

    def end(self, carry: Values) -> None:
        """Write what the loop has carried back to memory."""
        self.memory.order.begin()
        self.memory.store("pc", SCALAR, self.ids, self.there, carry["pc"])
        for key in self.plan.counters:
            self.memory.store(key, SCALAR, self.ids, self.there, carry[key])
        for v in self.plan.carried:
            self._store_row(v, self.there, carry[reg(v)])

    def value(self, name: str, carry: Values, mask: jax.Array) -> jax.Array:
        """Return a register, [tile, ...] padded, in its own dtype; junk where the mask is false."""
        return carry[reg(name)] if reg(name) in carry else self._row(name, mask)

    def put(self, name: str, carry: Values, mask: jax.Array, value: jax.Array) -> None:
        """Give some lanes a new value of a register: in `carry`, which is changed, or in memory."""
        if reg(name) in carry:
            carry[reg(name)] = _chosen(mask, value, carry[reg(name)])
        else:
            self._store_row(name, mask, value)

    def address(self, carry: Values, mask: jax.Array) -> jax.Array:
        """Return the numbers of the blocks that the lanes' current bodies return to, int32[tile]."""
        frames = self.plan.layout.frames
        assert frames is not None
        row = carry["depth"] * self.lanes + self.ids
        return self.memory.load("frames", Places((), frames.widths["frames"]), row, mask).astype(jnp.int32)

    def _row(self, name: str, mask: jax.Array) -> jax.Array:
        places = self.plan.places(name, self.lanes)
        stored = self.memory.load(reg(name), places, self.ids, mask)
        return from_stored(stored, self.plan.layout.stored_type(name).dtype)

    def _store_row(self, name: str, mask: jax.Array, value: jax.Array) -> None:
        places = self.plan.places(name, self.lanes)
        self.memory.store(reg(name), places, self.ids, mask, to_stored(value))

    # One visit

    def visit(self, block: BlockKernel, carry: Values) -> Values:
        """Return the state after a visit of a block, of which some lane of the tile waits for it."""
        layout, code = self.plan.layout, block.code
        mask = here = carry["pc"] == code.index
        if layout.max_steps is not None:
            mask = here & (carry["steps"] < layout.max_steps)
        self.memory.order.begin()
        run = block.run(_Operands(self, block, carry, here, mask))
        new = {**carry, **self._moved(run.jumps, carry, mask)}
        for kind, v, value in run.results():
            if kind == REGISTER:
                self.put(v, new, mask, value)
            else:
                self._save(v, carry, mask, value)
        if layout.max_steps is not None:
            limit = jnp.int32(int(parked(code.index, layout.exit, Status.STEP_LIMIT)))
            new["pc"] = jnp.where(here & ~mask, limit, new["pc"])
            new["steps"] = carry["steps"] + mask.astype(jnp.int32)
        return new

    def popped(self, name: str, carry: Values, mask: jax.Array) -> jax.Array:
        assert self.plan.layout.frames is not None
        column = self.plan.layout.frames.columns[name]
        row = (carry["depth"] + 1) * self.lanes + self.ids
        words = self.memory.load(column.buffer, self._places(column), row, mask)
        return from_words(words, self.plan.layout.stored_type(name).dtype)

    def _places(self, column: Column) -> Places:
        assert self.plan.layout.frames is not None
        return Places(tuple(column.type.shape), self.plan.layout.frames.widths[column.buffer], 1, column.start)

    def _save(self, name: str, carry: Values, mask: jax.Array, value: jax.Array) -> None:
        """Write the value of a slot to the current frames."""
        assert self.plan.layout.frames is not None
        column = self.plan.layout.frames.columns[name]
        row = (carry["depth"] + 1) * self.lanes + self.ids
        words = to_words(value, self.plan.layout.frames.dtype(column.buffer))
        self.memory.store(column.buffer, self._places(column), row, mask, words)

    def _moved(self, jumps: Jumps, carry: Values, mask: jax.Array) -> Values:
        """Write return addresses; return the new program counters and depths."""
        layout, frames = self.plan.layout, self.plan.layout.frames
        pc = jumps.pc
        if frames is None:
            return {"pc": jnp.where(mask, pc, carry["pc"])}
        row = (carry["depth"] + 1) * self.lanes + self.ids
        out: Values = {}
        depth = carry["depth"]
        if jumps.enters is not None:
            enters = mask & jumps.enters
            address = Places((), frames.widths["frames"])
            assert jumps.back is not None
            self.memory.store("frames", address, row, enters, jumps.back.astype(frames.dtype("frames")))
            depth = depth + enters.astype(jnp.int32)
            full = parked(pc, layout.exit, Status.STACK_FULL)
            pc = jnp.where(enters & (depth > self.depth), full, pc)
            out["depth"] = depth
        if jumps.leaves is not None:
            out["depth"] = depth - (mask & jumps.leaves).astype(jnp.int32)
        return out | {"pc": jnp.where(mask, pc, carry["pc"])}

    # Trips

    def run(self, carry: Values, budget: jax.Array, refill: Callable[[Values], Values] | None = None) -> Values:
        """Return the state after at most `budget` trips, int32[], or when no lane of the tile is live.

        `refill` is called after trips in which lanes have ended.
        """
        exit_ = self.plan.layout.exit

        def going(c: Values) -> jax.Array:
            going: jax.Array = (jnp.min(self._inside(c)) < exit_) & (c[TRIPS] < budget)
            return going

        def trip(c: Values) -> Values:
            c = self._trip(c)
            c = c if refill is None else refill(c)
            return {**c, TRIPS: c[TRIPS] + 1}

        end: Values = lax.while_loop(going, trip, carry)
        return end

    def _inside(self, carry: Values) -> jax.Array:
        """Return the program counters, with that of the end for lanes that wait for a block outside of the kernel."""
        pc: jax.Array = carry["pc"]
        for block in sorted(self.plan.outside):
            pc = jnp.where(pc == block, self.plan.layout.exit, pc)
        return pc

    def _trip(self, carry: Values) -> Values:
        blocks = self.plan.awaited
        match self.plan.policy:
            case "earliest":
                return self._run(jnp.min(self._inside(carry)), carry)
            case "largest":
                counts = [jnp.sum((carry["pc"] == block.code.index).astype(jnp.int32)) for block in blocks]
                return self._run(_fullest(blocks, counts), carry)
            case "drain" if self.plan.expensive:
                cheap = [block for block in blocks if block.code.index not in self.plan.expensive]
                expensive = [block for block in blocks if block.code.index in self.plan.expensive]
                carry = self._sweep(cheap, carry)
                waiting = reduce(jnp.logical_or, [carry["pc"] == block.code.index for block in cheap], self.ids < 0)
                return self._sweep(expensive, carry, ~any_(waiting))
            case _:
                return self._sweep(blocks, carry)

    def _sweep(self, blocks: Sequence[BlockKernel], carry: Values, on: jax.Array | None = None) -> Values:
        """Visit these blocks in order, if `on`, bool[]."""
        for block in blocks:
            waits = any_(carry["pc"] == block.code.index)
            waits = waits if on is None else waits & on
            carry = lax.cond(waits, partial(self._repeated, block), lambda c: c, carry)
        return carry

    def _repeated(self, block: BlockKernel, carry: Values) -> Values:
        for _ in range(self.plan.repeats.get(block.code.index, 1)):
            carry = self.visit(block, carry)
        return carry

    def _run(self, number: jax.Array, carry: Values) -> Values:
        """Visit the block of this number, for which some lane waits."""
        branches = [lambda c: c] * self.plan.layout.exit
        for block in self.plan.awaited:
            branches[block.code.index] = partial(self._repeated, block)
        visited: Values = lax.switch(number, branches, carry)
        return visited


@dataclass(frozen=True, slots=True)
class _Operands:
    """The operands of one visit of a block."""

    tile: Tile
    block: BlockKernel
    carry: Values
    here: jax.Array  # bool[tile]: the lanes that wait for the block
    mask: jax.Array  # those of them that may run it

    def value(self, kind: str, name: str) -> jax.Array:
        """Return an operand, padded, in its own dtype."""
        tile, plan = self.tile, self.tile.plan
        match kind:
            case "register" | "popped":
                read = tile.value if kind == REGISTER else tile.popped
                value = read(name, self.carry, self.here)
                # Inner loops may not end on the values of other lanes. One that waits may lend its own, even if none
                # may run the block.
                return _lent(self.here, value) if self.block.code.may_not_end else value
            case "shared":
                return tile.memory.whole(f"shared:{name}", *plan.shape_and_dtype(name))
            case "constant":
                x = self.block.constants[int(name)]
                return tile.memory.whole(self._constant(name), tuple(x.shape), x.dtype)
            case "mask":
                return self.mask
        if plan.layout.frames is None or not self.block.may_return:
            return jnp.full(self.here.shape, plan.layout.exit, jnp.int32)
        return tile.address(self.carry, self.here)

    def rows(self, kind: str, name: str) -> KernelRows:
        """Return the array in memory that an operand is."""
        tile, plan = self.tile, self.tile.plan
        if kind == REGISTER:
            shape, dtype = plan.shape_and_dtype(name)
            shape, strides = (plan.tile, *shape), plan.strides(name, tile.lanes)
            return KernelRows(tile.memory, reg(name), shape, strides, dtype, tile.first, tile.lanes)
        if kind == SHARED:
            shape, dtype = plan.shape_and_dtype(name)
            return KernelRows(tile.memory, f"shared:{name}", shape, in_order(shape), dtype)
        x = self.block.constants[int(name)]
        return KernelRows(tile.memory, self._constant(name), tuple(x.shape), in_order(x.shape), x.dtype)

    def _constant(self, name: str) -> str:
        return f"constant:{self.tile.plan.numbers_of(self.block)[int(name)]}"


def _fullest(blocks: Sequence[BlockKernel], counts: Sequence[jax.Array]) -> jax.Array:
    """Return the number of the block that most lanes wait for; the earliest of several."""
    best: jax.Array = jnp.int32(blocks[0].code.index)
    most = counts[0]
    for block, count in zip(blocks[1:], counts[1:], strict=True):
        best = jnp.where(count > most, jnp.int32(block.code.index), best)
        most = jnp.maximum(most, count)
    return best


def _chosen(mask: jax.Array, new: jax.Array, old: jax.Array) -> jax.Array:
    wide = jnp.broadcast_to(mask.reshape(mask.shape + (1,) * (old.ndim - 1)), old.shape)
    chosen: jax.Array = jnp.where(wide, new, old)
    return chosen


def _lent(mask: jax.Array, x: jax.Array) -> jax.Array:
    """Return values in which inactive lanes have those of an active one."""
    lender = jnp.argmax(mask.astype(jnp.int32))
    lent = picked(x, 0, lender.astype(jnp.int32))
    return _chosen(mask, x, jnp.broadcast_to(lent, x.shape))
