"""The compilation of a function, and of all batched functions that it reaches, to a CFG program."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import CodeType, FunctionType

from pcbatch.data.functions import drafts
from pcbatch.data.functions.users_code import use_stand_ins
from pcbatch.data.objects.function_values import FunctionValue
from pcbatch.decisions import Decisions
from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.errors import CompileError
from pcbatch.frontend.build.builder import Builder, keep_parameters
from pcbatch.frontend.build.exceptions import begin_catching, end_catching
from pcbatch.frontend.build.expressions import lower_into
from pcbatch.frontend.build.iteration import consumers
from pcbatch.frontend.build.iteration.taken_iterables import write_elements
from pcbatch.frontend.build.links import synced
from pcbatch.frontend.build.statements import statements
from pcbatch.frontend.build.unbound import keep_flags, with_flags
from pcbatch.frontend.source.callee import Statics, Target
from pcbatch.frontend.source.function_unit import Faults, Unit
from pcbatch.frontend.source.generators import collect_yields
from pcbatch.frontend.source.helpers import Helpers, key_of
from pcbatch.frontend.source.locate import deep_trees
from pcbatch.frontend.source.own_classes import own_methods
from pcbatch.frontend.source.rewrites.simple_words import in_simple_words
from pcbatch.frontend.source.tree import constant, load, supported
from pcbatch.frontend.subset.check import check
from pcbatch.frontend.subset.undefined import check_defined, check_deleted, check_nested
from pcbatch.frontend.support.helper_copies import stand_in
from pcbatch.frontend.support.tracer_operators import check_tracers
from pcbatch.frontend.symbols import Request, Symbols, callees, parameters_given_back
from pcbatch.ir.analysis.liveness import live_in
from pcbatch.ir.cfg import CfgProgram, Function
from pcbatch.ir.ops import Prim, Return
from pcbatch.ir.roles import writes

use_stand_ins(stand_in)

# The codes of faults that leave control flow as it is: those of expressions, and of statements without effect on it.
HARMLESS = frozenset(
    f"PCB{number}" for number in (104, 108, 109, 113, 116, 117, 119, 120, 122, 204, 205, 206, 207, 208)
)


MOST_LEVELS = 8  # of functions that capture one another
MOST_VERSIONS = 128  # of one function, for the functions that its calls hand on
LEVELS_HELP = "keep the values that the functions read in a list, and go over it"


def compile_functions(entry: FunctionType, helpers: Helpers, statics: Statics, *, names: bool = False) -> CfgProgram:
    """Compile `entry`, and every batched function that its calls reach, to a CFG program.

    Args:
        entry: The plain function that a batch runs.
        helpers: The decisions, and a function from an object to the target of a call of it, None unless it is batched.
        statics: The arguments of `entry` that are known objects.
        names: Whether undefined names are always looked for; else only where there are other faults, because tracing
            finds them too and knows which are reached.

    Raises:
        CompileError: With the diagnostics of all functions.
        Restart: More functions have to be compiled along.
    """
    check_tracers()
    try:
        program = _compile(Symbols(helpers), entry, statics, names)
    except RecursionError:  # an expression of hundreds of terms
        with deep_trees():
            program = _compile(Symbols(helpers), entry, statics, names)
    helpers.demand(helpers.wants)
    return program


def _compile(symbols: Symbols, entry: FunctionType, statics: Statics, names: bool) -> CfgProgram:
    while True:
        program = _compile_once(symbols, entry, statics, names)
        given_back = parameters_given_back(program.functions, symbols.given_back)
        # The entry gives nothing back; whether it changes its parameters matters only if it is called.
        if program.entry not in {name for function in program.functions for name in callees(function)}:
            given_back.pop(program.entry, None)
        given_back = {**symbols.given_back, **given_back}
        touched = symbols.touch(program.functions)
        known = symbols.raising.keys() <= set(symbols.raised) and not symbols.lacks_parts
        if not touched and given_back == symbols.given_back and known:
            return program
        symbols.start_again(given_back)


def _compile_once(symbols: Symbols, entry: FunctionType, statics: Statics, names: bool) -> CfgProgram:
    pending = [symbols(Target(entry), statics)]
    functions: list[Function] = []
    diagnostics: list[Diagnostic] = []
    versions: Counter[CodeType] = Counter()
    for name in pending:  # calls in the functions compiled add to it
        _count_version(symbols.functions[name].fn, versions)
        try:
            function, faults = _compile_one(name, symbols, names)
        except CompileError as error:  # no source, no function
            diagnostics += error.diagnostics
            continue
        diagnostics += faults
        if function is not None:
            functions.append(function)
            # A function has only reachable blocks, so a call after a `return` needs no callee.
            pending += [callee for callee in callees(function) if callee not in pending]
    if diagnostics:
        symbols.helpers.demand(symbols.helpers.wants)
        raise CompileError(diagnostics)
    return CfgProgram(pending[0], tuple(functions))


def _compile_one(name: str, symbols: Symbols, names: bool) -> tuple[Function | None, tuple[Diagnostic, ...]]:
    """Compile one function; return it with its diagnostics.

    A function with harmless faults is built all the same: its graph shows further faults, and the functions that it
    calls are to be checked too.
    """
    request = symbols.functions[name]
    if (levels := _levels(request.statics)) > MOST_LEVELS:  # each call hands on a function that captures the last one
        symbols.helpers.demand(Decisions(functions={FunctionValue: None}))
        if levels > 4 * MOST_LEVELS:
            title = f"calls of `{request.fn.__name__}` hand on functions that capture one another, without end"
            raise CompileError(Diagnostic("PCB207", title, helps=(LEVELS_HELP,)))
    unit = in_simple_words(
        request.fn, symbols.helpers, request.statics, request.target, [collect_yields], [write_elements]
    )
    unit = replace(unit, is_entry=name == next(iter(symbols.functions)))
    faults = Faults(unit.source)
    check(unit, faults)
    codes = {fault.code for fault in faults.found}
    if codes or names:
        check_defined(unit, faults)
    if not codes <= HARMLESS:
        return None, faults.found
    function, found = _build(name, unit, request, symbols, faults)
    unbound = live_in(function)[function.blocks[0].label].difference(function.params)
    if unbound:  # which exception is raised may hang on whether a variable has a value
        function, found = _build(name, unit, request, symbols, faults, unbound)
    _note_changes(unit, request.target, function)
    return function, found.found


def _count_version(fn: FunctionType, versions: Counter[CodeType]) -> None:
    """Count a version of a function; refuse the one that shows that there is no end of them."""
    versions[fn.__code__] += 1
    if versions[fn.__code__] > MOST_VERSIONS:
        title = f"calls of `{fn.__name__}` hand on functions that are made of one another, without end"
        raise CompileError(Diagnostic("PCB207", title, helps=(LEVELS_HELP,)))


def _levels(statics: Statics) -> int:
    """The number of functions among arguments that capture one another."""
    around = [
        value.nested.outer for value in statics.values() if isinstance(value, Target) and value.nested is not None
    ]
    return max((1 + _levels(outer.statics) for outer in around), default=0)


def _build(
    name: str,
    unit: Unit,
    request: Request,
    symbols: Symbols,
    known: Faults,
    unbound: frozenset[str] = frozenset(),
) -> tuple[Function, Faults]:
    """Build the graph of a function; return it with its faults, the `known` ones among them.

    `unbound` are variables that some path may read without a value.
    """
    faults = Faults(unit.source)
    faults.include(known)
    builder = Builder(unit, faults, symbols, consumers)
    builder.unbound = unbound
    given_back = () if unit.is_entry else symbols.gives_back(name)
    keep_parameters(builder, given_back)
    _narrow_object(builder, unit)
    builder.fills = request.fills
    if request.catching:
        begin_catching(builder, unit.body[0])
    keep_flags(builder)
    statements(builder, unit.body)
    if builder.current in builder.reachable():  # control falls off the end, which returns None
        lower_into(builder, builder.result, constant(None, unit.body[-1]))
        builder.end(Return())
    if request.catching:
        symbols.raising |= dict.fromkeys(end_catching(builder))
    check_nested(builder)
    check_deleted(builder)
    function = with_flags(builder.finish(name, request.inline, given_back), builder.is_set)
    return synced(function, unit.decisions.linked), faults


def _narrow_object(b: Builder, unit: Unit) -> None:
    """Build what the parameter of the object of a method is: of its class, where others have a method of this name."""
    first, name = unit.params[:1], unit.fn.__name__
    key = next((key for key, cls in unit.classes.items() if vars(cls).get(name) is unit.fn), None)
    others = (cls for cls in unit.classes.values() if key is not None and not issubclass(cls, unit.classes[key]))
    if key is None or name == "__init__" or first[0] in unit.statics or not any(own_methods(others, name)):
        return
    value, at = load(first[0], unit.node), unit.body[0]
    b.plain_prim(first, supported(drafts.of_class, [value, load(key, unit.node)], at), shown=value, at=at)
    b.note(same=True)


def _note_changes(unit: Unit, target: Target, function: Function) -> None:
    """Ask for another round if a nested function changes variables around it in place, and they are no results yet."""
    ops = [op for block in function.blocks for op in block.ops]
    written = {name for op in ops if not (isinstance(op, Prim) and op.expr.effects.same) for name in writes(op)}
    missing = written.intersection(inner for inner, _ in target.captured) - set(unit.returned)
    if missing:
        unit.helpers.changing[key_of(unit.fn.__code__)] = frozenset(missing)
