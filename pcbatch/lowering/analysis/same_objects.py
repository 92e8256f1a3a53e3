"""The parameters of functions that are the caller's objects in the end, and those whose objects change."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from pcbatch.data.aliasing import CAPTURED
from pcbatch.ir.analysis.dataflow import agreed, forward
from pcbatch.ir.analysis.def_use import may_return
from pcbatch.ir.cfg import Call, Function, Op
from pcbatch.ir.ops import Move, Prim
from pcbatch.ir.roles import writes
from pcbatch.lowering.analysis.common_objects import CALLERS, INNER, NONE, OWN, Part
from pcbatch.lowering.analysis.ownership import Ownership

Same = Mapping[str, str]  # variable -> the parameter whose object it certainly is


def callers_objects(ownership: Ownership, function: Function) -> frozenset[str]:
    """Return the parameters that are the caller's objects still, on all ways on which a function returns."""
    if not function.given_back:
        return frozenset()
    states = ownership.states[function.name]
    entry = function.blocks[0].label

    def after(label: str, same: Same | None) -> Same | None:
        if same is None or label not in states:
            return None
        for k, op in enumerate(function.block(label).ops):
            new = dict(_passed_on(ownership, function.name, label, k, op, same))
            same = {**{name: param for name, param in same.items() if name not in writes(op)}, **new}
        return same

    solution = forward(
        function.blocks,
        join=lambda label, values: agreed([*values, {p: p for p in function.params} if label == entry else None]),
        transfer=after,
        start=None,
    )
    ends = [solution.leaving[block.label] for block in function.blocks if may_return(block.terminator)]
    same = agreed(ends)
    if same is None:  # it never returns
        return frozenset(function.given_back)
    return frozenset(name for name, param in same.items() if name == param)


def _passed_on(
    ownership: Ownership, function: str, label: str, k: int, op: Op, same: Same
) -> Iterator[tuple[str, str]]:
    """Yield the variables that an operation assigns, and leaves one certain object, with the parameter."""
    pairs: list[tuple[str, str]] = []  # what is assigned, and what was this object
    match op:
        case Move(dst=dst, src=src):
            pairs = [(dst, src)]
        case Prim(dsts=dsts, expr=expr) if expr.effects.changes:
            pairs = [(dsts[-1], expr.ins[expr.effects.changes[0].position])]
        case Prim(dsts=dsts, expr=expr):
            traced = ownership.inferred.traced.get((function, label, k))
            for j, dst in enumerate(dsts):
                ties = () if traced is None else traced.aliases
                own = [one for one in ties if one.result == j and one.own_result and one.source >= CAPTURED]
                if len(own) == 1 and own[0].own_source and own[0].source >= 0:
                    pairs.append((dst, expr.ins[own[0].source]))
        case Call(dsts=dsts, func=func, args=args) if func in ownership.functions:
            callee = ownership.functions[func]
            given = dict(zip(callee.params, args, strict=True))
            pairs = [
                (dst, given[r]) for dst, r in zip(dsts[1:], callee.results[1:], strict=True) if r in callee.given_back
            ]
        case _:
            pass
    return ((dst, same[src]) for dst, src in pairs if src in same)


def changed_for_callers(ownership: Ownership) -> frozenset[tuple[str, Part]]:
    """Return the functions, each with a parameter and the level at which it may change the caller's object.

    A function that is nested gives a variable around it back where it changes the object, and where it assigns the
    variable (`rewrites/nested.py`): only the former is here, `xs.append(1)` and not `xs = xs[1:]`.
    """
    found: set[tuple[str, Part]] = set()
    while True:
        before = len(found)
        for name, function in ownership.functions.items():
            for block in function.blocks:
                state = ownership.states[name].get(block.label)
                for k, op in enumerate(() if state is None else block.ops):
                    assert state is not None
                    for part in _changed_parts(ownership, name, block.label, k, op, found):
                        callers = (other for other in state.get(part, NONE) if other[0].startswith(CALLERS))
                        found |= {(name, (other[0].removeprefix(CALLERS), other[1])) for other in callers}
                    state = ownership.step(name, block.label, k, op, state)
        if len(found) == before:
            return frozenset(found)


def _changed_parts(
    ownership: Ownership, function: str, label: str, k: int, op: Op, found: Collection[tuple[str, Part]]
) -> Iterator[Part]:
    if isinstance(op, Prim):
        for change in ownership.objects.changes(function, label, k, op):
            yield from ownership.objects.changed_parts(function, label, k, op, change)
    elif isinstance(op, Call) and op.func in ownership.functions:
        callee = ownership.functions[op.func]
        for param, arg in zip(callee.params, op.args, strict=True):
            for level in (OWN, INNER):
                if (op.func, (param, level)) in found or (level == OWN and param in callee.given_back):
                    yield arg, level
