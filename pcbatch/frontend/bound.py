"""Nested functions must be defined before they are used, on every path.

Variables that may be read without a value are found later, by type inference, when conditions that do not
depend on the lane are known. A nested function has no value at run time, so this is the only check it gets.
"""

from __future__ import annotations

from pcbatch.frontend.graph import Builder

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
