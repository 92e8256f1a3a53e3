"""Task IR: calls as tasks that run side by side; the values between blocks are records, results meet in frames.

The third form of a program, beside the stack IR, made from the same CFG. An activation of a function is a *task*. A
block takes a *record*, the values of its parameters, and says at its end where the task goes on: `jump bb4(n=t1)` makes
a record for bb4. There are no registers and no stacks; a value that two blocks need is a parameter of both.

    bb2(node):
      t1 = { tree.left[node] }
      t2 = { tree.right[node] }
      t3 = { tree.left[t1] < 0 }
      t4 = { tree.left[t2] < 0 }
      frame
      spawn left.h, left.c = branch t3, bb3(node=t1), bb2(node=t1)
      spawn right.h, right.c = branch t4, bb3(node=t2), bb2(node=t2)
      sync bb4()
    bb4(left.h, left.c, right.h, right.c) after sync:
      r.h, r.c = { compose(w, left, right) }
      return r.h, r.c

`frame` opens the frame of a task: a place for each result that it waits for. `spawn` starts another task, whose results
go to these places; nothing may read them before `sync`, which ends the task's visit and goes on, at its target, when
all that was spawned since `frame` has returned. The target's record is what the frame holds: the results, by the names
that `spawn` gives them, and what `sync` saves, `sync bb4(k=t3)`. A task has one frame open at a time, and none when it
returns.

`spawn rs at k = ...` puts its results into row k of arrays that a `give` has set, as where a loop appends them to a
list; a row that there is not gets none. `spawn r += ...` adds to a place whose first number a `give` has set, and
`spawn return += ...` lets the new task add to the destination of this one, which needs no frame. Only sums of integers
may be made so, as they do not depend on the order of their terms.

A task that fails ends its example, with whatever frames are open. Which failure an example has is decided by the order
of the plain function, so a machine that runs tasks in another order can tell only that there is one.

The meaning is that of the plain function: `spawn` runs its task to the end at once, `sync` goes on. Since tasks have no
effect but their results, every other order gives the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.ir.forks import Fork, leaves
from pcbatch.ir.ops import Fail, PureOp
from pcbatch.ir.roles import Bound, Part, ReadIfGiven, Reads, Writes
from pcbatch.ir.types import ArrayType


@dataclass(frozen=True, slots=True)
class Start:
    """A way in which a task begins: at a block, whose parameters are bound by name."""

    label: str
    args: Bound


@dataclass(frozen=True, slots=True)
class Give:
    """A way without a task: the results are known already, as where the first test of a callee ends it."""

    values: Reads


Begun = Start | Give
Way = Annotated[Begun | Fork[Begun], Part]


@dataclass(frozen=True, slots=True)
class OpenFrame:
    """The operation `frame`: the task gets a frame, with a place for each result of what it spawns."""

    loc: Loc | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Spawn:
    """The operation `spawn dsts = way`: a task whose results go to places of the open frame.

    Attributes:
        dsts: the names of the results in the frame.
        way: how the task begins, or what its results are.
        adds: whether they are added to what is there.
        loc: where the source has the call.
        row: the variable that tells the row of `dsts`, which are arrays then, that the results become; it differs from
            one such operation of a frame to the next.
    """

    dsts: Writes
    way: Way
    adds: bool = False
    loc: Loc | None = field(default=None, compare=False)
    row: ReadIfGiven = None


@dataclass(frozen=True, slots=True)
class SpawnInto:
    """The operation `spawn return += way`: a task whose result is added to the destination of the one that spawns."""

    way: Way
    loc: Loc | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class TaskJump:
    """A leaf of a terminator: the task goes on at `target`, whose parameters are bound by name."""

    target: str
    args: Bound


@dataclass(frozen=True, slots=True)
class Sync:
    """A leaf of a terminator: the task goes on at `target` when all that it has spawned has returned.

    `args` are the parameters of the target that the frame saves; the others are results of what was spawned.
    """

    target: str
    args: Bound
    loc: Loc | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Finish:
    """A leaf of a terminator, `return values`: the task ends, its results go to its destination."""

    values: Reads


TaskLeaf = TaskJump | Sync | Finish
TaskEdge = TaskLeaf | Fork[TaskLeaf]
TaskOp = PureOp | OpenFrame | Spawn | SpawnInto
TaskTerminator = TaskEdge | Fail


@dataclass(frozen=True, slots=True)
class TaskBlock:
    """A block of a task program.

    Attributes:
        label: its name.
        params: the variables of its record, or, of a block after a `sync`, what its frame holds for it.
        ops: pure operations first, then `frame` and what is spawned.
        terminator: where the task goes on.
        joins: whether it is the target of a `sync`.
        open: whether a frame is open where it begins; a block after a `sync` begins with none.
        function: the name of the function that it belongs to.
        steps: the most blocks that a lane runs, before all passes on its program, for what a record is computed here;
            on no way back to the block is it zero everywhere.
    """

    label: str
    params: tuple[str, ...]
    ops: tuple[TaskOp, ...]
    terminator: TaskTerminator
    joins: bool = False
    open: bool = False
    function: str = field(default="", compare=False)
    steps: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class TaskProgram:
    """A program in task IR: blocks at which tasks wait, and the types of their variables.

    Attributes:
        entry: the label of the block at which the task of an example begins.
        params: the parameters of the program, in order.
        results: the variables that stand for its results, in order.
        types: the types of all variables.
        constants: parameters that no task changes, one value for each example: blocks read them without having them in
            their records.
        shared: variables with one value for all examples, parameters or results of the prologue.
        blocks: the blocks, in the order of control flow.
        prologue: operations that compute shared variables, once.
        sums: the functions whose results are added to their destination, which begins at zero.
        exact: whether an example counts as failed where such a sum may not fit its integer.
    """

    entry: str
    params: tuple[str, ...]
    results: tuple[str, ...]
    types: Mapping[str, ArrayType | None]
    constants: tuple[str, ...]
    shared: tuple[str, ...]
    blocks: tuple[TaskBlock, ...]
    prologue: tuple[PureOp, ...] = ()
    sums: frozenset[str] = frozenset()
    exact: bool = False

    def block(self, label: str) -> TaskBlock:
        """The block called `label`; KeyError if there is none."""
        for block in self.blocks:
            if block.label == label:
                return block
        raise KeyError(label)

    @property
    def ops(self) -> Iterator[TaskOp]:
        """All operations, block by block, without the prologue."""
        return (op for block in self.blocks for op in block.ops)

    @property
    def known_everywhere(self) -> frozenset[str]:
        """The variables that blocks read without having them in their records."""
        return frozenset((*self.constants, *self.shared))


def row_type(type_: ArrayType) -> ArrayType:
    """Return the type of a row of an array."""
    return replace(type_, shape=type_.shape[1:])


def spawns(block: TaskBlock) -> tuple[Spawn | SpawnInto, ...]:
    """The operations of a block that spawn tasks, in order."""
    return tuple(op for op in block.ops if isinstance(op, Spawn | SpawnInto))


def starts(way: Way) -> tuple[str, ...]:
    """The labels of the blocks at which a way may begin, left to right."""
    return tuple(one.label for one in leaves(way) if isinstance(one, Start))


def started(program: TaskProgram) -> frozenset[str]:
    """The labels of the blocks at which tasks begin: the entry, and all that is spawned."""
    spawned = (label for block in program.blocks for op in spawns(block) for label in starts(op.way))
    return frozenset((program.entry, *spawned))


def bindings(block: TaskBlock) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    """The blocks that a block mentions, with repetitions, each with what its parameters are bound to."""
    for leaf in leaves(block.terminator):
        if isinstance(leaf, TaskJump | Sync):
            yield leaf.target, leaf.args
    for op in spawns(block):
        yield from ((way.label, way.args) for way in leaves(op.way) if isinstance(way, Start))


def after_jump(block: TaskBlock) -> tuple[str, ...]:
    """The labels of the blocks that the task of a block may go on at, each once; targets of `sync` among them."""
    found = (leaf.target for leaf in leaves(block.terminator) if isinstance(leaf, TaskJump | Sync))
    return tuple(dict.fromkeys(found))


def heirs(block: TaskBlock) -> tuple[str, ...]:
    """The labels of the blocks from which values go to the destination of a block's task, each once."""
    into = (label for op in spawns(block) if isinstance(op, SpawnInto) for label in starts(op.way))
    return tuple(dict.fromkeys((*after_jump(block), *into)))
