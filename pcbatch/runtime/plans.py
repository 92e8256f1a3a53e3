"""Costs of blocks, and how each is computed."""

from __future__ import annotations

from dataclasses import dataclass

from pcbatch.ir.stack import StackProgram
from pcbatch.lowering.frequency import visits
from pcbatch.lowering.order import expensive_block, _block_cost
from pcbatch.lowering.jax_types import storage_type
from pcbatch.ir.walk import block_uses, block_writes
from pcbatch.runtime.modes import Dense, Few, Mode, Strips
from pcbatch.ir.walk import edges
from pcbatch.ir.ops import Jump
import os

@dataclass(frozen=True, slots=True)
class Cost:
    label: str
    ops: float
    words: float
    often: float
    expensive: bool
    loops: bool


def costs(program: StackProgram):
    types = {v: var.type for v, var in program.vars.items()}
    often = visits(program)
    top = max(often.values())
    last = expensive_block(program)
    out = []
    for b in program.blocks:
        names = block_uses(b) | block_writes(b)
        words = sum(storage_type(types[v]).size for v in names if types[v] is not None)
        loops = any(getattr(e, "target", None) == b.label for e in edges(b.terminator))
        out.append(Cost(b.label, _block_cost(b, types), words, often[b.label] / top, b.label == last, loops))
    return tuple(out)


def expensive(costs):
    return tuple(k for k, c in enumerate(costs) if c.expensive)


def modes(costs, lanes):
    return tuple(_mode(c, lanes) for c in costs)


def _mode(c, lanes):
    if c.expensive or os.environ.get("PB_DENSE"):
        return Dense()
    if c.ops + c.words < 100:
        return Dense(spins=c.loops)
    part, low, high = (3, 16, 128) if c.often > 0.5 else (6, 8, 64) if c.often > 0.1 else (12, 4, 32)
    k = 2 ** max(0, (int(lanes / part)).bit_length() - 1)
    k = min(high, max(low, k))
    if k >= lanes:
        return Dense(spins=c.loops)
    return Few(k)
