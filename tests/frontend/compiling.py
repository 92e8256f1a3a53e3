"""A stand-in for batched objects, so that the front end is tested without the compiler behind it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

from pcbatch.decisions import NONE
from pcbatch.errors import CompileError, Restart
from pcbatch.frontend import compile_functions
from pcbatch.frontend.source.callee import Target
from pcbatch.frontend.source.helpers import Helpers
from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.verifier import verify
from tests.oracles.interpret_cfg import interpret_cfg


class Lane:
    """A batched function as the front end sees it: an object that leads to a plain function."""

    def __init__(self, fn: FunctionType) -> None:
        self.fn = fn
        functools.update_wrapper(self, fn)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*args, **kwargs)

    @property
    def plain(self) -> FunctionType:
        return self.fn


def lane(fn: Callable[..., Any]) -> Any:
    """Mark a function as batched."""
    return Lane(fn)  # type: ignore[arg-type]


def compiled(fn: Any) -> CfgProgram:
    """The CFG program of a function, plain or marked, checked by the verifier."""
    entry = fn.fn if isinstance(fn, Lane) else fn

    def batched(value: object) -> Target | None:
        if isinstance(value, Lane):
            return Target(value.fn)
        return Target(entry) if value is entry else None

    decisions = NONE
    while True:
        try:
            return compile_functions(entry, Helpers(batched, decisions), {})
        except Restart as restart:
            decisions |= restart.wants


def run(fn: Any, *args: Any) -> Any:
    """The result of the compiled function on one example."""
    (value,), _ = interpret_cfg(compiled(fn), args)
    return value


def agree(fn: Any, *examples: Any) -> None:
    """The compiled function equals the plain one on every example."""
    program = compiled(fn)
    for example in examples:
        args = example if isinstance(example, tuple) else (example,)
        (value,), _ = interpret_cfg(program, args)
        expected = fn(*args)
        assert value == expected and type(value) is type(expected), (args, value, expected)


def texts(fn: Any) -> list[str]:
    """The texts of the primitives of the entry function, in order."""
    program = compiled(fn)
    function = program.function(program.entry)
    return [op.expr.text for block in function.blocks for op in block.ops if hasattr(op, "expr")]


def refusals(fn: Any) -> list[tuple[str, int]]:
    """Codes of the diagnostics with their lines, counted from the function's first line (`def` is 1)."""
    entry = fn.fn if isinstance(fn, Lane) else fn
    try:
        compiled(fn)
    except CompileError as error:
        assert str(error)  # it can be laid out
        first = entry.__code__.co_firstlineno
        return [(d.code, d.primary.loc.line - first + 1) for d in error.diagnostics if d.primary is not None]
    return []


__all__ = ["Lane", "agree", "compiled", "lane", "refusals", "run", "texts", "verify"]
