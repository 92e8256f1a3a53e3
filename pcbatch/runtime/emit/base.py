"""What the emitters share: the carried state, and one masked step of one block."""

from __future__ import annotations

from typing import Any, Protocol

import jax
import jax.numpy as jnp

from pcbatch.ir.ops import Fail, Jump, Return
from pcbatch.ir.stack import Edge, Fork, Leaf, PushJump, StackTerminator
from pcbatch.ir.walk import may_return
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
        return room(layout, code, carry, pc, active, {})
    return active, pc


def effects(layout: Layout, code: BlockCode, carry: Values, shared: Values, active: jax.Array) -> Effects:
    """Run the body on the current registers and slots."""
    registers = {v: carry[reg(v)] for v in code.reads}
    popped = {v: stacks.read(carry[slot(v)], carry["depth"]) for v in code.pops}
    return code.run(carry["pc"].shape[0], registers, popped, shared, active, carry["pc"] == code.index)


def tell(code: BlockCode, active: jax.Array, done: Effects) -> None:
    """Print what the block prints in these lanes."""
    if code.prints:
        prints.emit(code.prints, active, done.printed)


def committed(code: BlockCode, carry: Values, done: Effects, active: jax.Array) -> Values:
    """New registers: of the active lanes only (stores have seen to that themselves)."""
    return {
        reg(v): new if v in code.placed else jnp.where(lane_mask(active, new), new, carry[reg(v)])
        for v, new in done.updates.items()
    }


def room(
    layout: Layout, code: BlockCode, carry: Values, pc: jax.Array, active: jax.Array, conds: Values
) -> tuple[jax.Array, jax.Array]:
    """The active lanes but those that would open a frame and have no room, and the program counter with these parked
    before the block."""
    if not code.calls:
        return active, pc
    calling = active & _opens(code.block.terminator, conds)
    full = calling & (carry["depth"] >= carry["pcs"].shape[0] - 1)
    return active & ~full, jnp.where(full, parked(code.index, layout.exit, Status.STACK_FULL), pc)


def _opens(terminator: StackTerminator, conds: Values) -> jax.Array | bool:
    if isinstance(terminator, Fork):
        both = _opens(terminator.on_true, conds), _opens(terminator.on_false, conds)
        return jnp.where(conds[terminator.cond], *both)
    return isinstance(terminator, PushJump)


def jump(layout: Layout, code: BlockCode, carry: Values, pc: jax.Array, active: jax.Array, conds: Values) -> Values:
    """Program counters, return addresses and depths after the block's jump."""
    terminator = code.block.terminator
    if isinstance(terminator, Fail):
        return {"pc": jnp.where(active, parked(code.index, layout.exit, why(terminator)), pc)}
    out: Values = {"pc": pc}
    depth: Any = carry.get("depth")
    for leaf, mask in _ways(terminator, active, conds):
        match leaf:
            case Jump(target=target):
                out["pc"] = jnp.where(mask, layout.index[target], out["pc"])
            case PushJump(target=target):
                depth = jnp.where(mask, carry["depth"] + 1, depth)
                out["pc"] = jnp.where(mask, layout.index[target], out["pc"])
            case Return():
                depth = jnp.where(mask, carry["depth"] - 1, depth) if layout.calls else depth
                out["pc"] = jnp.where(mask, _back(layout, carry), out["pc"])
    if code.calls:
        address, who = addresses(layout, code, carry, active, conds)
        out["pcs"] = stacks.write(carry["pcs"], carry["depth"] + 1, address, who)
    return out | ({"depth": depth} if "depth" in written(layout, code) else {})


def addresses(
    layout: Layout, code: BlockCode, carry: Values, active: jax.Array, conds: Values
) -> tuple[jax.Array, jax.Array]:
    """Where the active lanes that open a frame come back to, and which lanes do."""
    terminator = code.block.terminator
    address: Any = jnp.zeros(active.shape, carry["pcs"].dtype)
    if may_return(terminator):  # XLA copies a stack of which it cannot tell that it is read before it is written
        address = stacks.read(carry["pcs"], carry["depth"])
    who = jnp.zeros_like(active)
    for leaf, mask in () if isinstance(terminator, Fail) else _ways(terminator, active, conds):
        if isinstance(leaf, PushJump):
            address, who = jnp.where(mask, layout.index[leaf.ret], address), who | mask
    return address.astype(carry["pcs"].dtype), who


def _ways(edge: Edge, mask: jax.Array, conds: Values) -> list[tuple[Leaf, jax.Array]]:
    """The leaves of a tree, each with the lanes that take it."""
    if not isinstance(edge, Fork):
        return [(edge, mask)]
    cond = conds[edge.cond]
    return _ways(edge.on_true, mask & cond, conds) + _ways(edge.on_false, mask & ~cond, conds)


def _back(layout: Layout, carry: Values) -> jax.Array | int:
    """Where a return goes."""
    return stacks.read(carry["pcs"], carry["depth"]).astype(carry["pc"].dtype) if layout.calls else layout.exit


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
    done = effects(layout, code, carry, shared, active)
    active, pc = room(layout, code, carry, pc, active, done.conds)
    tell(code, active & chosen, done)
    out = committed(code, carry, done, active)
    for v, value in done.saved.items():
        if v in code.pops:  # read before it is written, which XLA has to see
            value = jnp.where(lane_mask(active, value), value, stacks.read(carry[slot(v)], carry["depth"]))
        out[slot(v)] = stacks.write(carry[slot(v)], carry["depth"], value, active)
    return out | jump(layout, code, carry, pc, active, done.conds) | count(layout, code, carry, active)


def written(layout: Layout, code: BlockCode) -> tuple[str, ...]:
    """The parts of the state that `step` gives."""
    names = ["pc", *map(reg, code.updates), *map(slot, code.pushes)]
    names += ["pcs"] if code.calls else []
    names += ["depth"] if code.calls or (layout.calls and may_return(code.block.terminator)) else []
    names += ["steps"] if layout.max_steps is not None else []
    names += ["visits", "active"] if layout.stats else []
    return tuple(names)
