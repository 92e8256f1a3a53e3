"""The text of a text: its characters between quotes, as `repr` shows them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.checks import limit
from pcbatch.data.texts.text import Text, joined
from pcbatch.data.values import Column, Flag, Index

ESCAPES = {"\t": "t", "\n": "n", "\r": "r", "\\": "\\", "'": "'"}
"""The characters that a backslash stands before, each with what stands behind that."""
LONGEST = 4  # characters, of `\x1f`


def quoted(text: Text) -> Text:
    """Return a text of ASCII between quotes; a lane with another one stops."""
    _require_ascii(text.codes, text.valid())
    return _quoted(text)


def as_quoted(before: str, text: Text) -> Text:
    """Return a text of ASCII between quotes, behind one that is known; a lane with another one stops."""
    return joined(text.known(before), quoted(text))


def quoted_rows(texts: Text, count: Index) -> Text:
    """Return the texts of a list of `count`, each between quotes, as columns; a lane with one beyond ASCII stops."""
    rows, room = texts.codes.shape
    lengths = jnp.where(jnp.arange(rows) < count, texts.length, 0)
    used = jnp.arange(room)[None] < lengths[:, None]
    _require_ascii(texts.codes, used)
    made: Text = jax.vmap(_quoted)(texts)
    return made


def _require_ascii(codes: Column, used: Flag) -> None:
    limit(jnp.all((codes < 128) | ~used), "the text has letters beyond ASCII, and is shown in quotes")


def _quoted(text: Text) -> Text:
    codes, used = text.codes, text.valid()
    has_single, has_double = (jnp.any((codes == ord(mark)) & used) for mark in "'\"")
    mark = jnp.where(has_single & ~has_double, ord('"'), ord("'"))
    escaped, behind = jnp.zeros(codes.shape, bool), codes
    for character, written in ESCAPES.items():
        here = (codes == ord(character)) & ((codes != ord("'")) | (mark == ord("'")))
        escaped, behind = escaped | here, jnp.where(here, ord(written), behind)
    control = ((codes < 32) | (codes == 127)) & ~escaped
    widths = jnp.where(used, jnp.where(control, LONGEST, jnp.where(escaped, 2, 1)), 0)
    ends = jnp.cumsum(widths, dtype=np.int32)
    place = jnp.arange(LONGEST * codes.shape[0], dtype=np.int32)
    source = jnp.clip(jnp.searchsorted(ends, place, side="right"), 0, codes.shape[0] - 1)
    code, within = codes[source], place - (ends - widths)[source]
    shown = [
        jnp.where((control | escaped)[source], ord("\\"), code),
        jnp.where(control[source], ord("x"), behind[source]),
        _digit(code // 16),
        _digit(code % 16),
    ]
    inside = jnp.select([within == k for k in range(LONGEST)], shown)
    whole = jnp.concatenate([mark[None], inside, mark[None]])
    length = ends[-1]
    whole = jnp.where(jnp.arange(whole.shape[0]) == length + 1, mark, whole)
    return text.made(whole.astype(np.int32), length + 2)


def _digit(value: Column) -> Column:
    return jnp.where(value < 10, value + ord("0"), value + ord("a") - 10)
