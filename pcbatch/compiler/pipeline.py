"""The passes in order, the verifier after each, and the programs of every stage.

`compile_stages` goes from a Python function to the program that the machine runs: front end, type inference and what
only types tell about loops, `flatten`, `CFG_PASSES`, `MERGING_PASSES`, `lower_calls`, `STACK_PASSES`, block layout.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Any, TypeVar

from pcbatch import frontend
from pcbatch.compiler import expand
from pcbatch.compiler.along import Again, explained, look
from pcbatch.diagnostics.diagnostic import in_order
from pcbatch.diagnostics.short_repr import short
from pcbatch.errors import CompileError, InternalError
from pcbatch.frontend.build.kept_primitives import keeping_primitives
from pcbatch.frontend.source.along import Along, Reason
from pcbatch.frontend.source.callee import BatchedTest, Statics, is_static
from pcbatch.frontend.source.decisions import NONE, Decisions
from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.export import to_dot, to_json
from pcbatch.ir.printer import print_program
from pcbatch.ir.stack import StackProgram
from pcbatch.ir.verifier import verify
from pcbatch.lowering.cfg_passes import (
    auto_inline,
    clone_shared,
    copy_propagation,
    dead_code,
    enter_loops,
    fail_unbound,
    flatten,
    forward_destinations,
    if_conversion,
    inline,
    known_failures,
    lift_captures,
    low_bits,
    lower_checks,
    prove_checks,
    simplify_cfg,
    specialise,
    split_live_ranges,
    split_loops,
    unroll,
    wrap_entry,
)
from pcbatch.lowering.diagnose import check_ownership, check_types
from pcbatch.lowering.jaxpr_passes import drop_conversions, fuse_products, integer_marks, rng_by_lane, unroll_threefry
from pcbatch.lowering.left_out import runs
from pcbatch.lowering.stack_passes import (
    block_layout,
    hoist_uniform,
    lower_calls,
    register_coalescing,
    simplify_stack,
    storage_classes,
    superblocks,
)
from pcbatch.lowering.typing import infer
from pcbatch.lowering.typing.abstract_values import Abstract, Known
from pcbatch.lowering.typing.inferred import Inferred, untyped
from pcbatch.lowering.typing.join_types import differs
from pcbatch.lowering.typing.kept_traces import keeping_traces
from pcbatch.records.made import using_made
from pcbatch.records.tables import TABLES

ProgramT = TypeVar("ProgramT", CfgProgram, StackProgram)

CFG_PASSES = (
    simplify_cfg.run,
    copy_propagation.run,
    low_bits.run,
    prove_checks.run,
    integer_marks.run,
    forward_destinations.run,
    dead_code.run,
    simplify_cfg.run,
    if_conversion.run,
    simplify_cfg.run,
    copy_propagation.run,
    forward_destinations.run,
    dead_code.run,
    lower_checks.run,
    simplify_cfg.run_tails,
)

# What follows is for program counters alone: the local strategy makes one program of a callee, loops and all.
MERGING_PASSES = (
    auto_inline.run,
    simplify_cfg.run,
    copy_propagation.run,
    forward_destinations.run,
    dead_code.run,
    if_conversion.run,
    simplify_cfg.run_tails,
)

STACK_PASSES = (
    copy_propagation.run_stack,
    forward_destinations.run_stack,
    dead_code.run_stack,
    register_coalescing.run,
    simplify_stack.run,
    dead_code.run_stack,
    superblocks.run,
    copy_propagation.run_stack,
    forward_destinations.run_stack,
    dead_code.run_stack,
    register_coalescing.run_stores,
    simplify_stack.run,
    dead_code.run_stack,
)


@dataclass(frozen=True, slots=True)
class Stages:
    """One function compiled for one signature (or for none: `result` is then None and types are unknown)."""

    cfg: CfgProgram  # as the front end made it, typed
    optimised_cfg: CfgProgram  # what local static autobatching runs
    inlined_cfg: CfgProgram  # with fewer calls
    stack: StackProgram  # calls lowered
    opt: StackProgram  # what program-counter autobatching runs
    schedule: str  # the policy that the blocks of `opt` are ordered for
    params: Mapping[str, Abstract]  # inferred types of the entry's parameters, in order
    result: Abstract | None  # structure of one lane's result
    captures: Mapping[str, Any] = field(default_factory=dict)  # further parameters of `opt`, of an outer trace
    along: tuple[Reason, ...] = ()  # the functions without a decorator that were compiled along

    @property
    def owners(self) -> list[str]:
        """The parameter of the function that each argument of a program, captured ones excepted, is a leaf of."""
        return [name for name, type_ in self.params.items() for _ in flatten.array_leaves(name, type_)]


def checked(program: ProgramT, name: str, user_faults: tuple[str, ...] = ()) -> ProgramT:
    """Return a program that the verifier accepts; raises InternalError if pass `name` left it invalid.

    `user_faults` are rules that, so early, only the user's own program can break: diagnostics report those later.
    """
    faults = [fault for fault in verify(program) if fault.rule not in user_faults]
    if faults:
        raise InternalError(f"after {name}:\n" + "\n".join(map(str, faults)) + "\n" + print_program(program))
    return program


def _after(old: ProgramT, new: ProgramT, name: str) -> ProgramT:
    """The result of pass `name` on a valid program, verified. Many change nothing, and comparing is cheaper."""
    return old if new == old else checked(new, name)


def compile_stages(
    fn: FunctionType,
    is_batched: BatchedTest,
    args: Mapping[str, Abstract] | None,
    shared_args: frozenset[str] = frozenset(),
    schedule: str = "auto",
    apart: frozenset[str] = frozenset(),
    rounds: int | None = None,
) -> Stages:
    """Compile a function for one signature: run all passes and return the program of every stage.

    `is_batched` says which callees are batched functions, whose calls are calls of the program. `args` gives the type
    of every parameter for one lane; None compiles without types, for the checks that need none. `shared_args` names the
    parameters that are uniform. Captured values of an outer trace are uniform as well, unless they are among `apart`
    (by their names in the program). `schedule` is a policy, or "auto". `rounds`: of a small loop, in one visit;
    None: by cost. Raises CompileError for errors of the user's program, InternalError for those of a pass.
    """
    along, decisions = Along(is_batched), replace(NONE, made=wrap_entry.classes_of_arguments(args or {}))
    first: CompileError | None = None
    with keeping_primitives(), keeping_traces():
        while True:
            try:
                with using_made(decisions.made):
                    return _compile(fn, along, decisions, args, shared_args, schedule, apart, rounds)
            except Again:
                along = along.grown()
            except expand.Expand as more:
                decisions = more.decisions
            except check_ownership.Aliased as error:
                # The names may be kept equal; if they cannot, what is reported is the program as it was written.
                written = _with_names(CompileError(error.diagnostics), fn, along, _statics(args or {}))
                first = first or explained(written, along)
                linked = expand.linking(error, decisions)
                if linked == decisions:
                    raise first from None
                decisions = linked
            except CompileError as error:
                raise (first or explained(error, along)) from None


def _compile(
    fn: FunctionType,
    is_batched: Along,
    decisions: Decisions,
    args: Mapping[str, Abstract] | None,
    shared_args: frozenset[str],
    schedule: str,
    apart: frozenset[str],
    rounds: int | None,
) -> Stages:
    statics = _statics(args or {})
    source = checked(_front_end(fn, is_batched, decisions, statics, args is None), "frontend", ("defined",))
    source = checked(inline.run(source), "inline", ("defined",))
    result, params = None, dict[str, Abstract]()
    shared_leaves: frozenset[str] = frozenset()
    if args is None:
        cfg = checked(split_live_ranges.run(source), "split_ranges", ("defined",))
        entered = checked(enter_loops.run(source, cfg, Inferred()), "enter_loops", ("defined",))
        cfg = checked(split_live_ranges.run(entered), "split_ranges", ("defined",))
        check_types.run_untyped(cfg)
        cfg = checked(fail_unbound.run(cfg, untyped(cfg)), "fail_unbound")
    else:
        cfg, inferred = _inferred(source, args, is_batched, decisions)
        try:
            check_types.run(cfg, inferred)
        except CompileError as error:
            named = _with_names(error, fn, is_batched, statics)
            expand.look_at_records(inferred, decisions, named)
            raise named from None
        try:
            check_ownership.run(cfg, inferred)
        except check_ownership.Aliased:
            expand.look_at_records(inferred, decisions)
            raise
        entry = cfg.function(cfg.entry)
        result = inferred.types[entry.name, entry.results[0]]
        params = {p: inferred.types[entry.name, p] for p in entry.params}
        params |= {p: value for p, value in args.items() if p == TABLES}
        shared_leaves = frozenset(leaf for p in shared_args for leaf, _ in flatten.array_leaves(p, params[p]))
        cfg = checked(drop_conversions.run(flatten.run(cfg, inferred)), "flatten")
    optimised = cfg
    for run in CFG_PASSES:
        new = run(optimised)
        # Marks are in jaxprs alone, in which programs that count as equal may differ.
        marks = run is integer_marks.run and new is not optimised
        optimised = checked(new, "integer_marks") if marks else _after(optimised, new, run.__module__)
    cloned = optimised
    if args is not None and runs("clone_shared"):
        cloned = _after(optimised, clone_shared.run(optimised, shared_leaves), "clone_shared")
    inlined = _inlined(cloned)
    if args is not None and runs("split_loops"):
        inlined = _after(inlined, split_loops.run(inlined, shared_leaves), "split_loops")
    stack = checked(storage_classes.run(lower_calls.run(inlined)), "lower_calls")
    qualified = _qualified(cfg, stack, shared_leaves)
    opened, captures = lift_captures.run(stack)
    opt = _optimise(_after(stack, opened, "captured"), qualified | (set(captures) - apart), rounds)
    # Decided on the program as it was before reordering, and once: the estimate may depend on the order.
    schedule = block_layout.choose_schedule(opt) if schedule == "auto" else schedule
    opt = checked(block_layout.run(opt, schedule), "order")
    if runs("fuse_products"):
        opt = _after(opt, fuse_products.run(opt), "fuse_products")
    # Last, because it makes draws look more expensive than they are. It changes only the jaxprs of primitives.
    for draws in (unroll_threefry, rng_by_lane):
        optimised, opt = draws.run_cfg(optimised), draws.run(opt)
    return Stages(
        cfg, optimised, inlined, stack, opt, schedule, params, result, captures, tuple(is_batched.reasons.values())
    )


def _front_end(fn: FunctionType, along: Along, decisions: Decisions, statics: Statics, names: bool) -> CfgProgram:
    """The program that the front end makes; raises Again if it found that more functions have to be compiled along."""
    try:
        source = frontend.compile_functions(fn, along, statics, names=names, decisions=decisions)
    except CompileError:
        if along.asks:
            raise Again from None
        raise
    if along.asks:
        raise Again
    return source


def _inlined(program: CfgProgram) -> CfgProgram:
    """The program after `auto_inline`, and after the passes that clean up behind it if it has changed anything."""
    for k, run in enumerate(MERGING_PASSES):
        new = _after(program, run(program), run.__module__)
        if k == 0 and new == program:
            break
        program = new
    return program


def _statics(args: Mapping[str, Abstract]) -> dict[str, object]:
    leaves = {name: value.leaves[0] for name, value in args.items() if len(value.leaves) == 1}
    return {n: leaf.value for n, leaf in leaves.items() if isinstance(leaf, Known) and is_static(leaf.value)}


def _inferred(
    source: CfgProgram, args: Mapping[str, Abstract], along: Along, decisions: Decisions
) -> tuple[CfgProgram, Inferred]:
    """The typed program and its types: loops and branches that only types can decide are rewritten first."""
    if decisions.made:
        source = checked(wrap_entry.with_records(source, args), "wrap_entry", ("defined",))
    source, cfg, inferred = _unrolled(source, args, along, decisions)
    if any(differs(v, inferred.types.get((source.entry, name), v)) for name, v in args.items()):
        # The function goes on with another structure in a parameter than it is given, a list that grows: a new entry
        # has the types of the arguments, and converts them where it calls the function.
        source, cfg, inferred = _unrolled(
            checked(wrap_entry.run(source), "wrap_entry", ("defined",)), args, along, decisions
        )
    entered = checked(enter_loops.run(source, cfg, inferred), "enter_loops", ("defined",))
    if entered != source:
        cfg, inferred = _unrolled(entered, args, along, decisions)[1:]
    if inferred.errors or inferred.conflicts:
        return cfg, inferred
    flagged = checked(fail_unbound.run(cfg, inferred), "fail_unbound", ("defined",))
    return (cfg, inferred) if flagged == cfg else (flagged, infer.run(flagged, args))


def _unrolled(
    source: CfgProgram, args: Mapping[str, Abstract], along: Along, decisions: Decisions
) -> tuple[CfgProgram, CfgProgram, Inferred]:
    """Infer types and unroll in turns, until no loop asks for it: the source, it with live ranges split, its types."""
    faulty: tuple[CfgProgram, CfgProgram, Inferred] | None = None
    while True:
        cfg = checked(split_live_ranges.run(source), "split_ranges", ("defined",))
        inferred = infer.run(cfg, args)
        if (apart := specialise.run(source, cfg, args, inferred)) != source:
            source = checked(apart, "specialise", ("defined",))
            continue
        expand.look_at_records(inferred, decisions)
        expand.look(cfg, inferred, decisions)
        look(cfg, inferred, along)
        if inferred.errors or inferred.conflicts:
            faulty = faulty if faulty and unroll.cuts(source) else (source, cfg, inferred)
        elif faulty is not None and not unroll.holds(cfg, inferred):
            return faulty  # arms that were cut because there were faults are possible
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


def _with_names(error: CompileError, fn: FunctionType, is_batched: BatchedTest, statics: Statics) -> CompileError:
    """Add diagnostics for undefined names: tracing stops at the first one of an expression, and never reaches code that
    depends on it."""
    try:
        frontend.compile_functions(fn, is_batched, statics, names=True)
    except CompileError as names:
        reported = {(d.code, d.primary and d.primary.loc) for d in error.diagnostics}
        more = [d for d in names.diagnostics if (d.code, d.primary and d.primary.loc) not in reported]
        return CompileError(in_order([*error.diagnostics, *more]))
    return error


def _qualified(cfg: CfgProgram, stack: StackProgram, leaves: frozenset[str]) -> frozenset[str]:
    """Shared parameters by their names in the merged program."""
    params = cfg.function(cfg.entry).params
    return frozenset(new for old, new in zip(params, stack.params, strict=True) if old in leaves)


def _optimise(program: StackProgram, shared_params: frozenset[str], rounds: int | None) -> StackProgram:
    shared = shared_params if runs("hoist_uniform") else frozenset[str]()
    program = checked(storage_classes.run(hoist_uniform.run(program, shared)), "shared")
    for run in STACK_PASSES:
        if run is superblocks.run and not runs("superblocks"):
            continue
        new = superblocks.run(program, rounds) if run is superblocks.run else run(program)
        program = _after(program, storage_classes.run(new), f"{run.__module__}.{run.__name__}")
    return program


def show(program: CfgProgram | StackProgram, format: str = "text") -> str:
    """Return a program as "text", as "json", or as a graph for graphviz ("dot"). Raises ValueError for others."""
    match format:
        case "text":
            return print_program(program)
        case "json":
            return json.dumps(to_json(program), indent=2)
        case "dot":
            return to_dot(program)
        case _:
            raise ValueError(f"unknown format {short(format)}")


def stages(batched: Any, args: tuple[Any, ...]) -> dict[str, CfgProgram | StackProgram]:
    """Return the programs "cfg", "stack" and "opt" of a batched function, for batched example arguments."""
    programs: Stages = batched.lower(*args).stages
    return {"cfg": programs.cfg, "stack": programs.stack, "opt": programs.opt}
