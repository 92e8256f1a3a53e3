"""Containers of the lane that may be elements of others, and the error about elements that are unlike."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from pcbatch.data.aliasing import holds_objects, note_stored
from pcbatch.data.columns import Shape, one_level
from pcbatch.data.container import Container
from pcbatch.data.optional import Optional
from pcbatch.data.values import Index, Value
from pcbatch.diagnostics.lane_words import type_name
from pcbatch.errors import Refusal

ALIKE_HELP = "keep what differs in lists of their own, or in one tuple with a field for each kind"
_SAME_KEYS = (
    "give all these dicts the same keys, or keep pairs in place of each dict: a list `[(key, value), ...]`, and "
    "`for key, value in pairs` in place of `.items()`"
)
_PATHS = (
    "for dicts in dicts keep one dict whose keys are whole paths: `table[path]` with `path = path + (key,)`, of texts "
    "`path + key`, in place of `node = node[key]`; keep what a node holds beside other nodes in a dict of its own"
)
_SPECIAL = {  # by what is unlike
    frozenset({"dict"}): _SAME_KEYS,
    frozenset({"list", "tuple"}): "make all of them lists: `[]` in place of `()`, `[a, b]` in place of `(a, b)`",
    frozenset({"str", "number"}): f"write numbers as texts, `str(n)`, and read them by `int(text)`; or {ALIKE_HELP}",
}


class OfObjects(Refusal):
    """A refusal that records in place of objects may cure: `values` are those, or hold them, and `whole` are the tuples
    or objects of which they are parts."""

    values: tuple[Value, ...] = ()
    whole: tuple[Value, ...] = ()


class UnlikeError(OfObjects):
    """Two elements of a list of the lane that have no common type.

    Attributes:
        path: where they are in the elements, which are tuples or objects.
    """

    path: tuple[int, ...] = ()

    def __init__(self, a: Value, b: Value) -> None:
        title = f"the elements of a list of the lane must be alike, not {describe(a)} and {describe(b)}"
        kinds = frozenset(describe(value).split()[:2][-1] for value in (a, b))
        special = _SPECIAL.get(kinds, _PATHS if "dict" in kinds and kinds & {"str", "number", "list"} else None)
        super().__init__("PCB304", title, helps=(special,) if special else (ALIKE_HELP,))
        self.values = (_as_stored(a), _as_stored(b))  # for views those in whose columns they lie, which outlast a trace

    def inside(self, k: int | None, a: Value, b: Value) -> UnlikeError:
        """Return this error, noting that the values are the parts `k` of these elements, or some parts of them."""
        self.path, self.whole = (() if k is None else (k, *self.path)), (_as_stored(a), _as_stored(b))
        return self


def by_identity(code: str, title: str, help: str, *values: Value) -> OfObjects:
    """Return the error of a question that Python answers by which object it is: a record of the lane has a number."""
    refused = OfObjects(code, title, helps=(help,))
    refused.values = values
    return refused


def refuse_hash(value: Value) -> int:
    """Refuse the hash of a value of the lane, which a set or a dict of Python's asks for: it may become one of the
    lane, by a loop or where a helper is compiled along."""
    title = f"{describe(value)} of the lane is a key of a dict or set of Python's"
    help = "use a number as the key, or a text, such as `','.join(texts)`, or a tuple of them, such as `tuple(xs)`"
    raise Refusal("PCB304", title, helps=(help,))


def describe(value: Value) -> str:
    """Return what a value is, in a few words."""
    if isinstance(value, Container):
        return f"a {getattr(value, 'python_name', 'list')}"
    children, tree = one_level(value)
    if value is None:
        return "None"
    if tree is None:
        return "a number" if jnp.shape(value) == () else f"an array of shape {jnp.shape(value)}"
    return f"a {type_name(value)} of {len(children)}"


class Stored(Container):
    """A container that may be an element of others: its leaves then have the axes of the containers around it.

    Attributes:
        place: for a view, the indices in the containers around it, each in range.
    """

    __slots__ = ()
    _node: Value
    _columns: Value
    place: tuple[Index, ...]
    parent: Value

    def view(self, place: tuple[Index, ...], parent: Value) -> Value:
        """Return the container at indices of those around this one; what is done to it is done to this one."""
        raise NotImplementedError

    def unified(self, lead: Shape, other: Value, other_lead: Shape) -> tuple[Value, Value]:
        """Return this container and another one with the type that covers both."""
        raise NotImplementedError

    def blanked(self, lead: Shape, new: Shape) -> Value:
        """Return empty containers of this type with another lead."""
        raise NotImplementedError

    def as_rows(self) -> Value:
        """Return the container as it is stored in others, with its elements in columns."""
        return self

    def cut(self) -> Value:
        """Return the container with the room that containers inside of others have, if that is less than its own."""
        return self

    def beside(self, value: Value, lead: Shape) -> Value:
        """Return a value of Python's that is known as one of this kind, where it can be; others as they are.

        Args:
            value: an element, prepared, or columns of elements.
            lead: the shape of the axes in front of all its leaves.
        """
        return value

    def hold(self, values: Value) -> None:
        """Remember the mutable objects among values that have become elements, or whose elements have."""
        inside = self._node is not self and isinstance(self.parent, Stored)
        if inside and (mine := _objects_in(values)) and mine & _objects_in(self._outermost()):
            raise UnlikeError(self._outermost(), values)  # an object in one of its class, to any depth
        if lists_in(values) or holds_objects((values,)):
            self.held = (*self.held, values)
            note_stored(values)
            if inside:
                self.parent.hold(values)

    def _outermost(self) -> Value:
        around = self.parent
        while isinstance(around.parent, Stored):
            around = around.parent
        return around

    @property
    def node(self) -> Value:
        """The container itself; for a view, the container as it lies in the columns of the one around it."""
        parent = self.parent
        if (
            self._node is not self
            and isinstance(parent, Stored)
            and not any(part is self._node for part in inner_parts(parent.node._columns))
        ):
            kind = getattr(self, "python_name", "list")
            raise Refusal(
                "PCB304",
                f"a {kind} that was read from another list is used after the other one has changed",
                helps=("read it again, `row = rows[i]`, after the change",),
            )
        return self._node


def _objects_in(value: Value) -> set[type]:
    """The classes of the user's of which there are objects in a value."""
    found: set[type] = set()

    def look(part: Value) -> bool:
        found.add(type(part))
        return False

    jax.tree.leaves(value, is_leaf=look)
    return {
        cls
        for cls in found
        if cls.__module__.partition(".")[0] not in ("builtins", "pcbatch", "jax", "jaxlib", "numpy")
    }


def _as_stored(value: Value) -> Value:
    return jax.tree.map(lambda part: part._node if is_stored(part) else part, value, is_leaf=is_stored)


def is_stored(value: Value) -> bool:
    """Whether a value is a container of the lane that may be an element of others."""
    return isinstance(value, Stored)


def parts(value: Value) -> list[Value]:
    """Return the leaves of an element; containers of the lane, values that may be None, and None are one leaf each."""
    return jax.tree.leaves(value, is_leaf=is_part)


def inner_parts(value: Value) -> list[Value]:
    """Return the leaves of an element, those of values that may be None in their place."""
    inside = (inner_parts(part.value) if isinstance(part, Optional) else [part] for part in parts(value))
    return [part for each in inside for part in each]


def is_part(value: Value) -> bool:
    """Whether a node counts as one leaf of an element."""
    return value is None or isinstance(value, Stored | Optional)


def lists_in(value: Value) -> bool:
    """Whether a value is or holds a list or another container that becomes one of the lane."""
    return any(map(is_container, jax.tree.leaves(value, is_leaf=is_container)))


def is_container(value: Value) -> bool:
    """Whether a value is a container of the lane, or becomes one where it is an element."""
    return isinstance(value, list | set | Stored) or is_table(value)


def is_table(value: Value) -> bool:
    """Whether a dict is one of keys rather than of names: it becomes a dict of the lane where it is an element."""
    return type(value) is dict and not (value and all(isinstance(key, str) for key in value))
