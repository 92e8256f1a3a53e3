"""The state that a machine carries: its arrays and their names, the state keys.

| key | array | present |
|---|---|---|
| `pc` | [lanes], the smallest signed integers that hold every program counter | always |
| `reg:v` | [lanes, ...], or [..., lanes] for small arrays (`lanes_last`): a register, in storage form | per register |
| `depth` | int32[lanes] | with calls |
| `frames`, ... | see `frames.py` | with calls |
| `steps` | int32[lanes] | with `max_steps` |
| `visits`, `active`, `offered` | uint32[blocks, 2], see `wide_counters.py` | with statistics |
| `timeline`, `crowd`, `span` | see `timeline.py` | for a profile |
| `name` | int32[lanes], the number of the input that each lane runs | where lanes print |

Of each block, `visits` counts visits (the strips of one visit count once), `active` the active lanes in them, `offered`
the lanes that they had room for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from pcbatch.ir.analysis.def_use import calls, kept
from pcbatch.ir.ops import Fail
from pcbatch.ir.stack import StackProgram
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.jax_types import is_symbolic, storage_type, zeros
from pcbatch.runtime.vm import frames as frame_plans
from pcbatch.runtime.vm import register_groups as grouping
from pcbatch.runtime.vm import timeline, wide_counters
from pcbatch.runtime.vm.block_body import BlockCode, Values, compile_blocks
from pcbatch.runtime.vm.frames import Frames
from pcbatch.runtime.vm.lane_window import lanes_first, lanes_last
from pcbatch.runtime.vm.register_groups import Groups
from pcbatch.runtime.vm.status import Status, reached, why

# State keys besides those of variables.
DEBT = "debt"  # of a machine that is refilled: idle lane-trips since the last refill, int32[]
LAST = "last"  # of a machine whose trips are single visits: the block of the last one, int32[]
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
    """A program prepared for emission: its blocks, and the arrays of a state."""

    program: StackProgram
    codes: tuple[BlockCode, ...]
    index: Mapping[str, int]  # block label -> program counter
    registers: tuple[str, ...]
    lanes_last: frozenset[str]  # state keys of arrays whose last axis are the lanes
    frames: Frames | None
    shown: tuple[str, ...]  # variables in the messages of failures
    max_steps: int | None
    stats: bool
    timed: bool = False  # statistics are kept over time as well

    def extra(self, lanes: int) -> Values:
        """Return more arrays of the state before the first trip, by state key; for subclasses."""
        return {}

    def rows(self, key: str, array: Any) -> Any:
        """Return an array of the state with the lanes (or inputs) as its first axis."""
        return lanes_first(array) if key in self.lanes_last else array

    def kept(self, key: str, rows: Any) -> Any:
        """Return an array [lanes, ...] with its axes as in the state: the inverse of `rows`."""
        return lanes_last(rows) if key in self.lanes_last else rows

    def stored_type(self, name: str) -> ArrayType:
        """Return the storage type of a variable."""
        type_ = self.program.vars[name].type
        assert type_ is not None, name
        return storage_type(type_)

    def arrival(self, target: str) -> int:
        """Return the program counter of a lane that has jumped to a block: where nobody waits for it, it has failed."""
        index = self.index[target]
        end = self.program.blocks[index].terminator
        return reached(end, index, self.exit) if isinstance(end, Fail) and not self.codes[index].awaited else index

    @property
    def exit(self) -> int:
        """The program counter of a lane that has returned."""
        return len(self.codes)

    @property
    def buffers(self) -> tuple[str, ...]:
        """The state keys of frames."""
        return () if self.frames is None else tuple(self.frames.widths)

    @property
    def prints(self) -> bool:
        """Whether some block prints."""
        return any(code.prints for code in self.codes)

    @property
    def nowhere(self) -> int:
        """A program counter that no lane ever has."""
        # The last statuses are those of programs with containers and limits; others need fewer program counters.
        return (max(Status.ERROR, *self.failures) + 2) * (self.exit + 1)

    @property
    def failures(self) -> frozenset[Status]:
        """The statuses with which a lane may fail at the end of a block, and that of a running one."""
        ends = (block.terminator for block in self.program.blocks)
        return frozenset({Status.RUNNING, *(why(end) for end in ends if isinstance(end, Fail))})

    @property
    def may_be_full(self) -> bool:
        """Whether a lane may end because a container of it has no room."""
        return Status.LIST_FULL in self.failures

    @property
    def pc_type(self) -> np.dtype[np.signedinteger]:
        """The smallest type for program counters: a trip compares them once per block."""
        return next(np.dtype(t) for t in (np.int8, np.int16, np.int32) if self.nowhere <= np.iinfo(t).max)


def make(
    program: StackProgram,
    max_steps: int | None,
    stats: bool,
    timed: bool = False,
    floats_apart: bool = False,
    rows: bool = False,
) -> Layout:
    """Prepare a typed program whose blocks are in order.

    Args:
        program: The program.
        max_steps: The most visits that a lane may take part in; None: no limit.
        stats: Whether visits and lanes are counted.
        timed: Whether they are counted over time as well.
        floats_apart: Whether frames keep floating numbers in buffers of their own instead of as bits in words.
        rows: Whether the elements of a lane are neighbours in all registers.
    """
    unused = never_awaited(program) if max_steps is None and not stats else frozenset()
    codes = tuple(replace(code, awaited=code.block.label not in unused) for code in compile_blocks(program, rows))
    return Layout(
        program=program,
        codes=codes,
        index={block.label: k for k, block in enumerate(program.blocks)},
        registers=tuple(v for v, var in program.vars.items() if var.has_register),
        lanes_last=frozenset(reg(v) for code in codes[:1] for v in code.lanes_last),  # the same in every block
        frames=frame_plans.plan(program, floats_apart),
        shown=tuple(dict.fromkeys(v for block in program.blocks for v in kept(block.terminator))),
        max_steps=max_steps,
        stats=stats,
        timed=timed,
    )


def never_awaited(program: StackProgram) -> frozenset[str]:
    """Return the labels of the blocks that only fail: a lane has failed as soon as it jumps to one.

    So such a block costs nothing in a trip. Lanes wait for those that calls lead to, whose program counters are return
    addresses as well. Where visits are counted (`max_steps`, statistics), lanes visit all blocks.
    """
    called = {
        label for block in program.blocks for call in calls(block.terminator) for label in (call.target, call.ret)
    }
    fails = {block.label for block in program.blocks if isinstance(block.terminator, Fail) and not block.ops}
    return frozenset(fails - called - {program.entry})


def register_groups(layout: Layout, lanes: Any) -> Groups:
    """Return the registers that are rows of one array inside the loop of trips."""
    # XLA copies an array that is stored into in place where the index comes from a row that the block writes too.
    stores = any(code.stores for code in layout.codes)
    if is_symbolic(lanes) or stores or not grouping.ENABLED:
        return Groups()
    dtypes = {reg(v): t.dtype for v in layout.registers if (t := layout.stored_type(v)).shape == ()}
    writes = [tuple(map(reg, code.updates)) for code in layout.codes]
    return grouping.groups_of(grouping.plan(writes, dtypes, lanes))


def initial(layout: Layout, lanes: int, depth: int, args: Values) -> Values:
    """Return the state before the first trip, by state key.

    Args:
        layout: The machine's arrays.
        lanes: The number of lanes.
        depth: The nested calls that there is room for.
        args: Values of registers by variable, [lanes, ...] in storage form; all others begin with zeros.
    """
    registers = {reg(v): args[v] if v in args else zeros(layout.stored_type(v), (lanes,)) for v in layout.registers}
    carry: Values = {key: layout.kept(key, value) for key, value in registers.items()}
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
