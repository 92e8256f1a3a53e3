"""Counted loops: those that end only by counters of their own, and the variables that each round moves by one.

    for t in range(n): ...                   moving: t's counter
    while t < n: ...; t += 1                 moving: t
    while t < n and h[0] < 1: ...; t += 1    none: whether it goes on depends on what a round computes

Rounds of such a loop are decided before it begins. Exits to blocks that fail do not count.
"""

from __future__ import annotations

from typing import Any

import jax.extend.core as jex
import jax.numpy as jnp

from pcbatch.ir.analysis.def_use import may_return, predecessors, successors
from pcbatch.ir.analysis.loops import Dominators, Loop, loops
from pcbatch.ir.cfg import Block, Function, Op
from pcbatch.ir.ops import Branch, Fail, Move, Prim
from pcbatch.ir.roles import reads, writes
from pcbatch.lowering.typing.trace import JaxprFn


def moving_variables(function: Function) -> dict[str, frozenset[str]]:
    """Return, by block, the variables that rounds of counted loops around it move by one.

    A block has those of a loop only if each round passes it.
    """
    dominators = Dominators(function.blocks)
    preds = predecessors(function.blocks)
    found = {block.label: frozenset[str]() for block in function.blocks}
    for loop in loops(function):
        blocks = [block for block in function.blocks if block.label in loop.body]
        ends = [label for label in preds[loop.head] if label in loop.body]
        always = [b for b in blocks if all(dominators.over(b.label, end) for end in ends)]
        if not _is_counted(function, loop, blocks):
            continue
        defined = _definitions(blocks)
        steady = [op for block in always for op in block.ops]
        moving = {v for v, ops in defined.items() if len(ops) == 1 and ops[0] in steady and _step(ops[0]) == 1}
        for block in always:
            found[block.label] |= moving
    return found


def _definitions(blocks: list[Block]) -> dict[str, list[Op]]:
    found: dict[str, list[Op]] = {}
    for op in (op for block in blocks for op in block.ops):
        for v in writes(op):
            found.setdefault(v, []).append(op)
    return found


def _is_counted(function: Function, loop: Loop, blocks: list[Block]) -> bool:
    """Whether a loop ends only at its head, by a condition of counters and of what it does not change."""
    failing = {block.label for block in function.blocks if isinstance(block.terminator, Fail)}
    leaving = [
        b.label for b in blocks if may_return(b.terminator) or not {*successors(b.terminator)} <= loop.body | failing
    ]
    head = function.block(loop.head)
    if leaving not in ([], [loop.head]) or not isinstance(head.terminator, Branch):
        return False
    defined = _definitions(blocks)
    known: set[str] = set()
    work = [head.terminator.cond]
    while work:
        v = work.pop()
        ops = defined.get(v, [])
        if v in known or not ops or (len(ops) == 1 and _step(ops[0]) is not None):
            continue
        known.add(v)
        if any(not isinstance(op, Prim | Move) for op in ops):
            return False
        if len(ops) > 1 or ops[0] not in head.ops:
            return False
        work += reads(ops[0])
    return True


def _step(op: Any) -> int | None:
    """The size of the step of `v = v + step`; None for other operations."""
    if not isinstance(op, Prim) or not isinstance(op.expr.fn, JaxprFn) or op.expr.ins != op.dsts:
        return None
    jaxpr = op.expr.fn.closed.jaxpr
    if [eqn.primitive.name for eqn in jaxpr.eqns] not in (["add"], ["sub"]) or jaxpr.outvars != jaxpr.eqns[0].outvars:
        return None
    steps = [v.val for v in jaxpr.eqns[0].invars if isinstance(v, jex.Literal)]
    return abs(int(steps[0])) if len(steps) == 1 and not jnp.shape(steps[0]) else None
