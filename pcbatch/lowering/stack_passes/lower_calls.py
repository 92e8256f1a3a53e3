"""Lower calls and merge all functions: a call becomes pushes, moves, a `pushjump`, and pops at the return point.

before:  left = call @fib(t1)                  after:       push n
                                                            n = t1
                                                            pushjump fib.bb0, ret=fib.bb2.1
                                               fib.bb2.1:   left = r
                                                            pop n

A call in tail position is a plain jump: the callee returns to the caller's caller, and writes its results there
(functions that tail-call each other share their result variables), so tail recursion takes constant stack. The call of
a function that never returns is a plain jump, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import assert_never

from pcbatch.ir.analysis.def_use import may_return
from pcbatch.ir.analysis.union_find import UnionFind
from pcbatch.ir.cfg import Block, Call, CfgProgram, Function, Terminator
from pcbatch.ir.forks import Fork
from pcbatch.ir.names import Fresh
from pcbatch.ir.ops import RETURN, Branch, Check, Fail, Jump, Return
from pcbatch.ir.roles import rename_reads, rename_writes
from pcbatch.ir.stack import Pop, Push, PushJump, StackBlock, StackOp, StackProgram, StackTerminator, Var
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.analysis.passed_on import passed_on
from pcbatch.lowering.cfg_passes.inline import identifier
from pcbatch.lowering.stack_passes.caller_saves import Saves, plan
from pcbatch.lowering.stack_passes.parallel_moves import parallel_moves


def run(program: CfgProgram) -> StackProgram:
    """Return the merged program; all functions of `program` must be reachable from its entry."""
    names, tails = _qualify(program)
    return _Lowering(program, names, tails).program()


Names = dict[tuple[str, str], str]  # (function, variable) -> name in the merged program
Tails = frozenset[tuple[str, str]]  # (function, block) ending in a tail call


def _qualify(program: CfgProgram) -> tuple[Names, Tails]:
    """Names in the merged program; functions that tail-call each other share their results, and those that call each
    other the parameters that they hand on."""
    single = len(program.functions) == 1
    names = {
        (f.name, v): v if single else f"{identifier(f.name)}.{v}"
        for f in program.functions
        for v in (*f.types, *f.params, *f.results)
    }
    functions = {f.name: f for f in program.functions}
    shared = UnionFind[str]()  # names in the merged program
    tails = set()
    for f in program.functions:
        for block in f.blocks:
            call = tail_call(f, block)
            callee = functions[call.func] if call else None
            last = block.ops[-1] if block.ops else None
            if isinstance(last, Call) and not returns(functions[last.func]):
                tails.add((f.name, block.label))
            # Only variables of one type can be shared.
            elif callee and _result_types(f) == _result_types(callee):
                tails.add((f.name, block.label))
                for x, y in zip(f.results, callee.results, strict=True):
                    shared.union((names[f.name, x], names[callee.name, y]))
    for group in passed_on(program):
        shared.union(tuple(names[parameter] for parameter in group))
    return {variable: shared.find(name) for variable, name in names.items()}, frozenset(tails)


def tail_call(function: Function, block: Block) -> Call | None:
    """Return the call that ends `block`, if nothing follows but returning its results; None otherwise."""
    last = block.ops[-1] if block.ops else None
    if isinstance(last, Call) and isinstance(block.terminator, Return) and last.dsts == function.results:
        return last
    return None


def returns(function: Function) -> bool:
    """Return whether a call of the function may return."""
    return any(may_return(block.terminator) for block in function.blocks)


def _result_types(function: Function) -> tuple[tuple[str, tuple[int, ...]] | None, ...]:
    types = [function.types.get(r) for r in function.results]
    return tuple((t.dtype, t.shape) if isinstance(t, ArrayType) else None for t in types)


@dataclass
class _Body:
    """Blocks of one function under construction."""

    function: Function
    label: str
    ops: list[StackOp] = field(default_factory=list)
    blocks: list[StackBlock] = field(default_factory=list)

    def close(self, terminator: StackTerminator, next_label: str = "") -> None:
        self.blocks.append(StackBlock(self.label, tuple(self.ops), terminator, self.function.name))
        self.label, self.ops = next_label, []


class _Lowering:
    def __init__(self, program: CfgProgram, names: Names, tails: Tails) -> None:
        self.source, self.names, self.tails = program, names, tails
        self.functions = {f.name: f for f in program.functions}
        self.saves = plan(program, names)
        self.fresh = Fresh(set(names.values()))

    def program(self) -> StackProgram:
        blocks = tuple(b for f in self.source.functions for block in f.blocks for b in self.block(f, block))
        vars = {name: Var(self.functions[f].types.get(v)) for (f, v), name in self.names.items()}
        vars |= {temp: vars.get(name, Var(None)) for temp, name in self.fresh.origins.items()}
        entry = self.functions[self.source.entry]
        return StackProgram(
            self.entry_label(entry),
            tuple(self.names[entry.name, p] for p in entry.params),
            tuple(self.names[entry.name, r] for r in entry.results),
            vars,
            blocks,
        )

    def entry_label(self, function: Function) -> str:
        return f"{function.name}.{function.blocks[0].label}"

    def block(self, function: Function, block: Block) -> list[StackBlock]:
        body = _Body(function, f"{function.name}.{block.label}")

        def local(v: str) -> str:
            return self.names[function.name, v]

        for k, op in enumerate(block.ops):
            assert not isinstance(op, Check), "`lower_checks` has replaced them"
            if not isinstance(op, Call):
                body.ops.append(rename_writes(rename_reads(op, local), local))
            elif (function.name, block.label) in self.tails and k == len(block.ops) - 1:
                self.arguments(body, op)
                body.close(Jump(self.entry_label(self.functions[op.func])))
                return body.blocks
            else:
                self.call(body, op, f"{function.name}.{block.label}.{k}", self.saves[function.name][block.label, k])
        body.close(rename_reads(self.jump(function, block.terminator), local))
        return body.blocks

    def jump(self, function: Function, terminator: Terminator) -> StackTerminator:
        """Return a terminator with labels of the merged program; a branch becomes a fork."""
        match terminator:
            case Branch():
                on_true, on_false = (
                    Return() if to == RETURN else Jump(f"{function.name}.{to}")
                    for to in (terminator.on_true, terminator.on_false)
                )
                return on_true if on_true == on_false else Fork(terminator.cond, on_true, on_false, terminator.loc)
            case Jump(target=target):
                return Jump(f"{function.name}.{target}")
            case Return() | Fail():
                return terminator
            case _:
                assert_never(terminator)

    def arguments(self, body: _Body, call: Call) -> None:
        """Move the arguments of a call into the parameters of the callee, all at once."""
        callee = self.functions[call.func]
        pairs = [
            (self.names[callee.name, p], self.names[body.function.name, a])
            for p, a in zip(callee.params, call.args, strict=True)
        ]
        first, rest = parallel_moves(pairs, self.fresh, call.loc)
        body.ops += [*first, *rest]

    def call(self, body: _Body, call: Call, ret: str, saves: Saves) -> None:
        """Lower a call that opens a frame: the block ends in it, and the next one is its return point `ret`."""
        callee = self.functions[call.func]
        caller = body.function.name

        def slots(names: tuple[str, ...]) -> list[str]:
            return [self.names[caller, v] for v in names]

        body.ops += [Push(v, v, call.loc) for v in slots(saves.pushes)]
        self.arguments(body, call)
        body.close(PushJump(self.entry_label(callee), ret, call.loc), ret)
        pairs = [
            (self.names[caller, d], self.names[callee.name, r]) for d, r in zip(call.dsts, callee.results, strict=True)
        ]
        first, rest = parallel_moves(pairs, self.fresh, call.loc)
        body.ops += [*first, *rest, *(Pop(v, call.loc) for v in slots(saves.pops))]
