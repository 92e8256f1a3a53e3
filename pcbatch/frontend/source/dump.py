"""The syntax tree as text, for people; nothing it prints is ever executed."""

from __future__ import annotations

from types import FunctionType

import astunparse

from pcbatch.frontend.source.locate import locate


def ast_text(fn: FunctionType) -> str:
    """The gast tree of a function, one node per line."""
    text: str = astunparse.dump(locate(fn).node)
    return text.strip() + "\n"
