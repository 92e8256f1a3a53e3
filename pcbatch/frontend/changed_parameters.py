"""The parameters that functions change in place for their callers, by a fixpoint over calls.

    def clear(xs): xs.clear()            ==>      func @clear(xs) -> (r, xs)

A parameter that is assigned before it is changed is another object by then. Whether it is one in the end, on every
path, the check of ownership finds out (`lowering/diagnose/check_ownership.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pcbatch.ir.analysis.dataflow import forward
from pcbatch.ir.cfg import Call, Function, Op
from pcbatch.ir.ops import Prim
from pcbatch.ir.roles import writes

Changed = Mapping[str, tuple[str, ...]]  # function -> parameters, in their order
Names = frozenset[str]


def changed_parameters(functions: Sequence[Function], before: Changed) -> dict[str, tuple[str, ...]]:
    """Return the parameters that each function changes, where its callees change those in `before`."""
    params = {function.name: function.params for function in functions}
    found = {}
    for function in functions:
        names = _changed(function, params, before)
        ordered = tuple(name for name in function.params if name in names and name not in function.results[1:])
        kept = tuple(name for name in function.params if name in names and name in function.changed)
        if ordered or kept:
            found[function.name] = tuple(name for name in function.params if name in (*ordered, *kept))
    return found


def _changed(function: Function, params: Mapping[str, tuple[str, ...]], before: Changed) -> Names:
    entry = function.blocks[0].label
    everything = frozenset(function.params)
    if not any(_touched(op, params, before) for block in function.blocks for op in block.ops):
        return frozenset()

    def after(label: str, objects: Names) -> Names:
        for op in function.block(label).ops:
            objects -= _assigned(op, params, before)
        return objects

    # The parameters that may still be the caller's objects.
    solution = forward(
        function.blocks,
        join=lambda label, values: frozenset[str]().union(*values, everything if label == entry else ()),
        transfer=after,
        start=frozenset[str](),
    )
    found: set[str] = set()
    for block in function.blocks:
        objects = solution.entering[block.label]
        for op in block.ops:
            found |= objects.intersection(_touched(op, params, before))
            objects -= _assigned(op, params, before)
    return frozenset(found)


def _touched(op: Op, params: Mapping[str, tuple[str, ...]], before: Changed) -> Iterable[str]:
    """The variables whose objects an operation changes in place."""
    match op:
        case Prim(expr=expr):
            return [expr.ins[change.position] for change in expr.effects.changes if change.sure]
        case Call(func=func, args=args):
            given = dict(zip(params.get(func, ()), args, strict=False))
            return [given[name] for name in before.get(func, ()) if name in given]
    return ()


def _assigned(op: Op, params: Mapping[str, tuple[str, ...]], before: Changed) -> Names:
    """The variables that hold another object after an operation."""
    same = set(_touched(op, params, before))
    if isinstance(op, Prim):
        same |= {op.expr.ins[change.position] for change in op.expr.effects.changes}
    return frozenset(writes(op)) - same


def touching(functions: Sequence[Function], before: Names) -> Names:
    """Return the functions that may change an object in place that they have not made; `before` is what is known.

    A list that a function has made of nothing, as `[]`, is its own: its changes show nowhere else.
    """
    found = before | {function.name for function in functions if any(_touches(function))}
    while True:
        calling = {
            function.name
            for function in functions
            if any(isinstance(op, Call) and op.func in found for block in function.blocks for op in block.ops)
        }
        if calling <= found:
            return found
        found |= calling


def _touches(function: Function) -> Iterator[bool]:
    """Yield for each change of an object in place whether the object may be known elsewhere."""
    ops = [op for block in function.blocks for op in block.ops]
    known = {name for op in ops for name in writes(op) if not _makes(op, name)} | {*function.params}
    for op in ops:
        if isinstance(op, Prim):
            yield from (
                change.depth > 1 or change.inner or op.expr.ins[change.position] in known
                for change in op.expr.effects.changes
                if change.sure
            )


def _makes(op: Op, name: str) -> bool:
    """Whether an operation makes the object of a variable of nothing, or changes it in place."""
    if not isinstance(op, Prim):
        return False
    return not op.expr.ins or any(op.expr.ins[change.position] == name for change in op.expr.effects.changes)
