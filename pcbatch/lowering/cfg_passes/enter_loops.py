"""Enter loops at their bodies where the first test is known to pass.

before:  bb0: n = { MOST }; jump bb1            after:  bb0: n = { MOST }; jump bb4
         bb1: t = { n > 0 }                             bb4: t = { n > 0 }; jump bb2
              branch t, bb2, bb3                        bb1: t = { n > 0 }
         bb2: k = { ... }; jump bb1                          branch t, bb2, bb3
         bb3: ... k ...                                 bb2: k = { ... }; jump bb1
                                                        bb3: ... k ...

A variable that the body assigns then has a value after the loop. Types are per variable, and `n` changes in the loop,
so inference does not see that the first test passes; here the values on the path into the loop are followed. Only
functions in which some variable may lack a value are changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

from pcbatch.ir.analysis.def_use import predecessors, retarget
from pcbatch.ir.analysis.liveness import live_in
from pcbatch.ir.analysis.loops import Loop, loops
from pcbatch.ir.cfg import Block, CfgProgram, Function, Op
from pcbatch.ir.ops import Branch, Jump, Move, Prim
from pcbatch.ir.roles import writes
from pcbatch.lowering.typing.abstract_values import Abstract, Known
from pcbatch.lowering.typing.inferred import Inferred
from pcbatch.lowering.typing.trace import trace


def run(source: CfgProgram, split: CfgProgram, inferred: Inferred) -> CfgProgram:
    """Return `source` with such loops entered at their bodies.

    `split` is `source` with its live ranges split, for which types were inferred. An empty `Inferred` has no types:
    constants alone are followed then.
    """
    functions = zip(source.functions, split.functions, strict=True)
    return replace(source, functions=tuple(_entered(old, new, inferred) for old, new in functions))


def _entered(function: Function, split: Function, inferred: Inferred) -> Function:
    if live_in(split)[split.blocks[0].label].issubset(split.params):
        return function  # all variables have values wherever they are read
    values = _Values(split, predecessors(split.blocks), inferred)
    fresh = count(function.last_label + 1)
    entries: dict[str, str] = {}  # heads, and the blocks in which they are entered
    redirected: dict[str, dict[str, str]] = {}  # per block before a loop: the entry that takes the place of the head
    for loop in loops(split):
        for before in values.passing_predecessors(loop):
            entries.setdefault(loop.head, f"bb{next(fresh)}")
            redirected.setdefault(before, {})[loop.head] = entries[loop.head]
    blocks: list[Block] = []
    for block in function.blocks:
        if block.label in entries:
            assert isinstance(block.terminator, Branch)
            blocks.append(replace(block, label=entries[block.label], terminator=Jump(block.terminator.on_true)))
        terminator = retarget(block.terminator, partial(_redirect, redirected.get(block.label, {})))
        blocks.append(replace(block, terminator=terminator))
    return replace(function, blocks=tuple(blocks))


def _redirect(redirected: Mapping[str, str], label: str) -> str:
    return redirected.get(label, label)


@dataclass(frozen=True, slots=True)
class _Values:
    """The values of variables along paths of one function, as far as they are known while compiling."""

    function: Function
    preds: Mapping[str, Sequence[str]]
    inferred: Inferred

    def passing_predecessors(self, loop: Loop) -> list[str]:
        """The blocks before a loop from which its first test, which stands in the head, is known to pass."""
        branch = self.function.block(loop.head).terminator
        if not isinstance(branch, Branch) or branch.on_true not in loop.body or branch.on_false in loop.body:
            return []
        outside = [label for label in self.preds[loop.head] if label not in loop.body]
        return [label for label in outside if self._passes(branch.cond, loop.head, label)]

    def _passes(self, cond: str, head: str, before: str) -> bool:
        path = [*self._straight(before), *self.function.block(head).ops]
        value = self._value(cond, path)
        return value is not None and [Known(True)] == list(value.leaves)

    def _straight(self, label: str) -> list[Op]:
        """The operations that every lane has just run when it leaves a block, in order."""
        path: list[Op] = []
        seen = set[str]()
        while label not in seen:
            seen.add(label)
            path[:0] = self.function.block(label).ops
            if len(self.preds[label]) != 1 or label == self.function.blocks[0].label:
                break
            (label,) = self.preds[label]
        return path

    def _value(self, name: str, path: Sequence[Op]) -> Abstract | None:
        """The value of a variable after these operations; its type, if they do not write it."""
        for k in range(len(path) - 1, -1, -1):
            op = path[k]
            if name in writes(op):
                match op:
                    case Prim():
                        return self._computed(op, path[:k], name)
                    case Move():
                        return self._value(op.src, path[:k])
                break  # a call writes it, and its value is not followed
        return self.inferred.types.get((self.function.name, name))

    def _computed(self, op: Prim, path: Sequence[Op], name: str) -> Abstract | None:
        ins = [self._value(v, path) for v in op.expr.ins]
        known = [value for value in ins if value is not None]
        if len(known) < len(ins) or op.expr.fn is None:
            return None
        try:
            traced = trace(op.expr.fn, known, len(op.dsts))
        except Exception:  # type inference reports it, if it is an error of the user
            return None
        return traced.outs[op.dsts.index(name)]
