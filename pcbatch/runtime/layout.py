"""The state that a machine carries: which arrays there are and what they are called.

`pc` int32[lanes]; `reg:v` one value per lane; and where the program calls, `depth` int32[lanes], `pcs` [depth + 1,
lanes] (return addresses; row 0 is EXIT) and `slot:v` [depth, lanes, ...]. With `max_steps`: `steps`. With statistics:
`visits`, `active`, per block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import jax.numpy as jnp

from pcbatch.ir.stack import StackProgram
from pcbatch.ir.walk import calls, kept
from pcbatch.lowering.jax_types import storage_type, zeros
from pcbatch.runtime.code import BlockCode, Values, compile_blocks
from pcbatch.runtime.status import Status


def reg(name: str) -> str:
    """The state key of a variable's register."""
    return f"reg:{name}"


def slot(name: str) -> str:
    """The state key of a variable's frames."""
    return f"slot:{name}"


def is_frames(key: str) -> bool:
    """Does this key name an array with a depth axis?"""
    return key == "pcs" or key.startswith("slot:")


@dataclass(frozen=True, slots=True)
class Layout:
    """A program prepared for emission."""

    program: StackProgram
    codes: tuple[BlockCode, ...]
    index: Mapping[str, int]  # block label -> program counter
    registers: tuple[str, ...]
    slots: tuple[str, ...]
    shown: tuple[str, ...]  # variables in the messages of failures
    calls: bool
    max_steps: int | None
    stats: bool

    @property
    def exit(self) -> int:
        """The program counter of a lane that has returned."""
        return len(self.codes)

    @property
    def nowhere(self) -> int:
        """A program counter that no lane ever has."""
        return (len(Status) + 1) * (self.exit + 1)


def make(program: StackProgram, max_steps: int | None, stats: bool) -> Layout:
    """Prepare a typed, ordered program."""
    storage = {v: var.storage for v, var in program.vars.items()}
    return Layout(
        program=program,
        codes=compile_blocks(program),
        index={block.label: k for k, block in enumerate(program.blocks)},
        registers=tuple(v for v, s in storage.items() if s is not None and s.has_register),
        slots=tuple(v for v, s in storage.items() if s is not None and s.has_frames),
        shown=tuple(dict.fromkeys(v for block in program.blocks for v in kept(block.terminator))),
        calls=any(calls(block.terminator) for block in program.blocks),
        max_steps=max_steps,
        stats=stats,
    )


def initial(layout: Layout, lanes: int, depth: int, args: Values) -> Values:
    """The carried state before the first trip; `args` in storage form, [lanes, ...] each."""
    types = {v: storage_type(t) for v, var in layout.program.vars.items() if (t := var.type) is not None}
    carry: Values = {reg(v): args[v] if v in args else zeros(types[v], (lanes,)) for v in layout.registers}
    carry["pc"] = jnp.full((lanes,), layout.index[layout.program.entry], jnp.int32)
    if layout.calls:
        carry |= {slot(v): zeros(types[v], (depth, lanes)) for v in layout.slots}
        carry["depth"] = jnp.zeros((lanes,), jnp.int32)
        carry["pcs"] = jnp.full((depth + 1, lanes), layout.exit, jnp.int32)
    if layout.max_steps is not None:
        carry["steps"] = jnp.zeros((lanes,), jnp.int32)
    if layout.stats:
        carry["visits"] = jnp.zeros((layout.exit,), jnp.int32)
        carry["active"] = jnp.zeros((layout.exit,), jnp.float32)
    return carry
