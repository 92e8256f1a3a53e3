"""The checks of nested functions."""

from __future__ import annotations

import gast

from pcbatch.frontend.source.function_unit import Faults, Unit, definitions
from pcbatch.frontend.source.scope import free_reads
from pcbatch.frontend.source.tree import FUNCTIONS, Node


def check_names(unit: Unit, faults: Faults) -> None:
    """Record nested functions that cannot be inlined."""
    body = [] if isinstance(unit.node, gast.Lambda) else unit.node.body
    for name, node in definitions(body):
        if unit.definitions.get(name) is not node:
            _bound_twice(unit, faults, name, node)
        _check_definition_time(unit, faults, node)


def _bound_twice(unit: Unit, faults: Faults, name: str, node: Node) -> None:
    own = {id(node), *(id(target) for target in getattr(node, "targets", ()))}
    others = [place for place in unit.bound[name] if id(place) not in own]
    if others and all(isinstance(place, gast.Name) and isinstance(place.ctx, gast.Del) for place in others):
        _deleted(faults, name, node, others)
        return
    faults.add(
        "PCB203",
        f"the nested function `{name}` is bound more than once",
        node,
        "a nested function must be the only meaning of its name",
        helps=("give each function a name of its own, or choose inside one function",),
        notes=() if others else (f"`{name}` is also a parameter",),
        cause=(others[0], "also bound here") if others else None,
    )


def _deleted(faults: Faults, name: str, node: Node, deletions: list[Node]) -> None:
    """Record a `del` of a nested function, which is no variable of the lane."""
    title, label = f"the nested function `{name}` cannot be deleted", "it is no value of the lane"
    for deletion in deletions:
        faults.add("PCB113", title, deletion, label, helps=("leave the `del` out",), cause=(node, "defined here"))


def _check_definition_time(unit: Unit, faults: Faults, node: Node) -> None:
    function = node if isinstance(node, FUNCTIONS) else node.value
    args = function.args
    parts = [*getattr(function, "decorator_list", []), *args.defaults, *(d for d in args.kw_defaults if d is not None)]
    for part in parts:
        for read in free_reads(part):
            if read.id in unit.bound:
                faults.add(
                    "PCB209",
                    f"a nested function's default or decorator reads the local `{read.id}`",
                    read,
                    "evaluated when the function is defined",
                    helps=("read the variable in the body of the nested function instead",),
                )
