"""The analysis of uniform variables: those of a function that are equal for all lanes of an activation.

before:  (w unbatched) b = { w.T }; x = { b @ x }        after:  w, b shared: b is computed once, for all lanes

A variable is shared when every lane that reads it reads the same value: a parameter that came in unbatched, moves of
one, or a primitive of such. It stays unbatched, so a product with it is one matrix product over lanes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pcbatch.ir.cfg import Function, Op
from pcbatch.ir.ops import Move, Prim, Select
from pcbatch.ir.roles import reads, writes

Names = frozenset[str]


def uniform(function: Function, given: Names) -> Names:
    """Return the variables that are uniform in an activation whose parameters `given` are uniform.

    Results are left out: they are merged lane by lane. So are variables with several definitions, unless all of them
    move one value.
    """
    definitions: dict[str, list[Op]] = {}
    for block in function.blocks:
        for op in block.ops:
            for v in writes(op):
                definitions.setdefault(v, []).append(op)
    barred = {*function.params, *function.results}
    roots = {p: p for p in given if p not in definitions and p not in function.results}
    single = {v for v, ops in definitions.items() if len(ops) == 1 and v not in barred}
    open_ = [v for v in definitions if v not in barred]
    while found := {v: root for v in open_ if (root := _root(v, definitions[v], roots, single)) is not None}:
        roots |= found
        open_ = [v for v in open_ if v not in found]
    return frozenset(roots)


def _root(v: str, ops: Sequence[Op], roots: Mapping[str, str], single: set[str]) -> str | None:
    """Return the variable that stands for the value of `v`; None if it may be divergent."""
    moved = {roots.get(op.src) if isinstance(op, Move) else None for op in ops}
    if len(moved) == 1 and None not in moved:
        return moved.pop()
    (op, *others) = ops
    if others or not isinstance(op, Prim | Select):
        return None
    return v if single.issuperset(writes(op)) and all(x in roots for x in reads(op)) else None
