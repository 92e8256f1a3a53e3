"""One step of one block: the parts of the state that it writes, for the lanes of a window.

A step reads registers and the current frames, evaluates the body, and then writes registers, frames, program counters,
depths and statistics for the active lanes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, assert_never

import jax
import jax.numpy as jnp

from pcbatch.ir.analysis.def_use import calls, edges, may_return
from pcbatch.ir.forks import Fork
from pcbatch.ir.ops import Fail, Jump, Return
from pcbatch.ir.stack import Edge, PushJump
from pcbatch.runtime.vm import frames as frame_plans
from pcbatch.runtime.vm import prints, wide_counters
from pcbatch.runtime.vm.block_body import BlockCode, BodyResults, Values
from pcbatch.runtime.vm.blocks import BlockLike
from pcbatch.runtime.vm.lane_reductions import any_lane
from pcbatch.runtime.vm.lane_window import Window, agreeing
from pcbatch.runtime.vm.layout import NAME, PER_BLOCK, Layout, reg
from pcbatch.runtime.vm.register_groups import Groups
from pcbatch.runtime.vm.run_once import isolated
from pcbatch.runtime.vm.status import Status, parked, reached


class Jumps(NamedTuple):
    """The control flow out of a block, for each place of a window."""

    pc: jax.Array  # [width], `Layout.pc_type`
    enters: jax.Array | None = None  # bool[width]: opens a frame; None: no place does
    leaves: jax.Array | None = None  # bool[width]: closes one; None: no place does
    back: jax.Array | None = None  # [width]: the return address for the frame that is opened


class Computed(NamedTuple):
    """The values that a step reads and computes before it writes any."""

    mask: jax.Array  # bool[width]: the active lanes
    over_limit: jax.Array | None  # bool[width]: lanes that have used up their steps
    depth: jax.Array | None  # int32[width]; None without calls
    done: BodyResults
    jumps: Jumps
    extra: Values  # see `StepContext.extra`
    agreed: Values  # the values of the block's keys, unbatched


@dataclass(frozen=True, slots=True)
class StepContext:
    """The inputs of a step besides the state: the same for all blocks and trips of a machine."""

    layout: Layout
    shared: Values
    isolate_reads: bool = False  # read in a loop of its own where XLA would copy a buffer, see `isolated`
    in_rows: bool = False  # give rows of frames and the mask of who writes them, instead of frames
    groups: Groups = Groups()  # the registers that are rows of one array in the state

    def step(
        self,
        code: BlockCode,
        carry: Values,
        window: Window,
        prints_enabled: bool | jax.Array = True,
        continues_visit: bool | jax.Array = False,
    ) -> Values:
        """Run one block for the lanes of a window.

        Args:
            code: The block.
            carry: The state, by state key.
            window: The lanes.
            prints_enabled: bool[]: whether the block's prints are printed. False where JAX computes a branch that it
                does not take.
            continues_visit: bool[]: whether statistics count this as a part of the visit before.

        Returns:
            The parts of the state that the block writes, by state key: those that `written` names.
        """
        return Visit(self, code, carry, window).run(prints_enabled, continues_visit)[0]

    def extra(self, code: BlockCode, carry: Values, window: Window, popped: Values, computed: Computed) -> Values:
        """Return more values that are computed with a step, before it writes anything; for subclasses."""
        return {}

    def written(self, code: BlockCode) -> tuple[str, ...]:
        """Return the state keys that `step` gives for this block."""
        return self.groups.keys(written(self.layout, code))

    def register(self, carry: Values, name: str) -> jax.Array:
        """Return a variable's register."""
        array: jax.Array = self.groups.read(carry, reg(name))
        return array


def wanted(carry: Values, code: BlockLike) -> jax.Array:
    """Return whether any lane waits for this block, bool[]."""
    return any_lane(waits(carry, code))


def waits(carry: Values, code: BlockLike) -> jax.Array:
    """Return the mask of the lanes that wait for this block, bool[lanes]."""
    mask: jax.Array = carry["pc"] == code.index
    return mask


@dataclass(frozen=True, slots=True)
class Visit:
    """One step of one block: what it reads and computes, and then what it writes."""

    stage: StepContext
    code: BlockCode
    carry: Values
    window: Window

    @property
    def layout(self) -> Layout:
        """The machine's arrays."""
        return self.stage.layout

    def run(
        self, prints_enabled: bool | jax.Array = True, continues_visit: bool | jax.Array = False
    ) -> tuple[Values, Computed]:
        """Return what the step writes, as `StepContext.step` does, and what it computed before that."""
        stage, code, window = self.stage, self.code, self.window
        computed = isolated(self._computed) if stage.isolate_reads and self._mixes else self._computed()
        mask, depth, done = computed.mask, computed.depth, computed.done
        if code.prints:
            names = window.name(self.carry[NAME])
            prints.emit(code.prints, mask & prints_enabled, names, done.printed, self.layout.may_be_full)
        out: Values = {reg(v): array for v, array in done.placed.items()}
        together = {reg(v): new for v, new in done.updates.items() if reg(v) in stage.groups.place}
        out |= stage.groups.write(self.carry, together, window, mask)
        for v, new in done.updates.items():
            if reg(v) not in together:
                out[reg(v)] = window.write(self.carry[reg(v)], new, mask, v in code.lanes_last)
        if self.layout.frames is not None:
            assert depth is not None
            write = self.layout.frames.rows if stage.in_rows else self.layout.frames.write
            out |= write(self.carry, window, depth, done.saved, computed.jumps.back, mask)
        return out | self._moved(computed) | self._counted(mask, continues_visit), computed

    def _computed(self) -> Computed:
        stage, code, window = self.stage, self.code, self.window
        mask, over_limit = self._within_limit()
        depth, popped = None, {}
        if self.layout.frames is not None:
            depth = window.read(self.carry["depth"])
            popped = self.layout.frames.read(self.carry, window, depth, code.pops)
        registers = {v: stage.register(self.carry, v) for v in code.reads}
        mask, agreed = agreeing({v: window.read(registers[v]) for v in code.keys}, mask)
        done = code.run(window, registers, popped, stage.shared, mask, agreed)
        computed = Computed(mask, over_limit, depth, done, self._jumps(depth, done.conditions), {}, agreed)
        return computed._replace(extra=stage.extra(code, self.carry, window, popped, computed))

    @property
    def _mixes(self) -> bool:
        """Whether the block reads and writes parts of one buffer, so that XLA would copy it."""
        code = self.code
        reads_frames = bool(code.pops or may_return(code.block.terminator))
        writes_frames = bool(code.pushes or calls(code.block.terminator))
        # Lanes of a window that is not dense are gathered from registers and scattered into them. A block that stores
        # into a part of a register must not be isolated: the loop would carry the whole register.
        return ((reads_frames and writes_frames) or not self.window.dense) and not code.stores

    def _within_limit(self) -> tuple[jax.Array, jax.Array | None]:
        """Return the places that run the block, and those that have used up their steps."""
        here = self.window.here
        if self.layout.max_steps is None:
            return here, None
        over_limit = here & (self.window.read(self.carry["steps"]) >= self.layout.max_steps)
        return here & ~over_limit, over_limit

    def _jumps(self, depth: jax.Array | None, conditions: Values) -> Jumps:
        layout, terminator = self.layout, self.code.block.terminator
        if isinstance(terminator, Fail):
            return Jumps(_uniform_pc(layout, self.window, reached(terminator, self.code.index, layout.exit)))
        back = None
        if may_return(terminator) and layout.frames is not None:
            assert depth is not None
            back = layout.frames.back(self.carry, self.window, depth).astype(layout.pc_type)
        return resolved(layout, self.window, terminator, back, conditions)

    def _moved(self, computed: Computed) -> Values:
        """Return the new program counters and depths.

        A lane that calls deeper than there is room for is parked before the callee's first block: the call itself is
        done, so that the lane goes on from there when stacks have grown.
        """
        layout, carry, window = self.layout, self.carry, self.window
        mask, over_limit, depth, jumps = computed.mask, computed.over_limit, computed.depth, computed.jumps
        out: Values = {}
        pc = jumps.pc
        if layout.frames is not None and (jumps.enters is not None or jumps.leaves is not None):
            assert depth is not None
            new_depth = depth
            if jumps.enters is not None:
                new_depth = new_depth + jumps.enters.astype(depth.dtype)
                max_depth = frame_plans.depth_of(carry["frames"], window.lanes)
                pc = jnp.where(jumps.enters & (new_depth > max_depth), parked(pc, layout.exit, Status.STACK_FULL), pc)
            if jumps.leaves is not None:
                new_depth = new_depth - jumps.leaves.astype(depth.dtype)
            out["depth"] = window.write(carry["depth"], new_depth, mask)
        if over_limit is not None:
            # Such a lane has not run the block, but its program counter says that it stopped before it.
            stopped = parked(self.code.index, layout.exit, Status.STEP_LIMIT)
            pc = jnp.where(over_limit, jnp.asarray(stopped, pc.dtype), pc)
            mask = mask | over_limit
        out["pc"] = window.write(carry["pc"], pc.astype(layout.pc_type), mask)
        return out

    def _counted(self, mask: jax.Array, continues_visit: bool | jax.Array) -> Values:
        """Return the new steps of lanes and statistics of blocks, if the program has them."""
        layout, carry, window = self.layout, self.carry, self.window
        out: Values = {}
        if layout.max_steps is not None:
            out["steps"] = window.write(carry["steps"], window.read(carry["steps"]) + 1, mask)
        if layout.stats:
            active = jnp.sum(mask, dtype=jnp.uint32)
            ran = active > 0  # emitters without tests run blocks for no lane, which is no visit
            visits = (ran & jnp.logical_not(continues_visit)).astype(jnp.uint32)
            counts = (visits, active, jnp.where(ran, jnp.uint32(window.width), jnp.uint32(0)))
            for key, count in zip(PER_BLOCK, counts, strict=True):
                out[key] = wide_counters.added(carry[key], self.code.index, count)
        return out


def resolved(layout: Layout, window: Window, edge: Edge, back: jax.Array | None, conditions: Values) -> Jumps:
    """Return the jumps along an edge; `back` is the return address of each place, None if a return ends the run."""
    all_places = jnp.ones(window.width, bool)
    match edge:
        case Jump(target=target):
            return Jumps(_uniform_pc(layout, window, layout.arrival(target)))
        case Return():
            if back is None:
                return Jumps(_uniform_pc(layout, window, layout.exit))
            return Jumps(back, leaves=all_places)
        case PushJump(target=target, ret=ret):
            address = _uniform_pc(layout, window, layout.index[ret])
            return Jumps(_uniform_pc(layout, window, layout.index[target]), all_places, None, address)
        case Fork(cond=cond):
            on_true = resolved(layout, window, edge.on_true, back, conditions)
            on_false = resolved(layout, window, edge.on_false, back, conditions)
            return _select_jumps(conditions[cond], on_true, on_false)
        case _:
            assert_never(edge)


def _select_jumps(cond: jax.Array, a: Jumps, b: Jumps) -> Jumps:
    """Return the jumps `a` for the places where `cond` is true, and `b` for the others."""

    def choose(x: jax.Array | None, y: jax.Array | None, default: jax.Array) -> jax.Array | None:
        if x is None and y is None:
            return None
        return jnp.where(cond, default if x is None else x, default if y is None else y)

    no_place = jnp.zeros_like(cond)
    # A frame whose lane does not call may hold any return address: one of the two that there are.
    address = a.back if a.back is not None else b.back
    return Jumps(
        pc=jnp.where(cond, a.pc, b.pc),
        enters=choose(a.enters, b.enters, no_place),
        leaves=choose(a.leaves, b.leaves, no_place),
        back=None if address is None else choose(a.back, b.back, address),
    )


def _uniform_pc(layout: Layout, window: Window, pc: int) -> jax.Array:
    return jnp.full((window.width,), pc, layout.pc_type)


def written(layout: Layout, code: BlockCode) -> tuple[str, ...]:
    """Return the state keys that a step of this block gives."""
    names: list[str] = ["pc", *map(reg, code.updates)]
    successors, is_call = edges(code.block.terminator), bool(calls(code.block.terminator))
    if layout.frames is not None:
        buffers = [layout.frames.columns[v].buffer for v in code.pushes] + (["frames"] if is_call else [])
        names += dict.fromkeys(buffers)
        names += ["depth"] if is_call or any(isinstance(edge, Return) for edge in successors) else []
    names += ["steps"] if layout.max_steps is not None else []
    names += PER_BLOCK if layout.stats else []
    return tuple(names)
