"""The roles of the fields of operations and terminators: which variables are in them, and how these are renamed.

A class of the IR says at each field that names a variable whether it is read or written. All else that is asked about
its variables follows from that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar, get_type_hints

from pcbatch.ir import message as messages

New = Callable[[str], str]
NodeT = TypeVar("NodeT")


@dataclass(frozen=True, slots=True)
class Role:
    """One role of a field.

    Attributes:
        names: the variables in its value, in order, with repetitions.
        renamed: the value with every variable replaced.
        writes: whether they are written, not read.
        is_slot: whether it is their slots in a frame that are written.
    """

    names: Callable[[Any], Iterable[str]]
    renamed: Callable[[Any, New], Any]
    writes: bool = False
    is_slot: bool = False


def _one(name: str) -> Iterable[str]:
    return (name,)


def _call(name: str, new: New) -> str:
    return new(name)


def _several(names: Iterable[str], new: New) -> tuple[str, ...]:
    return tuple(map(new, names))


Read = Annotated[str, Role(_one, _call)]
Reads = Annotated[tuple[str, ...], Role(tuple, _several)]
ReadIfGiven = Annotated[
    str | None, Role(lambda v: () if v is None else (v,), lambda v, new: None if v is None else new(v))
]
Bound = Annotated[
    tuple[tuple[str, str], ...],
    Role(lambda args: [v for _, v in args], lambda args, new: tuple((param, new(v)) for param, v in args)),
]
"""Pairs of a parameter and the variable of the block that it is bound to."""
Shown = Annotated[messages.Message, Role(messages.variables, messages.rename)]
Part = Role(lambda node: reads(node), lambda node, new: rename_reads(node, new))
"""The role of a field that is a part with fields of its own."""
Write = Annotated[str, Role(_one, _call, writes=True)]
Writes = Annotated[tuple[str, ...], Role(tuple, _several, writes=True)]
Slot = Annotated[str, Role(_one, _call, writes=True, is_slot=True)]


Fields = tuple[tuple[str, Role], ...]

_reading: dict[type, Fields] = {}
_writing: dict[type, Fields] = {}


def _fields(cls: type, writes: bool) -> Fields:
    """The fields of a class of the IR that name variables which are read, or written, in order."""
    known = _writing if writes else _reading
    if cls not in known:
        hints = get_type_hints(cls, include_extras=True)
        roles = [(name, data) for name, hint in hints.items() for data in getattr(hint, "__metadata__", ())]
        known[cls] = tuple((name, role) for name, role in roles if isinstance(role, Role) and role.writes == writes)
    return known[cls]


def reads(node: Any) -> tuple[str, ...]:
    """The variables whose current value an operation, a terminator or a part of one uses.

    A pop reads a slot of the frame, not the variable.
    """
    found: tuple[str, ...] = ()
    for name, role in _fields(type(node), False):
        found += tuple(role.names(getattr(node, name)))
    return found


def writes(node: Any) -> tuple[str, ...]:
    """The variables whose value an operation replaces (a push writes a slot of the frame, not the variable)."""
    found: tuple[str, ...] = ()
    for name, role in _fields(type(node), True):
        if not role.is_slot:
            found += tuple(role.names(getattr(node, name)))
    return found


def rename_reads(node: NodeT, new: New) -> NodeT:
    """Replace every variable that an operation, a terminator or a part of one reads by `new(variable)`."""
    renamed: NodeT = _renamed(node, new, writes=False)
    return renamed


def rename_writes(node: NodeT, new: New) -> NodeT:
    """Replace every variable that an operation writes, or whose slot it writes, by `new(variable)`."""
    renamed: NodeT = _renamed(node, new, writes=True)
    return renamed


def _renamed(node: Any, new: New, writes: bool) -> Any:
    fields = _fields(type(node), writes)
    return replace(node, **{name: role.renamed(getattr(node, name), new) for name, role in fields}) if fields else node
