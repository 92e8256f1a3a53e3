"""Operations and jumps of the program types; `Branch` and `RETURN` belong to the CFG IR alone.

Variables are dotted identifiers ("n", "state.q", "even.n", "pair._0"), so every name is a legal Python
expression and expression texts can mention it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.ir.message import Message
from pcbatch.ir.written import Written

RETURN = "return"  # a branch target that means: leave the function


@dataclass(frozen=True, slots=True)
class Expr:
    """A primitive computation for ONE lane.

    `text` is its source (one line, for people and for the parser); `ins` are the variables it reads, in the
    order of the parameters of `fn`. `fn(*values)` gives the value, or a sequence of as many values as the
    operation has destinations when that number is not one. A parsed program has no `fn`; the interpreters
    then evaluate `text`. Passes rename variables in `text`; `written` is as the user has it, None where the
    compiler made the expression.
    """

    text: str
    ins: tuple[str, ...]
    fn: Callable[..., Any] | None = field(default=None, compare=False, repr=False)
    written: Written | None = field(default=None, compare=False, repr=False)

    def says(self, text: str) -> bool:
        """Does its source contain `text`?"""
        return text in self.text or (self.written is not None and self.written.says(text))


@dataclass(frozen=True, slots=True)
class Prim:
    """dsts = expr: straight-line computation without control flow."""

    dsts: tuple[str, ...]
    expr: Expr
    loc: Loc | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Move:
    """dst = src, unchanged."""

    dst: str
    src: str
    loc: Loc | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Select:
    """dst = on_true if cond else on_false, all three already computed."""

    dst: str
    cond: str
    on_true: str
    on_false: str
    loc: Loc | None = field(default=None, compare=False)


PureOp = Prim | Move | Select


@dataclass(frozen=True, slots=True)
class Print:
    """The lane writes a message (its line end included) to the standard output.

    The only effect among operations: never removed, duplicated, moved past another one or run for lanes elsewhere.
    """

    message: Message
    loc: Loc | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Jump:
    """Continue at a block."""

    target: str


@dataclass(frozen=True, slots=True)
class Branch:
    """Continue at one of two blocks (or `RETURN`)."""

    cond: str
    on_true: str
    on_false: str
    loc: Loc | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Return:
    """Leave the function; results stand in its result variables."""


ASSERTION, ERROR = "assertion", "error"  # the kinds of `Fail`


@dataclass(frozen=True, slots=True)
class Fail:
    """The lane ends here: `kind` says how, `name` is the exception that the plain function raises."""

    kind: str
    name: str
    message: Message = ()
    loc: Loc | None = field(default=None, compare=False)
