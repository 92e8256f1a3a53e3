"""What the emitters share: the carried state, and one masked step of one block."""

from __future__ import annotations

from typing import Any, Protocol

import jax
import jax.numpy as jnp

from pcbatch.ir.ops import RETURN, Branch, Fail, Jump, Return
from pcbatch.ir.stack import PushJump
from pcbatch.runtime import prints, stacks
from pcbatch.runtime.code import BlockCode, Effects, Values, lane_mask
from pcbatch.runtime.layout import Layout, reg, slot
from pcbatch.runtime.schedule import Schedule
from pcbatch.runtime.status import Status, parked, why


class Emitter(Protocol):
    """An emission strategy."""

    @property
    def name(self) -> str:
        """What options call it."""

    def trip(self, layout: Layout, schedule: Schedule, carry: Values, shared: Values) -> Values:
        """The state after one trip."""


def wanted(carry: Values, code: BlockCode) -> jax.Array:
    """Does any lane wait for this block?"""
    return jnp.any(carry["pc"] == code.index)


def masks(layout: Layout, code: BlockCode, carry: Values) -> tuple[jax.Array, jax.Array]:
    """The lanes that run the block now, and the program counter with those parked that cannot."""
    here = carry["pc"] == code.index
    pc, active = carry["pc"], here
    if layout.max_steps is not None:
        late = here & (carry["steps"] >= layout.max_steps)
        pc = jnp.where(late, parked(code.index, layout.exit, Status.STEP_LIMIT), pc)
        active = active & ~late
    if isinstance(code.block.terminator, PushJump):
        full = active & (carry["depth"] >= carry["pcs"].shape[0] - 1)
        pc = jnp.where(full, parked(code.index, layout.exit, Status.STACK_FULL), pc)
        active = active & ~full
    return active, pc


def effects(
    layout: Layout,
    code: BlockCode,
    carry: Values,
    shared: Values,
    active: jax.Array,
    chosen: bool | jax.Array = True,
) -> Effects:
    """Run the body on the current registers and slots, and print what it prints if the block was `chosen`."""
    registers = {v: carry[reg(v)] for v in code.reads}
    popped = {v: stacks.read(carry[slot(v)], carry["depth"]) for v in code.pops}
    done = code.run(carry["pc"].shape[0], registers, popped, shared, active, carry["pc"] == code.index)
    if code.prints:
        prints.emit(code.prints, active & chosen, done.printed)
    return done


def committed(code: BlockCode, carry: Values, done: Effects, active: jax.Array) -> Values:
    """New registers: of the active lanes only (stores have seen to that themselves)."""
    return {
        reg(v): new if v in code.placed else jnp.where(lane_mask(active, new), new, carry[reg(v)])
        for v, new in done.updates.items()
    }


def jump(layout: Layout, code: BlockCode, carry: Values, pc: jax.Array, active: jax.Array, cond: Any) -> Values:
    """Program counters, return addresses and depths after the block's jump."""
    out: Values = {}
    terminator = code.block.terminator
    number = layout.index
    match terminator:
        case Jump(target=target):
            out["pc"] = jnp.where(active, number[target], pc)
        case Branch():
            taken = {side: number.get(side, -1) for side in (terminator.on_true, terminator.on_false)}
            to = jnp.where(cond, taken[terminator.on_true], taken[terminator.on_false]).astype(pc.dtype)
            if RETURN in (terminator.on_true, terminator.on_false):
                leaves = active & (cond if terminator.on_true == RETURN else ~cond)
                back, depth = leave(layout, carry, leaves)
                to = jnp.where(leaves, back, to)
                out |= depth
            out["pc"] = jnp.where(active, to, pc)
        case PushJump(target=target, ret=ret):
            deeper = carry["depth"] + 1
            address = jnp.full_like(pc, number[ret])
            out["pcs"] = stacks.write(carry["pcs"], deeper, address.astype(carry["pcs"].dtype), active)
            out["depth"] = jnp.where(active, deeper, carry["depth"])
            out["pc"] = jnp.where(active, number[target], pc)
        case Return():
            back, depth = leave(layout, carry, active)
            out |= depth
            out["pc"] = jnp.where(active, back, pc)
        case Fail():
            out["pc"] = jnp.where(active, parked(code.index, layout.exit, why(terminator)), pc)
    return out


def leave(layout: Layout, carry: Values, mask: jax.Array) -> tuple[jax.Array | int, Values]:
    """Where a return goes, and the depth after it."""
    if not layout.calls:
        return layout.exit, {}
    back = stacks.read(carry["pcs"], carry["depth"]).astype(carry["pc"].dtype)
    return back, {"depth": carry["depth"] - mask.astype(carry["depth"].dtype)}


def count(layout: Layout, code: BlockCode, carry: Values, active: jax.Array) -> Values:
    """Per-lane steps and statistics, where they are wanted."""
    out: Values = {}
    if layout.max_steps is not None:
        out["steps"] = carry["steps"] + active.astype(carry["steps"].dtype)
    if layout.stats:
        running = jnp.sum(active, dtype=jnp.int32)
        out["visits"] = carry["visits"].at[code.index].add((running > 0).astype(jnp.int32))
        out["active"] = carry["active"].at[code.index].add(running.astype(carry["active"].dtype))
    return out


def step(layout: Layout, code: BlockCode, carry: Values, shared: Values, chosen: bool | jax.Array = True) -> Values:
    """Run one block for the lanes that wait for it; gives only what it writes."""
    active, pc = masks(layout, code, carry)
    done = effects(layout, code, carry, shared, active, chosen)
    out = committed(code, carry, done, active)
    for v, value in done.saved.items():
        out[slot(v)] = stacks.write(carry[slot(v)], carry["depth"], value, active)
    return out | jump(layout, code, carry, pc, active, done.cond) | count(layout, code, carry, active)


def written(layout: Layout, code: BlockCode) -> tuple[str, ...]:
    """The parts of the state that `step` gives."""
    names = ["pc", *map(reg, code.updates), *map(slot, code.pushes)]
    terminator = code.block.terminator
    if isinstance(terminator, PushJump):
        names += ["depth", "pcs"]
    elif layout.calls and (
        isinstance(terminator, Return)
        or (isinstance(terminator, Branch) and RETURN in (terminator.on_true, terminator.on_false))
    ):
        names.append("depth")
    names += ["steps"] if layout.max_steps is not None else []
    names += ["visits", "active"] if layout.stats else []
    return tuple(names)
