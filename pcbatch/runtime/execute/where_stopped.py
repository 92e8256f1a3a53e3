"""The place in the user's source where a lane stopped, by its final program counter."""

from __future__ import annotations

from pcbatch.ir.analysis.def_use import calls
from pcbatch.ir.ops import Fail
from pcbatch.ir.stack import Push, StackProgram
from pcbatch.runtime.vm.status import Site, Status


def where_stopped(program: StackProgram, pc: int, back: int | None) -> Site:
    """Return where a lane stopped.

    Args:
        program: the program.
        pc: the final program counter of the lane; how it ended is part of it.
        back: the return address of its last call, if there are stacks. A lane whose stack was full stands behind the
            call that it could not make: the return address tells which one it was.
    """
    count = len(program.blocks) + 1
    block = program.blocks[pc % count]
    begins: list[object] = [*block.ops]
    places: list[object] = [block.terminator, *begins]
    match pc // count:
        case Status.STACK_FULL if back is not None:
            ret = program.blocks[back].label
            block, call = next((b, call) for b in program.blocks for call in calls(b.terminator) if call.ret == ret)
            places = [call, *block.ops]
        case Status.STEP_LIMIT | 0:  # it has not run the block yet
            places = [*begins, block.terminator]
    loc = next((loc for place in places if (loc := getattr(place, "loc", None)) is not None), None)
    held = ", ".join(f"`{op.dst}` {program.vars[op.dst].type}" for op in block.ops if isinstance(op, Push))
    fail = block.terminator if isinstance(block.terminator, Fail) else None
    return Site(loc, held, fail, block.label)
