"""Checks that nested functions are defined before their uses on every path, and that no variable is read after `del`.

Variables that may be read without a value are found later, by type inference, when conditions that do not
depend on the lane are known. A nested function has no value at run time, so this is the only check it gets.
"""

from __future__ import annotations

from collections.abc import Mapping

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.source.tree import Node
from pcbatch.ir.dataflow import invert, solve
from pcbatch.ir.roles import reads, writes

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
            if report and name in gone:
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
    b.faults.add("PCB212", title, deletion if loc is None else loc, helps=helps, cause=(deletion, "deleted here"))
