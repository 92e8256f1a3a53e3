"""Lists of characters of a text of the lane, and texts put together from lists of texts."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.by_width import by_width
from pcbatch.data.capacity import capacity as start_capacity
from pcbatch.data.capacity import characters as start_characters
from pcbatch.data.checks import require, require_characters, require_room
from pcbatch.data.columns import row, with_row
from pcbatch.data.origins import Origin
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.texts import text_search
from pcbatch.data.texts.text import WHITESPACE, Text, as_text, joined
from pcbatch.data.texts.text_parts import TextParts, flattened
from pcbatch.data.values import Column, Flag, Index, Value
from pcbatch.diagnostics.lane_words import type_name
from pcbatch.errors import Refusal

LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"


def characters(text: Text) -> LaneList:
    """Return the list of the characters of a text."""
    codes = text.codes
    each = text.made(codes[:, None], jnp.ones(codes.shape, np.int32))
    made: LaneList = LaneList.tree_unflatten((Origin.ARRAY,), (each, text.length))
    return made


def sorted_characters(text: Text, reverse: bool) -> LaneList:
    """Return the list of the characters in their order."""
    beyond = np.iinfo(np.int32).max
    keys = jnp.where(text.valid(), -text.codes if reverse else text.codes, beyond)
    return characters(text.made(text.codes[jnp.argsort(keys, stable=True)], text.length))


def split(text: Text, sep: Text | None, most: Index) -> LaneList:
    """Return the list of the parts of a text between separators, of which the first `most` count, or of its words."""
    size, n = text.codes.shape[0], text.length
    if sep is None:
        starts, ends, count = _words(text.codes, n)
        if not isinstance(most, int) or most >= 0:
            most = jnp.asarray(most, np.int32)
            count = jnp.where(most < 0, count, jnp.minimum(count, most + 1))
            ends = jnp.where((jnp.arange(size) == most) & (most >= 0), n, ends)
    else:
        require(sep.length > 0, "ValueError", "empty separator")
        rows = min(size + 1, max(start_capacity(), size))  # no more than the text has, so that joining it again ends
        places, count = _separators(text, sep, most, rows)
        require_room(count + 1, rows)
        k = jnp.arange(rows, dtype=np.int32)
        starts = jnp.concatenate([jnp.zeros((1,), np.int32), places + sep.length])[:rows]
        ends, count = jnp.where(k < count, places, n), count + 1
    return _parts(text, starts, ends, count)


def lines(text: Text, keepends: bool) -> LaneList:
    """Return the list of the lines of a text, with their ends if asked."""
    size, n = text.codes.shape[0], text.length
    line_feed = jnp.concatenate([text.codes[1:] == ord("\n"), jnp.zeros((1,), bool)]) & (jnp.arange(1, size + 1) < n)
    both = (text.codes == ord("\r")) & line_feed
    second = jnp.concatenate([jnp.zeros((1,), bool), both[:-1]])
    here = text.valid() & text_search.is_among(text.codes, LINE_ENDS) & ~second
    places, count = _first(here, size + 1, n), jnp.sum(here, dtype=np.int32)
    after = places + 1 + both.at[places].get(mode="fill", fill_value=False).astype(np.int32)
    starts = jnp.concatenate([jnp.zeros((1,), np.int32), after])[: size + 1]
    ends = jnp.where(jnp.arange(size + 1) < count, after if keepends else places, n)
    return _parts(text, starts, ends, count + (starts[count] < n).astype(np.int32))


def turned(parts: TextParts, text: Text) -> LaneList:
    """Return the parts of a text that was turned round: in their order, and each as it was in the text."""
    starts, lengths = parts.places.columns
    found = TextParts.of(text.codes, text.length - starts - lengths, lengths, parts.length)
    return found[::-1]  # type: ignore[no-any-return]


def translated(text: Text, table: Value) -> Text:
    """Return a text with characters replaced by a known table: numbers of characters and numbers, texts or None."""
    if not isinstance(table, dict) or any(isinstance(value, Text) for value in table.values()):
        title = "`translate` takes a table that is known while compiling"
        raise Refusal("PCB306", title, helps=("write `''.join(table.get(c, c) for c in text)`",))
    new = {key: "" if value is None else value for key, value in table.items()}
    room = max([1, *(len(value) for value in new.values() if isinstance(value, str))])
    codes, sizes = jnp.repeat(text.codes[:, None], room, axis=1), jnp.ones(text.codes.shape, np.int32)
    for key, value in new.items():
        here = text.codes == key
        shown = np.array([ord(c) for c in value.ljust(room)], np.int32) if isinstance(value, str) else value
        codes = jnp.where(here[:, None], shown, codes)
        sizes = jnp.where(here, len(value) if isinstance(value, str) else 1, sizes)
    made: LaneList = LaneList.tree_unflatten((Origin.ARRAY,), (text.made(codes, sizes), text.length))
    return join_texts(text.known(""), made)


def _parts(text: Text, starts: Column, ends: Column, count: Index) -> TextParts:
    """The list of so many parts of a text, from places to others."""
    inside = jnp.arange(starts.shape[0], dtype=np.int32) < count
    return TextParts.of(text.codes, starts, jnp.where(inside, ends - starts, 0), count)


def _words(codes: Column, n: Index) -> tuple[Value, Value, Value]:
    """The places at which the words of a text begin and end, and their number; then places behind those of the text."""
    size = codes.shape[0]

    def is_space(codes: Column) -> Value:
        return text_search.is_among(codes, WHITESPACE)

    def together(codes: Column, n: Index) -> tuple[Value, Value, Value]:
        letters, edge = (jnp.arange(size, dtype=np.int32) < n) & ~is_space(codes), jnp.zeros((1,), bool)
        starts = _first(letters & ~jnp.concatenate([edge, letters[:-1]]), size, size)
        ends = _first(letters & ~jnp.concatenate([letters[1:], edge]), size, size) + 1
        return starts, ends, jnp.sum(starts < size, dtype=np.int32)

    def alone(codes: Column, n: Index) -> tuple[Value, Value, Value]:
        def step(k: Index, c: tuple[Value, ...]) -> tuple[Value, ...]:
            starts, ends, count, inside = c
            letter = ~is_space(row(codes, k))
            starts = with_row(starts, jnp.where(letter & ~inside, count, size), k)
            ends = with_row(ends, jnp.where(inside & ~letter, count, size), k)
            return starts, ends, count + (inside & ~letter).astype(np.int32), letter

        empty = jnp.full((size + 1,), size, np.int32)
        begun = (empty, empty + 1, jnp.int32(0), jnp.bool_(False))
        starts, ends, count, inside = jax.lax.fori_loop(0, n, step, begun)
        ends = with_row(ends, jnp.where(inside, count, size), n)
        return starts[:size], ends[:size], count + inside.astype(np.int32)

    starts, ends, count = by_width(together, alone)(codes, jnp.asarray(n, np.int32))
    return starts, ends, count


def _separators(text: Text, sep: Text, most: Index, rows: int) -> tuple[Value, Value]:
    """The places of the first `most` separators of a text, all if it is negative, in int32[rows], and their number."""

    def together(text: Text, sep: Text, most: Index) -> tuple[Value, Value]:
        here = text_search.taken(text_search.places(text, sep), sep) & (jnp.asarray(sep.length) > 0)
        here &= (jnp.cumsum(here, dtype=np.int32) <= most) | (most < 0)
        return _first(here, rows, text.length + 1), jnp.sum(here, dtype=np.int32)

    def alone(text: Text, sep: Text, most: Index) -> tuple[Value, Value]:
        def is_there(k: Index) -> Value:
            def more(j: Index) -> Value:
                return (j < sep.length) & (row(text.codes, k + j) == row(sep.codes, j))

            return jax.lax.while_loop(more, lambda j: j + 1, jnp.int32(0)) >= sep.length

        def step(c: tuple[Value, Value, Value]) -> tuple[Value, Value, Value]:
            found, count, k = c
            there = is_there(k)
            found = with_row(found, jnp.where(there & (count < rows), count, rows), k)
            return found, count + there.astype(np.int32), k + jnp.where(there, jnp.maximum(sep.length, 1), 1)

        def more(c: tuple[Value, Value, Value]) -> Value:
            return (c[2] + jnp.maximum(sep.length, 1) <= text.length) & ((most < 0) | (c[1] < most))

        empty = jnp.full((rows + 1,), text.codes.shape[0] + 1, np.int32)
        found, count, _ = jax.lax.while_loop(more, step, (empty, jnp.int32(0), jnp.int32(0)))
        return found[:rows], count

    places, count = by_width(together, alone)(text, sep, jnp.asarray(most, np.int32))
    return places, count


def _first(here: Flag, size: int, n: Index) -> Value:
    """The places at which a mask holds, all of them among the first `n`, in order, and then the size of the mask."""

    def together(here: Flag, n: Index) -> Value:
        return jnp.nonzero(here, size=size, fill_value=here.shape[0])[0].astype(np.int32)

    def alone(here: Flag, n: Index) -> Value:
        def step(k: Index, c: tuple[Value, Value]) -> tuple[Value, Value]:
            found, count = c
            there = row(here, k)
            return with_row(found, jnp.where(there & (count < size), count, size), k), count + there.astype(np.int32)

        begun = jnp.full((size + 1,), here.shape[0], np.int32), jnp.int32(0)
        return jax.lax.fori_loop(0, jnp.minimum(n, here.shape[0]), step, begun)[0][:size]

    return by_width(together, alone)(here, jnp.asarray(n, np.int32))


def join_texts(between: Text, texts: Value) -> Text:
    """Return texts one after the other, with another one between them."""
    if isinstance(texts, Text):
        texts = characters(texts)
    if not isinstance(texts, LaneList):
        whole, items = between.known(""), list(texts)
        for k, item in enumerate(items):
            part = as_text(item)
            if part is None:
                raise TypeError(f"sequence item {k}: expected str instance, {type_name(item)} found")
            whole = joined(joined(whole, between), part) if k else part
        return whole
    columns = texts.columns
    if not isinstance(columns, Text):
        raise TypeError("sequence item 0: expected str instance")
    rows = columns.codes.shape[0]
    n = jnp.arange(rows, dtype=np.int32)
    sizes = jnp.where(n < texts.length, jnp.broadcast_to(columns.length, (rows,)), 0)
    gaps = jnp.where(n < texts.length - 1, between.length, 0)
    total = jnp.sum(sizes + gaps, dtype=np.int32)
    room = max(start_characters(), rows)
    require_characters(total, room)
    return between.made(flattened(texts, sizes, texts.length, between, room), total)
