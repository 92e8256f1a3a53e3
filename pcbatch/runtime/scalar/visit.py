"""A visit of a block for one lane: no masks, no windows; stacks are read and written by slices.

The state of a lane has the keys of the machine's state (`vm/layout.py`), without the axis of lanes: registers [...] in
storage form, frames [depth + 2, words], and scalars. Where frames stay with those of all lanes they are
[depth + 2, lanes, words], and the state has the lane's number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, assert_never

import jax
import jax.numpy as jnp

from pcbatch.ir.analysis.def_use import calls, may_return
from pcbatch.ir.forks import Fork
from pcbatch.ir.ops import Fail, Jump, Print, Return
from pcbatch.ir.stack import Edge, Pop, Push, PushJump
from pcbatch.lowering.typing.jax_types import from_storage, to_storage
from pcbatch.runtime.scalar.native import own_call
from pcbatch.runtime.scalar.words import NUMBER
from pcbatch.runtime.vm import wide_counters, word_packing
from pcbatch.runtime.vm.block_body import BlockCode, Values, evaluate
from pcbatch.runtime.vm.frames import RETURN_COLUMN, Frames, runs_of
from pcbatch.runtime.vm.layout import PER_BLOCK, Layout, reg
from pcbatch.runtime.vm.status import Status, parked, reached

IN_PLACE = ("depth", "lanes", "words")  # the axes of frames that stay with those of all lanes


class Leap(NamedTuple):
    """The way out of a block. Numbers that are known while tracing are Python's."""

    pc: jax.Array | int
    deeper: jax.Array | int  # 1 opens a frame, -1 closes one
    back: jax.Array | int | None  # the return address of a frame that is opened; None: none is on any way


def visit(layout: Layout, code: BlockCode, lane: Values, shared: Values) -> Values:
    """Run one block for a lane that waits for it.

    Args:
        layout: The machine's arrays.
        code: The block.
        lane: The state of the lane, by state key.
        shared: The values that all lanes share, by variable, in storage form.

    Returns:
        The parts of the state that the block writes, by state key.
    """
    env, popped, back, row = _read(layout, code, lane, shared)
    saved: Values = {}
    for op in code.block.ops:
        match op:
            case Push(dst=dst, src=src):
                saved[dst] = to_storage(env[src], code.type(dst))
            case Pop(dst=dst):
                env[dst] = from_storage(popped[dst], code.type(dst))
            case Print():
                raise AssertionError("programs that print have another machine")
            case _:
                evaluate(op, env)
    out: Values = {reg(v): to_storage(env[v], code.type(v)) for v in code.updates}
    leap = _leap(layout, code, back, env)
    if layout.frames is not None:
        out |= _write_frames(layout.frames, lane, row, saved, leap.back)
    out |= _moved(layout, lane, leap)
    return out | _counted(layout, code, lane)


def scalars_of(layout: Layout, code: BlockCode) -> tuple[str, ...]:
    """Return the state keys that a visit of a block reads, beside its stacks."""
    terminator = code.block.terminator
    moves = code.pops or code.pushes or calls(terminator) or may_return(terminator)
    return (
        *map(reg, code.reads),
        *(("depth",) if layout.frames is not None and moves else ()),
        *(("steps",) if layout.max_steps is not None else ()),
    )


def stacks_of(layout: Layout, code: BlockCode) -> frozenset[str]:
    """Return the state keys of the stacks that a visit of a block reads or writes."""
    if layout.frames is None:
        return frozenset()
    terminator = code.block.terminator
    own = {"frames"} if calls(terminator) or may_return(terminator) else set()
    return frozenset(own | {layout.frames.columns[v].buffer for v in (*code.pops, *code.pushes)})


def _read(
    layout: Layout, code: BlockCode, lane: Values, shared: Values
) -> tuple[Values, Values, jax.Array | None, jax.Array | None]:
    """Return the values that a block reads, by variable; those that it pops, in storage form; the number of the block
    that its body returns to; and the row of the current frame, None where it reads none.

    The row depends on what was read: XLA copies a stack unless all that is stored in it comes behind what is read.
    """
    env = {v: from_storage(shared[v], code.type(v)) for v in code.shared}
    env |= {v: from_storage(lane[reg(v)], code.type(v)) for v in code.reads}
    if layout.frames is None:
        return env, {}, None, None
    frames = layout.frames

    returns = may_return(code.block.terminator)

    def read(lane: Values) -> tuple[Values, jax.Array | None, jax.Array]:
        return _read_frames(frames, lane, code.pops), read_back(lane) if returns else None, lane["depth"] + 1

    needed = {*(frames.columns[v].buffer for v in code.pops), *(("frames",) if returns else ())}
    if not needed:
        return env, {}, None, None
    at = ("depth", NUMBER) if any(lane[key].ndim == len(IN_PLACE) for key in needed) else ("depth",)
    stacks = {key: lane[key] for key in (*sorted(needed), *at)}
    writes = bool(code.pushes or calls(code.block.terminator))
    return env, *(own_call(read, stacks) if writes else read(stacks))


def read_back(lane: Values) -> jax.Array:
    """Return the number of the block that the current body of a lane returns to, int32[]."""
    stack = lane["frames"]
    return _slice(stack, lane, lane["depth"], 0, RETURN_COLUMN)[0, 0].astype(jnp.int32)


def _at(stack: jax.Array, lane: Values, row: Any, start: int) -> tuple[Any, ...]:
    """Return the indices of a place in a lane's stack."""
    return (row, lane[NUMBER], jnp.int32(start)) if stack.ndim == len(IN_PLACE) else (row, jnp.int32(start))


def _slice(stack: jax.Array, lane: Values, row: Any, start: int, words: int) -> jax.Array:
    """Return words of a row of a lane's stack, [1, words]."""
    size = (*(1 for _ in stack.shape[1:]), words)
    out = jax.lax.dynamic_slice(stack, _at(stack, lane, row, start), size, allow_negative_indices=False)
    return out.reshape(1, words)


def _read_frames(frames: Frames, lane: Values, names: Sequence[str]) -> Values:
    row, out = lane["depth"] + 1, dict[str, jax.Array]()
    for v in names:
        column = frames.columns[v]
        words = _slice(lane[column.buffer], lane, row, column.start, column.stop - column.start)
        out[v] = word_packing.unpack(words, column.type)[0]
    return out


def _write_frames(frames: Frames, lane: Values, row: Any, saved: Values, back: jax.Array | int | None) -> Values:
    """Return the stacks after values and a return address are saved in the current frame; only those that change."""
    parts: dict[str, dict[tuple[int, int], jax.Array]] = {}
    for v, value in saved.items():
        column = frames.columns[v]
        words = word_packing.pack(value[None], 1, frames.dtype(column.buffer))
        parts.setdefault(column.buffer, {})[column.start, column.stop] = words
    if back is not None:
        address = jnp.asarray(back, word_packing.SMALL).reshape(1, RETURN_COLUMN)
        parts.setdefault("frames", {})[0, RETURN_COLUMN] = address
    out: Values = {}
    for buffer, values in parts.items():
        stack = lane[buffer]
        for low, _, words in runs_of(values):
            at = _at(stack, lane, lane["depth"] + 1 if row is None else row, low)
            words = words.reshape(*(1 for _ in stack.shape[1:]), words.shape[1])
            stack = jax.lax.dynamic_update_slice(stack, words, at, allow_negative_indices=False)
        out[buffer] = stack
    return out


def _leap(layout: Layout, code: BlockCode, back: jax.Array | None, env: Mapping[str, jax.Array]) -> Leap:
    terminator = code.block.terminator
    if isinstance(terminator, Fail):
        return Leap(reached(terminator, code.index, layout.exit), 0, None)
    return _along(layout, terminator, back, env)


def _along(layout: Layout, edge: Edge, back: jax.Array | None, env: Mapping[str, jax.Array]) -> Leap:
    match edge:
        case Jump(target=target):
            return Leap(layout.arrival(target), 0, None)
        case Return():
            return Leap(layout.exit, 0, None) if back is None else Leap(back, -1, None)
        case PushJump(target=target, ret=ret):
            return Leap(layout.index[target], 1, layout.index[ret])
        case Fork(cond=cond):
            true = _along(layout, edge.on_true, back, env)
            false = _along(layout, edge.on_false, back, env)
            return _chosen(env[cond], true, false)
        case _:
            assert_never(edge)


def _chosen(cond: jax.Array, a: Leap, b: Leap) -> Leap:
    def choose(x: jax.Array | int, y: jax.Array | int) -> jax.Array | int:
        return x if x is y or (isinstance(x, int) and isinstance(y, int) and x == y) else jnp.where(cond, x, y)

    # A frame that is not opened may hold any return address: one of the two that there are.
    addresses = [leap.back for leap in (a, b) if leap.back is not None]
    back = None if not addresses else choose(addresses[0], addresses[-1])
    return Leap(choose(a.pc, b.pc), choose(a.deeper, b.deeper), back)


def _moved(layout: Layout, lane: Values, leap: Leap) -> Values:
    """Return the new program counter and depth. A call for which there is no room parks the lane before the callee."""
    pc = jnp.asarray(leap.pc, jnp.int32)
    if layout.frames is None or (isinstance(leap.deeper, int) and leap.deeper == 0):
        return {"pc": pc}
    depth = lane["depth"] + leap.deeper
    if leap.back is not None:
        room = lane["frames"].shape[0] - 2
        pc = jnp.where(depth > room, parked(pc, layout.exit, Status.STACK_FULL), pc)
    return {"pc": pc, "depth": depth}


def _counted(layout: Layout, code: BlockCode, lane: Values) -> Values:
    """Return the lane's steps and the statistics of blocks, if the program has them: a visit is one of one lane."""
    out: Values = {}
    if layout.max_steps is not None:
        out["steps"] = lane["steps"] + 1
    if layout.stats:
        out |= {key: wide_counters.added(lane[key], code.index, jnp.uint32(1)) for key in PER_BLOCK}
    return out
