"""An expression as the user wrote it, to be found by its text whatever passes make of its variables."""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Written:
    """`text` has temporaries for what is computed before it, calls of batched functions above all. `whole` is the same
    with those `parts` in their places."""

    text: str
    whole: str = ""
    parts: tuple[str, ...] = ()

    def says(self, wanted: str) -> bool:
        """Does it contain this text, not counting what is computed elsewhere? Spaces do not matter, nor does which
        quotes there are."""
        return any(self._holds(form) for form in {_bare(wanted), _bare(_unparsed(wanted))})

    def _holds(self, wanted: str) -> bool:
        apart = any(wanted in _bare(part) for part in self.parts)
        return wanted in _bare(self.text) or (wanted in _bare(self.whole) and not apart)


def _bare(text: str) -> str:
    return "".join(text.split()).replace('"', "'")


def _unparsed(text: str) -> str:
    """The text as the compiler writes it, without parentheses that change nothing."""
    try:
        return ast.unparse(ast.parse(text.strip(), mode="eval"))
    except (SyntaxError, ValueError, RecursionError):  # a piece of an expression, such as "leaf("
        return text
