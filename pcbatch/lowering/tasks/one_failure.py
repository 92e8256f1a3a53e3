"""Failures that are all alike: a function of tasks has one block that fails, and its ways go there once that is sure.

before:  bb1: branch bad, bb2, bb3                     after:  bb1: branch bad, bb2, bb3
         bb2: branch low, bb4, bb5                             bb2: fail
         bb4: fail error IndexError("...")
         bb5: fail limit limit("...")

A task that fails tells only that its example has failed, and lanes find out why.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from pcbatch.ir.cfg import Block, CfgProgram, Function
from pcbatch.ir.def_use import edges, retarget
from pcbatch.ir.ops import Fail, Jump


def run(program: CfgProgram) -> CfgProgram:
    """Return the program whose functions have one block that fails, without a message."""
    return replace(program, functions=tuple(map(_with_one_failure, program.functions)))


def _with_one_failure(function: Function) -> Function:
    failing = {block.label: block.terminator for block in function.blocks if isinstance(block.terminator, Fail)}
    sure = dict.fromkeys(failing)
    while more := [b.label for b in function.blocks if b.label not in sure and _leads_to(sure, b)]:
        sure |= dict.fromkeys(more)
    if not sure:
        return function
    label, *others = (block.label for block in function.blocks if block.label in sure)
    end = replace(next(iter(failing.values())), message=())

    def kept(block: Block) -> Block:
        if block.label == label:
            return Block(label, (), end)
        return replace(block, terminator=retarget(block.terminator, lambda v: label if v in sure else v))

    return replace(function, blocks=tuple(kept(block) for block in function.blocks if block.label not in others))


def _leads_to(labels: Container[str], block: Block) -> bool:
    """Whether all edges of a block lead to some blocks."""
    leaves = edges(block.terminator)
    return all(isinstance(leaf, Jump) and leaf.target in labels for leaf in leaves)
