"""Texts of all lanes, on the host: results that are strings, and arguments.

    Texts.of(["ab", "", "c"])      codes i32[3, 2], lengths [2, 0, 1]

Where texts are elements of lists of the lanes, both have the axes of the lists behind that of the lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pcbatch.data.host.host_forms import OfLanes, read, uncut
from pcbatch.data.pytree_node import pytree_node
from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.errors import UsageError


@pytree_node("codes", "lengths", named=True)
class Texts(OfLanes):
    """Strings, one for each lane; a pytree of JAX.

    A result of a batched function that is a string comes as one, and `pcbatch.ragged` makes one of Python's strings, as
    an argument.

    Attributes:
        codes: int32[lanes, longest], the codes of the characters, as by `ord`. What stands behind the length of a text
            is arbitrary.
        lengths: int32[lanes], the length of each text; negative for a lane that has failed.

    Example:
        >>> import jax.numpy as jnp, pcbatch
        >>> @pcbatch.batch
        ... def binary(n):
        ...     return bin(n)[2:]
        >>> found = binary(jnp.array([5, 12]))
        >>> found
        Texts(['101', '1100'])
        >>> found[1], found.tolist()
        ('1100', ['101', '1100'])
    """

    __slots__ = ("_codes", "lengths")
    __hash__ = None
    name, content = "text", "codes"

    def __init__(self, codes: Any, lengths: Any) -> None:
        self._codes, self.lengths = codes, lengths

    @property
    def codes(self) -> Any:
        """The codes of the characters, int32[lanes, longest]."""
        self._codes = read(self._codes)
        return self._codes

    @classmethod
    def of(cls, texts: Sequence[str]) -> Texts:
        """Return these texts with arrays of NumPy."""
        longest = max(map(len, texts), default=0)
        codes = np.zeros((len(texts), longest), np.int32)
        for row, text in zip(codes, texts, strict=True):
            row[: len(text)] = [ord(character) for character in text]
        return cls(codes, np.array([len(text) for text in texts], np.int32))

    def _of_lane(self, lane: int, length: int) -> Any:
        return _text(np.asarray(self.codes[lane]), length)

    def tolist(self) -> list[Any]:
        """Return Python's strings, one for each lane; None for a lane that has failed."""
        codes, lengths = np.asarray(uncut(self._codes)), np.asarray(self.lengths)
        if lengths.ndim > 1:
            return [texts.tolist() for texts in self]
        return [_text(row, int(n)) for row, n in zip(codes, lengths, strict=True)]


def texts(strings: Sequence[str]) -> Texts:
    """Make an argument of strings, one for each lane.

    Example:
        >>> import pcbatch
        >>> @pcbatch.batch
        ... def is_palindrome(s):
        ...     return s == s[::-1]
        >>> is_palindrome(pcbatch.ragged(["level", "lever"])).tolist()
        [True, False]
    """
    strings = list(strings)
    if (other := next((one for one in strings if not isinstance(one, str)), "")) != "":
        title = f"`texts` takes a string for each lane, not a {type(other).__name__}"
        help = 'for lists of strings write `pcbatch.ragged([["ab", "c"], ["d"]])`'
        raise UsageError(Diagnostic("PCB405", title, helps=(help,)))
    return Texts.of(strings)


def _text(codes: np.ndarray, length: int) -> str | None:
    return None if length < 0 else "".join(map(chr, codes[:length].tolist()))
