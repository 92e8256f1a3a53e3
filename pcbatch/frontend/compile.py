"""From a function to the program of it and all batched functions that it reaches."""

from __future__ import annotations

from dataclasses import dataclass
from types import FunctionType

from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.errors import CompileError
from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.build.statements import statements
from pcbatch.frontend.build.use_before_definition import check_deleted, check_helpers
from pcbatch.frontend.source.callee import BatchedTest, Statics, Target, same_statics
from pcbatch.frontend.source.faults import Faults
from pcbatch.frontend.source.function_unit import make_unit
from pcbatch.frontend.source.locate import deep_trees
from pcbatch.frontend.subset.check import check
from pcbatch.frontend.subset.check_names import fall_helps, falling_statement, never_returns, returns_value
from pcbatch.frontend.subset.undefined import check_defined
from pcbatch.frontend.support.tracer_operators import check_tracers
from pcbatch.ir.cfg import Call, CfgProgram, Function

# Faults of expressions, and of statements without which control flows as before.
HARMLESS = frozenset(
    f"PCB{number}" for number in (104, 108, 109, 110, 113, 116, 117, 118, 119, 120, 122, 204, 205, 206, 207, 208)
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A function to compile, for known objects as some of its arguments."""

    fn: FunctionType
    statics: Statics
    inline: bool


class Symbols:
    """Names of functions in the program, in order of discovery. Functions are told apart by identity and by the
    objects that they get as arguments, since those may decide what their calls mean."""

    def __init__(self, batched: BatchedTest) -> None:
        self.batched = batched
        self.functions: dict[str, Wanted] = {}

    def __call__(self, target: Target, statics: Statics) -> str:
        """The name of a function, made unique by a number when another one has the same."""
        for name, known in self.functions.items():
            if known.fn is target.fn and same_statics(known.statics, statics, self.batched):
                return name
        fn = target.fn
        name = self._unique(fn.__name__ if fn.__name__.isidentifier() else "lambda_")
        self.functions[name] = Wanted(fn, statics, target.inline)
        return name

    def _unique(self, name: str) -> str:
        candidate, number = name, 2
        while candidate in self.functions:
            candidate, number = f"{name}_{number}", number + 1
        return candidate


def compile_functions(
    entry: FunctionType, batched: BatchedTest, statics: Statics, *, names: bool = False
) -> CfgProgram:
    """The CFG program of `entry` and every batched function that its calls reach.

    `batched(obj)` gives what a call of a batched object runs and None for anything else; `statics` are those
    arguments of `entry` that are known objects. Raises CompileError with everything that was found in all functions;
    undefined names are looked for where there are other faults, or always if `names` (else tracing finds them, and
    knows which are reached).
    """
    check_tracers()
    try:
        return _compile(Symbols(batched), entry, statics, names)
    except RecursionError:  # an expression of hundreds of terms
        with deep_trees():
            return _compile(Symbols(batched), entry, statics, names)


def _compile(symbols: Symbols, entry: FunctionType, statics: Statics, names: bool) -> CfgProgram:
    pending = [symbols(Target(entry), statics)]
    functions: list[Function] = []
    found: list[Diagnostic] = []
    for name in pending:  # grows while it is walked
        try:
            function, faults = _compile_one(name, symbols, names)
        except CompileError as error:  # no source, no function
            found += error.diagnostics
            continue
        found += faults
        if function is not None:
            functions.append(function)
            # Only calls that can be reached: what stands after a `return` needs no callee.
            pending += [callee for callee in _callees(function) if callee not in pending]
    if found:
        raise CompileError(found)
    return CfgProgram(pending[0], tuple(functions))


def _callees(function: Function) -> tuple[str, ...]:
    calls = (op.func for block in function.blocks for op in block.ops if isinstance(op, Call))
    return tuple(dict.fromkeys(calls))


def _compile_one(name: str, symbols: Symbols, names: bool) -> tuple[Function | None, tuple[Diagnostic, ...]]:
    """The function, and what is wrong with it. One with faults is built all the same, if they leave its control
    flow as it is, for what only the graph shows and for the functions that it calls."""
    wanted = symbols.functions[name]
    unit = make_unit(wanted.fn, symbols.batched, wanted.statics)
    faults = Faults(unit.source)
    check(unit, faults)
    codes = {fault.code for fault in faults.found}
    if codes or names:
        check_defined(unit, faults)
    if not codes <= HARMLESS:
        return None, faults.found
    builder = Builder(unit, faults, symbols)
    statements(builder, unit.body)
    if builder.current in builder.reachable() and not returns_value(unit):
        if "PCB110" not in codes:
            never_returns(unit, faults)
    elif builder.current in builder.reachable() and "PCB110" not in codes:
        cause = (unit.header, "this function returns a value on other paths")
        title, label = "not every path returns a value", "control can leave the function after this"
        last = falling_statement(unit.body)
        faults.add("PCB111", title, last, label, helps=fall_helps(last), cause=cause)
    check_helpers(builder)
    check_deleted(builder)
    return builder.finish(name, wanted.inline), faults.found
