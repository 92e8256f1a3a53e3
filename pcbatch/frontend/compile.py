"""The compilation of a function, and of all batched functions that it reaches, to a CFG program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import FunctionType

from pcbatch.data.functions.users_code import use_stand_ins
from pcbatch.decisions import CodeKey
from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.errors import CompileError
from pcbatch.frontend.build.builder import Builder, keep_parameters
from pcbatch.frontend.build.exceptions import begin_catching, end_catching
from pcbatch.frontend.build.expressions import lower_into
from pcbatch.frontend.build.iteration import consumers
from pcbatch.frontend.build.links import synced
from pcbatch.frontend.build.statements import statements
from pcbatch.frontend.changed_parameters import Changed, changed_parameters, touching
from pcbatch.frontend.source.along import Along, key_of
from pcbatch.frontend.source.callee import Statics, Target, same_statics
from pcbatch.frontend.source.function_unit import Faults, Unit
from pcbatch.frontend.source.generators import collect_yields
from pcbatch.frontend.source.locate import deep_trees
from pcbatch.frontend.source.make_unit import make_unit
from pcbatch.frontend.source.rewrites.clear_changes import write_changes
from pcbatch.frontend.source.rewrites.function_tables import write_out_choices
from pcbatch.frontend.source.rewrites.mapped_calls import write_out
from pcbatch.frontend.source.rewrites.method_calls import write_out_methods
from pcbatch.frontend.source.rewrites.stored_defaults import write_stored_defaults
from pcbatch.frontend.source.tree import constant
from pcbatch.frontend.subset.check import check
from pcbatch.frontend.subset.undefined import check_defined, check_deleted, check_nested
from pcbatch.frontend.support.helpers import stand_in
from pcbatch.frontend.support.tracer_operators import check_tracers
from pcbatch.ir.cfg import Call, CfgProgram, Function
from pcbatch.ir.ops import Return
from pcbatch.ir.roles import writes

use_stand_ins(stand_in)

# The codes of faults that leave control flow as it is: those of expressions, and of statements without effect on it.
HARMLESS = frozenset(
    f"PCB{number}" for number in (104, 108, 109, 113, 116, 117, 119, 120, 122, 204, 205, 206, 207, 208)
)


@dataclass(frozen=True, slots=True)
class Request:
    """A function to compile, with the arguments whose objects are known."""

    fn: FunctionType
    statics: Statics
    inline: bool
    target: Target
    catching: bool = False


class Symbols:
    """The functions of the program by name, in order of discovery.

    A function has an entry for each set of objects that its calls give as arguments, since these may decide which
    functions it calls in turn.
    """

    def __init__(self, along: Along) -> None:
        self.along = along
        self.functions: dict[str, Request] = {}
        self.changed: Changed = {}
        self.changing: set[CodeKey] = set()  # a nested function is another object in each round
        self.touching: set[CodeKey] = set()
        self.raised: tuple[type[BaseException], ...] = ()
        self.raising: dict[type[BaseException], None] = {}  # what functions raise for a `try` around their calls

    def start_again(self, changed: Changed) -> None:
        """Forget all functions; now it is known which parameters they change in place, and which classes lanes may
        leave a `try` with."""
        self.changed, self.raised = changed, tuple(self.raising)
        self.changing |= {key_of(known.fn.__code__) for name, known in self.functions.items() if self.changes(name)}
        self.functions.clear()

    def touch(self, functions: Sequence[Function]) -> bool:
        """Note which functions change objects in place; return whether a call was built without knowing that."""
        keys = {name: key_of(known.fn.__code__) for name, known in self.functions.items()}
        found = touching(functions, frozenset(name for name, key in keys.items() if key in self.touching))
        new = {keys[name] for name in found} - self.touching
        self.touching |= new
        return any(keys[callee] in new for function in functions for callee in _callees(function))

    def changes(self, name: str) -> tuple[str, ...]:
        """Return the parameters that a function of the program changes in place for its callers."""
        return self.changed.get(name, ())

    def may_change(self, target: Target) -> bool:
        """Return whether calls of a function may change their arguments."""
        return key_of(target.fn.__code__) in self.changing

    def may_touch(self, target: Target) -> bool:
        """Return whether calls of a function may change objects that are known elsewhere, under whatever name."""
        return key_of(target.fn.__code__) in self.touching

    def __call__(self, target: Target, statics: Statics, catching: bool = False) -> str:
        """Return the name of a function in the program, with a number if another function has its name.

        With `catching` the caller catches what the function raises.

        The entry gives its caller nothing but its result, so one that changes its parameters is compiled once more for
        calls of itself.
        """
        for k, (name, known) in enumerate(self.functions.items()):
            if k == 0 and self.changes(name):
                continue
            same = known.fn is target.fn and known.catching == catching
            if same and same_statics(known.statics, statics, self.along):
                return name
        fn = target.fn
        name = self._unique(fn.__name__ if fn.__name__.isidentifier() else "lambda_")
        self.functions[name] = Request(fn, statics, target.inline, target, catching)
        self.along.names[name] = key_of(fn.__code__)
        return name

    def _unique(self, name: str) -> str:
        candidate, number = name, 2
        while candidate in self.functions:
            candidate, number = f"{name}_{number}", number + 1
        return candidate


def compile_functions(entry: FunctionType, along: Along, statics: Statics, *, names: bool = False) -> CfgProgram:
    """Compile `entry`, and every batched function that its calls reach, to a CFG program.

    Args:
        entry: The plain function that a batch runs.
        along: The decisions, and a function from an object to the target of a call of it, None unless it is batched.
        statics: The arguments of `entry` that are known objects.
        names: Whether undefined names are always looked for; else only where there are other faults, because tracing
            finds them too and knows which are reached.

    Raises:
        CompileError: With the diagnostics of all functions.
        Restart: More functions have to be compiled along.
    """
    check_tracers()
    try:
        program = _compile(Symbols(along), entry, statics, names)
    except RecursionError:  # an expression of hundreds of terms
        with deep_trees():
            program = _compile(Symbols(along), entry, statics, names)
    along.demand(along.wants)
    return program


def _compile(symbols: Symbols, entry: FunctionType, statics: Statics, names: bool) -> CfgProgram:
    while True:
        program = _compile_once(symbols, entry, statics, names)
        changed = changed_parameters(program.functions, symbols.changed)
        # The entry gives nothing back; whether it changes its parameters matters only if it is called.
        if program.entry not in {name for function in program.functions for name in _callees(function)}:
            changed.pop(program.entry, None)
        changed = {**symbols.changed, **changed}
        touched = symbols.touch(program.functions)
        if not touched and changed == symbols.changed and symbols.raising.keys() <= set(symbols.raised):
            return program
        symbols.start_again(changed)


def _compile_once(symbols: Symbols, entry: FunctionType, statics: Statics, names: bool) -> CfgProgram:
    pending = [symbols(Target(entry), statics)]
    functions: list[Function] = []
    diagnostics: list[Diagnostic] = []
    for name in pending:  # calls in the functions compiled add to it
        try:
            function, faults = _compile_one(name, symbols, names)
        except CompileError as error:  # no source, no function
            diagnostics += error.diagnostics
            continue
        diagnostics += faults
        if function is not None:
            functions.append(function)
            # A function has only reachable blocks, so a call after a `return` needs no callee.
            pending += [callee for callee in _callees(function) if callee not in pending]
    if diagnostics:
        symbols.along.demand(symbols.along.wants)
        raise CompileError(diagnostics)
    return CfgProgram(pending[0], tuple(functions))


def _callees(function: Function) -> tuple[str, ...]:
    calls = (op.func for block in function.blocks for op in block.ops if isinstance(op, Call))
    return tuple(dict.fromkeys(calls))


def _compile_one(name: str, symbols: Symbols, names: bool) -> tuple[Function | None, tuple[Diagnostic, ...]]:
    """Compile one function; return it with its diagnostics.

    A function with harmless faults is built all the same: its graph shows further faults, and the functions that it
    calls are to be checked too.
    """
    request = symbols.functions[name]
    parts = request.fn, symbols.along, request.statics, request.target
    unit = make_unit(*parts)
    written = write_stored_defaults, write_out, write_out_choices, write_out_methods, write_changes
    for rewriting in (collect_yields, *written):
        if (node := rewriting(unit)) is not unit.node:
            unit = make_unit(*parts, node)
    unit = replace(unit, is_entry=name == next(iter(symbols.functions)))
    faults = Faults(unit.source)
    check(unit, faults)
    codes = {fault.code for fault in faults.found}
    if codes or names:
        check_defined(unit, faults)
    if not codes <= HARMLESS:
        return None, faults.found
    builder = Builder(unit, faults, symbols, consumers)
    changed = () if unit.is_entry else symbols.changes(name)
    keep_parameters(builder, changed)
    if request.catching:
        begin_catching(builder, unit.body[0])
    statements(builder, unit.body)
    if builder.current in builder.reachable():  # control falls off the end, which returns None
        lower_into(builder, builder.result, constant(None, unit.body[-1]))
        builder.end(Return())
    if request.catching:
        symbols.raising |= dict.fromkeys(end_catching(builder))
    check_nested(builder)
    check_deleted(builder)
    function = synced(builder.finish(name, request.inline, changed), unit.decisions.linked)
    _note_changes(unit, request.target, function)
    return function, faults.found


def _note_changes(unit: Unit, target: Target, function: Function) -> None:
    """Ask for another round if a nested function changes variables around it in place, and they are no results yet."""
    written = {name for block in function.blocks for op in block.ops for name in writes(op)}
    missing = written.intersection(inner for inner, _ in target.captured) - set(unit.rebound)
    if missing:
        unit.along.changing[key_of(unit.fn.__code__)] = frozenset(missing)
