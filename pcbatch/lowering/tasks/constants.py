"""Variables that have the value of a parameter of the entry in every activation: the constants of an example.

    def encode(w, tree, node): ... encode(w, tree, left) ... encode(w, tree, right)      # constants: w, tree

A parameter is constant if every call passes it on unchanged. Tasks then need not carry it in their records: it is the
same for all tasks of an example, and a table stays where it is. The lattice is that of constant propagation, with names
of parameters of the entry in place of numbers.
"""

from __future__ import annotations

from collections import Counter

from pcbatch.ir.cfg import Call, CfgProgram
from pcbatch.ir.def_use import writes
from pcbatch.ir.ops import Move

VARYING = ""  # top of the lattice; a variable without a root is at the bottom

Local = tuple[str, str]  # (function, variable)
_UNKNOWN: Local = ("", "")  # stands for all variables that are no constant by themselves


def constants(program: CfgProgram) -> dict[Local, str]:
    """Return the constant variables of all functions, each with the parameter of the entry whose value it has."""
    entry = program.function(program.entry)
    roots: dict[Local, str] = {(entry.name, p): p for p in entry.params}
    roots |= dict.fromkeys([*_changing(program), _UNKNOWN], VARYING)
    flows = [*_flows(program)]
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


def _flows(program: CfgProgram) -> list[tuple[Local, Local]]:
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
    return [(source if source in known else _UNKNOWN, target) for source, target in flows]
