"""The check for names that nothing defines, before anything is traced.

Tracing finds them too, but only in a function that could be built. So that a function with other mistakes shows its
misspelt names at once, they are looked for in the tree, where there is no doubt: not in nested functions, which may
never be called, nor in an arm that a condition known while compiling may leave out (`if debug:`, `if x.ndim == 1:`).
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator

import gast

from pcbatch.diagnostics.diagnostic import undefined_help
from pcbatch.frontend.source.function_unit import Faults, Unit
from pcbatch.frontend.source.resolve import MISSING, resolve
from pcbatch.frontend.source.scope import free_reads
from pcbatch.frontend.source.tree import COMPREHENSIONS, FUNCTIONS, Node, children

STATIC_ATTRIBUTES = frozenset({"ndim", "shape", "size", "dtype", "itemsize"})
STATIC_CALLS = frozenset({"len", "isinstance", "hasattr", "callable", "issubclass", "type"})
COMPARISONS = (gast.Lt, gast.LtE, gast.Gt, gast.GtE, gast.Eq, gast.NotEq)


def check_defined(unit: Unit, faults: Faults) -> None:
    """Record reads of names that are neither local nor captured nor global nor builtin."""
    seen: set[str] = set()
    for node in unit.body:
        for read in _certain_reads(unit, node):
            if hasattr(read, "made"):  # by the compiler, which defines it
                continue
            known = read.id in unit.bound or read.id in unit.fn.__code__.co_freevars
            if read.id not in seen and not known and resolve(unit, read) is MISSING:
                seen.add(read.id)
                faults.add("PCB202", f"the name `{read.id}` is not defined", read, helps=(_help(unit, read.id),))


def _help(unit: Unit, name: str) -> str:
    code = unit.fn.__code__
    return undefined_help(name, (*unit.bound, *unit.fn.__globals__, *code.co_freevars, *dir(builtins)))


def _certain_reads(unit: Unit, node: Node) -> Iterator[Node]:
    """The reads that the traced function makes for certain, at least in some lane."""
    if isinstance(node, (*FUNCTIONS, gast.ClassDef, gast.Lambda)):
        return
    if isinstance(node, COMPREHENSIONS):
        yield from free_reads(node)
    elif isinstance(node, gast.Name):
        yield from free_reads(node)
    elif isinstance(node, gast.If | gast.While | gast.IfExp):
        yield from _certain_reads(unit, node.test)
        if _depends_on_lane(unit, node.test):
            for arm in (node.body, node.orelse):
                for part in arm if isinstance(arm, list) else [arm]:
                    yield from _certain_reads(unit, part)
    elif isinstance(node, gast.BoolOp) and not _depends_on_lane(unit, node.values[0]):
        yield from _certain_reads(unit, node.values[0])
    else:
        skipped = id(getattr(node, "annotation", None))
        for child in children(node):
            if id(child) != skipped:
                yield from _certain_reads(unit, child)


def _depends_on_lane(unit: Unit, test: Node) -> bool:
    """Whether a condition certainly depends on the lane, so that it is not known while compiling."""
    if isinstance(test, gast.UnaryOp) and isinstance(test.op, gast.Not):
        return _depends_on_lane(unit, test.operand)
    if isinstance(test, gast.BoolOp):
        return all(_depends_on_lane(unit, value) for value in test.values)
    if not isinstance(test, gast.Compare) or not all(isinstance(op, COMPARISONS) for op in test.ops):
        return False
    parts = list(gast.walk(test))
    local = any(isinstance(part, gast.Name) and part.id in unit.variables for part in parts)
    return local and not any(_may_be_static(part) for part in parts)


def _may_be_static(part: Node) -> bool:
    if isinstance(part, gast.Attribute):
        return part.attr in STATIC_ATTRIBUTES
    if isinstance(part, gast.Constant):
        return not isinstance(part.value, bool | int | float | complex)
    return isinstance(part, gast.Call) and isinstance(part.func, gast.Name) and part.func.id in STATIC_CALLS
