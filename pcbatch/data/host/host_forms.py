"""The forms that containers of lanes have in the results of a call.

A result comes with the lanes along the first axis of each leaf of a container. Users get another object in its place,
made for reading: a `Ragged` for lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import numpy as np

from pcbatch.diagnostics.short_repr import clipped

MOST = 2000  # characters of a `repr`


@dataclass(frozen=True, slots=True)
class Uncut:
    """The content of a form with the capacity of the program: it is cut to the longest value when someone reads it.

    Attributes:
        whole: the content.
        cut: a function that returns what readers get of it.
    """

    whole: Any
    cut: Callable[[], Any]


def read(content: Any) -> Any:
    """Return what readers get of a content, also where a program that JAX traces is the first one to read it."""
    if not isinstance(content, Uncut):
        return content
    with jax.ensure_compile_time_eval():
        return content.cut()


def uncut(content: Any) -> Any:
    """Return a content as it is before it is cut."""
    return content.whole if isinstance(content, Uncut) else content


class OfLanes:
    """The base of forms: a pytree of JAX with a value for each lane.

    Attributes:
        lengths: int32[lanes], the length of each value; negative for a lane that has failed.
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]
    name: ClassVar[str] = "list"
    content: ClassVar[str] = "values"
    lengths: Any

    def __len__(self) -> int:
        """Return the number of lanes."""
        return int(np.shape(self.lengths)[0])

    def __getitem__(self, lane: Any) -> Any:
        """Return the value of a lane; a slice gives those of several lanes.

        Raises:
            IndexError: there is no such lane.
            ValueError: the lane has failed, and has no value.
        """
        if not isinstance(lane, slice) and not -len(self) <= lane < len(self):
            raise IndexError(f"there is no lane {lane} of {len(self)}")
        if isinstance(lane, slice) or np.ndim(self.lengths) > 1:
            return jax.tree.map(lambda leaf: leaf[lane], self)
        length = int(np.asarray(self.lengths[lane]))
        if length < 0:
            raise ValueError(f"lane {lane} has failed, and has no {self.name}")
        return self._of_lane(lane, length)

    def _of_lane(self, lane: int, length: int) -> Any:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        return (self[lane] for lane in range(len(self)))

    def tolist(self) -> list[Any]:
        """Return the values of all lanes as Python's own; None for a lane that has failed."""
        raise NotImplementedError

    def __eq__(self, other: object) -> Any:
        if isinstance(other, OfLanes):
            return self.tolist() == other.tolist()
        return self.tolist() == other if isinstance(other, list) else NotImplemented

    def __repr__(self) -> str:
        leaves = jax.tree.leaves(self)  # lengths of a gradient are of JAX's type without values, float0
        known = all(is_concrete(leaf) or (isinstance(leaf, np.ndarray) and leaf.dtype.kind != "V") for leaf in leaves)
        if known and np.ndim(self.lengths):
            return f"{type(self).__name__}({clipped(repr(self.tolist()), MOST)})"
        content = getattr(self, self.content)
        return f"{type(self).__name__}({self.content}={content!r}, lengths={self.lengths!r})"


def is_concrete(leaf: Any) -> bool:
    """Whether a leaf is an array of JAX whose elements this process can read."""
    return isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer) and leaf.is_fully_addressable


_forms: dict[type, Callable[[Any], Any]] = {}


def register(container: type, form: Callable[[Any], Any]) -> None:
    """Let results have `form(value)` in place of a container of this class, whose leaves are [lanes, ...] each."""
    _forms[container] = form


def has_form(value: object) -> bool:
    """Whether a value is a container that has another form in results."""
    return type(value) in _forms


def in_host_form(value: Any) -> Any:
    """Return a value with containers in the forms that users see; the leaves may be of any kind."""
    return replaced(value, has_form, lambda x: _forms[type(x)](x))


def replaced(value: Any, is_part: Callable[[object], bool], new: Callable[[Any], Any]) -> Any:
    """Return a pytree with other objects in place of some parts; dicts keep the order of their keys."""
    if is_part(value):
        return new(value)

    def stop(x: object) -> bool:
        return type(x) is dict or is_part(x)

    def one(x: Any) -> Any:
        if is_part(x):
            return new(x)
        return {key: replaced(part, is_part, new) for key, part in x.items()} if type(x) is dict else x

    return jax.tree.map(one, value, is_leaf=stop)


def container_leaves(value: Any) -> list[bool]:
    """Return, for each leaf of a value in order, whether it is part of a container with another form."""
    parts = jax.tree.leaves(value, is_leaf=has_form)
    return [has_form(part) for part in parts for _ in jax.tree.leaves(part)]
