"""Variables that have the value of a parameter of the entry in every activation: the constants of an example.

    def encode(w, tree, node): ... encode(w, tree, left) ... encode(w, tree, right)      # constants: w, tree

A parameter is constant if every call passes it on unchanged. Tasks then need not carry it in their records: it is the
same for all tasks of an example, and a table stays where it is. The lattice is that of constant propagation, with names
of parameters of the entry in place of numbers.

Values that are computed of parameters that all examples share are the same in every activation, too: `shared_values`
finds them, and they are computed once, ahead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import TypeGuard

from pcbatch.ir.cfg import Call, CfgProgram
from pcbatch.ir.ops import Move, Prim
from pcbatch.ir.roles import writes
from pcbatch.lowering.analysis.cost import unsafe_when_inactive
from pcbatch.lowering.typing.trace import JaxprFn

Local = tuple[str, str]  # (function, variable)
VARYING: Local = ("", "")  # top of the lattice; a variable without a root is at the bottom
_UNKNOWN: Local = ("", "?")  # stands for all variables that are no constant by themselves


def shared_values(program: CfgProgram, shared: Collection[str]) -> tuple[dict[Local, Local], list[tuple[str, Prim]]]:
    """Return the constants, and the primitives of shared values alone, in order, each with its function.

    The results of these primitives are constants as well, whose root they are themselves.
    """
    computed: dict[Local, Prim] = {}
    ahead: list[tuple[str, Prim]] = []
    while True:
        roots = constants(program, computed)
        known = {local for local, root in roots.items() if root in computed or root in _entry(program, shared)}
        new = [(f, op) for f, op in _candidates(program) if all((f, v) in known for v in op.expr.ins)]
        new = [(f, op) for f, op in new if (f, op.dsts[0]) not in computed]
        if not new:
            return roots, ahead
        ahead += new
        computed |= {(f, v): op for f, op in new for v in op.dsts}


def _entry(program: CfgProgram, shared: Collection[str]) -> set[Local]:
    return {(program.entry, p) for p in shared}


def _candidates(program: CfgProgram) -> list[tuple[str, Prim]]:
    """The primitives with operands whose results have no other definition, and that may run where nobody asked."""
    found = []
    for f in program.functions:
        ops = [op for block in f.blocks for op in block.ops]
        written = Counter([*f.params, *(v for op in ops for v in writes(op))])
        found += [(f.name, op) for op in ops if _may_run_ahead(op) and all(written[v] == 1 for v in op.dsts)]
    return found


def _may_run_ahead(op: object) -> TypeGuard[Prim]:
    if not isinstance(op, Prim) or not op.expr.ins or not isinstance(op.expr.fn, JaxprFn):
        return False
    return not unsafe_when_inactive(op.expr.fn.closed.jaxpr)


def constants(program: CfgProgram, computed: Mapping[Local, object] | None = None) -> dict[Local, Local]:
    """Return the constant variables of all functions, each with the parameter of the entry whose value it has.

    `computed` are variables that are the same in every activation, though they are no parameters of the entry.
    """
    entry = program.function(program.entry)
    alone = computed or {}
    roots: dict[Local, Local] = {(entry.name, p): (entry.name, p) for p in entry.params}
    roots |= dict.fromkeys([*_changing(program), _UNKNOWN], VARYING) | {local: local for local in alone}
    flows = [*_flows(program, alone)]
    changed = True
    while changed:
        changed = False
        for source, target in flows:
            new = roots.get(source)
            old = roots.get(target)
            joined = old if new is None else new if old in (None, new) else VARYING
            if joined != old:
                assert joined is not None
                roots[target], changed = joined, True
    return {local: root for local, root in roots.items() if root != VARYING}


def _changing(program: CfgProgram) -> list[Local]:
    """Variables that are assigned more than once, or by something else than a move."""
    found = []
    for f in program.functions:
        moved = Counter(op.dst for block in f.blocks for op in block.ops if isinstance(op, Move))
        written = Counter(v for block in f.blocks for op in block.ops for v in writes(op))
        found += [(f.name, v) for v, n in written.items() if moved[v] != n or n > 1 or v in f.params]
    return found


def _flows(program: CfgProgram, computed: Mapping[Local, object]) -> list[tuple[Local, Local]]:
    """The pairs of variables of which the second gets the value of the first: moves, and arguments of calls."""
    functions = {f.name: f for f in program.functions}
    flows = []
    for f in program.functions:
        for block in f.blocks:
            for op in block.ops:
                match op:
                    case Move(dst=dst, src=src):
                        flows.append(((f.name, src), (f.name, dst)))
                    case Call(func=func, args=args):
                        params = functions[func].params
                        flows += [((f.name, a), (func, p)) for a, p in zip(args, params, strict=True)]
                    case _:
                        pass
    known = {target for _, target in flows} | {(program.entry, p) for p in functions[program.entry].params}
    known |= computed.keys()
    return [(source if source in known else _UNKNOWN, target) for source, target in flows]
