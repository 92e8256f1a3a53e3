"""One step of one block: for the lanes of a window, what it writes of the carried state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar, assert_never

import jax
import jax.numpy as jnp

from pcbatch.ir.def_use import calls, edges, may_return
from pcbatch.ir.ops import Fail, Jump, Return
from pcbatch.ir.stack import Edge, Fork, PushJump
from pcbatch.runtime.vm import frames as frame_plans
from pcbatch.runtime.vm import prints, wide_counters
from pcbatch.runtime.vm.block_body import BlockCode, Effects, Values
from pcbatch.runtime.vm.lane_window import Window
from pcbatch.runtime.vm.layout import NAME, PER_BLOCK, Layout, reg
from pcbatch.runtime.vm.status import Status, parked, why


class Jumps(NamedTuple):
    """Where the places of a window go: `pc` and, where the program calls, who opens a frame (and the return address
    that it keeps) and who closes one. None stands for nobody."""

    pc: jax.Array
    enters: jax.Array | None = None
    leaves: jax.Array | None = None
    back: jax.Array | None = None


class Computed(NamedTuple):
    """All that a step reads and computes, before anything is written."""

    mask: jax.Array
    over_limit: jax.Array | None  # places that have used up their steps
    depth: jax.Array | None
    done: Effects
    leap: Jumps
    extra: Values  # see `StepContext.extra`


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StepContext:
    """What a step needs besides the carried state. `apart`: reads must be kept apart from writes (see `xla`)."""

    layout: Layout
    shared: Values
    apart: bool = False
    in_rows: bool = False  # give rows and who writes them instead of frames

    def step(
        self,
        code: BlockCode,
        carry: Values,
        window: Window,
        chosen: bool | jax.Array = True,
        goes_on: bool | jax.Array = False,
    ) -> Values:
        """Run one block for the lanes of a window; gives only what it writes. Nothing is printed unless `chosen`. Is no
        new visit if it `goes_on` with one."""
        return step_block(self, code, carry, window, chosen, goes_on)[0]

    def extra(self, code: BlockCode, carry: Values, window: Window, popped: Values, computed: Computed) -> Values:
        """What else to compute with a step, for those who extend it."""
        return {}

    def written(self, code: BlockCode) -> tuple[str, ...]:
        """The parts of the state that `step` gives."""
        return written(self.layout, code)


def wanted(carry: Values, code: BlockCode) -> jax.Array:
    """Does any lane wait for this block?"""
    return jnp.any(waits(carry, code))


def waits(carry: Values, code: BlockCode) -> jax.Array:
    """The lanes that wait for this block."""
    there: jax.Array = carry["pc"] == code.index
    return there


def step_block(
    stage: StepContext,
    code: BlockCode,
    carry: Values,
    window: Window,
    chosen: bool | jax.Array = True,
    goes_on: bool | jax.Array = False,
) -> tuple[Values, Computed]:
    """What `StepContext.step` gives, and what it has computed."""
    layout = stage.layout
    compute = partial(_compute, stage, code, carry, window)
    computed = apart(compute) if stage.apart and _mixes(code, window) else compute()
    mask, late, depth, done, leap, _ = computed
    if code.prints:
        prints.emit(code.prints, mask & chosen, window.name(carry[NAME]), done.printed)
    out = {reg(v): array for v, array in done.placed.items()}
    for v, new in done.updates.items():
        out[reg(v)] = window.write(carry[reg(v)], new, mask, v in code.lanes_last)
    if layout.frames is not None:
        assert depth is not None
        write = layout.frames.rows if stage.in_rows else layout.frames.write
        out |= write(carry, window, depth, done.saved, leap.back, mask)
    out |= _move(layout, code, carry, window, depth, mask, late, leap)
    return out | _count(layout, code, carry, window, mask, goes_on), computed


def _compute(stage: StepContext, code: BlockCode, carry: Values, window: Window) -> Computed:
    layout = stage.layout
    mask, late = _in_time(layout, carry, window)
    depth, popped = None, {}
    if layout.frames is not None:
        depth = window.read(carry["depth"])
        popped = layout.frames.read(carry, window, depth, code.pops)
    done = code.run(window, {v: carry[reg(v)] for v in code.reads}, popped, stage.shared, mask)
    leap = _leap(layout, code, carry, window, depth, done.conditions)
    computed = Computed(mask, late, depth, done, leap, {})
    return computed._replace(extra=stage.extra(code, carry, window, popped, computed))


def _mixes(code: BlockCode, window: Window) -> bool:
    """Does the block read and write one buffer in part, so that XLA would copy it?"""
    frames = bool(code.pops or may_return(code.block.terminator)) and bool(code.pushes or calls(code.block.terminator))
    return (frames or not window.dense) and not code.stores


def apart(compute: Callable[[], T]) -> T:
    """`compute()` inside a loop of one iteration: XLA cannot mix it with what comes after."""
    shapes = jax.eval_shape(compute)
    nothing = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    once = lambda c: (jnp.zeros((), bool), compute())  # noqa: E731
    done: T = jax.lax.while_loop(lambda c: c[0], once, (jnp.ones((), bool), nothing))[1]
    return done


def _in_time(layout: Layout, carry: Values, window: Window) -> tuple[jax.Array, jax.Array | None]:
    """The places that run the block, and those that have used up their steps."""
    if layout.max_steps is None:
        return window.here, None
    late = window.here & (window.read(carry["steps"]) >= layout.max_steps)
    return window.here & ~late, late


def _leap(
    layout: Layout, code: BlockCode, carry: Values, window: Window, depth: jax.Array | None, conditions: Values
) -> Jumps:
    terminator = code.block.terminator
    if isinstance(terminator, Fail):
        return Jumps(_everywhere(layout, window, int(parked(code.index, layout.exit, why(terminator)))))
    back = None
    if may_return(terminator) and layout.frames is not None:
        assert depth is not None
        back = layout.frames.back(carry, window, depth).astype(layout.pc_type)
    return _resolve(layout, window, terminator, back, conditions)


def _resolve(layout: Layout, window: Window, edge: Edge, back: jax.Array | None, conditions: Values) -> Jumps:
    """`back`: where a return goes, None for the end of the run."""
    everybody = jnp.ones(window.width, bool)
    match edge:
        case Jump(target=target):
            return Jumps(_everywhere(layout, window, layout.index[target]))
        case Return():
            if back is None:
                return Jumps(_everywhere(layout, window, layout.exit))
            return Jumps(back, leaves=everybody)
        case PushJump(target=target, ret=ret):
            address = _everywhere(layout, window, layout.index[ret])
            return Jumps(_everywhere(layout, window, layout.index[target]), everybody, None, address)
        case Fork(cond=cond):
            ways = (_resolve(layout, window, side, back, conditions) for side in (edge.on_true, edge.on_false))
            return _either(conditions[cond], *ways)
        case _:
            assert_never(edge)


def _either(cond: jax.Array, a: Jumps, b: Jumps) -> Jumps:
    """Where the places go of which `cond` chooses one way or the other."""

    def choose(x: jax.Array | None, y: jax.Array | None, default: jax.Array) -> jax.Array | None:
        if x is None and y is None:
            return None
        return jnp.where(cond, default if x is None else x, default if y is None else y)

    nobody = jnp.zeros_like(cond)
    # A frame whose lane does not call may hold any return address: one of the two that there are.
    address = a.back if a.back is not None else b.back
    return Jumps(
        pc=jnp.where(cond, a.pc, b.pc),
        enters=choose(a.enters, b.enters, nobody),
        leaves=choose(a.leaves, b.leaves, nobody),
        back=None if address is None else choose(a.back, b.back, address),
    )


def _everywhere(layout: Layout, window: Window, pc: int) -> jax.Array:
    return jnp.full((window.width,), pc, layout.pc_type)


def _move(
    layout: Layout,
    code: BlockCode,
    carry: Values,
    window: Window,
    depth: jax.Array | None,
    mask: jax.Array,
    late: jax.Array | None,
    leap: Jumps,
) -> Values:
    """New program counters and depths. A lane that calls deeper than there is room for is parked where it would go on:
    it has done all that it can."""
    out: Values = {}
    pc = leap.pc
    if layout.frames is not None and (leap.enters is not None or leap.leaves is not None):
        assert depth is not None
        new = depth
        if leap.enters is not None:
            new = new + leap.enters.astype(depth.dtype)
            room = frame_plans.depth_of(carry["frames"], window.lanes)
            pc = jnp.where(leap.enters & (new > room), parked(pc, layout.exit, Status.STACK_FULL), pc)
        if leap.leaves is not None:
            new = new - leap.leaves.astype(depth.dtype)
        out["depth"] = window.write(carry["depth"], new, mask)
    moved = mask
    if late is not None:
        pc = jnp.where(late, jnp.asarray(parked(code.index, layout.exit, Status.STEP_LIMIT), pc.dtype), pc)
        moved = mask | late
    out["pc"] = window.write(carry["pc"], pc.astype(layout.pc_type), moved)
    return out


def _count(
    layout: Layout, code: BlockCode, carry: Values, window: Window, mask: jax.Array, goes_on: bool | jax.Array
) -> Values:
    """Per-lane steps and statistics, where they are wanted."""
    out: Values = {}
    if layout.max_steps is not None:
        out["steps"] = window.write(carry["steps"], window.read(carry["steps"]) + 1, mask)
    if layout.stats:
        running = jnp.sum(mask, dtype=jnp.uint32)
        ran = running > 0
        visits = (ran & jnp.logical_not(goes_on)).astype(jnp.uint32)
        counts = (visits, running, jnp.where(ran, jnp.uint32(window.width), jnp.uint32(0)))
        for key, count in zip(PER_BLOCK, counts, strict=True):
            out[key] = wide_counters.added(carry[key], code.index, count)
    return out


def written(layout: Layout, code: BlockCode) -> tuple[str, ...]:
    """The parts of the state that `step` gives."""
    names = ["pc", *map(reg, code.updates)]
    jumps, called = edges(code.block.terminator), bool(calls(code.block.terminator))
    if layout.frames is not None:
        buffers = [layout.frames.columns[v].buffer for v in code.pushes] + (["frames"] if called else [])
        names += dict.fromkeys(buffers)
        names += ["depth"] if called or any(isinstance(edge, Return) for edge in jumps) else []
    names += ["steps"] if layout.max_steps is not None else []
    names += PER_BLOCK if layout.stats else []
    return tuple(names)
