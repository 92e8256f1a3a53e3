"""The text of operations, of terminators and of their parts, declared once for each class.

A form is a template whose fields are those of the class, each with the token that it is written as (a name where none
is given). A class with several forms is printed by the last one that says all of it, and read by the first one that
fits (`tests/oracles/text/`). Forks are written alike wherever they occur (see `printer`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from string import Formatter
from typing import Any

from pcbatch.ir import message as messages
from pcbatch.ir.cfg import Call
from pcbatch.ir.forks import Fork
from pcbatch.ir.ops import Branch, Check, Expr, Fail, Jump, Move, Prim, Print, Return, Select
from pcbatch.ir.stack import Pop, Push, PushJump, Var
from pcbatch.ir.tasks import Finish, Give, OpenFrame, Spawn, SpawnInto, Start, Sync, TaskJump
from pcbatch.ir.text.expr_text import braced, default_reads

Declared = Mapping[str, object]
"""The variables that expressions may read by default, with a `Var` for those whose storage is known."""


def _names(names: Collection[str], declared: Declared) -> str:
    return ", ".join(names)


def _targets(dsts: Collection[str], declared: Declared) -> str:
    update = "update " if any(_has_register(declared.get(dst)) for dst in dsts) else ""
    return f"{update}{', '.join(dsts)} = " if dsts else ""


def _has_register(declaration: object) -> bool:
    return isinstance(declaration, Var) and declaration.has_register


def _expr(expr: Expr, declared: Declared) -> str:
    """An expression in braces, followed by its inputs where they are not the default reading of the text."""
    is_default = default_reads(expr.text, declared) == expr.ins
    return braced(expr.text) + ("" if is_default else f" reads ({', '.join(expr.ins)})")


TOKENS: Mapping[str, Callable[[Any, Declared], str]] = {
    "": lambda name, _: str(name),
    "names": _names,
    "label": lambda label, _: str(label),
    "func": lambda func, _: str(func),
    "word": lambda word, _: str(word),
    "target": lambda dst, declared: _targets((dst,), declared),
    "targets": _targets,
    "expr": _expr,
    "message": lambda message, _: f"({messages.show(message)})",
    "places": _names,
    "row": lambda row, _: "" if row is None else f" at {row}",
    "sign": lambda adds, _: "+=" if adds else "=",
    "way": lambda way, _: node_text(way),
    "values": lambda names, _: f" {', '.join(names)}" if names else "",
    "bindings": lambda args, _: f"({', '.join(f'{param}={source}' for param, source in args)})",
}


@dataclass(frozen=True)
class Form:
    """The text of an object of a class, all of whose fields have the values in `given` or stand in the template."""

    cls: type
    template: str
    given: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def parts(self) -> tuple[tuple[str, tuple[str, ...], str], ...]:
        """The texts of the template, each with the fields behind it, several if they are equal, and their token."""
        parts = Formatter().parse(self.template)
        return tuple((text, tuple(names.split(",")) if names else (), token or "") for text, names, token, _ in parts)

    def says(self, node: Any) -> bool:
        """Whether the text is that of an object."""
        alike = all(getattr(node, name) == getattr(node, names[0]) for _, names, _ in self.parts for name in names)
        return alike and all(getattr(node, name) == value for name, value in self.given.items())

    def show(self, node: Any, declared: Declared) -> str:
        """Return the text of an object."""
        shown = ""
        for text, names, token in self.parts:
            shown += text + (TOKENS[token](getattr(node, names[0]), declared) if names else "")
        return shown


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


EDGES = (Form(PushJump, "call {target:label} ret={ret:label}"), Form(Return, "return"), Form(Jump, "{target:label}"))
TASK_EDGES = (
    Form(TaskJump, "jump {target:label}{args:bindings}"),
    Form(Sync, "sync {target:label}{args:bindings}"),
    Form(Finish, "return{values:values}"),
)
WAYS = (Form(Give, "give ({values:names})"), Form(Start, "{label:label}{args:bindings}"))


def _by_class(*forms: Form) -> Mapping[type, list[Form]]:
    found: dict[type, list[Form]] = {}
    for form in forms:
        found.setdefault(form.cls, []).append(form)
    return found


_IN_FORKS = _by_class(*EDGES, *TASK_EDGES, *WAYS)
_IN_LINES = {**_IN_FORKS, **_by_class(*OPS, *STACK_ENDS, BRANCH)}
_NONE: Declared = {}


def node_text(node: Any, declared: Declared = _NONE, in_fork: bool = False) -> str:
    """Return the text of an operation, a terminator or a way."""
    if not isinstance(node, Fork):
        forms = (_IN_FORKS if in_fork else _IN_LINES)[type(node)]
        return [form for form in forms if form.says(node)][-1].show(node, declared)
    arms = ((arm, node_text(arm, in_fork=True)) for arm in (node.on_true, node.on_false))
    return f"branch {node.cond}, {', '.join(f'({text})' if isinstance(arm, Fork) else text for arm, text in arms)}"
