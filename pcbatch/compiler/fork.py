"""Whether a function runs as tasks: its program of tasks, or the reason why it has none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pcbatch.call.usage import usage
from pcbatch.compiler.pipeline import Stages
from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.tasks import TaskProgram
from pcbatch.lowering.jaxpr_passes import rng_by_lane
from pcbatch.lowering.tasks import pipeline, qualify
from pcbatch.lowering.tasks.worth import worth
from pcbatch.options import Options
from pcbatch.runtime.learned.policy import TASKS, Learned


@dataclass(frozen=True, slots=True)
class Forked:
    """The outcome of the option `fork`: a program or the reason why there is none, and whether one example runs so."""

    program: TaskProgram | None
    reason: str
    for_one: bool = True


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
    if options.fork == "never":
        return NOT_FORKED
    captured = "it captures values of a function that JAX traces" if stages.captures else None
    reason = _against(options) or captured or qualify.why_not(stages.inlined_cfg)
    program = None
    if reason is None:
        cfg = rng_by_lane.run_cfg(stages.inlined_cfg)
        program = pipeline.run(cfg, _shared_leaves(stages, cfg, frozenset(shared)))
        reason = "no two of its calls are ever independent of each other"
    if program is None and options.fork == "always":
        title = f'`{name}` cannot run with `fork="always"`: {reason}'
        raise usage("PCB401", title, help='write `fork="auto"`, which runs calls side by side where that is possible')
    if program is None:
        return Forked(None, reason or "")
    pays = worth(program)
    if options.fork == "always":
        return Forked(program, 'the option is `fork="always"`')
    if isinstance(options.schedule, Learned):
        return Forked(program, "the schedule was learned for them")
    return Forked(program if pays.pays else None, pays.reason, pays.for_one)


def _against(options: Options) -> str | None:
    """The option that keeps calls from running side by side."""
    if options.strategy != "pc":
        return f"the strategy is {options.strategy!r}"
    for option in ("max_steps", "max_depth", "modes"):
        if getattr(options, option) is not None:
            return f"the option `{option}` is for lanes"
    if options.schedule != "auto" and not (isinstance(options.schedule, Learned) and options.schedule.machine == TASKS):
        return "the option `schedule` is for lanes"
    return "the option `stats` counts visits of lanes" if options.stats else None


def _shared_leaves(stages: Stages, cfg: CfgProgram, shared: frozenset[str]) -> frozenset[str]:
    """The leaves of shared parameters, by their names in the entry."""
    params = cfg.function(cfg.entry).params
    return frozenset(leaf for leaf, owner in zip(params, stages.owners, strict=False) if owner in shared)
