"""The renaming of variables in operations, and in the texts of their expressions where that is possible."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar, assert_never

from pcbatch.ir import message as messages
from pcbatch.ir.cfg import Call
from pcbatch.ir.ops import Branch, Check, Expr, Fail, Jump, Move, Prim, Print, Return, Select
from pcbatch.ir.stack import Fork, Pop, Push, PushJump

AnyOp = Prim | Move | Select | Call | Push | Pop | Print | Check
OpT = TypeVar("OpT", bound=AnyOp)
TermT = TypeVar("TermT", bound=Jump | Branch | Fork | Return | PushJump | Fail)


def rename_expr(expr: Expr, new: Callable[[str], str]) -> Expr:
    """Rename the variables that an expression reads; its text is rewritten where that is possible."""
    ins = tuple(new(v) for v in expr.ins)
    if ins == expr.ins:
        return expr
    changed = tuple(sorted({(old, to) for old, to in zip(expr.ins, ins, strict=True) if old != to}))
    return replace(expr, ins=ins, text=_rename_text(expr.text, changed))


@lru_cache(maxsize=4096)
def _rename_text(text: str, changed: tuple[tuple[str, str], ...]) -> str:
    try:
        tree = ast.parse(text, mode="eval")
        nested = any(isinstance(n, ast.Lambda | ast.comprehension | ast.NamedExpr) for n in ast.walk(tree))
        if nested:  # inner scopes may bind the same names: the text stays, and the printer lists the inputs
            return text
        return ast.unparse(_Renamer(dict(changed)).visit(tree))
    except (SyntaxError, RecursionError):  # hundreds of terms are as deep a tree
        return text


class _Renamer(ast.NodeTransformer):
    def __init__(self, new: Mapping[str, str]) -> None:
        self._new = new

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        chain = ast.unparse(node)
        if chain in self._new:
            return ast.parse(self._new[chain], mode="eval").body
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.parse(self._new[node.id], mode="eval").body if node.id in self._new else node


def rename_reads(op: OpT, new: Callable[[str], str]) -> OpT:
    """Replace every variable that an operation reads by `new(variable)`."""
    match op:
        case Prim():
            return replace(op, expr=rename_expr(op.expr, new))
        case Move() | Push():
            return replace(op, src=new(op.src))
        case Select():
            return replace(op, cond=new(op.cond), on_true=new(op.on_true), on_false=new(op.on_false))
        case Call():
            return replace(op, args=tuple(map(new, op.args)))
        case Print():
            return replace(op, message=messages.rename(op.message, new))
        case Check():
            return replace(op, failed=new(op.failed), message=messages.rename(op.message, new))
        case Pop():
            return op
        case _:
            assert_never(op)


def rename_writes(op: OpT, new: Callable[[str], str]) -> OpT:
    """Replace every variable that an operation writes, or whose slot it writes, by `new(variable)`."""
    match op:
        case Prim() | Call():
            return replace(op, dsts=tuple(map(new, op.dsts)))
        case Move() | Select() | Push() | Pop():
            return replace(op, dst=new(op.dst))
        case Print() | Check():
            return op
        case _:
            assert_never(op)


def rename_terminator(terminator: TermT, new: Callable[[str], str]) -> TermT:
    """Replace every variable that a terminator reads by `new(variable)`."""
    if isinstance(terminator, Branch):
        return replace(terminator, cond=new(terminator.cond))
    if isinstance(terminator, Fork):
        on_true, on_false = rename_terminator(terminator.on_true, new), rename_terminator(terminator.on_false, new)
        return replace(terminator, cond=new(terminator.cond), on_true=on_true, on_false=on_false)
    if isinstance(terminator, Fail):
        return replace(terminator, message=messages.rename(terminator.message, new))
    return terminator
