"""Stack IR: all functions merged into one program; calls are pushes, jumps and pops.

After figure 4 of Radul et al. (MLSys 2020), with one change: a lane has ONE stack pointer, its call depth,
for all variables. `push v` stores a value in v's slot of the frame that the next `pushjump` closes, `pop v`
reads it after the return; neither moves a pointer, only `pushjump` (up) and `return` (down) do. So a slot may
be popped twice or never, and survives from one call of a body to the next; pop-push elimination relies on this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.ir.forks import Fork
from pcbatch.ir.ops import EffectOp, Fail, Jump, PureOp, Return
from pcbatch.ir.roles import Read, Slot, Write
from pcbatch.ir.types import ArrayType


class Storage(Enum):
    """The storage class of a variable (section 3.2 of Radul et al.)."""

    NULL = "null"  # never read
    TEMP = "temp"  # inside one execution of a block
    REG = "reg"  # crosses blocks: one value per lane, updated under the block's mask
    STACK = "stack"  # only ever pushed and popped: frames, no register
    REG_STACK = "reg+stack"  # a register whose value is also saved across calls
    SHARED = "shared"  # one value for all lanes, computed before the loop

    @property
    def has_frames(self) -> bool:
        """Whether a stack of shape [depth, lanes] holds saved values."""
        return self in (Storage.STACK, Storage.REG_STACK)


@dataclass(frozen=True, slots=True)
class Var:
    """The type of a variable (None: not known) and its storage class (None: not decided yet)."""

    type: ArrayType | None
    storage: Storage | None = None

    @property
    def has_register(self) -> bool:
        """Whether a per-lane register holds the current value between blocks."""
        return self.storage in (Storage.REG, Storage.REG_STACK)


@dataclass(frozen=True, slots=True)
class Push:
    """A push of `src` to the slot of `dst` in the lane's current frame."""

    dst: Slot
    src: Read
    loc: Loc | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Pop:
    """A read of the slot of `dst`, in the lane's current frame, into `dst`."""

    dst: Write
    loc: Loc | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class PushJump:
    """A terminator that opens a frame with the return point `ret`, then continues at `target`."""

    target: str
    ret: str
    loc: Loc | None = field(default=None, compare=False)


Leaf = Jump | PushJump | Return
Edge = Leaf | Fork[Leaf]
StackOp = PureOp | EffectOp | Push | Pop
StackTerminator = Edge | Fail


@dataclass(frozen=True, slots=True)
class StackBlock:
    """A block of a stack program: pure operations, pops and pushes, then one terminator.

    A variable is popped at most once and pushed at most once, in this order. `function` is the name of the function
    that the block belonged to; `rounds`, of a block that is a loop, how many of them it computes.
    """

    label: str
    ops: tuple[StackOp, ...]
    terminator: StackTerminator
    function: str = field(default="", compare=False)
    rounds: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class StackProgram:
    """A program in stack IR; `prologue` computes the shared variables once, before any lane runs."""

    entry: str
    params: tuple[str, ...]
    results: tuple[str, ...]
    vars: Mapping[str, Var]
    blocks: tuple[StackBlock, ...]
    prologue: tuple[PureOp, ...] = ()

    def block(self, label: str) -> StackBlock:
        """The block called `label`; KeyError if there is none."""
        for block in self.blocks:
            if block.label == label:
                return block
        raise KeyError(label)

    @property
    def ops(self) -> Iterator[StackOp]:
        """All operations, block by block, without the prologue."""
        return (op for block in self.blocks for op in block.ops)
