"""The compilation of a function for one signature: the way in which its lanes advance, and the program for that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import FunctionType

from pcbatch.call.arguments import Arguments
from pcbatch.compiler.block_infos import block_infos, cfg_block_infos
from pcbatch.compiler.fork import Forked, forked
from pcbatch.compiler.pipeline import Stages, compile_stages
from pcbatch.compiler.program import Program, Recompile
from pcbatch.compiler.result_axes import OutAxes
from pcbatch.compiler.schedules import lane_schedule, order_for
from pcbatch.compiler.typed_program import Typed, typed_program
from pcbatch.data.checks import NumberRules
from pcbatch.data.checks import using as using_rules
from pcbatch.frontend.source.callee import BatchedTest
from pcbatch.ir.analysis.callgraph import static_depth
from pcbatch.ir.ops import CAPACITY, Fail
from pcbatch.lowering.cfg_passes import unroll_recursion
from pcbatch.options import NUMBERS, Numbers, Options
from pcbatch.runtime.execute.executor import PcExecutable
from pcbatch.runtime.local_strategy.executor import LocalExecutable
from pcbatch.runtime.scalar.worth import Widths, beside, gathering


def compile_signature(
    fn: FunctionType,
    is_batched: BatchedTest,
    options: Options,
    given: Arguments,
    recompile: Recompile,
    rounds: int | None = None,
) -> Program:
    """Compile a function for the types of a call.

    Args:
        fn, options: the function and its options.
        is_batched: tells batched functions among what it calls.
        given: the call.
        recompile: compiles it again, with the same captured values.
        rounds: of a small loop, in one visit; None: by cost.
    """
    numbers = options.numbers if isinstance(options.numbers, Numbers) else NUMBERS[options.numbers]
    with using_rules(NumberRules(numbers.overflow, numbers.math_errors)):
        typed = typed_program(fn, is_batched, given.types, given.shared, recompile.decisions)
        recompile = replace(recompile, decisions=typed.decisions)
        stages = _stages(typed, options, recompile, rounds)
        if not given.alone or given.staged:
            return _program(fn, stages, options, given, recompile)
        alone = _program(
            fn, stages, replace(options, plan=replace(options.plan, emitter="scalar", fork="never")), given, recompile
        )
        widths, fork = _widths(fn, stages, options, given, alone)
        if given.lanes in widths:
            alone = _with_recursion_unrolled(fn, typed, alone, given, recompile, rounds)
            return replace(alone, alone=widths)
        return replace(_program(fn, stages, options, given, recompile, fork), alone=widths)


def _with_recursion_unrolled(
    fn: FunctionType, typed: Typed, alone: Program, given: Arguments, recompile: Recompile, rounds: int | None
) -> Program:
    """Return the program of lanes one after the other with small recursive functions unrolled, where neither
    the depth of calls nor the number of blocks is limited."""
    stages, options = alone.stages, alone.options
    limited = options.max_depth is not None or options.max_steps is not None
    if limited or unroll_recursion.run(stages.inlined_cfg) == stages.inlined_cfg:
        return alone
    unrolled = compile_stages(typed, order_for(options), recompile.captured, rounds, unrolls_recursion=True)
    return _program(fn, unrolled, options, given, recompile)


def _widths(
    fn: FunctionType, stages: Stages, options: Options, given: Arguments, alone: Program
) -> tuple[Widths, Forked | None]:
    """Return the numbers of lanes that run one after the other, and the program of tasks, if it was asked for."""
    if not isinstance(alone.executable, PcExecutable):
        return Widths(), None
    widths, costs = alone.executable.alone, alone.executable.costs
    if options.plan.fork == "never" or not gathering(costs):
        return widths, None
    fork = forked(fn.__name__, stages, options, given.shared)
    return beside(widths, costs, fork.tasks is not None), fork


def _stages(typed: Typed, options: Options, recompile: Recompile, rounds: int | None) -> Stages:
    return compile_stages(typed, order_for(options), recompile.captured, rounds)


def _program(
    fn: FunctionType,
    stages: Stages,
    options: Options,
    given: Arguments,
    recompile: Recompile,
    fork: Forked | None = None,
) -> Program:
    """Return the program of some stages under some options, ready to run; `fork` if its tasks are made already."""
    axes = OutAxes(fn.__name__, stages, options.out_axes, given.shared)
    fork = fork or forked(fn.__name__, stages, options, given.shared)
    if options.strategy == "local":
        local = LocalExecutable(stages.optimised_cfg, options)
        return _complete(Program(stages, options, local, cfg_block_infos(stages.optimised_cfg), axes, recompile))
    policy = lane_schedule(fn, stages, options, fork)
    donated = frozenset(_leaves(stages, options.donate_argnames))
    steps = stages.forms if options.plan.emitter == "scalar" else stages.opt
    forms = stages.forms if given.alone and given.staged else None
    depth = static_depth(stages.inlined_cfg)
    executable = PcExecutable(steps, options, policy, depth, donated, fork.tasks, forms=forms)
    program = Program(stages, options, executable, block_infos(stages.opt), axes, recompile)
    return _complete(replace(program, forked=fork))


def _complete(program: Program) -> Program:
    return replace(program, may_be_full=any(isinstance(end, Fail) and end.kind == CAPACITY for end in program.ends))


def _leaves(stages: Stages, names: tuple[str, ...]) -> Iterator[str]:
    """The names of the array leaves of these parameters in the program."""
    for param, owner in zip(stages.opt.params, stages.owners, strict=False):
        if owner in names:
            yield param
