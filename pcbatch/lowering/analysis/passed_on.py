"""The parameters that the functions of a recursion hand on to one another unchanged.

    def term(text, i): ... factor(text, i) ...           (term.text, factor.text) are one value
    def factor(text, i): ... term(text, i + 1) ...

All calls of such a recursion that are open have the same value there, so one variable is enough, and no call saves it.
"""

from __future__ import annotations

from collections.abc import Iterator

from pcbatch.ir.analysis.callgraph import sccs
from pcbatch.ir.analysis.union_find import UnionFind
from pcbatch.ir.cfg import Call, CfgProgram, Function
from pcbatch.ir.roles import writes
from pcbatch.ir.types import ArrayType

Parameter = tuple[str, str]  # of a function


def passed_on(program: CfgProgram) -> Iterator[tuple[Parameter, ...]]:
    """Yield groups of parameters, of one function each, that always have one value while their recursion goes on."""
    functions = {f.name: f for f in program.functions}
    kept = {(f.name, p): f.types.get(p) for f in program.functions for p in _kept(f)}
    for component in sccs(program):
        groups, mixed = UnionFind[Parameter](), set[Parameter]()
        for caller in component:
            calls = (op for op in functions[caller].ops if isinstance(op, Call) and op.func in component)
            for call in calls:
                for param, argument in zip(functions[call.func].params, call.args, strict=True):
                    new, old = (call.func, param), (caller, argument)
                    if {new, old} <= kept.keys() and _alike(kept[new], kept[old]):
                        groups.union((new, old))
                    else:
                        mixed.add(new)
        members: dict[Parameter, list[Parameter]] = {}
        for each in (each for each in kept if each[0] in component):
            members.setdefault(groups.find(each), []).append(each)
        for group in members.values():
            if len(group) == len({function for function, _ in group}) > 1 and mixed.isdisjoint(group):
                yield tuple(group)


def _kept(function: Function) -> list[str]:
    """The parameters of a function that it does not write, and that are no results of it."""
    written = {v for op in function.ops for v in writes(op)}
    return [p for p in function.params if p not in written and p not in function.results]


def _alike(a: object, b: object) -> bool:
    """Whether one variable may have both types."""
    return isinstance(a, ArrayType) and isinstance(b, ArrayType) and (a.dtype, a.shape) == (b.dtype, b.shape)
