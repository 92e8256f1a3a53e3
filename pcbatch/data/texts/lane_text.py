"""Texts of the lane: immutable strings made of the codes of their characters.

    LaneText.known("abc")           codes i32[3], length 3
    text_of_integer(n)           "-17", with room for all digits

A character is a text of length one, as in Python. What lies behind the length may be anything, and influences nothing.
"""

from __future__ import annotations

from typing import Self

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.capacity import characters as start_characters
from pcbatch.data.catalogue import Facts
from pcbatch.data.checks import limit, require, require_characters
from pcbatch.data.columns import taken
from pcbatch.data.container import class_for, for_kind
from pcbatch.data.row_search import end_of, first_row
from pcbatch.data.sequences import moves
from pcbatch.data.sequences.indices import integer, narrowed
from pcbatch.data.texts import text_lists, text_search
from pcbatch.data.texts.letters import Letters
from pcbatch.data.texts.text import WHITESPACE, Text, encodable, joined, operand
from pcbatch.data.values import Index, Value
from pcbatch.errors import Refusal

METHODS_HELP = "compute with the numbers themselves; a list of characters has the methods of lists: `list(text)`"
LACKING = {
    "format": "a text that is known formats values of the lane: `'{}: {:>3}'.format(a, b)`, or write an f-string",
    "format_map": "write an f-string",
    "maketrans": "make the table of texts that are known while compiling: `str.maketrans('abc', 'xyz')`",
}
"""The methods of `str` that texts of the lane lack, each with what to write in its place."""


@for_kind(str)
@jax.tree_util.register_pytree_node_class
class LaneText(Letters):
    """A text that depends on the lane."""

    __slots__ = ()

    # Changed copies.

    def zfill(self, width: Index, /, signed: int | None = None) -> Self:
        """Return the text with zeros before its digits, after a sign, up to a width; another one if there is a sign."""
        sign = jnp.logical_and(self.length > 0, (self.codes[0] == ord("-")) | (self.codes[0] == ord("+")))
        sign = jnp.asarray(sign, np.int32)
        places = sign + jnp.arange(self.codes.shape[0], dtype=np.int32)
        digits = self.made(taken(self.codes, places), self.length - sign)
        most = width - sign if signed is None else jnp.where(sign == 1, signed - 1, width)
        filled = digits.rjust(most if isinstance(sign, jax.Array) else width, "0", room=width)
        return joined(self.made(self.codes[:1], sign), filled, room=max(filled.codes.shape[0], self.codes.shape[0]))

    def rjust(self, width: Index, fill: Value = " ", /, *, room: Index = None) -> Self:
        """Return the text with characters before it up to a width."""
        return self._padded(width, fill, True, width if room is None else room)

    def ljust(self, width: Index, fill: Value = " ", /) -> Self:
        """Return the text with characters behind it up to a width."""
        return self._padded(width, fill, False, width)

    def center(self, width: Index, fill: Value = " ", /) -> Self:
        """Return the text with characters on both sides up to a width."""
        return self.centred(width, fill, 1)

    def centred(self, width: Index, fill: Value, more: int = 0) -> Self:
        """Return the text in the middle of a width, as `format` puts it; as `center` does if `more` is 1."""
        missing = jnp.maximum(jnp.asarray(width, np.int32) - self.length, 0)
        left = missing // 2 + (missing & width & more)
        size = max(self.codes.shape[0], width if isinstance(width, int) else start_characters())
        return self._padded(self.length + left, fill, True, size)._padded(width, fill, False, size)

    def _padded(self, width: Index, fill: Value, before: bool, room: Index) -> Self:
        filler = operand(fill, "The fill character must be a unicode character")
        size = max(self.codes.shape[0], room if isinstance(room, int) else start_characters())
        missing = jnp.maximum(jnp.asarray(width, np.int32) - self.length, 0)
        require_characters(missing + self.length, size)
        pad = self.made(jnp.broadcast_to(filler.codes[0], (size,)), missing)
        return joined(pad, self, room=size) if before else joined(self, pad, room=size)

    def strip(self, chars: Value = WHITESPACE, /) -> Self:
        """Return the text without some characters at both ends."""
        return self.lstrip(chars).rstrip(chars)

    def lstrip(self, chars: Value = WHITESPACE, /) -> Self:
        """Return the text without some characters at its start."""
        chars = chars if isinstance(chars, str) and chars else operand(chars, "lstrip arg must be None or str")
        gone = first_row(lambda code: ~text_search.is_among(code, chars), self.codes, self.length)
        return self.made(moves.part(self.codes, gone, self.length - gone), self.length - gone)

    def rstrip(self, chars: Value = WHITESPACE, /) -> Self:
        """Return the text without some characters at its end."""
        chars = chars if isinstance(chars, str) and chars else operand(chars, "rstrip arg must be None or str")
        return self.made(self.codes, end_of(lambda code: ~text_search.is_among(code, chars), self.codes, self.length))

    def removeprefix(self, part: Value, /) -> Self:
        """Return the text without another one at its start."""
        return self[jnp.where(self.startswith(part), operand(part, "must be str").length, 0) :]

    def removesuffix(self, part: Value, /) -> Self:
        """Return the text without another one at its end."""
        gone = jnp.where(self.endswith(part), operand(part, "must be str").length, 0)
        return self.made(self.codes, self.length - gone)

    def replace(self, old: Value, new: Value, count: Index = -1, /) -> Text:
        """Return the text with another one replaced where it occurs, from the left."""
        if not (isinstance(old, str) and len(old) == 1 and isinstance(new, str) and len(new) <= 1 and count == -1):
            if isinstance(old, str) and not old:
                title = "`replace` of an empty text, which stands at every place, is not there for lanes"
                raise Refusal("PCB306", title, helps=("write `new + ''.join(c + new for c in text)`",))
            part = operand(old, "replace() argument 1 must be str")
            limit(part.length > 0, "`replace` of an empty text, which stands at every place, is not there for lanes")
            return text_lists.join_texts(operand(new, "replace() argument 2 must be str"), self.split(part, count))
        here = (self.codes == ord(old)) & self.valid()
        if new:
            return self.made(jnp.where(here, ord(new), self.codes), self.length)
        order = jnp.argsort(here, stable=True)
        return self.made(self.codes[order], self.length - jnp.sum(here, dtype=np.int32))

    def split(self, sep: Value = None, maxsplit: Index = -1) -> Value:
        """Return the list of the parts between separators, or of the words."""
        return text_lists.split(self, None if sep is None else operand(sep, "must be str or None"), maxsplit)

    def rsplit(self, sep: Value = None, maxsplit: Index = -1) -> Value:
        """Return the list of the parts between separators, of which the last `maxsplit` count, or of the words."""
        part = None if sep is None else operand(sep, "must be str or None")[::-1]
        return text_lists.turned(self[::-1].split(part, maxsplit), self)

    def splitlines(self, keepends: bool = False) -> Value:
        """Return the list of the lines, with their ends if asked."""
        return text_lists.lines(self, keepends)

    def translate(self, table: Value, /) -> Text:
        """Return the text with characters replaced by those, or the texts, of a known table of their codes."""
        return text_lists.translated(self, table)

    def expandtabs(self, tabsize: Index = 8) -> Self:
        """Return the text with spaces in the place of each tab, up to the next multiple of a size in its line."""
        size, beyond = max(start_characters(), self.codes.shape[0]), np.int32(2**30 - 1)  # twice it fits 32 bits
        tab = jnp.clip(jnp.asarray(narrowed(integer(tabsize, "tabsize must be an integer")), np.int32), 0, beyond)

        def step(at: tuple[Index, Index], character: tuple[Value, Value]) -> tuple[tuple[Value, Value], Value]:
            (column, place), (code, there) = at, character
            gap = jnp.where(tab > 0, tab - column % jnp.maximum(tab, 1), 0)
            width = jnp.where(there, jnp.where(code == ord("\t"), gap, 1), 0)
            ends_line = (code == ord("\n")) | (code == ord("\r"))
            moved = jnp.where(ends_line, 0, jnp.minimum(column + width, beyond)), jnp.minimum(place + width, beyond)
            return moved, place

        (_, length), places = jax.lax.scan(step, (jnp.int32(0), jnp.int32(0)), (self.codes, self.valid()))
        require_characters(length, size)
        places = jnp.where(self.valid() & (self.codes != ord("\t")), places, size)
        return self.made(jnp.full(size, ord(" "), np.int32).at[places].set(self.codes, mode="drop"), length)

    def partition(self, sep: Value, /) -> tuple[Self, Self, Self]:
        """Return what stands before a separator, the separator, and what stands behind it."""
        return self._parted(sep, self.find(sep), self.length)

    def rpartition(self, sep: Value, /) -> tuple[Self, Self, Self]:
        """Return what stands before the last separator, the separator, and what stands behind it."""
        return self._parted(sep, self.rfind(sep), 0)

    def _parted(self, sep: Value, place: Index, missing: Value) -> tuple[Self, Self, Self]:
        part = operand(sep, "must be str")
        require(part.length > 0, "ValueError", "empty separator")
        place = narrowed(place)
        first = jnp.where(place < 0, missing, place)
        width = jnp.where(place < 0, 0, part.length)
        return (self.made(self.codes, first), self.made(part.codes, width), self[first + width :])

    @Facts(iterates=True)
    def join(self, texts: Value, /) -> Text:
        """Return some texts one after the other, with this one between them."""
        return text_lists.join_texts(self, texts)

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> Value:
        """Return the bytes of the characters, each of one byte."""
        return class_for(bytes).made(encodable(self, encoding, errors).codes, self.length)

    def as_list(self) -> Value:
        """Return the list of the characters."""
        return text_lists.characters(self)

    def __reversed__(self) -> Value:
        return self[::-1].as_list()

    def __getattr__(self, name: str) -> Value:
        if hasattr(str, name) and not name.startswith("_"):
            title = f"`{name}` is not there for texts of the lane"
            raise Refusal("PCB306", title, helps=(LACKING.get(name, METHODS_HELP),))
        raise AttributeError(f"'str' object has no attribute '{name}'")

    def __repr__(self) -> str:
        return "a text of the lane"
