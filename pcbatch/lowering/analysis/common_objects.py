"""A relation between variables of a plain function: which of them may have an object in common.

A value has two levels, its own object and those inside it, as in `containers.aliasing`. A *part* is a variable at one
level. The state is a relation between parts, "may have an object in common", after the alias pairs of Landi and Ryder
(PLDI 1992): what an operation makes is in no pair, so a list that a loop makes anew is apart from the one before it. A
part is in a pair with itself if one object may stand at several places of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from pcbatch.data.objects.made import HEAP
from pcbatch.data.objects.made_fields import FieldLevel

OWN, INNER = "own", "inner"
Part = tuple[str, str]  # a variable and a level
Parts = frozenset[Part]
NONE: Parts = frozenset()
State = Mapping[Part, Parts]  # symmetric
EMPTY: State = MappingProxyType({})
CALLERS = "^"  # before the name of a parameter: the object that the caller has given
FIELD = f"{CALLERS}{HEAP}"  # before the number of a class and of a field of it
STORED = f"{FIELD}="  # likewise: what has been stored in the field, by a name of its own
OUTSIDE: Part = (CALLERS, OWN)
"""An object that existed before, such as a global list."""

REPEATED: Part = ("", INNER)
"""A source that a result has twice: one object stands at several places of it."""


def field_part(level: FieldLevel, stored: bool = False) -> Part:
    """Return the part of a state that stands for the objects of a field of all records made in lanes, at a level.

    Variables that were read from the field are in a pair with it, those that were stored in it with the `stored` one.
    """
    (cls, field), own = level
    return (f"{STORED if stored else FIELD}.{cls}.{field}", OWN if own else INNER)


def level_of(part: Part) -> FieldLevel:
    """Return the field for which a part stands, with the level."""
    _, cls, field = part[0].rsplit(".", 2)
    return (int(cls), int(field)), part[1] == OWN


def is_field(part: Part) -> bool:
    """Return whether a part stands for a field of records made in lanes."""
    return part[0].startswith(FIELD)


def is_stored(part: Part) -> bool:
    """Return whether a part stands for what has been stored in a field of records made in lanes."""
    return part[0].startswith(STORED)


class ObjectSource(NamedTuple):
    """A part that has objects of a result.

    Attributes:
        part: a variable, at a level.
        taken: whether it has them no longer, or they are not read from it again.
        stays: whether the result has them at the place where it had them before.
        apart: whether other results have none of those that are at this place of the part.
    """

    part: Part
    taken: bool = False
    stays: bool = False
    apart: bool = False


Sources = Mapping[Part, Sequence[ObjectSource]]  # of the parts of what an operation assigns


def assigned(state: State, names: Iterable[str], sources: Sources) -> State:
    """Return the state after an assignment of the variables `names`, whose parts have objects of `sources`."""
    gone = frozenset((name, level) for name in names for level in (OWN, INNER))
    pairs: list[tuple[Part, Part]] = []
    items = list(sources.items())
    for k, (part, found) in enumerate(items):
        for source in found:
            partners = state.get(source.part, NONE)
            repeated = source.part in partners
            others = partners if repeated or not source.taken else partners - {source.part}
            partners_now = others if source.taken or source.part == REPEATED else others | {source.part}
            pairs += [(part, other) for other in partners_now if other not in gone]
            if repeated and part[1] == INNER:
                pairs.append((part, part))
        if part[1] == INNER and any(_common(state, one, other) for i, one in enumerate(found) for other in found[:i]):
            pairs.append((part, part))
        for other, theirs in items[:k]:
            if other[0] != part[0] and any(_common(state, one, two) for one in found for two in theirs):
                pairs.append((part, other))
    left = state
    if not gone.isdisjoint(state):
        left = {part: others - gone for part, others in state.items() if part not in gone}
    return related(left, pairs)


def _common(state: State, one: ObjectSource, other: ObjectSource) -> bool:
    """Whether two sources may give one object."""
    if one.stays or other.stays:
        return False
    if one.part == other.part:
        apart = one.taken or other.taken or (one.apart and other.apart)
        return not apart or one.part in state.get(one.part, NONE)
    return other.part in state.get(one.part, NONE)


def related(state: State, pairs: Iterable[tuple[Part, Part]]) -> State:
    """Return the state with further pairs."""
    new: dict[Part, set[Part]] = {}
    for one, other in pairs:
        new.setdefault(one, set()).add(other)
        new.setdefault(other, set()).add(one)
    return {**state, **{part: state.get(part, NONE) | others for part, others in new.items()}} if new else state


def joined(states: Iterable[State], live: frozenset[str]) -> State:
    """Return the state where control comes from several places; only variables that are live matter."""
    out: dict[Part, Parts] = {}
    for state in states:
        for part, others in state.items():
            if _matters(part, live):
                left = frozenset(other for other in others if _matters(other, live))
                out[part] = out[part] | left if part in out else left
    return {part: others for part, others in out.items() if others}


def _matters(part: Part, live: frozenset[str]) -> bool:
    return part[0].startswith(CALLERS) or part[0] in live
