"""CFG IR: functions of blocks, with calls as operations (figure 2 of Radul et al., MLSys 2020)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.ir.ops import Branch, Check, EffectOp, Fail, Jump, PureOp, Return
from pcbatch.ir.roles import Reads, Writes
from pcbatch.ir.types import ArrayType


@dataclass(frozen=True, slots=True)
class Call:
    """A call `dsts = func(args)` of another function of the program, or of the same one.

    `given_back` are arguments whose objects the callee changes and gives back: among `dsts` they are these objects.
    Only the front end reads it.
    """

    dsts: Writes
    func: str
    args: Reads
    loc: Loc | None = field(default=None, compare=False)
    given_back: tuple[str, ...] = field(default=(), compare=False, repr=False)


Op = PureOp | EffectOp | Check | Call
Terminator = Jump | Branch | Return | Fail


@dataclass(frozen=True, slots=True)
class Block:
    """A basic block: straight-line operations and one terminator."""

    label: str
    ops: tuple[Op, ...]
    terminator: Terminator


@dataclass(frozen=True, slots=True)
class Function:
    """One function of the user; its first block is the entry.

    `types` has every variable of the function, with None for a type that is not inferred yet. `inline`: calls of it are
    to be replaced by its blocks. `given_back` are parameters whose objects it changes in place for its callers: the
    last results.
    """

    name: str
    params: tuple[str, ...]
    results: tuple[str, ...]
    blocks: tuple[Block, ...]
    types: Mapping[str, ArrayType | None] = field(default_factory=lambda: MappingProxyType({}))
    loc: Loc | None = field(default=None, compare=False)
    inline: bool = field(default=False, compare=False)
    given_back: tuple[str, ...] = field(default=(), compare=False)

    def block(self, label: str) -> Block:
        """The block called `label`; KeyError if there is none."""
        for block in self.blocks:
            if block.label == label:
                return block
        raise KeyError(label)

    @property
    def ops(self) -> Iterator[Op]:
        """All operations, block by block."""
        return (op for block in self.blocks for op in block.ops)

    @property
    def last_label(self) -> int:
        """The greatest number of a block; greater numbers are free for new blocks."""
        return max(int(block.label.removeprefix("bb")) for block in self.blocks)


@dataclass(frozen=True, slots=True)
class CfgProgram:
    """A program in CFG IR: functions that call each other, and the name of the one that a batch runs."""

    entry: str
    functions: tuple[Function, ...]

    def function(self, name: str) -> Function:
        """The function called `name`; KeyError if there is none."""
        for function in self.functions:
            if function.name == name:
                return function
        raise KeyError(name)
