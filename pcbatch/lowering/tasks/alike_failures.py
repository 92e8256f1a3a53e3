"""Make the failures of a program alike: tasks note that an example has failed, and neither how nor where.

before:  bb1: fail error "a"                     after:  bb1: fail error
         bb2: jump bb3                                   (jumps to bb2 and bb3 lead to bb1)
         bb3: fail limit "b"
"""

from __future__ import annotations

from dataclasses import replace

from pcbatch.ir.analysis.dataflow import failing
from pcbatch.ir.analysis.def_use import retarget
from pcbatch.ir.cfg import Block, CfgProgram, Function
from pcbatch.ir.ops import Fail


def without_messages(program: CfgProgram) -> CfgProgram:
    """Return the program whose failures are all alike: functions have one block that fails, as soon as that is sure."""
    return replace(program, functions=tuple(map(_with_one_failure, program.functions)))


def _with_one_failure(function: Function) -> Function:
    sure = failing(function.blocks)
    if not sure:
        return function
    label, *others = (block.label for block in function.blocks if block.label in sure)
    end = replace(next(b.terminator for b in function.blocks if isinstance(b.terminator, Fail)), message=())

    def kept(block: Block) -> Block:
        if block.label == label:
            return Block(label, (), end)
        return replace(block, terminator=retarget(block.terminator, lambda v: label if v in sure else v))

    return replace(function, blocks=tuple(kept(block) for block in function.blocks if block.label not in others))
