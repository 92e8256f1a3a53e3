"""The text of operations, of terminators and of their parts, declared once for each class: printed and read by it.

A form is a template whose fields are those of the class, each with the token that it is written as (a name where none
is given). A class with several forms is printed by the last one that says all of it, and read by the first one that
fits. Forks are written alike wherever they occur (see `printer`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from string import Formatter
from typing import Any

from pcbatch.ir import message as messages
from pcbatch.ir.cfg import Call
from pcbatch.ir.expr_text import braced, default_reads
from pcbatch.ir.forks import Fork
from pcbatch.ir.lines import FUNC, LABEL, NAME, NAMES, Line, split_names
from pcbatch.ir.ops import Branch, Check, Expr, Fail, Jump, Move, Prim, Print, Return, Select
from pcbatch.ir.stack import Pop, Push, PushJump, Var
from pcbatch.ir.tasks import Finish, Give, OpenFrame, Spawn, SpawnInto, Start, Sync, TaskJump

Declared = Collection[str]
"""The variables that expressions may read by default; a mapping that has a `Var` for those whose storage is known."""
Found = tuple[Any, int] | None
"""A value that was read, and the position after it; None where the text is another."""

_VALUE = rf"(?!return\b){NAME}(?= *(?:,|\)|$))"  # `jump` in `return a, jump bb1()` begins the next edge
_BINDING = rf"{NAME}={NAME}"
_FORK = re.compile(rf"branch ({NAME}), *")
_PLACES = re.compile(NAMES)
_COMMA = re.compile(r", *")
_READS = re.compile(rf" *(?:reads \(((?:{NAMES})?)\))?")
ASSIGN = re.compile(rf"(?:update +)?({NAMES}) = (?=\S)")


@dataclass(frozen=True, slots=True)
class Token:
    """The text of the value of a field.

    Attributes:
        show: the text of a value.
        read: the value that a text begins with, if it does.
        what: what it is called if there is more behind it at the end of a line, where that cannot be another form.
    """

    show: Callable[[Any, Declared], str]
    read: Callable[[Line, int, Declared], Found]
    what: str = ""


def _matched(
    pattern: str,
    show: Callable[[Any], str] = str,
    value: Callable[[str | None], Any] = str,
    expected: str = "",
    what: str = "",
) -> Token:
    """A token that matches a pattern, whose group is its value; if it must, `expected` says what is."""
    compiled = re.compile(pattern)

    def read(line: Line, start: int, declared: Declared) -> Found:
        match = compiled.match(line.text, start) or (expected and line.fail(expected))
        return (value(match[1]), match.end()) if match else None

    return Token(lambda value, declared: show(value), read, what)


def _names(names: Collection[str]) -> str:
    return ", ".join(names)


def _show_target(dsts: Collection[str], declared: Declared) -> str:
    update = "update " if any(_has_register(declared, dst) for dst in dsts) else ""
    return f"{update}{_names(dsts)} = " if dsts else ""


def _has_register(declared: Declared, name: str) -> bool:
    var = declared.get(name) if isinstance(declared, Mapping) else None
    return isinstance(var, Var) and var.storage is not None and var.storage.has_register


def _read_targets(line: Line, start: int, declared: Declared) -> Found:
    match = ASSIGN.match(line.text, start)
    return (split_names(match[1]), match.end()) if match else ((), start)


def _read_target(line: Line, start: int, declared: Declared) -> Found:
    match = ASSIGN.match(line.text, start)
    return (match[1], match.end()) if match and "," not in match[1] else None


def print_expr(expr: Expr, declared: Declared) -> str:
    """Return an expression in braces, followed by its inputs where they are not the default reading of the text."""
    is_default = default_reads(expr.text, declared) == expr.ins
    return braced(expr.text) + ("" if is_default else f" reads ({', '.join(expr.ins)})")


def _read_expr(line: Line, start: int, declared: Declared) -> Found:
    if not line.text.startswith("{", start):
        return None
    text, end = line.braced(start)
    reads = _READS.fullmatch(line.text, end) or line.fail("`reads (a, b)` or nothing after the expression")
    ins = default_reads(text, declared) if reads[1] is None else split_names(reads[1])
    if ins is None:
        line.fail("`reads (...)` after a text that is not a Python expression")
    return Expr(text, ins), reads.end()


def _read_message(line: Line, start: int, declared: Declared) -> Found:
    return line.message(start) if line.text.startswith("(", start) else None


def _read_places(line: Line, start: int, declared: Declared) -> Found:
    match = _PLACES.match(line.text, start)
    if match is None:
        return None
    return line.fail("`spawn return += way`") if match[0] == "return" else (split_names(match[0]), match.end())


def _read_way(line: Line, start: int, declared: Declared) -> Found:
    return read_tree(line, start, WAYS)


def _bindings(text: str | None) -> tuple[tuple[str, str], ...]:
    return tuple((param, source) for param, _, source in (pair.partition("=") for pair in split_names(text)))


TOKENS: Mapping[str, Token] = {
    "": _matched(f"({NAME})"),
    "names": _matched(f"({NAMES}|)", _names, split_names),
    "label": _matched(f"({LABEL})"),
    "func": _matched(f"({FUNC})"),
    "word": _matched(r"(\w+)"),
    "target": Token(lambda dst, declared: _show_target((dst,), declared), _read_target),
    "targets": Token(_show_target, _read_targets),
    "expr": Token(print_expr, _read_expr),
    "message": Token(lambda message, _: f"({messages.show(message)})", _read_message, "the message"),
    "places": Token(lambda names, _: _names(names), _read_places),
    "row": _matched(f"(?: at ({NAME}))?", lambda row: "" if row is None else f" at {row}", lambda row: row),
    "sign": _matched(r"(\+?=)", lambda adds: "+=" if adds else "=", lambda sign: sign == "+="),
    "way": Token(lambda way, _: node_text(way), _read_way, "the way of a spawn"),
    "values": _matched(
        rf"(?: ({_VALUE}(?:, *{_VALUE})*))?", lambda names: f" {_names(names)}" if names else "", split_names
    ),
    "bindings": _matched(
        rf"\(((?:{_BINDING}(?:, *{_BINDING})*)?)\)",
        lambda args: f"({', '.join(f'{param}={source}' for param, source in args)})",
        _bindings,
        expected="`label(param=variable)`",
    ),
}


@dataclass(frozen=True)
class Form:
    """The text of an object of a class, all of whose fields have the values in `given` or stand in the template."""

    cls: type
    template: str
    given: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def parts(self) -> tuple[tuple[str, re.Pattern[str], tuple[str, ...], Token | None], ...]:
        """The texts of the template, each with the fields that stand behind it (several if they are equal)."""
        parts = []
        for text, names, token, _ in Formatter().parse(self.template):
            pattern = re.escape(text).replace(r"\ ", " +").replace(", +", ", *")
            end = rf"(?!{LABEL})" if text[-1:].isalpha() else ""  # a word ends where a label does
            fields = names.split(",") if names else ()
            parts.append((text, re.compile(pattern + end), tuple(fields), TOKENS[token or ""] if fields else None))
        return tuple(parts)

    def says(self, node: Any) -> bool:
        """Whether the text is that of an object."""
        alike = all(getattr(node, a) == getattr(node, b) for _, _, names, _ in self.parts for a, b in _pairs(names))
        return alike and all(getattr(node, name) == value for name, value in self.given.items())

    def show(self, node: Any, declared: Declared) -> str:
        """Return the text of an object."""
        shown = ""
        for text, _, names, token in self.parts:
            shown += text + (token.show(getattr(node, names[0]), declared) if token else "")
        return shown

    def read(self, line: Line, start: int, declared: Declared, whole: bool) -> Found:
        """Return the object that a line has at a position; at its end, if it must be the whole line."""
        values = dict(self.given)
        what = ""
        for _, pattern, names, token in self.parts:
            match = pattern.match(line.text, start)
            found = match and (token.read(line, match.end(), declared) if token else ("", match.end()))
            if not found:
                return None
            value, start = found
            values |= dict.fromkeys(names, value)
            what = token.what if token else ""
        if whole and start < len(line.text):
            return line.fail(f"nothing after {what}") if what else None
        return self.cls(**values), start


def _pairs(names: tuple[str, ...]) -> zip[tuple[str, str]]:
    return zip(names, names[1:], strict=False)


OPS = (
    Form(Prim, "{dsts:targets}{expr:expr}"),
    Form(Call, "{dsts:targets}call @{func:func}({args:names})"),
    Form(Select, "{dst:target}select {cond}, {on_true}, {on_false}"),
    Form(Move, "{dst:target}{src}"),
    Form(Push, "push {dst} = {src}"),
    Form(Push, "push {dst,src}"),
    Form(Pop, "pop {dst}"),
    Form(Print, "print{message:message}"),
    Form(Check, "check {failed}, {kind:word} {name}{message:message}"),
    Form(OpenFrame, "frame"),
    Form(SpawnInto, "spawn return += {way:way}"),
    Form(Spawn, "spawn {dsts:places}{row:row} {adds:sign} {way:way}"),
    Form(Spawn, "spawn {way:way}", {"dsts": ()}),
)
FAIL = Form(Fail, "fail {kind:word} {name}{message:message}")
BRANCH = Form(Branch, "branch {cond}, {on_true:label}, {on_false:label}")
STACK_ENDS = (
    Form(Return, "return"),
    Form(Jump, "jump {target:label}"),
    Form(PushJump, "pushjump {target:label}, ret={ret:label}"),
    FAIL,
)


@dataclass(frozen=True, slots=True)
class Leaves:
    """The forms of the leaves of a tree of forks, and how they are called in an error."""

    forms: tuple[Form, ...]
    expected: str


EDGES = Leaves(
    (Form(PushJump, "call {target:label} ret={ret:label}"), Form(Return, "return"), Form(Jump, "{target:label}")),
    "a label, `return`, a call or a branch in parentheses",
)
TASK_EDGES = Leaves(
    (
        Form(TaskJump, "jump {target:label}{args:bindings}"),
        Form(Sync, "sync {target:label}{args:bindings}"),
        Form(Finish, "return{values:values}"),
    ),
    "an operation, `jump`, `sync`, `return`, `fail` or `branch`",
)
WAYS = Leaves(
    (Form(Give, "give ({values:names})"), Form(Start, "{label:label}{args:bindings}")), "`label(param=variable)`"
)


def _by_class(*forms: Form) -> Mapping[type, list[Form]]:
    found: dict[type, list[Form]] = {}
    for form in forms:
        found.setdefault(form.cls, []).append(form)
    return found


_IN_FORKS = _by_class(*EDGES.forms, *TASK_EDGES.forms, *WAYS.forms)
_IN_LINES = {**_IN_FORKS, **_by_class(*OPS, *STACK_ENDS, BRANCH)}


def node_text(node: Any, declared: Declared = (), in_fork: bool = False) -> str:
    """Return the text of an operation, a terminator or a way."""
    if not isinstance(node, Fork):
        forms = (_IN_FORKS if in_fork else _IN_LINES)[type(node)]
        return [form for form in forms if form.says(node)][-1].show(node, declared)
    arms = ((arm, node_text(arm, in_fork=True)) for arm in (node.on_true, node.on_false))
    return f"branch {node.cond}, {', '.join(f'({text})' if isinstance(arm, Fork) else text for arm, text in arms)}"


def read_line(line: Line, forms: tuple[Form, ...], declared: Declared = ()) -> Any:
    """Return what a whole line is by one of these forms; None if it has none of them."""
    found = (form.read(line, 0, declared, whole=True) for form in forms)
    return next((node for node, _ in filter(None, found)), None)


def read_tree(line: Line, start: int, leaves: Leaves) -> tuple[Any, int]:
    """Read a leaf, or a fork of them, that begins at a position; return it and the position after it."""
    return _fork(line, start, leaves) if _FORK.match(line.text, start) else _leaf(line, start, leaves)


def _leaf(line: Line, start: int, leaves: Leaves) -> tuple[Any, int]:
    found = (form.read(line, start, (), whole=False) for form in leaves.forms)
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
