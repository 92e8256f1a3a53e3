"""The slow reference interpreter of stack programs, which defines their meaning for ONE lane.

It keeps no registers, masks or buffers: a lane is one dict of variables, one dict of slots per frame, and a list of
return points. Variables without a register are forgotten at the end of each block, and reading a variable without a
value is an error, so that a pass which stores a value in the wrong place is detected even where the batched program
would happen to work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pcbatch.errors import InternalError
from pcbatch.ir.forks import Fork
from pcbatch.ir.interpret import get_value, next_label, run_op
from pcbatch.ir.stack import Pop, Push, PushJump, StackBlock, StackOp, StackProgram, StackTerminator, Storage
from tests.oracles.interpret_cfg import Counts, Trace


def interpret_stack(
    program: StackProgram,
    args: Sequence[Any],
    namespace: Mapping[str, Any] | None = None,
    max_steps: int = 10_000_000,
    *,
    max_depth: int | None = None,
) -> tuple[tuple[Any, ...], Trace]:
    """Run a stack program on one example; arguments, results and errors as for `interpret_cfg`.

    Depth is the number of open frames.
    """
    count = Counts(max_steps, namespace=namespace or {}, max_depth=max_depth)
    lane = _Lane(dict(zip(program.params, args, strict=True)))
    blocks = {block.label: block for block in program.blocks}
    for op in program.prologue:
        run_op(op, lane.values, count)
    label: str | None = program.entry
    while label is not None:
        count.block(label)
        label = lane.run(blocks[label], program, count)
    return tuple(get_value(lane.values, name) for name in program.results), count.trace()


@dataclass(slots=True)
class _Lane:
    """The state of a stack program for one lane; the last dict of `slots` belongs to the current activation."""

    values: dict[str, Any]
    slots: list[dict[str, Any]] = field(default_factory=lambda: [{}])
    returns: list[str] = field(default_factory=list)

    def run(self, block: StackBlock, program: StackProgram, count: Counts) -> str | None:
        """Run a block; return the label of the next one, None at the outermost return."""
        for op in block.ops:
            self._op(op, count)
        target = self._jump(block.terminator, count)
        for name in [name for name in self.values if _is_local(program, name)]:
            del self.values[name]
        return target

    def _op(self, op: StackOp, count: Counts) -> None:
        match op:
            case Push(dst=dst, src=src):
                count.pushes += 1
                self.slots[-1][dst] = get_value(self.values, src)
            case Pop(dst=dst):
                count.pops += 1
                if dst not in self.slots[-1]:
                    raise InternalError(f"pop {dst}: its slot is empty")
                self.values[dst] = self.slots[-1][dst]
            case _:
                run_op(op, self.values, count)

    def _jump(self, terminator: StackTerminator, count: Counts) -> str | None:
        while isinstance(terminator, Fork):
            taken = bool(get_value(self.values, terminator.cond))
            terminator = terminator.on_true if taken else terminator.on_false
        if isinstance(terminator, PushJump):
            count.call(len(self.returns) + 1)
            self.returns.append(terminator.ret)
            self.slots.append({})
            return terminator.target
        target = next_label(terminator, self.values)
        if target is not None or not self.returns:
            return target
        self.slots.pop()
        return self.returns.pop()


def _is_local(program: StackProgram, name: str) -> bool:
    var = program.vars.get(name)
    return var is not None and var.storage in (Storage.TEMP, Storage.STACK)
