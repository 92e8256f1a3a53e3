"""Nested functions must be defined before they are used, on every path, and variables not read after `del`.

Variables that may be read without a value are found later, by type inference, when conditions that do not
depend on the lane are known. A nested function has no value at run time, so this is the only check it gets.
"""

from __future__ import annotations

from collections.abc import Mapping

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.frontend.build.builder import Builder, Draft
from pcbatch.frontend.source.tree import Node
from pcbatch.ir.def_use import reads, writes

Names = frozenset[str]


def check_helpers(b: Builder) -> None:
    """Record uses of nested functions that some path reaches without passing the definition."""
    order = b.reachable()
    start = _defined_at_entry(b, order)
    for label in order:
        defined = set(start[label])
        for name, use in b.drafts[label].helpers:
            if use is None:
                defined.add(name)
            elif name not in defined:
                b.faults.add(
                    "PCB201",
                    f"the nested function `{name}` is used before its definition",
                    use,
                    cause=(b.unit.helpers[name], "defined here"),
                    helps=("move the definition up, before every use",),
                )


def _defined_at_entry(b: Builder, order: list[str]) -> dict[str, Names]:
    """The nested functions that are defined on every path to each block."""
    before: dict[str, list[str]] = {label: [] for label in order}
    for label in order:
        for following in b.followers(label):
            before[following].append(label)
    made = {label: frozenset(n for n, use in b.drafts[label].helpers if use is None) for label in order}
    everything = frozenset(b.unit.helpers)
    start = dict.fromkeys(order, everything) | {order[0]: Names()}
    changed = True
    while changed:
        changed = False
        for label in order[1:]:
            new = everything.intersection(*(start[p] | made[p] for p in before[label]))
            changed |= new != start[label]
            start[label] = new
    return start


def check_deleted(b: Builder) -> None:
    """Record variables that some path reads, or deletes again, after `del`."""
    order = b.reachable()
    if not any(b.drafts[label].deleted for label in order):
        return
    gone: dict[str, dict[str, Node]] = {label: {} for label in order}
    changed = True
    while changed:
        changed = False
        for label in order:
            after = _after(b, b.drafts[label], gone[label], report=False)
            for following in b.followers(label):
                new = after | gone[following]
                changed |= new.keys() != gone[following].keys()
                gone[following] = new
    for label in order:
        _after(b, b.drafts[label], gone[label], report=True)


def _after(b: Builder, draft: Draft, gone: Mapping[str, Node], report: bool) -> dict[str, Node]:
    """The variables without a value at the end of a block, with the `del` of each."""
    gone = dict(gone)
    deleted = list(draft.deleted)
    for k, op in enumerate([*draft.ops, None]):
        while deleted and deleted[0][0] == k:
            _, name, node = deleted.pop(0)
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
