"""Put a copy of an `inline` function where it is called.

before:  func @f: bb0: y = call @clip(x); return        after:  func @f: bb0: clip.x = x; jump bb1
         func @clip(x): bb0: ...; branch t, bb1, bb2             bb1: ...; branch clip.t, bb2, bb3
                        bb1: r = x; return                       bb2: clip.r = clip.x; jump bb4
                        bb2: r = { 0.0 }; return                 bb3: clip.r = { 0.0 }; jump bb4
                                                                 bb4: y = clip.r; return

Done before types are known, so each copy gets its own. (`auto_inline` uses it on typed programs.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from pcbatch.diagnostics import Diagnostic, Label
from pcbatch.errors import CompileError
from pcbatch.ir.cfg import Block, Call, CfgProgram, Function, Op
from pcbatch.ir.ops import RETURN, Jump, Move, Return
from pcbatch.ir.rename import rename_reads, rename_terminator, rename_writes
from pcbatch.ir.types import ArrayType
from pcbatch.ir.walk import retarget


def run(program: CfgProgram) -> CfgProgram:
    """Inline all calls of inline functions. Raises CompileError when one calls itself."""
    inlined = {f.name: f for f in program.functions if f.inline and f.name != program.entry}
    for function in inlined.values():
        _check_not_recursive(function, inlined)
    functions = [Inliner(f, inlined).run() for f in program.functions if f.name not in inlined]
    return replace(program, functions=tuple(functions))


def _check_not_recursive(function: Function, inlined: Mapping[str, Function]) -> None:
    seen: set[str] = set()
    work = [function]
    while work:
        for call in (op for block in work.pop().blocks for op in block.ops if isinstance(op, Call)):
            if call.func == function.name:
                raise CompileError(_recursive(function, call))
            if call.func in inlined and call.func not in seen:
                seen.add(call.func)
                work.append(inlined[call.func])


def _recursive(function: Function, call: Call) -> Diagnostic:
    return Diagnostic(
        "PCB213",
        f"the inline function `{function.name}` calls itself",
        None if call.loc is None else Label(call.loc, "each copy would hold another one"),
        secondary=() if function.loc is None else (Label(function.loc, "a copy of this is put at every call"),),
        helps=("decorate it with `@pcbatch.batch` instead of `@pcbatch.inline`",),
    )


class Inliner:
    """Puts copies of the functions `inlined` into one; blocks that still hold calls are looked at again."""

    def __init__(self, function: Function, inlined: Mapping[str, Function]) -> None:
        self.function, self.inlined = function, inlined
        self.labels = function.last_label
        self.types = dict(function.types)

    def run(self) -> Function:
        todo = list(reversed(self.function.blocks))
        done: list[Block] = []
        while todo:
            block = todo.pop()
            places = [k for k, op in enumerate(block.ops) if isinstance(op, Call) and op.func in self.inlined]
            if places:
                todo += reversed(self.split(block, places[0]))
            else:
                done.append(block)
        return replace(self.function, blocks=tuple(done), types=self.types)

    def split(self, block: Block, place: int) -> list[Block]:
        """The block up to a call, the copy, the rest of the block."""
        call = block.ops[place]
        assert isinstance(call, Call)
        callee = self.inlined[call.func]
        prefix = identifier(callee.name)
        names = {v: self.variable(f"{prefix}.{v}", type_) for v, type_ in callee.types.items()}
        labels = {b.label: self.label() for b in callee.blocks}
        rest = self.label()
        given: list[Op] = [Move(names[p], a, call.loc) for p, a in zip(callee.params, call.args, strict=True)]
        taken: list[Op] = [Move(d, names[r], call.loc) for d, r in zip(call.dsts, callee.results, strict=True)]
        before = Block(block.label, (*block.ops[:place], *given), Jump(labels[callee.blocks[0].label]))
        copies = [self.copy(b, names, labels | {RETURN: rest}) for b in callee.blocks]
        after = Block(rest, (*taken, *block.ops[place + 1 :]), block.terminator)
        return [before, *copies, after]

    def copy(self, block: Block, names: Mapping[str, str], labels: Mapping[str, str]) -> Block:
        ops = tuple(rename_writes(rename_reads(op, names.__getitem__), names.__getitem__) for op in block.ops)
        terminator = rename_terminator(block.terminator, names.__getitem__)
        if isinstance(terminator, Return):
            return Block(labels[block.label], ops, Jump(labels[RETURN]))
        return Block(labels[block.label], ops, retarget(terminator, labels.__getitem__))

    def label(self) -> str:
        self.labels += 1
        return f"bb{self.labels}"

    def variable(self, name: str, type_: ArrayType | None) -> str:
        """A new variable; split_ranges' own endings stay free."""
        number, new = 2, name
        while new in self.types:
            new, number = f"{name}.n{number}", number + 1
        self.types[new] = type_
        return new


def identifier(name: str) -> str:
    """The name of a function as a part of names of variables."""
    return re.sub(r"\W", "_", name)
