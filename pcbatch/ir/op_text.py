"""The text of operations and declarations, of which the text forms of all program types are made (see `printer`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, assert_never

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.ir import message as messages
from pcbatch.ir.cfg import Call
from pcbatch.ir.def_use import AnyOp
from pcbatch.ir.expr_text import braced, default_reads
from pcbatch.ir.forks import Fork
from pcbatch.ir.ops import Check, Expr, Fail, Move, Prim, Print, Select
from pcbatch.ir.stack import Pop, Push, Var
from pcbatch.ir.types import ArrayType

_WIDTH = 100  # where declarations wrap
_COLUMN = 44  # where locations start


def print_op(op: AnyOp, declared: Mapping[str, object]) -> str:
    """Return the text of an operation; `declared` has the variables, with a `Var` for those whose storage is known."""
    match op:
        case Prim(dsts=dsts, expr=expr):
            return _assign(dsts, print_expr(expr, declared), declared)
        case Move(dst=dst, src=src):
            return _assign((dst,), src, declared)
        case Select(dst=dst):
            return _assign((dst,), f"select {op.cond}, {op.on_true}, {op.on_false}", declared)
        case Call(dsts=dsts):
            return _assign(dsts, f"call @{op.func}({', '.join(op.args)})", declared)
        case Push(dst=dst, src=src):
            return f"push {dst}" if dst == src else f"push {dst} = {src}"
        case Pop(dst=dst):
            return f"pop {dst}"
        case Print(message=message):
            return f"print({messages.show(message)})"
        case Check(failed=failed, kind=kind, name=name, message=message):
            return f"check {failed}, {kind} {name}({messages.show(message)})"
        case _:
            assert_never(op)


def fail_text(fail: Fail) -> str:
    """Return the text of a failure."""
    return f"fail {fail.kind} {fail.name}({messages.show(fail.message)})"


def tree_text(tree: Any, leaf: Callable[[Any], str]) -> str:
    """Return the text of a leaf, or of a fork of them."""
    if not isinstance(tree, Fork):
        return leaf(tree)
    arms = ((arm, tree_text(arm, leaf)) for arm in (tree.on_true, tree.on_false))
    return f"branch {tree.cond}, {', '.join(f'({text})' if isinstance(arm, Fork) else text for arm, text in arms)}"


def print_expr(expr: Expr, declared: Mapping[str, object]) -> str:
    """Return an expression in braces, followed by its inputs where they are not the default reading of the text."""
    is_default = default_reads(expr.text, declared) == expr.ins
    return braced(expr.text) + ("" if is_default else f" reads ({', '.join(expr.ins)})")


def _assign(dsts: Sequence[str], value: str, declared: Mapping[str, object]) -> str:
    update = "update " if any(_has_register(declared.get(dst)) for dst in dsts) else ""
    return f"{update}{', '.join(dsts)} = {value}" if dsts else value


def _has_register(declaration: object) -> bool:
    return isinstance(declaration, Var) and declaration.storage is not None and declaration.storage.has_register


def type_text(type_: ArrayType | None) -> str:
    """Return the text of a type, such as `i32[3]`, or `?` for one that is not known."""
    return "?" if type_ is None else str(type_)


def declarations(texts: Mapping[str, str]) -> Iterator[str]:
    """The lines that declare variables, grouped by their texts."""
    groups: dict[str, list[str]] = {}
    for name, text in texts.items():
        groups.setdefault(text, []).append(name)
    line = ""
    for group in (f"{', '.join(names)}: {text}" for text, names in groups.items()):
        if line and len(line) + len(group) > _WIDTH:
            yield f"  {line}"
            line = ""
        line += ("   " if line else "") + group
    if line:
        yield f"  {line}"


def op_lines(ops: Iterable[AnyOp], declared: Mapping[str, object], locations: bool) -> Iterator[str]:
    """The lines of operations; with `locations`, each with its source line."""
    for op in ops:
        yield with_loc(f"  {print_op(op, declared)}", op.loc, locations)


def with_loc(line: str, loc: Loc | None, locations: bool) -> str:
    """Return a line, followed by its place in the source where that is asked for and known."""
    if not locations or loc is None:
        return line
    return f"{line:<{_COLUMN}} // {os.path.basename(loc.file)}:{loc.line}:{loc.col + 1}"
