"""The characters of a text of the lane: what reads, joins, compares and searches it."""

from __future__ import annotations

from typing import Self, TypeVar

import jax.numpy as jnp
import numpy as np

from pcbatch.data.capacity import characters as start_characters
from pcbatch.data.capacity import inner_characters
from pcbatch.data.checks import INNER_CHARACTERS, limit, require, require_characters
from pcbatch.data.columns import leaf_at, taken
from pcbatch.data.container import lane_value
from pcbatch.data.origins import Origin, number
from pcbatch.data.sequences import moves
from pcbatch.data.sequences.indices import checked_index, integer, narrowed, repeated, repetitions, slice_range
from pcbatch.data.sequences.lane_sequence import Compared
from pcbatch.data.stored import refuse_hash
from pcbatch.data.texts import text_search
from pcbatch.data.texts.known_texts import refuse_shown
from pcbatch.data.values import Column, Index, Value
from pcbatch.diagnostics.lane_words import type_name
from pcbatch.errors import Refusal

TextT = TypeVar("TextT", bound="Text")
ORIGINS = (Origin.ARRAY,)
WHITESPACE = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())


class Text(Compared):
    """A text of the lane, as far as the lists of texts need it; all of them are `LaneText`.

    Attributes:
        written: of an f-string that has just been made, the text before a number of the lane, the number, and the text
            behind it: a format with that width. It is no part of the value.
    """

    __slots__ = ("written",)
    written: tuple[str, Value, str]
    python_name = "str"
    __hash__ = refuse_hash  # type: ignore[assignment]

    @classmethod
    def known(cls, text: Value) -> Self:
        """Return a text that is known while compiling."""
        refuse_shown(text)
        codes = np.array([ord(c) for c in text] or [0], np.int32)
        return cls.made(jnp.asarray(codes), len(text))

    @classmethod
    def made(cls, codes: Column, length: Index) -> Self:
        """Return the text of some codes, of which the first `length` count."""
        new: Self = cls.tree_unflatten(ORIGINS, (codes, narrowed(length)))  # that of a place is int64 with 64-bit types
        return new

    @property
    def codes(self) -> Value:
        """The codes of the characters, i32[capacity]."""
        return self.columns

    def cut(self) -> Value:
        """Return the text with the room of one inside of a container."""
        return self.first_rows(inner_characters(), INNER_CHARACTERS)

    def _plain(self) -> Self:
        return self.made(self.codes, self.length)

    def copy(self) -> Self:
        """Return the text itself, which nothing changes."""
        return self._plain()

    def valid(self) -> Value:
        """The mask of the places that hold a character."""
        return jnp.arange(self.codes.shape[0], dtype=np.int32) < self.length

    # Subscripts.

    def element(self, index: Index) -> Self:
        """Return the character at an index that is known to be in range."""
        return self.made(leaf_at(self.codes, (index,)).reshape(1), 1)

    def __getitem__(self, index: Index) -> Self:
        if not isinstance(index, slice):
            index = integer(index, "string indices must be integers")
            place, _ = checked_index(index, self.length, self.codes.shape[0], "string index out of range")
            return self.element(place)
        part = slice_range(index, self.length)
        if type(part.step) is int and part.step == 1:
            return self.made(moves.part(self.codes, part.start, part.count), part.count)
        places = part.start + part.step * jnp.arange(self.codes.shape[0], dtype=np.int32)
        return self.made(taken(self.codes, places), part.count)

    def __setitem__(self, index: Index, value: Value) -> None:
        raise TypeError("'str' object does not support item assignment")

    def __delitem__(self, index: Index) -> None:
        raise TypeError("'str' object doesn't support item deletion")

    # Operators.

    def __add__(self, other: Value) -> Value:
        return NotImplemented if (right := as_text(other)) is None else joined(self, right)

    def __radd__(self, other: Value) -> Value:
        return NotImplemented if (left := as_text(other)) is None else joined(left, self)

    def __mul__(self, times: Index) -> Value:
        n = self.length
        whole = repeated(n, repetitions(times))
        size = max(1, whole) if isinstance(whole, int) else max(start_characters(), self.codes.shape[0])
        require_characters(whole, size)
        places = jnp.arange(size, dtype=np.int32) % (max(n, 1) if isinstance(n, int) else jnp.maximum(n, 1))
        return self.made(taken(self.codes, places), whole)

    __rmul__ = __mul__

    def _as_operand(self, other: Value) -> Value:
        return as_text(other)

    # Searching.

    def contains(self, part: Value) -> Value:
        """Return whether another text is a part of this one."""
        return number(jnp.any(text_search.places(self, operand(part, "'in <string>' requires string as left operand"))))

    def _places(self, part: Value, start: Index = None, end: Index = None) -> Value:
        return text_search.places(self, operand(part, "must be str"), start, end)

    def find(self, part: Value, start: Index = None, end: Index = None, /) -> Index:
        """Return the first place of another text between two places, -1 if it is not there."""
        here = self._places(part, start, end)
        return number(jnp.where(jnp.any(here), jnp.argmax(here).astype(np.int32), -1))

    def rfind(self, part: Value, start: Index = None, end: Index = None, /) -> Index:
        """Return the last place of another text between two places, -1 if it is not there."""
        here = self._places(part, start, end)
        return number(jnp.where(jnp.any(here), here.shape[0] - 1 - jnp.argmax(here[::-1]).astype(np.int32), -1))

    def index(self, part: Value, start: Index = None, end: Index = None, /) -> Index:
        """Return the first place of another text."""
        return _found(self.find(part, start, end))

    def rindex(self, part: Value, start: Index = None, end: Index = None, /) -> Index:
        """Return the last place of another text."""
        return _found(self.rfind(part, start, end))

    def count(self, part: Value, start: Index = None, end: Index = None, /) -> Index:
        """Return how often another text occurs without overlap."""
        part = operand(part, "must be str")
        return number(jnp.sum(text_search.taken(self._places(part, start, end), part), dtype=np.int32))

    def startswith(self, part: Value, start: Index = None, end: Index = None, /) -> Value:
        """Return whether the text, or its part between two places, begins with another one, or one of several."""
        if isinstance(part, tuple) or start is not None or end is not None:
            return self._at_one_end("startswith", part, start, end)
        return number(text_search.places(self, operand(part, "startswith first arg must be str"))[0])

    def _at_one_end(self, name: str, part: Value, start: Index, end: Index) -> Value:
        """The method `startswith` or `endswith` with places or several texts."""
        found: Value = False
        for one in part if isinstance(part, tuple) else (part,):
            found = jnp.logical_or(found, getattr(self[start:end], name)(one))
        first, last = (text_search.bound(self, 0 if place is None else place) for place in (start, end))
        last = self.length if end is None else jnp.minimum(last, self.length)
        return number(jnp.logical_and(found, first <= last))

    def endswith(self, part: Value, start: Index = None, end: Index = None, /) -> Value:
        """Return whether the text, or its part between two places, ends with another one, or one of several."""
        if isinstance(part, tuple) or start is not None or end is not None:
            return self._at_one_end("endswith", part, start, end)
        right = operand(part, "endswith first arg must be str")
        here = text_search.places(self, right)
        at = self.length - right.length
        place = jnp.clip(jnp.asarray(at), 0, here.shape[0] - 1)
        return number(jnp.logical_and(here[place], at >= 0))


def as_text(value: Value) -> Text | None:
    """Return a text, of Python or of the lane, as one of the lane; None for other values."""
    if isinstance(value, Text):
        return value._plain()
    return lane_value(value) if isinstance(value, str) else None


def operand(value: Value, message: str) -> Text:
    """Return a text that is an operand or an argument; raises TypeError for other values."""
    text = as_text(value)
    if text is None:
        raise TypeError(f"{message}, not {type_name(value)}")
    return text


def _found(place: Index) -> Value:
    require(place >= 0, "ValueError", "substring not found")
    return number(jnp.maximum(place, 0))


def joined(a: TextT, b: Text, room: int | None = None) -> TextT:
    """Return two texts one after the other; `room` is the capacity if it is known to be enough."""
    n, m = a.length, b.length
    if room is None:
        known = isinstance(n, int) and isinstance(m, int)
        room = max(1, n + m) if known else max(start_characters(), a.codes.shape[0], b.codes.shape[0])
        require_characters(n + m, room)
    return a.made(moves.concatenated(a.codes, n, b.codes, m, room), n + m)


def encodable(text: Text, encoding: str, errors: str) -> Text:
    """Return a text whose characters are one byte each in an encoding; a lane with others stops."""
    name = encoding.lower().replace("_", "-") if isinstance(encoding, str) else ""
    most = 128 if name in ("utf-8", "utf8", "ascii") else 256 if name in ("latin-1", "latin1", "iso-8859-1") else 0
    if not most or errors != "strict":
        title = f"texts of the lane have no encoding {encoding!r} with {errors!r}"
        raise Refusal("PCB306", title, helps=("take utf-8, ascii or latin-1, and leave `errors` out",))
    limit(jnp.all((text.codes < most) | ~text.valid()), f"characters beyond those of one byte in {name}")
    return text
