"""The user's text of an expression, by which it is found after passes have renamed its variables."""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Written:
    """An expression as the user wrote it.

    `text` has temporaries in place of the parts that are computed before it, calls of batched functions above all;
    `parts` are the texts of those, and `whole` is the text with the parts in place of their temporaries. `whole` is
    empty if there are no parts.
    """

    text: str
    whole: str = ""
    parts: tuple[str, ...] = ()

    def says(self, wanted: str) -> bool:
        """Whether the expression contains a text outside its parts; spaces and kinds of quotes are ignored."""
        return any(self._holds(form) for form in {_bare(wanted), _bare(_unparsed(wanted))})

    def _holds(self, wanted: str) -> bool:
        in_part = any(wanted in _bare(part) for part in self.parts)
        return wanted in _bare(self.text) or (wanted in _bare(self.whole) and not in_part)


def _bare(text: str) -> str:
    return "".join(text.split()).replace('"', "'")


def _unparsed(text: str) -> str:
    """Return a text as the compiler writes it, without redundant parentheses."""
    try:
        return ast.unparse(ast.parse(text.strip(), mode="eval"))
    except (SyntaxError, ValueError, RecursionError):  # a piece of an expression, such as "leaf("
        return text
