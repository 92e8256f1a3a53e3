"""Bytes of the lane: tuples of numbers from 0 to 255, which show, add and compare as `bytes`.

LaneBytes.known(b"abc")     columns i32[3], length 3
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.checks import require
from pcbatch.data.columns import Unset, taken
from pcbatch.data.container import for_kind
from pcbatch.data.origins import Origin, kind_of, number
from pcbatch.data.sequences.lane_list import LaneList, as_list
from pcbatch.data.sequences.lane_tuple import LaneTuple
from pcbatch.data.texts.lane_text import LaneText
from pcbatch.data.texts.text import Text, encodable
from pcbatch.data.values import Columns, Index, Value
from pcbatch.diagnostics.lane_words import type_name
from pcbatch.errors import Refusal

HELP = "a list of the numbers has the methods of lists, `list(data)`, and `bytes(numbers)` makes bytes of it"
MARK_HELP = "write them as constants: `data.hex(':', 2)`"
SEARCHES = frozenset("find rfind index rindex count startswith endswith".split())


class Bytes(LaneList):
    """A list of numbers from 0 to 255, in columns of int32. As numbers of Python they have the dtype of such."""

    __slots__ = ()

    def element(self, index: Index) -> Value:
        """Return the number at an index that is known to be in range."""
        return number(super().element(index))

    def as_list(self) -> Value:
        """Return the numbers as a list, no view."""
        plain = self._plain()
        return plain if isinstance(plain.columns, Unset) else self._new(plain.columns.astype(int), plain.length)


@for_kind(bytes)
@jax.tree_util.register_pytree_node_class
class LaneBytes(Bytes, LaneTuple):
    """Bytes whose numbers or length depend on the lane."""

    __slots__ = ()
    python_name = "bytes"
    __hash__ = LaneTuple.__hash__
    NO_INDEX = "index out of range"

    @classmethod
    def known(cls, value: Value) -> Value:
        """Return bytes that are known while compiling."""
        return cls.made(jnp.asarray(np.array(list(value) or [0], np.int32)), len(value))

    @classmethod
    def made(cls, columns: Columns, length: Index) -> Value:
        """Return the bytes of some numbers, of which the first `length` count."""
        return cls.tree_unflatten((Origin.NUMBER,), (columns, length))

    @classmethod
    def checked(cls, values: LaneList) -> Value:
        """Return the bytes of a list of numbers; the lane raises ValueError for one that is no byte."""
        columns = values.columns
        if isinstance(columns, Unset):
            return cls.known(b"")
        if not (isinstance(columns, jax.Array) and columns.ndim == 1):
            raise TypeError("'bytes' takes a list of integers")
        if not (jnp.issubdtype(columns.dtype, jnp.integer) or columns.dtype == np.bool_):
            raise TypeError(f"'{columns.dtype}' object cannot be interpreted as an integer")
        inside = (columns >= 0) & (columns < 256)
        require(jnp.all(inside | ~values._valid()), "ValueError", "bytes must be in range(0, 256)")
        return cls.made(jnp.where(inside, columns, 0).astype(np.int32), values.length)

    @property
    def text(self) -> LaneText:
        """The text of the characters that have these numbers."""
        plain = self._plain()
        return LaneText.known("") if isinstance(plain.columns, Unset) else LaneText.made(plain.columns, plain.length)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> Text:
        """Return the text that these bytes encode; a lane with bytes beyond ASCII stops where one may be a part."""
        return encodable(self.text, encoding, errors)

    def hex(self, sep: str | bytes | None = None, bytes_per_sep: int = 1) -> Text:
        """Return the hexadecimal digits of the bytes, two of each, with a mark between groups of bytes."""
        if isinstance(sep, LaneText | LaneBytes) or isinstance(bytes_per_sep, jax.Array):
            raise Refusal("PCB306", "the mark and the size of groups of digits must be known", helps=(MARK_HELP,))
        mark = "" if sep is None else bytes.hex(b"ab", sep)[2:-2]  # Python refuses what is no mark
        plain = self._plain()
        if isinstance(plain.columns, Unset):
            return LaneText.known("")
        group, room = abs(bytes_per_sep), plain.columns.shape[0]
        group = group if mark and group else room
        length = 2 * plain.length + (_positive(plain.length - 1) // group if mark else 0)
        places = jnp.arange(2 * room + (room - 1) // group, dtype=np.int32)
        place = length - 1 - places if bytes_per_sep > 0 else places
        block, rest = place // (2 * group + 1), place % (2 * group + 1)
        at = block * group + rest // 2
        byte = taken(plain.columns, plain.length - 1 - at if bytes_per_sep > 0 else at)
        digit = jnp.where((rest % 2 == 0) == (bytes_per_sep > 0), byte & 15, byte >> 4)
        codes = jnp.where(digit < 10, digit + ord("0"), digit + (ord("a") - 10))
        codes = jnp.where(rest == 2 * group, ord(mark), codes) if mark else codes
        return LaneText.made(codes.astype(np.int32), length)

    def __getattribute__(self, name: str) -> Value:
        if name in SEARCHES:
            return lambda part, *places: getattr(self.text, name)(_part(part, name[-4:] != "with"), *places)
        return super().__getattribute__(name)

    def __getattr__(self, name: str) -> Value:
        if hasattr(bytes, name) and not name.startswith("_"):
            raise Refusal("PCB306", f"`{name}` is not there for bytes of the lane", helps=(HELP,))
        raise AttributeError(f"'bytes' object has no attribute '{name}'")

    def contains(self, value: Value) -> Value:
        """Return whether a number, or other bytes, are in these."""
        return self.text.contains(_part(value, True))

    def __jax_array__(self) -> Value:
        title = "an array of bytes has a dtype of texts, which JAX does not have"
        raise Refusal("PCB306", title, helps=("make an array of the numbers: `jnp.array(list(data))`",))

    def __add__(self, other: Value) -> Value:
        return as_bytes(self.text + other.text) if (other := bytes_of(other)) is not None else NotImplemented

    def __radd__(self, other: Value) -> Value:
        return as_bytes(other.text + self.text) if (other := bytes_of(other)) is not None else NotImplemented

    __iadd__ = __add__


@jax.tree_util.register_pytree_node_class
class LaneByteArray(Bytes):
    """A `bytearray` of the lane: a list of numbers from 0 to 255, with the searches of bytes."""

    __slots__ = ()
    python_name = "bytearray"
    EMPTY = "pop from empty bytearray"
    NO_INDEX = "bytearray index out of range"
    NO_PLACE = "bytearray index out of range"

    @classmethod
    def of(cls, values: Value) -> Value:
        """Return the bytearray of these bytes, which may be of the lane."""
        return cls.made(bytes_of(values)._plain())

    @classmethod
    def made(cls, values: LaneList) -> Value:
        """Return the bytearray of a list of numbers that are bytes."""
        return cls.tree_unflatten((Origin.NUMBER,), (values.columns, values.length))

    def __getattribute__(self, name: str) -> Value:
        if name in SEARCHES or name in ("decode", "hex"):
            return getattr(bytes_of(self), name)
        if name in ("insert", "sort"):
            raise Refusal("PCB306", f"`{name}` is not there for a bytearray of the lane", helps=(HELP,))
        return super().__getattribute__(name)

    def append(self, value: Value, /) -> None:
        """Add a number at the end, if it is a byte."""
        super().append(_byte(value))

    def extend(self, values: Value, /) -> None:
        """Add the numbers of bytes, or of an iterable, at the end."""
        super().extend(_numbers(values))

    def __setitem__(self, index: Index, value: Value) -> None:
        if isinstance(index, slice):
            super().__setitem__(index, _numbers(value))
            return
        place = self._checked(index, self.NO_PLACE)[1]
        self._set(place, _byte(value))

    def __getitem__(self, index: Index) -> Value:
        found = super().__getitem__(index)
        return self.made(found) if isinstance(index, slice) else found

    def contains(self, value: Value) -> Value:
        """Return whether a number, or bytes, are in this."""
        return bytes_of(self).contains(value)

    def __add__(self, other: Value) -> Value:
        return NotImplemented if bytes_of(other) is None else self.made((bytes_of(self) + other)._plain())

    def __radd__(self, other: Value) -> Value:
        return NotImplemented if bytes_of(other) is None else bytes_of(other) + bytes_of(self)

    def __mul__(self, times: Index) -> Value:
        return self.made(super().__mul__(times))

    __rmul__ = __mul__

    def as_compared(self) -> Value:
        """Return the bytes that are compared in its place."""
        return bytes_of(self)


def _numbers(values: Value) -> Value:
    """The list of the numbers of bytes, or of an iterable; the lane raises ValueError where one is no byte."""
    if isinstance(values, LaneText | str | int) or (isinstance(values, jax.Array) and values.ndim == 0):
        raise TypeError("can assign only bytes, buffers, or iterables of ints in range(0, 256)")
    return LaneBytes.checked(as_list(values))._plain()


def _positive(value: Index) -> Index:
    return max(value, 0) if isinstance(value, int) else jnp.maximum(value, 0)


def _byte(value: Value) -> Value:
    """A number that is a byte; the lane raises ValueError where it is none."""
    if not isinstance(value, int | jax.Array) or kind_of(jnp.result_type(value)) not in (bool, int):
        raise TypeError(f"'{type_name(value)}' object cannot be interpreted as an integer")
    holds = (value >= 0) & (value < 256)
    require(holds, "ValueError", "byte must be in range(0, 256)")
    return jnp.where(holds, value, 0).astype(np.int32)


def as_bytes(text: LaneText) -> Value:
    """Return the bytes that are the numbers of the characters of a text."""
    return LaneBytes.made(text.codes, text.length)


def bytes_of(value: Value) -> Value:
    """Return bytes and bytearrays, of Python or of the lane, as bytes of the lane; None for other values."""
    if isinstance(value, LaneByteArray):
        return LaneBytes.made(value.columns, value.length)
    return LaneBytes.known(value) if isinstance(value, bytes) else value if type(value) is LaneBytes else None


def _part(value: Value, numbers: bool) -> Value:
    """The text that stands for what is looked for in bytes; that of a number, where `numbers`, is its character."""
    if isinstance(value, tuple) and not numbers:
        return tuple(_part(part, numbers) for part in value)
    if (found := bytes_of(value)) is not None:
        return found.text
    if not (
        numbers
        and isinstance(value, int | jax.Array)
        and jnp.shape(value) == ()
        and kind_of(jnp.result_type(value)) in (bool, int)
    ):
        raise TypeError(f"a bytes-like object is required, not '{type_name(value)}'")
    require((value >= 0) & (value < 256), "ValueError", "byte must be in range(0, 256)")
    return LaneText.made(jnp.asarray(value, np.int32).reshape(1), 1)
