"""The checks of nested functions and of `return` statements."""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType

import gast

from pcbatch.frontend.source.faults import Faults
from pcbatch.frontend.source.function_unit import Unit, definitions
from pcbatch.frontend.source.scope import free_reads
from pcbatch.frontend.source.tree import FUNCTIONS, SCOPES, Node, children

RETURN_HELP = "end the function with a `return` of the same kind of value on this path too"
MATCH_HELP = "a value that no `case` matches goes on after the `match`: add `case _:` for it"


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


def check_returns(unit: Unit, faults: Faults) -> None:
    """Record a missing or bare `return`."""
    if not unit.is_entry:
        return
    returns = list(_own(unit.body, gast.Return))
    if not any(node.value is not None for node in returns):
        if returns or not any(_own(unit.body, gast.Raise | gast.Assert)):  # a function may do nothing but fail
            never_returns(unit, faults, returns[0] if returns else None)
        return
    for node in returns:
        if node.value is None:
            title = "this `return` has no value, but others have"
            label = "a lane's result has one type"
            faults.add("PCB111", title, node, label, helps=(RETURN_HELP,))


def never_returns(unit: Unit, faults: Faults, bare: Node | None = None) -> None:
    """Record that no `return` has a value; `bare` is a `return` without one, if there is any."""
    faults.add(
        "PCB110",
        f"`{unit.fn.__name__}` never returns a value",
        bare or unit.header,
        "" if bare else "no `return` in this function",
        helps=("return the result of the lane",),
    )


def returns_value(unit: Unit) -> bool:
    """Whether any `return` of a function has a value."""
    return any(node.value is not None for node in _own(unit.body, gast.Return))


def _own(nodes: list[Node], kind: type | UnionType) -> Iterator[Node]:
    """The nodes of some types, nested scopes left out."""
    for node in nodes:
        if isinstance(node, kind):
            yield node
        elif not isinstance(node, SCOPES):
            yield from _own(list(children(node)), kind)


def falling_statement(body: list[Node]) -> Node:
    """The statement, or its condition, after which control may leave the end of `body`."""
    last = body[-1]
    if isinstance(last, gast.If) and last.orelse and not _leaves(last.orelse):
        return falling_statement(last.orelse)
    if isinstance(last, gast.If) and not _leaves(last.body):
        return falling_statement(last.body)
    if isinstance(last, gast.If | gast.While):
        return last.test
    if isinstance(last, gast.For):
        return last.iter
    return last


def fall_helps(last: Node) -> tuple[str, ...]:
    """The helps for a function that control leaves after the statement `last`, without a `return`."""
    if not isinstance(last, gast.Match):
        return (RETURN_HELP,)
    case = last.cases[-1]
    whatever = case.guard is None and isinstance(case.pattern, gast.MatchAs) and case.pattern.pattern is None
    return (RETURN_HELP,) if whatever else (RETURN_HELP, MATCH_HELP)


def _leaves(body: list[Node]) -> bool:
    last = body[-1]
    if isinstance(last, gast.If):
        return bool(last.orelse) and _leaves(last.body) and _leaves(last.orelse)
    return isinstance(last, gast.Return | gast.Raise | gast.Break | gast.Continue)
