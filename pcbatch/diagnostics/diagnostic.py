"""The diagnostics of the compiler: a location, labelled spans of the user's source, notes and helps.

A `Diagnostic` is data; `render` is the layout (the rustc manner). Nothing here knows the compiler.
"""

from __future__ import annotations

import difflib
import linecache
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Loc:
    """A span of the user's source: lines count from 1, columns from 0, the end is exclusive."""

    file: str
    line: int
    col: int
    end_line: int
    end_col: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col + 1}"


@dataclass(frozen=True, slots=True)
class Label:
    """A span with a text, which may be empty."""

    loc: Loc
    text: str = ""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding about the user's program: `primary` is the span at fault, `secondary` spans show the cause.

    `code` is "PCBnnn": 0xx source, 1xx syntax, 2xx names, 3xx types, 4xx use of the API, 9xx run time.
    """

    code: str
    title: str
    primary: Label | None = None
    secondary: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    helps: tuple[str, ...] = ()


def render(diagnostic: Diagnostic, kind: str = "error") -> str:
    """Return the text of a diagnostic: the user's source lines with carets below them, notes and helps."""
    lines = [f"{kind}[{diagnostic.code}]: {diagnostic.title}"]
    labels = [(label, "-") for label in diagnostic.secondary]
    if diagnostic.primary is not None:
        labels.append((diagnostic.primary, "^"))
        lines.append(f" --> {diagnostic.primary.loc}")
        lines.extend(_snippets(labels, diagnostic.primary.loc.file))
    lines.extend(f"  = note: {_indent(note)}" for note in diagnostic.notes)
    lines.extend(f"  = help: {_indent(text)}" for text in diagnostic.helps)
    return "\n".join(lines)


def render_all(diagnostics: Sequence[Diagnostic]) -> str:
    """Return the text of several diagnostics, separated by blank lines."""
    return "\n\n".join(render(d) for d in diagnostics)


def in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Sort diagnostics by their spans, each once; those without a span come last."""
    unique = dict.fromkeys(diagnostics)
    return sorted(unique, key=lambda d: (d.primary is None, d.primary and d.primary.loc, d.code))


def undefined_help(name: str, known: Iterable[str]) -> str:
    """The help for an undefined name; `known` are the names that may have been meant."""
    near = difflib.get_close_matches(name, sorted({*known} - {name}), 1, 0.8)
    return f"did you mean `{near[0]}`?" if near else f"define or import `{name}` before the batched call"


def _indent(text: str) -> str:
    return text.replace("\n", "\n          ")


def _snippets(labels: list[tuple[Label, str]], main_file: str) -> list[str]:
    # Other files follow the one of the primary span; lines of one file are shown in order.
    labels = sorted(labels, key=lambda item: (item[0].loc.file != main_file, item[0].loc))
    width = max(len(str(label.loc.line)) for label, _ in labels)
    gutter = " " * width
    out, previous = [f"{gutter} |"], None
    for label, mark in labels:
        loc = label.loc
        if previous is not None and loc.file != previous.file:
            out.append(f"{gutter}::: {loc.file}")
        elif previous is not None and loc.line > previous.line + 1:
            out.append("...")
        source = linecache.getline(loc.file, loc.line).rstrip("\r\n").replace("\f", " ")
        if previous is None or (loc.file, loc.line) != (previous.file, previous.line):
            out.append(f"{loc.line:>{width}} | {source}")
        end = loc.end_col if loc.end_line == loc.line else len(source)
        carets = mark * max(1, _width(source[loc.col : end]))
        # Tabs are copied so that the carets stay below what they mark.
        lead = "".join("\t" if c == "\t" else " " * _width(c) for c in source[: loc.col])
        out.append(f"{gutter} | {lead}{carets} {label.text}".rstrip())
        previous = loc
    return out


def _width(text: str) -> int:
    """The columns of a text in a terminal: two for a wide character, none for a combining accent."""
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)
