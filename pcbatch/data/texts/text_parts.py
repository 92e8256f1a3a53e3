"""The list of the parts of a text, as `split` gives it: the text itself, with the place and the length of each part.

    "the cat".split()      codes i32[capacity], places (i32[rows], i32[rows]) = (0, 4), (3, 3), length 2

A text with room for n characters may have n words of n characters: columns of rows would take the square of the
room. They are made where the list is changed, compared, put into another one or returned, with room for parts of a
share of the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.capacity import capacity as start_capacity
from pcbatch.data.capacity import characters as start_characters
from pcbatch.data.capacity import inner_characters
from pcbatch.data.checks import CHARACTERS, INNER_CHARACTERS, require_characters, require_room
from pcbatch.data.columns import leaf_at, padded, room, taken
from pcbatch.data.container import class_for
from pcbatch.data.optional import Optional, is_none, narrowed
from pcbatch.data.origins import Origin
from pcbatch.data.row_search import first_row
from pcbatch.data.rows import Rows
from pcbatch.data.sequences import moves
from pcbatch.data.sequences.indices import SliceRange
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.texts.text import Text, as_text
from pcbatch.data.values import Column, Columns, Index, Value

SHORT = 128  # characters of a text, each part of which has room for all of them
SHARE = 8  # of longer ones a part has room for one out of so many, unless it turns out to have more


@jax.tree_util.register_pytree_node_class
class TextParts(LaneList):
    """A list of the lane whose elements are parts of one text.

    Attributes:
        codes: the codes of the text.
        places: the list of where each part begins, and how long it is.
    """

    __slots__ = ("_rows", "codes", "places")
    python_name = "list"
    _rows: Value
    codes: Column
    places: LaneList

    @classmethod
    def of(cls, codes: Column, starts: Column, lengths: Column, count: Index) -> TextParts:
        """Return the list of `count` parts."""
        new: TextParts = cls.tree_unflatten((Origin.ARRAY,), ((codes, starts, lengths), count))
        return new

    def tree_flatten(self) -> tuple[tuple[Any, Any], tuple[Origin, ...]]:
        """Return the text with the places, and the number of parts."""
        return ((self.codes, *self.places.columns), self.length), self.origins

    @classmethod
    def tree_unflatten(cls, origins: tuple[Origin, ...], children: Sequence[Any]) -> Any:
        """Return the list of a text, places and a number, which may be any objects."""
        new = object.__new__(cls)
        Rows.__init__(new, None, children[1], origins)
        new.codes, *columns = children[0]
        new.places = LaneList.tree_unflatten((Origin.ARRAY,) * 2, (tuple(columns), children[1]))
        return new

    @property
    def _columns(self) -> Value:
        if self._rows is None:
            rows, width = self.capacity, self._width
            starts, lengths = (leaf[:rows] for leaf in self.places.columns)
            require_room(self.length, rows)
            if width < self.codes.shape[0]:
                used = jnp.arange(rows, dtype=np.int32) < self.length
                require_characters(jnp.max(lengths, where=used, initial=0), width, INNER_CHARACTERS)
            count = jnp.minimum(self.length, rows)
            self._rows = class_for(str).made(moves.windows(self.codes, starts, count, width), lengths)
        return self._rows

    @_columns.setter
    def _columns(self, columns: Columns) -> None:
        assert columns is None, "a list of parts is changed as one of rows"
        self._rows = None

    @property
    def _width(self) -> int:
        """The number of characters that a part has room for, where parts are made into rows."""
        return min(int(self.codes.shape[0]), inner_characters() or self._longest)

    @property
    def _longest(self) -> int:
        """The number of characters that a part has room for, where examples tell nothing of it."""
        return min(size := int(self.codes.shape[0]), max(start_characters(), size // SHARE))

    @property
    def capacity(self) -> int:
        """The number of rows, where parts are made into rows."""
        most = max(start_capacity(), SHORT, int(self.codes.shape[0]) // SHARE)
        return min(room(self.places.columns, 0) or 0, most)

    def as_rows(self) -> Value:
        """Return the list with a row for each part."""
        return self._new(self._columns, self.length)

    _plain = straight = copy = __copy__ = as_rows

    def __repr__(self) -> str:
        return "list of texts"

    def element(self, index: Index) -> Value:
        """Return the part at an index that is known to be in range."""
        start, length = (leaf_at(leaf, (index,)) for leaf in self.places.columns)
        # In `line.split(";")[0]` the list is in no variable, so that examples have not told of it.
        width, kind = (self._longest, CHARACTERS) if isinstance(index, int) else (self._width, INNER_CHARACTERS)
        if width < self.codes.shape[0]:
            require_characters(length, width, kind)
        return class_for(str).made(moves.part(self.codes, start, length, width), length)

    def _slice(self, part: SliceRange) -> TextParts:
        places = self.places._slice(part)
        starts, lengths = places.columns
        return self.of(self.codes, starts, lengths, places.length)

    def _first(self, value: Value, start: Index, stop: Index) -> Value:
        if isinstance(value, Optional):
            return jnp.where(is_none(value), stop, self._first(narrowed(value), start, stop))
        text = as_text(value)
        if text is None:
            return stop

        width = text.codes.shape[0]
        longer, behind = padded(self.codes, 0, self.codes.shape[0] + width), np.arange(width) >= text.length

        def alike(place: tuple[Index, Index]) -> Value:
            codes = jax.lax.dynamic_slice_in_dim(longer, place[0], width)
            return (place[1] == text.length) & jnp.all((codes == text.codes) | behind)

        return first_row(alike, self.places.columns, stop, start, 1)


def flattened(texts: LaneList, sizes: Column, count: Index, between: Text, size: int) -> Value:
    """Return the codes [size] of the first `count` texts of a list, of `sizes[k]` characters each, with another text
    between two of them."""
    if isinstance(texts, TextParts):
        codes, starts = texts.codes, texts.places.columns[0][: sizes.shape[0]]
    else:
        rows = texts.columns.codes
        codes, starts = rows.reshape(-1), rows.shape[1] * np.arange(rows.shape[0], dtype=np.int32)

    def rows_of() -> Value:
        if isinstance(texts, TextParts):
            return taken(codes, starts[:, None] + np.arange(codes.shape[0], dtype=np.int32)[None])
        return texts.columns.codes

    return moves.flattened(rows_of, codes, starts, sizes, count, between.codes, between.length, size)
