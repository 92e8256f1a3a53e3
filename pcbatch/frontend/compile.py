"""From a function to the program of it and all batched functions that it reaches."""

from __future__ import annotations

from types import FunctionType

from pcbatch.diagnostics import Diagnostic
from pcbatch.errors import CompileError
from pcbatch.frontend.bound import check_helpers
from pcbatch.frontend.faults import Faults
from pcbatch.frontend.fence import check
from pcbatch.frontend.fence_names import RETURN_HELP, falling_statement, never_returns, returns_value
from pcbatch.frontend.graph import Builder
from pcbatch.frontend.stmts import statements
from pcbatch.frontend.unit import BatchedTest, make_unit
from pcbatch.ir.cfg import Call, CfgProgram, Function


class Symbols:
    """Names of functions in the program, in order of discovery; functions are told apart by identity."""

    def __init__(self) -> None:
        self.functions: dict[str, FunctionType] = {}

    def __call__(self, fn: FunctionType) -> str:
        """The name of `fn`, made unique by a number when another function has the same."""
        for name, known in self.functions.items():
            if known is fn:
                return name
        name = self._unique(fn.__name__ if fn.__name__.isidentifier() else "lambda_")
        self.functions[name] = fn
        return name

    def _unique(self, name: str) -> str:
        candidate, number = name, 2
        while candidate in self.functions:
            candidate, number = f"{name}_{number}", number + 1
        return candidate


def compile_functions(entry: FunctionType, batched: BatchedTest) -> CfgProgram:
    """The CFG program of `entry` and every batched function that its calls reach.

    `batched(obj)` gives the plain function of a batched object and None for anything else. Raises CompileError
    with everything that was found in all those functions.
    """
    symbols = Symbols()
    pending = [symbols(entry)]
    functions: list[Function] = []
    found: list[Diagnostic] = []
    for name in pending:  # grows while it is walked
        try:
            function = _compile_one(symbols.functions[name], batched, symbols)
        except CompileError as error:
            found += error.diagnostics
            continue
        functions.append(function)
        # Only calls that can be reached: what stands after a `return` needs no callee.
        pending += [callee for callee in _callees(function) if callee not in pending]
    if found:
        raise CompileError(found)
    return CfgProgram(pending[0], tuple(functions))


def _callees(function: Function) -> tuple[str, ...]:
    calls = (op.func for block in function.blocks for op in block.ops if isinstance(op, Call))
    return tuple(dict.fromkeys(calls))


def _compile_one(fn: FunctionType, batched: BatchedTest, symbols: Symbols) -> Function:
    unit = make_unit(fn, batched)
    faults = Faults(unit.source)
    check(unit, faults)
    _raise(faults)
    builder = Builder(unit, faults, symbols)
    statements(builder, unit.body)
    if builder.current in builder.reachable() and not returns_value(unit):
        never_returns(unit, faults)
    elif builder.current in builder.reachable():
        cause = (unit.header, "this function returns a value on other paths")
        title, label = "not every path returns a value", "control can leave the function after this"
        faults.add("PCB111", title, falling_statement(unit.body), label, helps=(RETURN_HELP,), cause=cause)
    check_helpers(builder)
    _raise(faults)
    return builder.finish(symbols(fn))


def _raise(faults: Faults) -> None:
    if faults.found:
        raise CompileError(faults.found)
