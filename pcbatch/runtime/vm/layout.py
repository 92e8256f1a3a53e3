"""The state that a machine carries: which arrays there are and what they are called.

`pc` [lanes], the smallest signed integers that hold every program counter; `reg:v` one value per lane, [lanes, ...], or
[..., lanes] if it is small (`turned`); where the program calls, `depth` int32[lanes] and `frames` (see `frames`). With
`max_steps`: `steps`. With statistics, per block: `visits` (strips are one), `active` (lanes that took part in them) and
`offered` (lanes that they had room for), as `wide` counts; for a profile these over time as well (see `timeline`).
Where lanes print: `name` int32[lanes], the number of the input that each runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from pcbatch.ir.def_use import kept
from pcbatch.ir.stack import StackProgram
from pcbatch.lowering.typing.jax_types import storage_type, zeros
from pcbatch.runtime.vm import frames as frame_plans
from pcbatch.runtime.vm import timeline, wide_counters
from pcbatch.runtime.vm.block_body import BlockCode, Values, compile_blocks
from pcbatch.runtime.vm.frames import Frames
from pcbatch.runtime.vm.lane_window import lanes_first, lanes_last
from pcbatch.runtime.vm.status import Status

# State keys besides those of variables.
DEBT = "debt"  # of a machine that is refilled: idle lane-trips since the last refill, int32[]
NAME = "name"  # the numbers of the inputs of lanes, for those that print, int32[lanes]
PER_BLOCK = ("visits", "active", "offered")  # statistics


def state_key(kind: str, name: str) -> str:
    """Return the state key of an array of one kind (`"reg"`, ...) that belongs to one variable or buffer."""
    return f"{kind}:{name}"


def reg(name: str) -> str:
    """Return the state key of a variable's register."""
    return state_key("reg", name)


@dataclass(frozen=True, slots=True)
class Layout:
    """A program prepared for emission."""

    program: StackProgram
    codes: tuple[BlockCode, ...]
    index: Mapping[str, int]  # block label -> program counter
    registers: tuple[str, ...]
    lanes_last: frozenset[str]  # state keys whose last axis are the lanes
    frames: Frames | None
    shown: tuple[str, ...]  # variables in the messages of failures
    max_steps: int | None
    stats: bool
    timed: bool = False  # are statistics kept over time?

    def extra(self, lanes: int) -> Values:
        """What the state has besides, before the first trip."""
        return {}

    def rows(self, key: str, array: Any) -> Any:
        """What the state has under a key, with the lanes (or inputs) in front."""
        return lanes_first(array) if key in self.lanes_last else array

    def kept(self, key: str, rows: Any) -> Any:
        """The inverse of `rows`."""
        return lanes_last(rows) if key in self.lanes_last else rows

    @property
    def exit(self) -> int:
        """The program counter of a lane that has returned."""
        return len(self.codes)

    @property
    def prints(self) -> bool:
        """Do lanes print?"""
        return any(code.prints for code in self.codes)

    @property
    def nowhere(self) -> int:
        """A program counter that no lane ever has."""
        return (len(Status) + 1) * (self.exit + 1)

    @property
    def pc_type(self) -> np.dtype[np.signedinteger]:
        """The smallest type for program counters: a trip compares them once per block."""
        return next(np.dtype(t) for t in (np.int8, np.int16, np.int32) if self.nowhere <= np.iinfo(t).max)


def make(
    program: StackProgram, max_steps: int | None, stats: bool, timed: bool = False, floats_apart: bool = False
) -> Layout:
    """Prepare a typed, ordered program; `floats_apart`: frames keep floating numbers as they are, not as words."""
    storage = {v: var.storage for v, var in program.vars.items()}
    codes = compile_blocks(program)
    return Layout(
        program=program,
        codes=codes,
        index={block.label: k for k, block in enumerate(program.blocks)},
        registers=tuple(v for v, s in storage.items() if s is not None and s.has_register),
        lanes_last=frozenset(reg(v) for code in codes[:1] for v in code.lanes_last),  # the same in every block
        frames=frame_plans.plan(program, floats_apart),
        shown=tuple(dict.fromkeys(v for block in program.blocks for v in kept(block.terminator))),
        max_steps=max_steps,
        stats=stats,
        timed=timed,
    )


def initial(layout: Layout, lanes: int, depth: int, args: Values) -> Values:
    """The carried state before the first trip; `args` in storage form, [lanes, ...] each."""
    types = {v: storage_type(t) for v, var in layout.program.vars.items() if (t := var.type) is not None}
    begin = {reg(v): args[v] if v in args else zeros(types[v], (lanes,)) for v in layout.registers}
    carry: Values = {key: layout.kept(key, value) for key, value in begin.items()}
    carry["pc"] = jnp.full((lanes,), layout.index[layout.program.entry], layout.pc_type)
    if layout.frames is not None:
        carry |= layout.frames.empty(lanes, depth, layout.exit)
        carry["depth"] = jnp.zeros((lanes,), jnp.int32)
    if layout.prints:
        carry[NAME] = jnp.arange(lanes, dtype=jnp.int32)
    if layout.max_steps is not None:
        carry["steps"] = jnp.zeros((lanes,), jnp.int32)
    if layout.stats:
        carry |= {key: wide_counters.zeros(layout.exit) for key in PER_BLOCK}
    if layout.timed:
        carry |= timeline.empty(layout.exit, len(PER_BLOCK))
    return carry | layout.extra(lanes)
