"""Texts of the lane: immutable strings made of the codes of their characters.

    LaneText.of("abc")           codes i32[3], length 3
    text_of_integer(n)           "-17", with room for all digits

A character is a text of length one, as in Python. What lies behind the length may be anything, and influences nothing.
"""

from __future__ import annotations

import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.capacity import capacity as start_capacity
from pcbatch.data.catalogue import Facts
from pcbatch.data.checks import limit, require, require_room
from pcbatch.data.columns import leaf_at
from pcbatch.data.elements import Rows
from pcbatch.data.origins import Origin, number
from pcbatch.data.row_search import end_of, first_row
from pcbatch.data.sequences import list_order, moves
from pcbatch.data.sequences.indices import checked_index, integer, narrowed, repeated, span
from pcbatch.data.texts import text_search
from pcbatch.data.texts.known_texts import refuse_shown
from pcbatch.data.texts.letters import Letters
from pcbatch.diagnostics.lane_words import type_name
from pcbatch.errors import Refusal

ORIGINS = (Origin.ARRAY,)
WHITESPACE = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())
METHODS_HELP = "compute with the numbers themselves; a list of characters has the methods of lists: `list(text)`"
LACKING = {
    "expandtabs": "write a loop that counts columns",
    "format": "a text that is known formats values of the lane: `'{}: {:>3}'.format(a, b)`, or write an f-string",
    "format_map": "write an f-string",
    "maketrans": "make the table of texts that are known while compiling: `str.maketrans('abc', 'xyz')`",
}
"""The methods of `str` that texts of the lane lack, each with what to write in its place."""


def _ordering(op: Any) -> Any:
    def compared(self: LaneText, other: Any) -> Any:
        right = as_text(other)
        return NotImplemented if right is None else list_order.compare(op, self, right)

    return compared


@jax.tree_util.register_pytree_node_class
class LaneText(Letters, Rows):
    """A text that depends on the lane."""

    __slots__ = ()
    python_name = "str"
    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def of(cls, text: str) -> LaneText:
        """Return a text that is known while compiling."""
        refuse_shown(text)
        codes = np.array([ord(c) for c in text] or [0], np.int32)
        return cls.made(jnp.asarray(codes), len(text))

    @classmethod
    def made(cls, codes: Any, length: Any) -> LaneText:
        """Return the text of some codes, of which the first `length` count."""
        new: LaneText = cls.tree_unflatten(ORIGINS, (codes, length))
        return new

    @property
    def codes(self) -> Any:
        """The codes of the characters, i32[capacity]."""
        return self.columns

    def _plain(self) -> LaneText:
        return self.made(self.codes, self.length)

    def copy(self) -> LaneText:
        """Return the text itself, which nothing changes."""
        return self._plain()

    def valid(self) -> Any:
        """The mask of the places that hold a character."""
        return jnp.arange(self.codes.shape[0], dtype=np.int32) < self.length

    # Subscripts.

    def element(self, index: Any) -> LaneText:
        """Return the character at an index that is known to be in range."""
        return self.made(leaf_at(self.codes, (index,)).reshape(1), 1)

    def __getitem__(self, index: Any) -> LaneText:
        if not isinstance(index, slice):
            index = integer(index, "string indices must be integers")
            place, _ = checked_index(index, self.length, self.codes.shape[0], "string index out of range")
            return self.element(place)
        part = span(index, self.length)
        if type(part.step) is int and part.step == 1:
            return self.made(moves.part(self.codes, part.start, part.count), part.count)
        places = part.start + part.step * jnp.arange(self.codes.shape[0], dtype=np.int32)
        return self.made(_taken(self.codes, places), part.count)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError("'str' object does not support item assignment")

    def __delitem__(self, index: Any) -> None:
        raise TypeError("'str' object doesn't support item deletion")

    # Operators.

    def __add__(self, other: Any) -> Any:
        return NotImplemented if (right := as_text(other)) is None else joined(self, right)

    def __radd__(self, other: Any) -> Any:
        return NotImplemented if (left := as_text(other)) is None else joined(left, self)

    def __mul__(self, times: Any) -> Any:
        times = narrowed(integer(times, "can't multiply sequence by non-int"))
        times = max(times, 0) if isinstance(times, int) else jnp.maximum(times, 0)
        n = self.length
        whole = repeated(n, times)
        size = max(1, whole) if isinstance(whole, int) else max(start_capacity(), self.codes.shape[0])
        require_room(whole, size)
        places = jnp.arange(size, dtype=np.int32) % (max(n, 1) if isinstance(n, int) else jnp.maximum(n, 1))
        return self.made(_taken(self.codes, places), whole)

    __rmul__ = __mul__

    def __eq__(self, other: Any) -> Any:
        right = as_text(other)
        return False if right is None else list_order.equal(self, right)

    def __ne__(self, other: Any) -> Any:
        return list_order.not_(self == other)

    __lt__, __le__ = _ordering(operator.lt), _ordering(operator.le)
    __gt__, __ge__ = _ordering(operator.gt), _ordering(operator.ge)

    # Searching.

    def contains(self, part: Any) -> Any:
        """Return whether another text is a part of this one."""
        return number(
            jnp.any(text_search.places(self, _operand(part, "'in <string>' requires string as left operand")))
        )

    def _places(self, part: Any, start: Any = None, end: Any = None) -> Any:
        return text_search.places(self, _operand(part, "must be str"), start, end)

    def find(self, part: Any, start: Any = None, end: Any = None, /) -> Any:
        """Return the first place of another text between two places, -1 if it is not there."""
        here = self._places(part, start, end)
        return number(jnp.where(jnp.any(here), jnp.argmax(here).astype(np.int32), -1))

    def rfind(self, part: Any, start: Any = None, end: Any = None, /) -> Any:
        """Return the last place of another text between two places, -1 if it is not there."""
        here = self._places(part, start, end)
        return number(jnp.where(jnp.any(here), here.shape[0] - 1 - jnp.argmax(here[::-1]).astype(np.int32), -1))

    def index(self, part: Any, start: Any = None, end: Any = None, /) -> Any:
        """Return the first place of another text."""
        return _found(self.find(part, start, end))

    def rindex(self, part: Any, start: Any = None, end: Any = None, /) -> Any:
        """Return the last place of another text."""
        return _found(self.rfind(part, start, end))

    def count(self, part: Any, start: Any = None, end: Any = None, /) -> Any:
        """Return how often another text occurs without overlap."""
        part = _operand(part, "must be str")
        return number(jnp.sum(text_search.taken(self._places(part, start, end), part), dtype=np.int32))

    def startswith(self, part: Any, start: Any = None, end: Any = None, /) -> Any:
        """Return whether the text, or its part between two places, begins with another one, or one of several."""
        if isinstance(part, tuple) or start is not None or end is not None:
            return self._at_one_end("startswith", part, start, end)
        return number(text_search.places(self, _operand(part, "startswith first arg must be str"))[0])

    def _at_one_end(self, name: str, part: Any, start: Any, end: Any) -> Any:
        """The method `startswith` or `endswith` with places or several texts."""
        found: Any = False
        for one in part if isinstance(part, tuple) else (part,):
            found = jnp.logical_or(found, getattr(self[start:end], name)(one))
        first, last = (text_search.bound(self, 0 if place is None else place) for place in (start, end))
        last = self.length if end is None else jnp.minimum(last, self.length)
        return number(jnp.logical_and(found, first <= last))

    def endswith(self, part: Any, start: Any = None, end: Any = None, /) -> Any:
        """Return whether the text, or its part between two places, ends with another one, or one of several."""
        if isinstance(part, tuple) or start is not None or end is not None:
            return self._at_one_end("endswith", part, start, end)
        right = _operand(part, "endswith first arg must be str")
        here = text_search.places(self, right)
        at = self.length - right.length
        place = jnp.clip(jnp.asarray(at), 0, here.shape[0] - 1)
        return number(jnp.logical_and(here[place], at >= 0))

    # Changed copies.

    def zfill(self, width: Any, /, signed: int | None = None) -> LaneText:
        """Return the text with zeros before its digits, after a sign, up to a width; another one if there is a sign."""
        sign = jnp.logical_and(self.length > 0, (self.codes[0] == ord("-")) | (self.codes[0] == ord("+")))
        sign = jnp.asarray(sign, np.int32)
        places = sign + jnp.arange(self.codes.shape[0], dtype=np.int32)
        digits = self.made(_taken(self.codes, places), self.length - sign)
        most = width - sign if signed is None else jnp.where(sign == 1, signed - 1, width)
        filled = digits.rjust(most if isinstance(sign, jax.Array) else width, "0", room=width)
        return joined(self.made(self.codes[:1], sign), filled, room=max(filled.codes.shape[0], self.codes.shape[0]))

    def rjust(self, width: Any, fill: Any = " ", /, *, room: Any = None) -> LaneText:
        """Return the text with characters before it up to a width."""
        return self._padded(width, fill, True, width if room is None else room)

    def ljust(self, width: Any, fill: Any = " ", /) -> LaneText:
        """Return the text with characters behind it up to a width."""
        return self._padded(width, fill, False, width)

    def center(self, width: Any, fill: Any = " ", /) -> LaneText:
        """Return the text with characters on both sides up to a width."""
        return self.centred(width, fill, 1)

    def centred(self, width: Any, fill: Any, more: int = 0) -> LaneText:
        """Return the text in the middle of a width, as `format` puts it; as `center` does if `more` is 1."""
        missing = jnp.maximum(jnp.asarray(width, np.int32) - self.length, 0)
        left = missing // 2 + (missing & width & more)
        size = max(self.codes.shape[0], width if isinstance(width, int) else start_capacity())
        return self._padded(self.length + left, fill, True, size)._padded(width, fill, False, size)

    def _padded(self, width: Any, fill: Any, before: bool, room: Any) -> LaneText:
        filler = _operand(fill, "The fill character must be a unicode character")
        size = max(self.codes.shape[0], room if isinstance(room, int) else start_capacity())
        missing = jnp.maximum(jnp.asarray(width, np.int32) - self.length, 0)
        require_room(missing + self.length, size)
        pad = self.made(jnp.broadcast_to(filler.codes[0], (size,)), missing)
        return joined(pad, self, room=size) if before else joined(self, pad, room=size)

    def strip(self, chars: Any = WHITESPACE, /) -> LaneText:
        """Return the text without some characters at both ends."""
        return self.lstrip(chars).rstrip(chars)

    def lstrip(self, chars: Any = WHITESPACE, /) -> LaneText:
        """Return the text without some characters at its start."""
        chars = chars if isinstance(chars, str) and chars else _operand(chars, "lstrip arg must be None or str")
        gone = first_row(lambda code: ~text_search.is_among(code, chars), self.codes, self.length)
        return self.made(moves.part(self.codes, gone, self.length - gone), self.length - gone)

    def rstrip(self, chars: Any = WHITESPACE, /) -> LaneText:
        """Return the text without some characters at its end."""
        chars = chars if isinstance(chars, str) and chars else _operand(chars, "rstrip arg must be None or str")
        return self.made(self.codes, end_of(lambda code: ~text_search.is_among(code, chars), self.codes, self.length))

    def removeprefix(self, part: Any, /) -> LaneText:
        """Return the text without another one at its start."""
        return self[jnp.where(self.startswith(part), _operand(part, "must be str").length, 0) :]

    def removesuffix(self, part: Any, /) -> LaneText:
        """Return the text without another one at its end."""
        gone = jnp.where(self.endswith(part), _operand(part, "must be str").length, 0)
        return self.made(self.codes, self.length - gone)

    def replace(self, old: Any, new: Any, count: Any = -1, /) -> LaneText:
        """Return the text with another one replaced where it occurs, from the left."""
        if not (isinstance(old, str) and len(old) == 1 and isinstance(new, str) and len(new) <= 1 and count == -1):
            if isinstance(old, str) and not old:
                title = "`replace` of an empty text, which stands at every place, is not there for lanes"
                raise Refusal("PCB306", title, helps=("write `new + ''.join(c + new for c in text)`",))
            part = _operand(old, "replace() argument 1 must be str")
            limit(part.length > 0, "`replace` of an empty text, which stands at every place, is not there for lanes")
            return _operand(new, "replace() argument 2 must be str").join(self.split(part, count))
        here = (self.codes == ord(old)) & self.valid()
        if new:
            return self.made(jnp.where(here, ord(new), self.codes), self.length)
        order = jnp.argsort(here, stable=True)
        return self.made(self.codes[order], self.length - jnp.sum(here, dtype=np.int32))

    def split(self, sep: Any = None, maxsplit: Any = -1) -> Any:
        """Return the list of the parts between separators, or of the words."""
        from pcbatch.data.texts.text_lists import split

        return split(self, None if sep is None else _operand(sep, "must be str or None"), maxsplit)

    def rsplit(self, sep: Any = None, maxsplit: Any = -1) -> Any:
        """Return the list of the parts between separators, of which the last `maxsplit` count, or of the words."""
        from pcbatch.data.texts.text_lists import turned

        part = None if sep is None else _operand(sep, "must be str or None")[::-1]
        return turned(self[::-1].split(part, maxsplit), self)

    def splitlines(self, keepends: bool = False) -> Any:
        """Return the list of the lines, with their ends if asked."""
        from pcbatch.data.texts.text_lists import lines

        return lines(self, keepends)

    def translate(self, table: Any, /) -> LaneText:
        """Return the text with characters replaced by those, or the texts, of a known table of their codes."""
        from pcbatch.data.texts.text_lists import translated

        return translated(self, table)

    def partition(self, sep: Any, /) -> tuple[LaneText, LaneText, LaneText]:
        """Return what stands before a separator, the separator, and what stands behind it."""
        return self._parted(sep, self.find(sep), self.length)

    def rpartition(self, sep: Any, /) -> tuple[LaneText, LaneText, LaneText]:
        """Return what stands before the last separator, the separator, and what stands behind it."""
        return self._parted(sep, self.rfind(sep), 0)

    def _parted(self, sep: Any, place: Any, missing: Any) -> tuple[LaneText, LaneText, LaneText]:
        part = _operand(sep, "must be str")
        require(part.length > 0, "ValueError", "empty separator")
        first = jnp.where(place < 0, missing, place)
        width = jnp.where(place < 0, 0, part.length)
        return (
            self.made(self.codes, first),
            self.made(part.codes, width),
            self[first + width :],
        )

    @Facts(iterates=True)
    def join(self, texts: Any, /) -> LaneText:
        """Return some texts one after the other, with this one between them."""
        from pcbatch.data.texts.text_lists import join_texts

        return join_texts(self, texts)

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> Any:
        """Return the bytes of the characters, each of one byte."""
        from pcbatch.data.texts.lane_bytes import as_bytes, encodable

        return as_bytes(encodable(self, encoding, errors))

    def as_list(self) -> Any:
        """Return the list of the characters."""
        from pcbatch.data.texts.text_lists import characters

        return characters(self)

    def __reversed__(self) -> Any:
        return self[::-1].as_list()

    def __getattr__(self, name: str) -> Any:
        if hasattr(str, name) and not name.startswith("_"):
            title = f"`{name}` is not there for texts of the lane"
            raise Refusal("PCB306", title, helps=(LACKING.get(name, METHODS_HELP),))
        raise AttributeError(f"'str' object has no attribute '{name}'")

    def __repr__(self) -> str:
        return "a text of the lane"


def as_text(value: Any) -> LaneText | None:
    """Return a text, of Python or of the lane, as one of the lane; None for other values."""
    if isinstance(value, LaneText):
        return value._plain()
    return LaneText.of(value) if isinstance(value, str) else None


def _operand(value: Any, message: str) -> LaneText:
    text = as_text(value)
    if text is None:
        raise TypeError(f"{message}, not {type_name(value)}")
    return text


def _found(place: Any) -> Any:
    require(place >= 0, "ValueError", "substring not found")
    return number(jnp.maximum(place, 0))


def joined(a: LaneText, b: LaneText, room: int | None = None) -> LaneText:
    """Return two texts one after the other; `room` is the capacity if it is known to be enough."""
    n, m = a.length, b.length
    if room is None:
        known = isinstance(n, int) and isinstance(m, int)
        room = max(1, n + m) if known else max(start_capacity(), a.codes.shape[0], b.codes.shape[0])
        require_room(n + m, room)
    return LaneText.made(moves.concatenated(a.codes, n, b.codes, m, room), n + m)


def _taken(codes: Any, places: Any) -> Any:
    return codes.at[places].get(mode="clip", wrap_negative_indices=False)
