"""What a trip is expected to take, and what XLA itself says about the blocks. For people: nothing is decided by it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any, assert_never

import jax

from pcbatch.lowering.typing.jax_types import storage_type
from pcbatch.options import Dense, Few, Mode, Strips
from pcbatch.runtime.costs.plan_modes import BlockCost, Costs
from pcbatch.runtime.vm.block_body import BlockCode
from pcbatch.runtime.vm.lane_window import everyone


@dataclass(frozen=True, slots=True)
class XlaCost:
    """XLA's analysis of the body of a block before it is optimised, per lane. It counts the body of a loop of unknown
    length once, and every operand and result of every operation as accessed."""

    flops: float
    transcendentals: float
    bytes: float


def xla_cost(code: BlockCode, width: int) -> XlaCost | None:
    """The analysis of a block computed for so many lanes; None where XLA has none."""

    shape: Any = jax.ShapeDtypeStruct  # untyped in JAX

    def values(names: tuple[str, ...], *lead: int) -> dict[str, Any]:
        types = {v: storage_type(code.type(v)) for v in names}
        return {v: shape((*lead, *t.shape), t.dtype) for v, t in types.items()}

    def body(registers: Any, popped: Any, shared: Any, mask: Any) -> Any:
        done = code.run(everyone(mask), registers, popped, shared, mask)
        return done.updates, done.placed, done.saved, done.conditions

    registers = {
        v: shape((*x.shape[1:], width), x.dtype) if v in code.lanes_last else x
        for v, x in values(code.reads, width).items()
    }
    args = registers, values(code.pops, width), values(code.shared)
    found = None
    with contextlib.suppress(NotImplementedError):  # a platform without it
        found = jax.jit(body).lower(*args, shape((width,), bool)).cost_analysis()
    if not isinstance(found, dict):
        return None
    return XlaCost(*(float(found.get(key, 0.0)) / width for key in ("flops", "transcendentals", "bytes accessed")))


def width_of(mode: Mode, lanes: int) -> int:
    """Lanes that one computation of a block has room for, at the least."""
    return lanes if isinstance(mode, Dense) else min(mode.width, lanes)


def trip_times(costs: Costs, modes: tuple[Mode, ...], lanes: int, policy: str) -> tuple[float, ...]:
    """What each block is expected to add to the time of a trip, in nanoseconds.

    A lane passes a block so often for each visit of the one that trips are counted by: the most expensive of those
    waited for under "drain", the most visited one else. Lanes are taken to be independent of each other.
    """
    blocks = costs.blocks
    total = sum(block.often for block in blocks)
    if policy in ("earliest", "largest"):  # one block a trip
        return tuple(
            block.often / total * _visit(block, mode, lanes, max(1.0, lanes * block.often / total))
            for block, mode in zip(blocks, modes, strict=True)
        )
    waited = [blocks[k].often for k in costs.expensive] if policy == "drain" else []
    unit = max(waited or [block.often for block in blocks])
    return tuple(_in_trip(block, mode, lanes, block.often / unit) for block, mode in zip(blocks, modes, strict=True))


def _in_trip(block: BlockCost, mode: Mode, lanes: int, passes: float) -> float:
    share = min(1.0, passes)
    somebody = 1.0 - (1.0 - share) ** lanes
    return max(1.0, passes) * somebody * _visit(block, mode, lanes, lanes * share / somebody)


def _visit(block: BlockCost, mode: Mode, lanes: int, waiting: float) -> float:
    """A visit for which so many lanes wait."""
    match mode:
        case Dense():
            return block.dense(lanes)
        case Few(width=width):
            return block.few(lanes, width, waiting)
        case Strips(width=width):
            return block.dense(lanes) if 2 * waiting > lanes else block.few(lanes, width, waiting)
        case _:
            assert_never(mode)
