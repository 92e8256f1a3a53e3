"""Whether a function runs as tasks: the executable of its tasks, or the reason why it has none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pcbatch.call.usage import usage
from pcbatch.compiler.pipeline import Stages
from pcbatch.errors import InternalError
from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.tasks import TaskProgram
from pcbatch.lowering.jaxpr_passes import rng_by_lane
from pcbatch.lowering.tasks import depth_limit, pipeline
from pcbatch.lowering.tasks.worth import Worth, why_not, worth, worth_deferring
from pcbatch.options import Options
from pcbatch.runtime.costs import memory
from pcbatch.runtime.learned import fingerprint
from pcbatch.runtime.learned.policy import TASKS, Learned
from pcbatch.runtime.tasks import CannotRun, TaskExecutable, TaskOptions


@dataclass(frozen=True, slots=True)
class Forked:
    """The outcome of `fork` of a plan: a program of tasks, or none, and the reason.

    Attributes:
        tasks: the executable.
        reason: why there is one, or none.
        possible: whether `fork="always"` gives one; False where that was not looked at.
    """

    tasks: TaskExecutable | None
    reason: str
    possible: bool = False


ALWAYS = Worth(True, 'the option is `fork="always"`', True)
LEARNED = Worth(True, "the schedule is one that was learned for tasks", True)
NOT_FORKED = Forked(None, 'the option is `fork="never"`')


def forked(name: str, stages: Stages, options: Options, shared: Iterable[str]) -> Forked:
    """Make the program of tasks of a function, if its options and what it does allow one.

    Args:
        name: The name of the function.
        stages: Its programs.
        options: Its options.
        shared: The parameters that all lanes share.

    Raises:
        UsageError: `fork="always"` of a function that cannot run so.
    """
    if options.plan.fork == "never":
        return NOT_FORKED
    captured = "it captures values of a function that JAX traces" if stages.captures else None
    reason = _against(options) or captured or why_not(stages.inlined_cfg)
    outcome = _attempt(stages, options, frozenset(shared)) if reason is None else Forked(None, reason)
    if outcome.tasks is None and options.plan.fork == "always":
        title = f'`{name}` cannot run with `fork="always"`: {outcome.reason}'
        raise usage("PCB401", title, help='write `fork="auto"`, which runs calls side by side where that is possible')
    return outcome


def _attempt(stages: Stages, options: Options, shared: frozenset[str]) -> Forked:
    """The executable of tasks, or why there is none; with "auto" a fault of ours is such a reason, as lanes can run."""
    try:
        return _executable(stages, options, shared)
    except CannotRun as error:
        return Forked(None, f"the machine of lists has no place for its results: {error}")
    except InternalError as error:
        if options.plan.fork == "always":
            raise
        return Forked(None, f"a fault of pcbatch, please report it: {str(error).splitlines()[0]}")


def _executable(stages: Stages, options: Options, shared: frozenset[str]) -> Forked:
    """The executable of tasks of a function that may have one, or why it has none."""
    cfg = rng_by_lane.run_cfg(stages.inlined_cfg)
    leaves = _shared_leaves(stages, cfg, shared)
    if options.max_depth is not None:
        cfg = depth_limit.run(cfg, options.max_depth)
    program = pipeline.run(cfg, leaves, defers=options.plan.fork == "always")
    defers = program is None
    program = program or pipeline.run(cfg, leaves)
    if program is None:
        return Forked(None, "no two of its calls are seen to be independent of each other")
    learned = options.plan.schedule if isinstance(options.plan.schedule, Learned) else None
    pays = _worth(program, options, defers)
    if not pays.pays:
        return Forked(None, pays.reason, possible=True)
    if learned is not None and fingerprint.of_tasks(program) != learned.blocks:
        learned = None  # other blocks of the same source
    limit = memory.share_of_device() if options.memory is None else options.memory
    chosen = TaskOptions(
        limit=limit,
        stats=options.stats,
        max_steps=options.max_steps,
        for_one=pays.for_one,
        most=pays.most,
        policy=learned,
    )
    return Forked(TaskExecutable(program, chosen), pays.reason, possible=True)


def _worth(program: TaskProgram, options: Options, defers: bool) -> Worth:
    """Whether tasks are worth it: as the options say, or as is estimated."""
    if options.plan.fork == "always":
        return ALWAYS
    if isinstance(options.plan.schedule, Learned):
        return LEARNED
    return worth_deferring(program) if defers else worth(program)


def _against(options: Options) -> str | None:
    """The option that keeps calls from running side by side."""
    if options.strategy != "pc":
        return f"the strategy is {options.strategy!r}"
    plan = options.plan
    if plan.kernel is not None:
        return 'the option `emitter="kernel"` is for lanes'
    if plan.emitter == "scalar" and plan.fork == "auto":
        return 'the option `emitter="scalar"` is for lanes'
    if plan.modes is not None:
        return "the option `modes` is for lanes"
    if plan.schedule != "auto" and not (isinstance(plan.schedule, Learned) and plan.schedule.machine == TASKS):
        return "the option `schedule` is for lanes"
    return None


def _shared_leaves(stages: Stages, cfg: CfgProgram, shared: frozenset[str]) -> frozenset[str]:
    """The leaves of shared parameters, by their names in the entry."""
    params = cfg.function(cfg.entry).params
    return frozenset(leaf for leaf, owner in zip(params, stages.owners, strict=False) if owner in shared)
