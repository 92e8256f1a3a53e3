"""Spans of the user's source for an exception that JAX or a helper raised.

Primitives are compiled from the user's own tree, and JAX keeps the traceback of every operation it records, so that
the frames of an exception (and of what caused it) name the user's lines: those of the primitive and of the helpers
below it. Frames of JAX, NumPy, this package and what `dataclass` writes say nothing to the user and are left out.
"""

from __future__ import annotations

import contextlib
import functools
import linecache
import re
import sysconfig
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any

import jax
import jaxlib
import numpy as np

from pcbatch.diagnostics.diagnostic import Label, Loc

SHOWN = 3  # helpers shown below the user's own line

_PACKAGES = tuple(str(Path(str(module.__file__)).parent) + "/" for module in (jax, jaxlib, np))
_OURS = str(Path(__file__).parents[2]) + "/"
_LIBRARIES = tuple({sysconfig.get_path(name) + "/" for name in ("stdlib", "purelib", "platlib")})
_WRAPPERS = (functools.__file__, contextlib.__file__)


@dataclass(frozen=True, slots=True)
class TracebackFrame:
    """One level of the user's part of a traceback; `exact` if its columns are known, else `loc` is a whole line."""

    name: str
    loc: Loc
    exact: bool
    code: CodeType
    names: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)  # its locals and globals


def user_frames(error: BaseException) -> list[TracebackFrame]:
    """Return the frames of the user and of the user's libraries, outermost first; those of the causes come last."""
    frames: list[TracebackFrame] = []
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        frames += _frames(link.__traceback__)
        link = link.__cause__
    return frames


def traceback_frames(traceback: TracebackType | None) -> list[TracebackFrame]:
    """Return the frames of a traceback that are the user's or those of the user's libraries, outermost first."""
    return list(_frames(traceback))


def spans(frames: Sequence[TracebackFrame], whole: Loc) -> tuple[Loc, tuple[Label, ...]] | None:
    """Return the span inside the primitive at `whole` that these frames pass through, and labels for the helpers below
    it, outermost first; None if they do not pass through the primitive."""
    place, chosen = below(frames, whole)
    if place is None:
        return None
    if len(chosen) > SHOWN:
        chosen = [chosen[0], *chosen[1 - SHOWN :]]
    labels = tuple(Label(frame.loc, f"in `{frame.name}`") for frame in chosen)
    return (place.loc if place.exact else whole), labels


def below(frames: Sequence[TracebackFrame], whole: Loc) -> tuple[TracebackFrame | None, list[TracebackFrame]]:
    """Return the innermost frame in the primitive at `whole`, and those of the helpers below it, outermost first."""
    own = [k for k, frame in enumerate(frames) if _inside(frame, whole)]
    if not own:
        return None, []
    helpers = {frame.loc: frame for frame in frames[own[-1] + 1 :] if not _inside(frame, whole)}
    return frames[own[-1]], list(helpers.values())


def called(frames: Sequence[TracebackFrame], whole: Loc) -> list[TracebackFrame]:
    """Return the frames of what the primitive at `whole` calls, outermost first; lambdas in it are among them."""
    first = next((k for k, frame in enumerate(frames) if _inside(frame, whole)), len(frames))
    # A comprehension that is all that its function evaluates has a frame at the same place.
    return list({(frame.loc, frame.name): frame for frame in frames[first + 1 :]}.values())


def in_library(frame: TracebackFrame) -> bool:
    """Return whether a frame is one of Python's own library, or of an installed package."""
    return frame.loc.file.startswith(_LIBRARIES)


def source(loc: Loc) -> str:
    """Return the source text of a span; empty if the file cannot be read."""
    lines = [linecache.getline(loc.file, k) for k in range(loc.line, loc.end_line + 1)]
    if not lines:
        return ""
    lines[-1] = lines[-1][: loc.end_col]
    return "".join([lines[0][loc.col :], *lines[1:]])


def narrowed(whole: Loc, name: str) -> Loc:
    """Return the span of the first occurrence of a name in a span; the whole span if there is none."""
    text = linecache.getline(whole.file, whole.line)
    end = whole.end_col if whole.end_line == whole.line else len(text)
    match = re.compile(rf"(?<![\w.]){re.escape(name)}(?!\w)").search(text, whole.col, end)
    return whole if match is None else Loc(whole.file, whole.line, match.start(), whole.line, match.end())


def _inside(frame: TracebackFrame, whole: Loc) -> bool:
    loc = frame.loc
    if loc.file != whole.file or not whole.line <= loc.line <= whole.end_line:
        return False
    start, end = (whole.line, whole.col), (whole.end_line, whole.end_col)
    return not frame.exact or start <= (loc.line, loc.col) < end


def _frames(traceback: TracebackType | None) -> Iterator[TracebackFrame]:
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if _is_users(code.co_filename):
            names = ChainMap(traceback.tb_frame.f_locals, traceback.tb_frame.f_globals)
            yield replace(_frame(code, traceback.tb_lasti, traceback.tb_lineno), names=names)
        traceback = traceback.tb_next


def _is_users(file: str) -> bool:
    return not file.startswith((*_PACKAGES, _OURS, "<frozen", "<string>")) and file not in _WRAPPERS


def _frame(code: CodeType, instruction: int, line: int) -> TracebackFrame:
    position = (
        next(islice(code.co_positions(), instruction // 2, None), (None,) * 4) if instruction >= 0 else (None,) * 4
    )
    start, end, column, end_column = position
    if start is None or end is None or column is None or end_column is None or start != line:
        text = linecache.getline(code.co_filename, line).rstrip()
        indent = len(text) - len(text.lstrip())
        return TracebackFrame(code.co_name, Loc(code.co_filename, line, indent, line, len(text)), False, code)
    file = code.co_filename
    loc = Loc(file, start, _characters(file, start, column), end, _characters(file, end, end_column))
    return TracebackFrame(code.co_name, loc, True, code)


def _characters(file: str, line: int, column: int) -> int:
    """Convert a column in bytes, as code objects count, to one in characters."""
    return len(linecache.getline(file, line).encode()[:column].decode(errors="replace"))
