"""Stack IR: all functions merged into one program; calls are pushes, jumps and pops.

After figure 4 of Radul et al. (MLSys 2020), with one change: a lane has ONE stack pointer, its call depth,
for all variables. `push v` keeps a value in v's slot of the frame that the next `pushjump` closes, `pop v`
brings it back after the return; neither moves a pointer, only `pushjump` (up) and `return` (down) do. So a
slot may be popped twice or never, and survives from one call of a body to the next: what pop-push
elimination uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.ir.ops import Fail, Jump, Print, PureOp, Return
from pcbatch.ir.types import ArrayType


class Storage(Enum):
    """Where a variable lives (section 3.2 of the paper)."""

    NULL = "null"  # never read
    TEMP = "temp"  # inside one execution of a block
    REG = "reg"  # crosses blocks: one value per lane, updated under the block's mask
    STACK = "stack"  # only ever pushed and popped: frames, no register
    REG_STACK = "reg+stack"  # a register whose value is also saved across calls
    SHARED = "shared"  # one value for all lanes, computed before the loop

    @property
    def has_register(self) -> bool:
        """Does a per-lane register hold the current value between blocks?"""
        return self in (Storage.REG, Storage.REG_STACK)

    @property
    def has_frames(self) -> bool:
        """Does a [depth, lanes] stack hold saved values?"""
        return self in (Storage.STACK, Storage.REG_STACK)


@dataclass(frozen=True, slots=True)
class Var:
    """A variable's type (None: not known) and storage class (None: not decided yet)."""

    type: ArrayType | None
    storage: Storage | None = None


@dataclass(frozen=True, slots=True)
class Push:
    """Keep `src` in the slot of `dst` in the lane's current frame."""

    dst: str
    src: str
    loc: Loc | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Pop:
    """dst = the slot of `dst` in the lane's current frame."""

    dst: str
    loc: Loc | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class PushJump:
    """Open a frame that returns to `ret`, then continue at `target`."""

    target: str
    ret: str
    loc: Loc | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Fork:
    """Go one of two ways by a condition; a way may itself fork.

    All conditions of a block are read at its end, whichever way is taken, and so is all that it pushes written.
    """

    cond: str
    on_true: Edge
    on_false: Edge
    loc: Loc | None = field(default=None, compare=False)


Leaf = Jump | PushJump | Return
Edge = Leaf | Fork
StackOp = PureOp | Push | Pop | Print
StackTerminator = Edge | Fail


@dataclass(frozen=True, slots=True)
class StackBlock:
    """Pure operations, pops and pushes, then one jump or a tree of them. A variable is popped at most once and pushed
    at most once, in this order. `function` says whose code it was."""

    label: str
    ops: tuple[StackOp, ...]
    terminator: StackTerminator
    function: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class StackProgram:
    """The merged program; `prologue` computes the shared variables once, before any lane runs."""

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
