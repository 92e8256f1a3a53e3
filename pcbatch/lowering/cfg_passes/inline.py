"""Put a copy of an `inline` function where it is called.

before:  func @f: bb0: y = call @clip(x); return        after:  func @f: bb0: clip.x = x; jump bb1
         func @clip(x): bb0: ...; branch t, bb1, bb2             bb1: ...; branch clip.t, bb2, bb3
                        bb1: r = x; return                       bb2: clip.r = clip.x; jump bb4
                        bb2: r = { 0.0 }; return                 bb3: clip.r = { 0.0 }; jump bb4
                                                                 bb4: y = clip.r; return

The pass runs before types are known, so each copy gets its own. (`auto_inline` uses `Inliner` on typed programs.)
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from pcbatch.diagnostics.diagnostic import Diagnostic, Label
from pcbatch.errors import CompileError
from pcbatch.ir.analysis.callgraph import calls
from pcbatch.ir.analysis.dataflow import components, reachable
from pcbatch.ir.analysis.def_use import rename_block, retarget
from pcbatch.ir.cfg import Block, Call, CfgProgram, Function, Op
from pcbatch.ir.ops import RETURN, Jump, Move, Return
from pcbatch.ir.types import ArrayType


def run(program: CfgProgram, by_decision: Collection[str] = ()) -> CfgProgram:
    """Inline all calls of inline functions.

    One that calls itself, directly or through others, stays as it is where it is inline only `by_decision`; for others
    CompileError is raised.
    """
    inlined = {f.name: f for f in program.functions if f.inline and f.name != program.entry}
    edges = {name: tuple(callee for callee in called if callee in inlined) for name, called in calls(program).items()}
    for name in by_decision:
        if name in inlined and name in reachable(edges[name], edges):
            del inlined[name]
    _check_not_recursive(inlined)
    functions = [Inliner(f, inlined).run() for f in program.functions if f.name not in inlined]
    return replace(program, functions=tuple(functions))


def _check_not_recursive(inlined: Mapping[str, Function]) -> None:
    called = {name: [op for op in f.ops if isinstance(op, Call)] for name, f in inlined.items()}
    edges = {name: tuple(op.func for op in ops if op.func in inlined) for name, ops in called.items()}
    cycles = [set(c) for c in components(edges) if len(c) > 1 or c[0] in edges[c[0]]]
    for name, function in inlined.items():
        for cycle in (cycle for cycle in cycles if name in cycle):
            back = next(op for caller in _nearest(name, edges, cycle) for op in called[caller] if op.func == name)
            raise CompileError(_recursive(function, back))


def _nearest(name: str, edges: Mapping[str, tuple[str, ...]], cycle: set[str]) -> list[str]:
    """The functions of a cycle in breadth-first order, so that the shortest way back to `name` is reported."""
    seen = {name: None}
    for caller in (order := [name]):  # it grows in the loop
        order += [callee for callee in dict.fromkeys(edges[caller]) if callee in cycle and callee not in seen]
        seen |= dict.fromkeys(order)
    return order


def _recursive(function: Function, call: Call) -> Diagnostic:
    return Diagnostic(
        "PCB213",
        f"the inline function `{function.name}` calls itself",
        None if call.loc is None else Label(call.loc, "each copy would hold another one"),
        secondary=() if function.loc is None else (Label(function.loc, "a copy of this is put at every call"),),
        helps=("decorate it with `@pcbatch.batch` instead of `@pcbatch.inline`",),
    )


@dataclass(frozen=True, slots=True)
class _Rest:
    """The rest of a block, from operation `start` on; the operations before are inlined."""

    block: Block
    start: int = 0
    results: tuple[Op, ...] = ()  # moves of the results of the call before, which come first


class Inliner:
    """Inlines the functions `inlined`, none of which is recursive, into one function."""

    def __init__(self, function: Function, inlined: Mapping[str, Function]) -> None:
        self.function, self.inlined = function, inlined
        self.labels = function.last_label
        self.types = dict(function.types)
        self.numbers: dict[str, int] = {}
        self.done: list[Block] = []

    def run(self) -> Function:
        """Return the function with all calls of `inlined` replaced, those in the copies too."""
        todo = [_Rest(block) for block in reversed(self.function.blocks)]
        while todo:
            todo += reversed(self.step(todo.pop()))
        return replace(self.function, blocks=tuple(self.done), types=self.types)

    def step(self, rest: _Rest) -> list[_Rest]:
        """Finish a block up to its next inlined call; return what follows, the copy of the callee and the rest."""
        block, ops = rest.block, rest.block.ops
        for k in range(rest.start, len(ops)):
            call = ops[k]
            if isinstance(call, Call) and call.func in self.inlined:
                break
        else:
            self.done.append(replace(block, ops=(*rest.results, *ops[rest.start :])) if rest.start else block)
            return []
        callee = self.inlined[call.func]
        prefix = identifier(callee.name)
        names = {v: self.variable(f"{prefix}.{v}", type_) for v, type_ in callee.types.items()}
        labels = {b.label: self.label() for b in callee.blocks}
        after = self.label()
        arguments: list[Op] = [Move(names[p], a, call.loc) for p, a in zip(callee.params, call.args, strict=True)]
        results: list[Op] = [Move(d, names[r], call.loc) for d, r in zip(call.dsts, callee.results, strict=True)]
        before = (*rest.results, *ops[rest.start : k], *arguments)
        self.done.append(Block(block.label, before, Jump(labels[callee.blocks[0].label])))
        copies = [_Rest(self.copy(b, names, labels | {RETURN: after})) for b in callee.blocks]
        return [*copies, _Rest(replace(block, label=after), k + 1, tuple(results))]

    def copy(self, block: Block, names: Mapping[str, str], labels: Mapping[str, str]) -> Block:
        new = rename_block(replace(block, label=labels[block.label]), names.__getitem__)
        if isinstance(new.terminator, Return):
            return replace(new, terminator=Jump(labels[RETURN]))
        return replace(new, terminator=retarget(new.terminator, labels.__getitem__))

    def label(self) -> str:
        self.labels += 1
        return f"bb{self.labels}"

    def variable(self, name: str, type_: ArrayType | None) -> str:
        """Add a variable, whose name never ends like those of `split_live_ranges`: these endings are cut off again."""
        new = name
        while new in self.types:
            self.numbers[name] = self.numbers.get(name, 1) + 1
            new = f"{name}.n{self.numbers[name]}"
        self.types[new] = type_
        return new


def identifier(name: str) -> str:
    """Return the name of a function in a form that names of variables may contain."""
    return re.sub(r"\W", "_", name)
