"""Texts of all lanes, on the host: results that are strings, and arguments.

    Texts.of(["ab", "", "c"])      codes i32[3, 2], lengths [2, 0, 1]

Where texts are elements of lists of the lanes, both have the axes of the lists behind that of the lanes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from pcbatch.containers.pytree_node import pytree_node
from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.diagnostics.short_repr import clipped
from pcbatch.errors import UsageError

MOST = 2000  # characters of a `repr`


@pytree_node("codes", "lengths", named=True)
class Texts:
    """Strings, one for each lane; a pytree of JAX.

    A result of a batched function that is a string comes as one, and `pcbatch.texts` makes one of Python's strings, as
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

    __slots__ = ("codes", "lengths")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, codes: Any, lengths: Any) -> None:
        self.codes, self.lengths = codes, lengths

    @classmethod
    def of(cls, texts: Sequence[str]) -> Texts:
        """Return these texts with arrays of NumPy."""
        longest = max(map(len, texts), default=0)
        codes = np.zeros((len(texts), longest), np.int32)
        for row, text in zip(codes, texts, strict=True):
            row[: len(text)] = [ord(character) for character in text]
        return cls(codes, np.array([len(text) for text in texts], np.int32))

    def __len__(self) -> int:
        """Return the number of lanes."""
        return int(np.shape(self.lengths)[0])

    def __getitem__(self, lane: Any) -> Any:
        """Return the text of a lane (of texts in lists, the texts of a lane); a slice gives those of several lanes.

        Raises:
            IndexError: there is no such lane.
            ValueError: the lane has failed, and has no text.
        """
        if isinstance(lane, slice) or np.ndim(self.lengths) > 1:
            return Texts(self.codes[lane], self.lengths[lane])
        if not -len(self) <= lane < len(self):
            raise IndexError(f"there is no lane {lane} of {len(self)}")
        found = _text(np.asarray(self.codes[lane]), int(np.asarray(self.lengths[lane])))
        if found is None:
            raise ValueError(f"lane {lane} has failed, and has no text")
        return found

    def __iter__(self) -> Iterator[Any]:
        return (self[lane] for lane in range(len(self)))

    def tolist(self) -> list[Any]:
        """Return Python's strings, one for each lane; None for a lane that has failed."""
        codes, lengths = np.asarray(self.codes), np.asarray(self.lengths)
        if lengths.ndim > 1:
            return [texts.tolist() for texts in self]
        return [_text(row, int(n)) for row, n in zip(codes, lengths, strict=True)]

    def __eq__(self, other: object) -> Any:
        if isinstance(other, Texts):
            return self.tolist() == other.tolist()
        return self.tolist() == other if isinstance(other, list) else NotImplemented

    def __repr__(self) -> str:
        traced = any(isinstance(leaf, jax.core.Tracer | jax.ShapeDtypeStruct) for leaf in jax.tree.leaves(self))
        if traced or not np.ndim(self.lengths):  # parts of one, as `jax.tree.map` may make them
            return f"Texts(codes={self.codes!r}, lengths={self.lengths!r})"
        return f"Texts({clipped(repr(self.tolist()), MOST)})"


def texts(strings: Sequence[str]) -> Texts:
    """Make an argument of strings, one for each lane.

    Example:
        >>> import pcbatch
        >>> @pcbatch.batch
        ... def is_palindrome(s):
        ...     return s == s[::-1]
        >>> is_palindrome(pcbatch.texts(["level", "lever"])).tolist()
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
