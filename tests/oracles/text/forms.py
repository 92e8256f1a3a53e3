"""The reading of operations, of terminators and of their parts by their forms (see `pcbatch/ir/text/syntax.py`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pcbatch.ir.forks import Fork
from pcbatch.ir.ops import Expr
from pcbatch.ir.text.expr_text import default_reads
from pcbatch.ir.text.syntax import EDGES, TASK_EDGES, TOKENS, WAYS, Form
from tests.oracles.text.lines import FUNC, LABEL, NAME, NAMES, Line, split_names

Declared = Collection[str]
Found = tuple[Any, int] | None
"""A value that was read, and the position after it; None where the text is another."""
Reader = Callable[[Line, int, Declared], Found]

_VALUE = rf"(?!return\b){NAME}(?= *(?:,|\)|$))"  # `jump` in `return a, jump bb1()` begins the next edge
_BINDING = rf"{NAME}={NAME}"
_FORK = re.compile(rf"branch ({NAME}), *")
_PLACES = re.compile(NAMES)
_COMMA = re.compile(r", *")
_READS = re.compile(rf" *(?:reads \(((?:{NAMES})?)\))?")
ASSIGN = re.compile(rf"(?:update +)?({NAMES}) = (?=\S)")


@dataclass(frozen=True, slots=True)
class Leaves:
    """The forms of the leaves of a tree of forks, and how they are called in an error."""

    forms: tuple[Form, ...]
    expected: str


STACK_LEAVES = Leaves(EDGES, "a label, `return`, a call or a branch in parentheses")
TASK_LEAVES = Leaves(TASK_EDGES, "an operation, `jump`, `sync`, `return`, `fail` or `branch`")
WAY_LEAVES = Leaves(WAYS, "`label(param=variable)`")


def _matched(pattern: str, value: Callable[[str | None], Any] = str, expected: str = "") -> Reader:
    """The reader of what matches a pattern, whose group is its value; if it must, `expected` says what is."""
    compiled = re.compile(pattern)

    def read(line: Line, start: int, declared: Declared) -> Found:
        match = compiled.match(line.text, start) or (expected and line.fail(expected))
        return (value(match[1]), match.end()) if match else None

    return read


def _targets(line: Line, start: int, declared: Declared) -> Found:
    match = ASSIGN.match(line.text, start)
    return (split_names(match[1]), match.end()) if match else ((), start)


def _target(line: Line, start: int, declared: Declared) -> Found:
    match = ASSIGN.match(line.text, start)
    return (match[1], match.end()) if match and "," not in match[1] else None


def _expr(line: Line, start: int, declared: Declared) -> Found:
    if not line.text.startswith("{", start):
        return None
    text, end = line.braced(start)
    reads = _READS.fullmatch(line.text, end) or line.fail("`reads (a, b)` or nothing after the expression")
    ins = default_reads(text, declared) if reads[1] is None else split_names(reads[1])
    if ins is None:
        line.fail("`reads (...)` after a text that is not a Python expression")
    return Expr(text, ins), reads.end()


def _message(line: Line, start: int, declared: Declared) -> Found:
    return line.message(start) if line.text.startswith("(", start) else None


def _places(line: Line, start: int, declared: Declared) -> Found:
    match = _PLACES.match(line.text, start)
    if match is None:
        return None
    return line.fail("`spawn return += way`") if match[0] == "return" else (split_names(match[0]), match.end())


def _way(line: Line, start: int, declared: Declared) -> Found:
    return read_tree(line, start, WAY_LEAVES)


def _bindings(text: str | None) -> tuple[tuple[str, str], ...]:
    return tuple((param, source) for param, _, source in (pair.partition("=") for pair in split_names(text)))


READERS: Mapping[str, Reader] = {
    "": _matched(f"({NAME})"),
    "names": _matched(f"({NAMES}|)", split_names),
    "label": _matched(f"({LABEL})"),
    "func": _matched(f"({FUNC})"),
    "word": _matched(r"(\w+)"),
    "target": _target,
    "targets": _targets,
    "expr": _expr,
    "message": _message,
    "places": _places,
    "row": _matched(f"(?: at ({NAME}))?", lambda row: row),
    "sign": _matched(r"(\+?=)", lambda sign: sign == "+="),
    "way": _way,
    "values": _matched(rf"(?: ({_VALUE}(?:, *{_VALUE})*))?", split_names),
    "bindings": _matched(rf"\(((?:{_BINDING}(?:, *{_BINDING})*)?)\)", _bindings, "`label(param=variable)`"),
}
assert READERS.keys() == TOKENS.keys()
SURE = {"message": "the message", "way": "the way of a spawn"}  # after these tokens there cannot be another form


def read(form: Form, line: Line, start: int, declared: Declared, whole: bool) -> Found:
    """Return the object that a line has at a position by a form; at its end, if it must be the whole line."""
    values = dict(form.given)
    last = ""
    for text, names, last in form.parts:
        literal = re.escape(text).replace(r"\ ", " +").replace(", +", ", *")
        end = rf"(?!{LABEL})" if text[-1:].isalpha() else ""  # a word ends where a label does
        match = re.compile(literal + end).match(line.text, start)
        found = match and (READERS[last](line, match.end(), declared) if names else ("", match.end()))
        if not found:
            return None
        value, start = found
        values |= dict.fromkeys(names, value)
    if whole and start < len(line.text):
        return line.fail(f"nothing after {SURE[last]}") if last in SURE else None
    return form.cls(**values), start


def read_line(line: Line, forms: tuple[Form, ...], declared: Declared = ()) -> Any:
    """Return what a whole line is by one of these forms; None if it has none of them."""
    found = (read(form, line, 0, declared, whole=True) for form in forms)
    return next((node for node, _ in filter(None, found)), None)


def read_tree(line: Line, start: int, leaves: Leaves) -> tuple[Any, int]:
    """Read a leaf, or a fork of them, that begins at a position; return it and the position after it."""
    return _fork(line, start, leaves) if _FORK.match(line.text, start) else _leaf(line, start, leaves)


def _leaf(line: Line, start: int, leaves: Leaves) -> tuple[Any, int]:
    found = (read(form, line, start, (), whole=False) for form in leaves.forms)
    return next(filter(None, found), None) or line.fail(leaves.expected)


def _fork(line: Line, start: int, leaves: Leaves) -> tuple[Fork[Any], int]:
    def inner(at: int) -> tuple[Any, int]:
        if not line.text.startswith("(", at):
            return _leaf(line, at, leaves)
        fork, end = _fork(line, at + 1, leaves)
        return (fork, end + 1) if line.text.startswith(")", end) else line.fail("`)` after the inner branch")

    match = _FORK.match(line.text, start) or line.fail("`branch condition, way, way`")
    on_true, middle = inner(match.end())
    comma = _COMMA.match(line.text, middle) or line.fail("a comma between the ways of a branch")
    on_false, end = inner(comma.end())
    return Fork(match[1], on_true, on_false), end
