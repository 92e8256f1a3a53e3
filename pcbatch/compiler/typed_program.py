"""The first half of a compilation: from a Python function to its typed program.

Front end, type inference, what only types tell about loops, and `flatten`. It starts again with each decision that only
types can make.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from threading import RLock
from types import FunctionType
from typing import TypeVar

from pcbatch import frontend
from pcbatch.compiler.wants import explained, look, records, with_cause
from pcbatch.data.capacity import FullError
from pcbatch.data.objects.function_values import FunctionValue
from pcbatch.data.objects.made import using_made
from pcbatch.data.objects.tables import TABLES
from pcbatch.data.objects.tuples.displays import Displays, noting_displays
from pcbatch.decisions import NONE, Decisions, Reason
from pcbatch.diagnostics.diagnostic import Loc, in_order
from pcbatch.errors import CompileError, InternalError, Restart
from pcbatch.frontend.build.kept_primitives import keeping_primitives
from pcbatch.frontend.source.callee import BatchedTest, Statics, is_static
from pcbatch.frontend.source.helpers import Helpers
from pcbatch.frontend.source.rewrites.boxes.boxed_functions import boxes_wanted
from pcbatch.frontend.source.rewrites.function_values import needs_function_values
from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.stack import StackProgram
from pcbatch.ir.text.printer import print_program
from pcbatch.ir.verifier import verify
from pcbatch.lowering.analysis import copied_loops
from pcbatch.lowering.analysis.copied_loops import CopiedLoop
from pcbatch.lowering.cfg_passes import (
    by_class,
    enter_loops,
    fail_unbound,
    flatten,
    inline,
    known_failures,
    specialise,
    split_live_ranges,
    unroll,
    wrap_entry,
)
from pcbatch.lowering.diagnose import check_ownership, check_types
from pcbatch.lowering.diagnose.ownership_helps import CODE
from pcbatch.lowering.jaxpr_passes import drop_conversions
from pcbatch.lowering.typing import infer, mixed_variables
from pcbatch.lowering.typing.abstract_values import Abstract, Known
from pcbatch.lowering.typing.inferred import Inferred, untyped
from pcbatch.lowering.typing.join_types import differs
from pcbatch.lowering.typing.kept_traces import keeping_traces
from pcbatch.lowering.typing.leaves import array_leaves

ProgramT = TypeVar("ProgramT", CfgProgram, StackProgram)


def checked(program: ProgramT, name: str, user_faults: tuple[str, ...] = ()) -> ProgramT:
    """Return a program that the verifier accepts; raises InternalError if pass `name` left it invalid.

    `user_faults` are rules that, so early, only the user's own program can break: diagnostics report those later.
    """
    faults = [fault for fault in verify(program) if fault.rule not in user_faults]
    if faults:
        raise InternalError(f"after {name}:\n" + "\n".join(map(str, faults)) + "\n" + print_program(program))
    return program


@dataclass(frozen=True, slots=True)
class Typed:
    """One function, typed: of one signature or of none, before any pass that improves it.

    Attributes:
        cfg: the program.
        params: inferred types of the entry's parameters, in order.
        result: structure of one lane's result; None without a signature.
        shared: the leaves of parameters that are uniform.
        decisions: what was decided about the user's source.
        large: the loops of which the copies make a large part of it.
    """

    cfg: CfgProgram
    params: Mapping[str, Abstract]
    result: Abstract | None
    shared: frozenset[str]
    decisions: Decisions = NONE
    large: frozenset[Loc] = frozenset()

    @property
    def helpers(self) -> tuple[Reason, ...]:
        """The functions without a decorator that were compiled along."""
        return tuple(self.decisions.helpers.values())


# The codes of types without a join, and of what primitives say of them; with those of what records cannot hold.
UNLIKE = frozenset({"PCB301", "PCB302", "PCB303", "PCB304", "PCB307"})
STRUCTURES = UNLIKE | {"PCB320"}

# CPython counts the depth of the trees that it makes for all threads together (gh-106905, releases before 3.12).
_AT_ONCE = RLock()


@contextmanager
def keeping_work() -> Iterator[None]:
    """Keep primitives and their traces within the context: the compilations there are of one function, for containers
    of several rooms."""
    with keeping_primitives(), keeping_traces():
        yield


def typed_program(
    fn: FunctionType,
    is_batched: BatchedTest,
    args: Mapping[str, Abstract] | None,
    shared_args: frozenset[str] = frozenset(),
    decided: Decisions = NONE,
) -> Typed:
    """Compile a function for one signature as far as its types.

    `is_batched` says which callees are batched functions, whose calls are calls of the program. `args` gives the type
    of every parameter for one lane; None compiles without types, for the checks that need none. `shared_args` names the
    parameters that are uniform. `decided` is what was decided for these arguments before, for containers of another
    room: with it a compilation need not start again for each decision. Raises CompileError for errors of the user's
    program, InternalError for those of a pass, Restart if each lane needs a copy of packed objects, which the caller
    gives it.
    """
    settle = partial(_settled, fn, is_batched, args, shared_args)
    if decided != NONE:
        with suppress(CompileError), noting_displays(Displays()):  # an error is that of the program as it was written
            return _decided(settle, decided)
    first, notes = Decisions(made=wrap_entry.classes_of_arguments(args or {})), Displays()
    try:
        with noting_displays(notes):
            return _decided(settle, first)
    except CompileError as error:
        if not notes.found or UNLIKE.isdisjoint(one.code for one in error.diagnostics):
            raise
        others = [one for one in error.diagnostics if one.code not in STRUCTURES]
    try:
        with noting_displays(None):  # where records in place of tuples do not help, the error is that of the tuples
            return _decided(settle, first)
    except CompileError as error:
        raise (CompileError(others) if others else error) from None


def _decided(settle: Callable[[Decisions], Typed], decisions: Decisions) -> Typed:
    """Compile, and once more with large loops over numbers as loops, where nothing asks for numbers known while
    compiling."""
    typed = settle(decisions)
    large = typed.large - typed.decisions.copies
    if not large:
        return typed
    with suppress(CompileError):
        return settle(typed.decisions | Decisions(rolled=large))
    return replace(typed, decisions=typed.decisions | Decisions(copies=large))


def _settled(
    fn: FunctionType,
    is_batched: BatchedTest,
    args: Mapping[str, Abstract] | None,
    shared_args: frozenset[str],
    decisions: Decisions,
) -> Typed:
    """Compile with these decisions, and those that turn out to be wanted."""
    first: CompileError | None = None  # of the program as it was written
    plain: CompileError | None = None  # of it without functions that are values
    with _AT_ONCE, keeping_work():
        while True:
            helpers = Helpers(is_batched, decisions, entry=(fn,))
            try:
                with using_made(decisions.made):
                    return _typed(fn, helpers, args, shared_args)
            except Restart as restart:
                if restart.wants.tables:
                    raise
                wants = restart.wants
                if restart.error is not None and not helpers.memos:
                    first = first or explained(restart.error, helpers)
                if restart.error is not None and decisions | wants == decisions:
                    if (boxes := _boxes(helpers, first, restart)) != NONE:
                        decisions = replace(decisions, linked=frozenset(), in_place=frozenset()) | boxes
                        continue
                    shown = with_cause(first, restart.error) if first and helpers.decisions.boxed else first
                    shown = shown or restart.error
                    wants = _otherwise(helpers, _clearer(plain, shown))
                    plain, first = (first or restart.error, None) if wants.functions else (plain, first)
                decisions |= wants
            except FullError as full:
                full.decided = decisions
                raise
            except CompileError as error:
                if (boxes := _boxes(helpers, first, error)) != NONE:
                    first = first or explained(error, helpers)
                    decisions = replace(decisions, linked=frozenset(), in_place=frozenset()) | boxes
                    continue
                later, error = error, first or explained(error, helpers)
                shown = with_cause(error, later) if first and helpers.decisions.boxed else error
                wants = _otherwise(helpers, _clearer(plain, shown))
                plain, first = (error, None) if wants.functions else (plain, first)
                decisions |= wants


def _boxes(helpers: Helpers, first: CompileError | None, error: CompileError | Restart) -> Decisions:
    """Decide which objects are boxed; while none is, also by the `first` error, where links have led to another one."""
    if isinstance(error, Restart):
        found = boxes_wanted(helpers, error.error, error.shared)
        return found if found != NONE or helpers.decisions.boxed else boxes_wanted(helpers, first)
    found = NONE if helpers.decisions.boxed else boxes_wanted(helpers, first)
    return found if found != NONE else boxes_wanted(helpers, error)


def _clearer(plain: CompileError | None, error: CompileError) -> CompileError:
    """Return the error to be shown: that of the program without functions that are values, or that with them."""
    codes = [{one.code for one in each.diagnostics} for each in (plain, error) if each is not None]
    return error if plain is None or codes[0] & {"PCB207", "PCB304"} or not codes[1] <= codes[0] else plain


def _otherwise(helpers: Helpers, error: CompileError) -> Decisions:
    """Decide that functions may be values of a lane, or that lanes keep no results of cached functions, as a program in
    which that is not so is refused; raise `error` where neither may help."""
    if needs_function_values(helpers):
        return Decisions(functions={FunctionValue: None})
    # Who changes what is kept finds it changed in Python, and not in a lane that makes each call anew.
    changed = helpers.decisions.boxed or any(diagnostic.code == CODE for diagnostic in error.diagnostics)
    if not helpers.memos or changed:
        raise error from None
    return Decisions(forgetful=frozenset(helpers.memos))


def _typed(fn: FunctionType, helpers: Helpers, args: Mapping[str, Abstract] | None, uniform: frozenset[str]) -> Typed:
    statics = _statics(args or {})
    source = frontend.compile_functions(fn, helpers, statics, names=args is None)
    source = checked(source, "frontend", ("defined",))
    copied = [name for name, key in helpers.names.items() if key in helpers.decisions.copied]
    source = checked(inline.run(source, copied), "inline", ("defined",))
    if args is None:
        cfg = checked(split_live_ranges.run(source), "split_ranges", ("defined",))
        entered = checked(enter_loops.run(source, cfg, Inferred()), "enter_loops", ("defined",))
        cfg = checked(split_live_ranges.run(entered), "split_ranges", ("defined",))
        check_types.run_untyped(cfg)
        return Typed(checked(fail_unbound.run(cfg, untyped(cfg)), "fail_unbound"), {}, None, frozenset())
    loops = dict[Loc, CopiedLoop]()
    cfg, inferred = _inferred(source, args, helpers, loops)
    try:
        _check(cfg, inferred)
    except Restart as refused:
        helpers.demand(records(inferred))
        error = refused.error and _with_names(refused.error, fn, helpers, statics)
        raise Restart(refused.wants, error, refused.shared) from None
    entry = cfg.function(cfg.entry)
    result = inferred.types[entry.name, entry.results[0]]
    params = {p: inferred.types[entry.name, p] for p in entry.params}
    params |= {p: value for p, value in args.items() if p == TABLES}
    shared = frozenset(leaf for p in uniform for leaf, _ in array_leaves(p, params[p]))
    large = copied_loops.large(loops, cfg, inferred)
    cfg = checked(drop_conversions.run(flatten.run(cfg, inferred)), "flatten")
    return Typed(cfg, params, result, shared, helpers.decisions, large)


def _check(cfg: CfgProgram, inferred: Inferred) -> None:
    """Raise Restart with the diagnostics of types and of changes in place, and what would cure them."""
    try:
        check_types.run(cfg, inferred)
    except Restart as refused:
        codes = set[str]() if refused.error is None else {one.code for one in refused.error.diagnostics}
        try:
            check_ownership.run(cfg, inferred)
        except Restart as other:
            # What is known of an object may change by another name of it.
            if codes and (codes <= check_types.NO_END or check_types.of_nothing(cfg, inferred)):
                raise
            raise Restart(refused.wants, refused.error, other.error) from None
        raise
    check_ownership.run(cfg, inferred)


def _statics(args: Mapping[str, Abstract]) -> dict[str, object]:
    leaves = {name: value.leaves[0] for name, value in args.items() if len(value.leaves) == 1}
    return {n: leaf.value for n, leaf in leaves.items() if isinstance(leaf, Known) and is_static(leaf.value)}


def _inferred(
    source: CfgProgram, args: Mapping[str, Abstract], helpers: Helpers, loops: dict[Loc, CopiedLoop]
) -> tuple[CfgProgram, Inferred]:
    """The typed program and its types: loops and branches that only types can decide are rewritten first.

    The loops that are copied are added to `loops`.
    """
    if helpers.decisions.made:
        source = checked(wrap_entry.with_records(source, args), "wrap_entry", ("defined",))
    source, cfg, inferred = _unrolled(source, args, helpers, loops)
    if any(differs(v, inferred.types.get((source.entry, name), v)) for name, v in args.items()):
        # The function goes on with another structure in a parameter than it is given, a list that grows: a new entry
        # has the types of the arguments, and converts them where it calls the function.
        source, cfg, inferred = _unrolled(
            checked(wrap_entry.run(source), "wrap_entry", ("defined",)), args, helpers, loops
        )
    entered = checked(enter_loops.run(source, cfg, inferred), "enter_loops", ("defined",))
    if entered != source:
        cfg, inferred = _unrolled(entered, args, helpers, loops)[1:]
    if inferred.errors or inferred.conflicts:
        return cfg, inferred
    flagged = checked(fail_unbound.run(cfg, inferred), "fail_unbound", ("defined",))
    return (cfg, inferred) if flagged == cfg else (flagged, infer.run(flagged, args))


def _unrolled(
    source: CfgProgram, args: Mapping[str, Abstract], helpers: Helpers, loops: dict[Loc, CopiedLoop]
) -> tuple[CfgProgram, CfgProgram, Inferred]:
    """Infer types and unroll in turns, until no loop asks for it: the source, it with live ranges split, its types.

    Raises:
        Restart: a loop has been copied that has to stay one, as its body changes what it goes over in the next round.
    """
    source, cfg, inferred = _unrolled_in_turns(source, args, helpers, loops)
    if miscounted := unroll.miscounted(cfg, inferred):
        raise Restart(Decisions(rolled=miscounted), CompileError([unroll.refused(loc) for loc in sorted(miscounted)]))
    return source, cfg, inferred


def _unrolled_in_turns(
    source: CfgProgram, args: Mapping[str, Abstract], helpers: Helpers, loops: dict[Loc, CopiedLoop]
) -> tuple[CfgProgram, CfgProgram, Inferred]:
    faulty: tuple[CfgProgram, CfgProgram, Inferred] | None = None
    while True:
        cfg = checked(split_live_ranges.run(source), "split_ranges", ("defined",))
        inferred = infer.run(cfg, args)
        if (specialised := specialise.run(source, cfg, args, inferred)) != source:
            source = checked(specialised, "specialise", ("defined",))
            continue
        look(cfg, inferred, helpers)
        if inferred.errors and (copied := split_live_ranges.split_before_loops(source, cfg, inferred)) != source:
            source = checked(copied, "split_before_loops", ("defined",))
            continue
        if inferred.errors and (told := by_class.run(source, cfg, inferred)) != source:
            source = checked(told, "by_class", ("defined",))
            continue
        if (inferred.errors or inferred.conflicts) and (mixed := mixed_variables.run(source, cfg, inferred)) != source:
            source = checked(mixed, "mixed_variables", ("defined",))
            continue
        if inferred.errors or inferred.conflicts:
            faulty = faulty if faulty and unroll.cuts(source) else (source, cfg, inferred)
        elif faulty is not None and not unroll.holds(cfg, inferred):
            return faulty  # arms that were cut because there were faults are possible
        loops |= unroll.copied_loops(source, cfg, inferred)
        unrolled = checked(unroll.run(source, cfg, inferred), "unroll", ("defined",))
        if unrolled == source and inferred.widened:
            unrolled = _without_widening(source, cfg, args)
        if unrolled == source and inferred.errors:
            unrolled = checked(known_failures.run(source, cfg, inferred), "known_failures", ("defined",))
        if unrolled == source:
            return source, cfg, inferred
        source = unrolled


def _without_widening(source: CfgProgram, cfg: CfgProgram, args: Mapping[str, Abstract]) -> CfgProgram:
    """The program without impossible branches, if no variable needs to be widened then (`z = None; z = z or 3`)."""
    pruned = unroll.prune(source, cfg, infer.run(cfg, args, widen=False))
    if pruned == source:
        return source
    split = checked(split_live_ranges.run(pruned), "split_ranges", ("defined",))
    inferred = infer.run(split, args, widen=False)
    return source if inferred.conflicts or not unroll.holds(split, inferred) else pruned


def _with_names(error: CompileError, fn: FunctionType, helpers: Helpers, statics: Statics) -> CompileError:
    """Add diagnostics for undefined names: tracing stops at the first one of an expression, and never reaches code that
    depends on it."""
    try:
        frontend.compile_functions(fn, helpers, statics, names=True)
    except CompileError as names:
        reported = {(d.code, d.primary and d.primary.loc) for d in error.diagnostics}
        more = [d for d in names.diagnostics if (d.code, d.primary and d.primary.loc) not in reported]
        return CompileError(in_order([*error.diagnostics, *more]))
    return error
