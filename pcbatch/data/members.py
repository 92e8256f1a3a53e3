"""A member of an enumeration, where a lane says which: its position among the members."""

from __future__ import annotations

import enum
import inspect
from types import FunctionType, MethodType
from typing import Any

import jax.numpy as jnp
import numpy as np

from pcbatch.data.checks import require
from pcbatch.data.container import lane_value
from pcbatch.data.origins import number
from pcbatch.data.pytree_node import pytree_node
from pcbatch.errors import Refusal


@pytree_node("index", static="members", named=True)
class MemberValue:
    """A member of an enumeration, the value of a lane: its position among them."""

    __slots__ = ("index", "members")

    def __init__(self, index: Any, members: type[enum.Enum]) -> None:
        self.index, self.members = index, members

    def __repr__(self) -> str:
        return self.members.__name__

    def is_(self, other: Any) -> Any:
        """Return whether this is a member."""
        other = of_member(other, True)
        same = isinstance(other, MemberValue) and self.members is other.members
        return number(self.index == other.index) if same else False

    def __eq__(self, other: object) -> Any:
        if self.members.__eq__ is object.__eq__:
            return self.is_(other)
        raise Refusal("PCB320", f"members of {self!r} are compared by a method", helps=("ask `is`, or compare values",))

    def __ne__(self, other: object) -> Any:
        equal = self == other
        return not equal if isinstance(equal, bool) else number(jnp.logical_not(equal))

    def __hash__(self) -> int:
        title = "a member of an enumeration has no hash in a lane"
        raise Refusal("PCB320", title, helps=("compare it: `op == Op.ADD`",))

    def tolist(self) -> Any:
        """Return the members of all lanes, or of one, of a result."""
        found: Any = np.array([*self.members], object)[np.asarray(self.index)]
        return found.tolist() if isinstance(found, np.ndarray) else found

    def __getitem__(self, lane: int) -> Any:
        """Return the member of one lane, of a result."""
        return self.tolist()[lane]

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the member, such as its value, or a method."""
        if name.startswith("__"):
            raise AttributeError(name)
        if isinstance(found := inspect.getattr_static(self.members, name, None), FunctionType):
            return MethodType(found, self)
        return lane_value([getattr(member, name) for member in self.members]).element(self.index)


def data_of(value: Any) -> Any:
    """Return the value of a member of an enumeration whose members are numbers or texts; other values as they are."""
    is_data = isinstance(value, MemberValue) and issubclass(value.members, int | float | str)
    return value.value if is_data else value


def alike(values: list[Any]) -> list[Any]:
    """Return values of which each may take the place of the others: all members are of the lane if one is."""
    of_lane = any(isinstance(value, MemberValue) for value in values)
    return [of_member(value, True) for value in values] if of_lane else values


def of_member(value: Any, numbers: bool = False) -> Any:
    """Return a known member as one of the lane, by its position; other values as they are, and members that are
    numbers, unless `numbers` asks for those."""
    if not isinstance(value, enum.Enum) or (isinstance(value, enum.Flag | int) and not numbers):
        return value
    place = next(k for k, member in enumerate(type(value)) if member is value)
    return MemberValue(jnp.int32(place), type(value))


def with_value(members: Any, value: Any) -> Any:
    """Return the member of an enumeration that has a value; the lane raises ValueError where none has."""
    found = [jnp.asarray(value == member.value) for member in members]
    title = f"members of {members.__name__} are made by a method"
    if issubclass(members, enum.Flag) or "_missing_" in vars(members):
        raise Refusal("PCB320", title, helps=("choose among them with `if`",))
    require(jnp.any(jnp.stack(found)), "ValueError", f"this is not a valid {members.__name__}")
    return MemberValue(jnp.argmax(jnp.stack(found)).astype(jnp.int32), members)
