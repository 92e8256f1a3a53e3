"""The expected time of a trip and XLA's own analysis of blocks, for reports, and the expected time of a visit."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any, assert_never

import jax

from pcbatch.lowering.typing.jax_types import array_struct, storage_type
from pcbatch.plan import Dense, Few, Mode, Strips
from pcbatch.runtime.costs.plan_modes import BlockCost, Costs
from pcbatch.runtime.vm.block_body import BlockCode
from pcbatch.runtime.vm.lane_window import everyone


@dataclass(frozen=True, slots=True)
class XlaCost:
    """The analysis of a block's body by XLA, per lane, before the body is optimised.

    It counts the body of a loop of unknown length once, and every operand and result of every operation as accessed.
    """

    flops: float
    transcendentals: float  # operations such as exp and sin
    bytes: float  # accessed


def xla_cost(code: BlockCode, width: int) -> XlaCost | None:
    """Return XLA's analysis of a block computed for `width` lanes; None where XLA has none.

    The block is traced and lowered for it.
    """

    def values(names: tuple[str, ...], *lead: int) -> dict[str, Any]:
        types = {v: storage_type(code.type(v)) for v in names}
        return {v: array_struct((*lead, *t.shape), t.dtype) for v, t in types.items()}

    def body(registers: Any, popped: Any, shared: Any, mask: Any) -> Any:
        done = code.run(everyone(mask), registers, popped, shared, mask)
        return done.updates, done.placed, done.saved, done.conditions

    registers = {
        v: array_struct((*x.shape[1:], width), x.dtype) if v in code.lanes_last else x
        for v, x in values(code.reads, width).items()
    }
    args = registers, values(code.pops, width), values(code.shared)
    analysis = None
    with contextlib.suppress(NotImplementedError):  # a platform without it
        analysis = jax.jit(body).lower(*args, array_struct((width,), bool)).cost_analysis()
    if not isinstance(analysis, dict):
        return None
    return XlaCost(*(float(analysis.get(key, 0.0)) / width for key in ("flops", "transcendentals", "bytes accessed")))


def width_of(mode: Mode, lanes: int) -> int:
    """Return the lanes that one computation of a block in this mode has room for, at the least."""
    return lanes if isinstance(mode, Dense) else min(mode.width, lanes)


def trip_times(costs: Costs, modes: tuple[Mode, ...], lanes: int, policy: str) -> tuple[float, ...]:
    """Return the time that each block is expected to add to a trip, in nanoseconds.

    The expected visits of a block are taken per trip, in which a lane visits one block once: under "drain" the most
    visited of the expensive blocks, else the most visited of all. Lanes are taken to be independent of each other.

    Args:
        costs: The costs of the program.
        modes: The mode of each block.
        lanes: The number of lanes.
        policy: The name of the policy.
    """
    blocks = costs.blocks
    total = sum(block.often for block in blocks)
    if policy in ("earliest", "largest"):  # one block a trip
        return tuple(
            block.often / total * visit_time(block, mode, lanes, max(1.0, lanes * block.often / total))
            for block, mode in zip(blocks, modes, strict=True)
        )
    expensive = [blocks[k].often for k in costs.expensive] if policy == "drain" else []
    unit = max(expensive or [block.often for block in blocks])
    return tuple(_in_trip(block, mode, lanes, block.often / unit) for block, mode in zip(blocks, modes, strict=True))


def _in_trip(block: BlockCost, mode: Mode, lanes: int, passes: float) -> float:
    waits = min(1.0, passes)  # the probability that a lane waits for the block
    any_waits = 1.0 - (1.0 - waits) ** lanes
    return max(1.0, passes) * any_waits * visit_time(block, mode, lanes, lanes * waits / any_waits)


def visit_time(block: BlockCost, mode: Mode, lanes: int, waiting: float) -> float:
    """Return the time of a visit for which `waiting` lanes wait."""
    match mode:
        case Dense():
            return block.dense(lanes)
        case Few(width=width):
            return block.few(lanes, width, waiting)
        case Strips(width=width):
            return block.dense(lanes) if 2 * waiting > lanes else block.few(lanes, width, waiting)
        case _:
            assert_never(mode)
