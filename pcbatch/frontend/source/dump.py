"""The syntax tree as text, for users; the text is never executed."""

from __future__ import annotations

from types import FunctionType

import astunparse

from pcbatch.frontend.source.locate import locate


def ast_text(fn: FunctionType) -> str:
    """The gast tree of a function as text; raises CompileError if the source is not found."""
    text: str = astunparse.dump(locate(fn).node)
    return text.strip() + "\n"
