"""A value that is None on some ways through the program and something else on others."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.checks import require
from pcbatch.data.pytree_node import pytree_node
from pcbatch.data.values import Flag, Index, Value


@pytree_node("value", "present", named=True)
class Optional:
    """A value of the lane, or None.

    Attributes:
        value: the value; arbitrary where there is none.
        present: bool[], whether there is one.
    """

    __hash__ = None  # type: ignore[assignment]  # what Python would make of the object says nothing of the value

    def __init__(self, value: Value, present: Flag) -> None:
        self.value, self.present = value, present

    def __repr__(self) -> str:
        return f"{self.value} or None"

    def __jax_array__(self) -> Value:
        return jnp.asarray(unwrapped(self))

    def __getattr__(self, name: str) -> Value:
        """Return an attribute of the value, which must not be None."""
        if name.startswith("__") or "value" not in self.__dict__ or jnp.ndim(self.present):  # a result of all lanes
            raise AttributeError(name)
        require(self.present, "AttributeError", f"'NoneType' object has no attribute '{name}'")
        return getattr(self.value, name)

    def __bool__(self) -> bool:
        """Return whether there are lanes; in a lane, whether there is a value and it is true."""
        return bool(len(self.present)) if self._has_lanes() else bool(self.present) and bool(self.value)

    def __len__(self) -> int:
        """Return the number of lanes; in a lane, the length of the value."""
        return len(self.present) if self._has_lanes() else len(sure(self, "object of type 'NoneType' has no len()"))

    def __getitem__(self, index: Index) -> Value:
        """Return the value of one lane, or None; in a lane, the element of the value at an index."""
        if not self._has_lanes():
            return sure(self, "'NoneType' object is not subscriptable")[index]
        return jax.tree.map(lambda part: part[index], self.value, is_leaf=has_lanes) if self.present[index] else None

    def __iter__(self) -> Iterator[Value]:
        """Go over the lanes; in a lane, over the elements of the value."""
        if not self._has_lanes():
            return iter(sure(self, "'NoneType' object is not iterable"))
        return (self[lane] for lane in range(len(self)))

    def __contains__(self, item: Value) -> bool:
        """Return whether a lane has this value; in a lane, whether the value has this element."""
        if not self._has_lanes():
            return item in sure(self, "argument of type 'NoneType' is not iterable")
        return any(bool(value == item) for value in self)

    def _has_lanes(self) -> bool:
        """Whether this is the result of a call, with the values of all lanes."""
        return bool(np.ndim(self.present))

    def tolist(self) -> list[Value]:
        """Return the values of all lanes as Python's own, None where there is none.

        Example:
            >>> import jax.numpy as jnp
            >>> Optional(jnp.array([3, 0]), jnp.array([True, False])).tolist()
            [3, None]
        """
        present = np.asarray(self.present)
        parts, tree = jax.tree.flatten(self.value, is_leaf=has_lanes)
        columns = [part.tolist() if has_lanes(part) else np.asarray(part).tolist() for part in parts]
        return [
            jax.tree.unflatten(tree, [column[lane] for column in columns]) if present[lane] else None
            for lane in range(len(present))
        ]


def has_lanes(value: object) -> bool:
    """Whether a value stands for all lanes and gives that of one: an array, or the form of a container in results."""
    return hasattr(value, "tolist")


def unwrapped(value: Value) -> Value:
    """Return a value that must not be None: the lane raises a TypeError if it is."""
    return sure(value, "None is used as a value here")


def sure(value: Value, otherwise: str) -> Value:
    """Return a value that must not be None; the lane raises a TypeError of this text if it is."""
    if not isinstance(value, Optional):
        return value
    require(value.present, "TypeError", otherwise)
    return value.value


def narrowed(value: Value) -> Value:
    """Return a value that is known not to be None where this is evaluated."""
    return value.value if isinstance(value, Optional) else value


def is_none(value: Value) -> Value:
    """Return whether a value is None, bool[] for one of the lane."""
    return jnp.logical_not(value.present) if isinstance(value, Optional) else value is None
