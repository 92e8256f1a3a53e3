"""The operations and terminators of the program types; `Branch` and `RETURN` belong to the CFG IR alone.

Variables are dotted identifiers ("n", "state.q", "even.n", "pair._0"), so every name is a legal Python
expression and expression texts can mention it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated, Any

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.ir.effects import NO_EFFECTS, Effects
from pcbatch.ir.roles import New, Read, Role, Shown, Write, Writes
from pcbatch.ir.text.written import Written

RETURN = "return"  # a branch target that means: leave the function


@dataclass(frozen=True, slots=True)
class Expr:
    """A primitive computation for ONE lane.

    `text` is its source on one line, for users and for the parser; `ins` are the variables that it reads, in the order
    of the parameters of `fn`. `fn(*values)` returns the value, or, where the operation has another number of
    destinations than one, a sequence of as many values. A parsed program has no `fn`; the interpreters then evaluate
    `text`. Passes rename variables in `text`, while `written` is the user's own expression; None where the compiler
    made the expression.

    `effects` are for the checks of the source: no pass asks for them.
    """

    text: str
    ins: tuple[str, ...]
    fn: Callable[..., Any] | None = field(default=None, compare=False, repr=False)
    written: Written | None = field(default=None, compare=False, repr=False)
    effects: Effects = field(default=NO_EFFECTS, compare=False, repr=False)

    def says(self, text: str) -> bool:
        """Whether the source of the expression contains `text`."""
        return text in self.text or (self.written is not None and self.written.says(text))

    def renamed(self, new: New) -> Expr:
        """Rename the variables that it reads; its text is rewritten where that is possible."""
        ins = tuple(map(new, self.ins))
        if ins == self.ins:
            return self
        renamed = tuple(sorted({(old, to) for old, to in zip(self.ins, ins, strict=True) if old != to}))
        return replace(self, ins=ins, text=rename_text(self.text, renamed))


def unset() -> None:
    """Stand for no value: a variable that has none yet gets its type from its other definitions, and zeros."""


UNSET = Expr("unset", (), unset)


@dataclass(frozen=True, slots=True)
class Prim:
    """A primitive `dsts = expr`: straight-line computation without control flow."""

    dsts: Writes
    expr: Annotated[Expr, Role(lambda expr: expr.ins, Expr.renamed)]
    loc: Loc | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Move:
    """A copy `dst = src` of a variable."""

    dst: Write
    src: Read
    loc: Loc | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Select:
    """A selection `dst = on_true if cond else on_false` of variables that are computed already."""

    dst: Write
    cond: Read
    on_true: Read
    on_false: Read
    loc: Loc | None = field(default=None, compare=False)


PureOp = Prim | Move | Select
"""The operations that only compute values: they may be removed, copied and moved."""


@dataclass(frozen=True, slots=True)
class Print:
    """An operation that writes a message, with its line end, to the standard output.

    It is never removed, duplicated, moved past another one or run for inactive lanes.
    """

    message: Shown
    loc: Loc | None = field(default=None, compare=False)


EffectOp = Print
"""The operations that do more than to compute values: a lane makes each as often, and in the order, that it stands
there."""


@dataclass(frozen=True, slots=True)
class Check:
    """An operation that ends the lane if the variable `failed` is true; else nothing happens.

    `kind`, `name` and `message` are those of the `Fail`. It may be moved down past operations without an effect, since
    a lane that fails has no further use for what they compute. `lower_checks` replaces it by branches.
    """

    failed: Read
    kind: str
    name: str
    message: Shown = ()
    loc: Loc | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Jump:
    """A terminator that continues at a block."""

    target: str


@dataclass(frozen=True, slots=True)
class Branch:
    """A terminator that continues at one of two blocks (or `RETURN`)."""

    cond: Read
    on_true: str
    on_false: str
    loc: Loc | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Return:
    """A terminator that leaves the function; the results are in its result variables."""


ASSERTION, ERROR, CAPACITY, LIMIT = "assertion", "error", "capacity", "limit"  # the kinds of `Fail`


@dataclass(frozen=True, slots=True)
class Fail:
    """A terminator that ends the lane: `name` is the exception of the plain function.

    `kind` is `ASSERTION`, `ERROR`, or what the plain function does not raise for: `CAPACITY`, a container of the lane
    is full, or `LIMIT`, a lane cannot hold a value.
    """

    kind: str
    name: str
    message: Shown = ()
    loc: Loc | None = field(default=None, compare=False)


@lru_cache(maxsize=4096)
def rename_text(text: str, renamed: tuple[tuple[str, str], ...]) -> str:
    """Replace variables in the text of an expression, given as (old, new), where that is possible."""
    try:
        tree = ast.parse(text, mode="eval")
        nested = any(isinstance(n, ast.Lambda | ast.comprehension | ast.NamedExpr) for n in ast.walk(tree))
        if nested:  # inner scopes may bind the same names: the text stays, and the printer lists the inputs
            return text
        return ast.unparse(_Renamer(dict(renamed)).visit(tree))
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
