"""Find values that are the same for all lanes and compute them once, unbatched, before the loop.

before:  (params: x, w, where w is passed with in_axes=None)     after:  prologue: b = { w.T }
         b = { w.T }; ...; x = { b @ x }                                 x = { b @ x }        (b, w: shared)

A variable is shared when every definition gives the same shared value: it is a parameter that all lanes share, or
moves of one, or one primitive of shared inputs. Then it needs no storage per lane, no saving across calls, and a
product with it is one matrix product over lanes.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from pcbatch.errors import InternalError
from pcbatch.ir.dataflow import postorder
from pcbatch.ir.def_use import reads, writes
from pcbatch.ir.ops import Move, Prim, Print, PureOp, Select
from pcbatch.ir.rename import rename_reads, rename_terminator
from pcbatch.ir.stack import Pop, Push, StackOp, StackProgram, Storage, Var
from pcbatch.lowering.analysis.cost import minds_junk
from pcbatch.lowering.typing.trace import JaxprFn

VARYING = ""  # top of the lattice; an absent variable is bottom; otherwise the variable that stands for the value


def run(program: StackProgram, shared: frozenset[str]) -> StackProgram:
    """`shared` names the parameters that are the same for all lanes."""
    roots = _solve(program, shared)
    kept = {v: root for v, root in roots.items() if root != VARYING}
    if not kept:
        return program

    def root(v: str) -> str:
        return kept.get(v, v)

    prologue: list[PureOp] = []
    blocks = []
    for block in program.blocks:
        ops: list[StackOp] = []
        for op in block.ops:
            if not _is_shared(op, kept):
                ops.append(rename_reads(op, root))
            elif isinstance(op, Prim) and any(kept[v] == v for v in op.dsts):
                prologue.append(rename_reads(op, root))
        blocks.append(replace(block, ops=tuple(ops), terminator=rename_terminator(block.terminator, root)))
    chosen = set(kept.values())
    vars = {v: Var(var.type, Storage.SHARED) if v in chosen else var for v, var in program.vars.items()}
    return replace(program, vars=vars, blocks=tuple(blocks), prologue=_in_order(prologue))


def _is_shared(op: StackOp, kept: dict[str, str]) -> bool:
    if isinstance(op, Print):
        return False
    if isinstance(op, Push):
        return op.dst in kept
    return all(v in kept for v in writes(op))


def _solve(program: StackProgram, shared: frozenset[str]) -> dict[str, str]:
    # Results are read after the loop, per lane; two computed definitions count as two values.
    computed = Counter(v for b in program.blocks for op in b.ops if isinstance(op, Prim | Select) for v in writes(op))
    roots = dict.fromkeys((*program.results, *(v for v, n in computed.items() if n > 1)), VARYING)
    roots |= {p: p if p in shared and p not in computed else VARYING for p in program.params}
    ops = [(op, block.label != program.entry and _loops(op)) for block in program.blocks for op in block.ops]
    work = list(range(len(ops)))  # a heap
    waiting = set(work)
    users = _users([op for op, _ in ops])

    def join(v: str, root: str | None) -> None:
        if root is None:
            return
        old = roots.get(v)
        new = root if old is None or old == root else VARYING
        if new != old:
            roots[v] = new
            for k in users.get(v, ()):
                if k not in waiting:
                    waiting.add(k)
                    heapq.heappush(work, k)

    while work:
        k = heapq.heappop(work)
        waiting.discard(k)
        match ops[k]:
            case Move(dst=dst, src=src), _:
                join(dst, roots.get(src))
            case Push(dst=dst, src=src), _:
                # The slot belongs to dst, so what is kept there must agree with dst.
                join(dst, roots.get(src))
            case Pop(), _:
                pass
            case op, loops:
                ins = [roots.get(v) for v in _inputs(op)]
                # Every lane passes the entry; elsewhere a loop may end only for values that get there.
                together = loops or any(roots.get(dst) == VARYING for dst in writes(op))
                for dst in writes(op):
                    join(dst, VARYING if together else _prim_root(dst, ins, op))
    return roots


def _users(ops: Sequence[StackOp]) -> dict[str, list[int]]:
    """The operations to look at again when more is known of a variable: what reads it, or writes it with others."""
    users: dict[str, list[int]] = {}
    for k, op in enumerate(ops):
        for v in dict.fromkeys((*reads(op), *writes(op))):
            users.setdefault(v, []).append(k)
    return users


def _inputs(op: StackOp) -> tuple[str, ...]:
    return op.expr.ins if isinstance(op, Prim) else ()


def _loops(op: StackOp) -> bool:
    return isinstance(op, Prim) and isinstance(op.expr.fn, JaxprFn) and minds_junk(op.expr.fn.closed.jaxpr)


def _prim_root(dst: str, ins: list[str | None], op: StackOp) -> str | None:
    if not isinstance(op, Prim) or VARYING in ins:
        return VARYING
    if None in ins:
        return None
    return dst  # its only definition stands for itself


def _in_order(prologue: list[PureOp]) -> tuple[PureOp, ...]:
    """Sort by dependence: definitions were collected in block order."""
    makers = {v: k for k, op in enumerate(prologue) for v in writes(op)}
    needs = {k: [makers[v] for v in _inputs(op) if v in makers] for k, op in enumerate(prologue)}
    order = postorder(needs, needs)
    place = {k: at for at, k in enumerate(order)}
    if any(place[need] >= place[k] for k in order for need in needs[k]):
        raise InternalError(f"shared values depend on each other: {sorted(makers)}")
    return tuple(prologue[k] for k in order)
