"""The checks for names that nothing defines, before anything is traced, and for names that are used too early.

Tracing finds them too, but only in a function that could be built. So that a function with other mistakes shows its
misspelt names at once, they are looked for in the tree, where there is no doubt: not in nested functions, which may
never be called, nor in an arm that a condition known while compiling may leave out (`if debug:`, `if x.ndim == 1:`).
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping

import gast

from pcbatch.diagnostics.diagnostic import Loc, undefined_help
from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.source.function_unit import Faults, Unit
from pcbatch.frontend.source.resolve import MISSING, resolve
from pcbatch.frontend.source.scope import free_reads
from pcbatch.frontend.source.tree import COMPREHENSIONS, FUNCTIONS, Node, children
from pcbatch.ir.analysis.dataflow import invert, solve
from pcbatch.ir.roles import reads, writes

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


# Checks that nested functions are defined before their uses on every path, and that no variable is read after `del`.
#
# Variables that may be read without a value are found later, by type inference, when conditions that do not
# depend on the lane are known. A nested function has no value at run time, so this is the only check it gets.

Names = frozenset[str]
Deleted = Mapping[str, Node]
"""Variables that some path has deleted, each with its `del`."""


def check_nested(b: Builder) -> None:
    """Record uses of nested functions that some path reaches without passing the definition."""
    for label, names in _defined_at_entry(b).items():
        defined = set(names)
        for name, use in b.drafts[label].nested:
            if use is None:
                defined.add(name)
            elif name not in defined and name in b.unit.definitions:
                b.faults.add(
                    "PCB201",
                    f"the nested function `{name}` is used before its definition",
                    use,
                    cause=(b.unit.definitions[name], "defined here"),
                    helps=("move the definition up, before every use",),
                )
            elif name not in defined and name in b.unit.bound and name in b.unit.imports:
                title, cause = f"`{name}` is used before it is imported", (b.unit.bound[name][0], "imported here")
                b.faults.add("PCB201", title, use, cause=cause, helps=("move the `import` up, before every use",))


def _predecessors(b: Builder) -> dict[str, tuple[str, ...]]:
    return invert({label: b.successors(label) for label in b.reachable()})


def _defined_at_entry(b: Builder) -> Mapping[str, Names]:
    """The nested functions that are defined on every path to each reachable block."""
    sources = _predecessors(b)
    entry = next(iter(sources))
    defined = {label: frozenset(n for n, use in b.drafts[label].nested if use is None) for label in sources}
    everything = frozenset((*b.unit.definitions, *b.unit.imports))

    def join(label: str, paths: list[Names]) -> Names:
        return Names() if label == entry else everything.intersection(*paths)

    return solve(sources, join=join, transfer=lambda at, names: names | defined[at], start=everything).entering


def check_deleted(b: Builder) -> None:
    """Record variables that some path reads, or deletes again, after `del`."""
    if not any(b.drafts[label].deleted for label in b.reachable()):
        return

    def join(_: str, paths: list[Deleted]) -> Deleted:
        deleted: dict[str, Node] = {}
        for path in paths:
            for name, node in path.items():  # of several deletions, the first in the source explains the error
                deleted[name] = min(deleted.get(name, node), node, key=b.loc)
        return deleted

    start: Deleted = {}
    solution = solve(_predecessors(b), join=join, transfer=lambda at, deleted: _after(b, at, deleted), start=start)
    for label, deleted in solution.entering.items():
        _after(b, label, deleted, report=True)


def _after(b: Builder, label: str, deleted: Deleted, report: bool = False) -> Deleted:
    """The deleted variables at the end of a block; with `report`, a use of one is recorded as a fault."""
    draft = b.drafts[label]
    gone = dict(deleted)
    deletions = list(draft.deleted)
    for k, op in enumerate([*draft.ops, None]):
        while deletions and deletions[0][0] == k:  # those before operation number `k`
            _, name, node = deletions.pop(0)
            if report and name in gone and not hasattr(node, "made"):
                _read_after_del(b, name, b.loc(node), gone[name])
            gone[name] = node
        if op is None:
            break
        for name in reads(op):
            if report and name in gone:
                _read_after_del(b, name, op.loc, gone[name])
        for name in writes(op):
            gone.pop(name, None)
    return gone


def _read_after_del(b: Builder, name: str, loc: Loc | None, deletion: Node) -> None:
    title = f"`{name}` may be used after `del {name}`"
    helps = (f"assign `{name}` again before this, or leave the `del` out",)
    if hasattr(deletion, "made"):
        title = f"`{name}` may be used after the handler of that name, in the end of which Python deletes it"
        helps = (f"give the exception another name than `{name}`",)
    b.faults.add("PCB212", title, deletion if loc is None else loc, helps=helps, cause=(deletion, "deleted here"))
