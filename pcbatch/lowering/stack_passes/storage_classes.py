"""Choose the storage class of every variable: null, temp, reg, stack, reg+stack (section 3.2 of Radul et al. 2020).

before:  n, left, t0, r: ?                after:  n: reg+stack   left: stack   t0: temp   r: reg

A variable that is live at the top of no block needs no register; one that is never pushed needs no frames. Variables
that no operation mentions any more are dropped.
"""

from __future__ import annotations

from dataclasses import replace

from pcbatch.ir.analysis.def_use import kept, terminator_reads
from pcbatch.ir.analysis.liveness import live_in
from pcbatch.ir.roles import reads, writes
from pcbatch.ir.stack import Pop, Push, StackProgram, Storage, Var


def run(program: StackProgram) -> StackProgram:
    """Give every variable its storage class; shared ones keep theirs."""
    registers = set(program.params) | set(program.results)
    registers.update(v for names in live_in(program).values() for v in names)
    registers.update(v for block in program.blocks for v in kept(block.terminator))
    slots = {op.dst for op in program.ops if isinstance(op, Push | Pop)}
    read, mentioned = _uses(program)

    def storage(name: str, var: Var) -> Storage:
        if var.storage is Storage.SHARED:
            return Storage.SHARED
        if name in slots:
            return Storage.REG_STACK if name in registers else Storage.STACK
        if name in registers:
            return Storage.REG
        return Storage.TEMP if name in read else Storage.NULL

    vars = {v: Var(var.type, storage(v, var)) for v, var in program.vars.items() if v in mentioned}
    return replace(program, vars=vars)


def _uses(program: StackProgram) -> tuple[set[str], set[str]]:
    ops = [*program.prologue, *program.ops]
    read = {v for op in ops for v in reads(op)}
    read.update(v for block in program.blocks for v in terminator_reads(block.terminator))
    slots = {op.dst for op in ops if isinstance(op, Push | Pop)}
    return read, read | slots | {v for op in ops for v in writes(op)} | {*program.params, *program.results}
