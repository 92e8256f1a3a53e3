"""Copy the body of loops over Python objects, once for each element, and drop what a known condition rules out.

before:  i = { 0 }                      after:  i = { 0 }
         bb1: t = { i < n }                     bb1: jump bb2
              branch t, bb2, bb3                bb2: x = { xs[i] }; i = { i + 1 }; jump bb4
         bb2: x = { xs[i] }                     bb4: jump bb5
              i = { i + 1 }                     bb5: x = { xs[i] }; i = { i + 1 }; jump bb6
              jump bb1                          bb6: jump bb3               (xs has two elements)
         bb3: ...                               bb3: ...

Whether a loop goes over an array (and stays one) or over a tuple, only types tell: type inference asks for it when an
element has no number that is known while compiling. In the copies the number is known, so elements may have types of
their own, and static ones (strings, functions) stay static. What leaves the loop in the middle (`return`, or statements
before a `break`) is no part of the cycle, but is copied with it for that reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import count

from pcbatch.diagnostics import Diagnostic, Label
from pcbatch.errors import CompileError, NeedsUnrolling
from pcbatch.ir.cfg import Block, CfgProgram, Function, Terminator
from pcbatch.ir.dataflow import block_edges, reachable
from pcbatch.ir.loops import Loop, loops
from pcbatch.ir.ops import RETURN, Branch, Jump, Return
from pcbatch.ir.walk import retarget, writes
from pcbatch.lowering.abstract import Known
from pcbatch.lowering.infer_types import Inferred, branch_targets

MOST_BLOCKS = 5000  # of one function; beyond it, compiling would take minutes


def run(source: CfgProgram, split: CfgProgram, found: Inferred) -> CfgProgram:
    """`source` with the loops that `found` asks for unrolled, or, if there are none, without impossible branches.

    `split` is the same program with live ranges split, for which types were inferred. Raises CompileError for a
    program that would become too large.
    """
    new = replace(source, functions=tuple(_unroll(f, split.function(f.name), found) for f in source.functions))
    if new != source or not (found.errors or found.conflicts):
        return new
    return replace(source, functions=tuple(_prune(f, split.function(f.name), found) for f in source.functions))


def _unroll(function: Function, split: Function, found: Inferred) -> Function:
    wanted = _outermost(
        (loop, key)
        for key, error in sorted(found.errors.items())
        if key[0] == function.name and isinstance(error, NeedsUnrolling)
        for loop in loops(function)
        if key[1] in loop.body
    )
    for loop, (_, label, position) in wanted.items():
        trips = _trips(split, loop, found)
        if trips is None:
            continue
        copied = _copied(function, loop)
        if len(function.blocks) + trips * len(copied) > MOST_BLOCKS:
            _too_large(function, label, position, trips)
        function = _copies(function, replace(loop, body=copied), trips)
    return function


def _outermost(asked: Iterable[tuple[Loop, tuple[str, str, int]]]) -> dict[Loop, tuple[str, str, int]]:
    """Per request its innermost loop; of nested loops only the outer one, the others come in the next round."""
    first: dict[tuple[str, str, int], Loop] = {}
    for loop, key in asked:
        first.setdefault(key, loop)
    chosen: dict[Loop, tuple[str, str, int]] = {}
    for key, loop in first.items():
        if not any(loop.body < other.body for other in first.values()):
            chosen.setdefault(loop, key)
    return chosen


def _trips(split: Function, loop: Loop, found: Inferred) -> int | None:
    """How often the loop runs, from the types of what its head compares; None: not known while compiling."""
    head = split.block(loop.head)
    branch = head.terminator
    test = next((op for op in head.ops if isinstance(branch, Branch) and branch.cond in writes(op)), None)
    for name in getattr(getattr(test, "expr", None), "ins", ()):
        type_ = found.types.get((split.name, name))
        if type_ is not None and len(type_.leaves) == 1 and isinstance(type_.leaves[0], Known):
            return int(type_.leaves[0].value)  # type: ignore[call-overload, no-any-return]
    return None


def _copied(function: Function, loop: Loop) -> frozenset[str]:
    """The blocks of a loop, and those after which a trip leaves it: what is known of an element is known there too.

    They stand before the exit of the head, and control comes to them through the head alone.
    """
    order = [block.label for block in function.blocks]
    head = function.block(loop.head)
    exit_ = head.terminator.on_false if isinstance(head.terminator, Branch) else RETURN
    end = order.index(exit_) if exit_ in order else 0
    elsewhere = reachable([order[0]], {**block_edges(function.blocks), loop.head: ()})
    return loop.body | (frozenset(order[order.index(loop.head) : end]) - elsewhere)


def _copies(function: Function, loop: Loop, trips: int) -> Function:
    fresh = count(function.last_label + 1)
    inside = [block for block in function.blocks if block.label in loop.body]
    names = [{label.label: label.label for label in inside}]
    names += [{block.label: f"bb{next(fresh)}" for block in inside} for _ in range(trips - 1)]
    last = {loop.head: f"bb{next(fresh)}"} if trips else names[0]
    heads = [*(n[loop.head] for n in names[:trips]), last[loop.head]]
    made: dict[int, list[Block]] = {}
    for trip in range(trips):
        own = names[trip] | {loop.head: heads[trip + 1]}  # a jump to the head starts the next trip
        for block in inside:
            first = block.label == loop.head
            terminator = _decided(block.terminator, True) if first else block.terminator
            new = retarget(terminator, partial(_renamed, own))
            made.setdefault(trip, []).append(replace(block, label=names[trip][block.label], terminator=new))
    head = function.block(loop.head)
    end = replace(head, label=heads[-1], terminator=_decided(head.terminator, False))
    blocks: list[Block] = []
    for block in function.blocks:  # the copies stand where the loop stood
        if block.label == loop.head:
            blocks += [copy for trip in sorted(made) for copy in made[trip]]
            blocks.append(end)
        elif block.label not in loop.body:
            blocks.append(block)
    return replace(function, blocks=_reachable(blocks))


def _renamed(own: Mapping[str, str], label: str) -> str:
    return own.get(label, label)


def _decided(terminator: Terminator, going: bool) -> Terminator:
    assert isinstance(terminator, Branch)
    return _jump(terminator.on_true if going else terminator.on_false)


def _jump(label: str) -> Terminator:
    return Return() if label == RETURN else Jump(label)


def _prune(function: Function, split: Function, found: Inferred) -> Function:
    """Branches whose condition is known become jumps. Two live ranges that only met there are then told apart."""
    blocks = []
    for block, typed in zip(function.blocks, split.blocks, strict=True):
        if isinstance(block.terminator, Branch) and isinstance(typed.terminator, Branch):
            cond = found.types.get((function.name, typed.terminator.cond))
            targets = branch_targets(block.terminator, cond)
            block = replace(block, terminator=_jump(targets[0])) if len(targets) == 1 else block
        blocks.append(block)
    return replace(function, blocks=_reachable(blocks))


def _reachable(blocks: list[Block]) -> tuple[Block, ...]:
    edges = block_edges(blocks)
    kept = reachable([blocks[0].label], edges)
    return tuple(block for block in blocks if block.label in kept)


def _too_large(function: Function, label: str, position: int, trips: int) -> None:
    op = function.block(label).ops[position]
    raise CompileError(
        Diagnostic(
            "PCB316",
            f"this loop would be copied {trips} times",
            None if op.loc is None else Label(op.loc, "its elements are told apart while compiling"),
            notes=(f"a function may have at most {MOST_BLOCKS} blocks",),
            helps=("make it an array, `for x in jnp.array(xs)`, so that the loop stays a loop",),
        )
    )
