"""The schedules of a program: that of its lanes, and one that was learned for its tasks; a wrong one is refused."""

from __future__ import annotations

from types import FunctionType

from pcbatch.call.usage import usage
from pcbatch.compiler.fork import Forked
from pcbatch.compiler.pipeline import Stages
from pcbatch.errors import UsageError
from pcbatch.frontend.source.locate import locate
from pcbatch.options import Options
from pcbatch.runtime.learned import fingerprint
from pcbatch.runtime.learned.policy import TASKS, Learned
from pcbatch.runtime.vm.policies import Policy


def source_of(fn: FunctionType) -> str:
    """Return what identifies the source of a function."""
    located = locate(fn)
    node = located.node
    return fingerprint.of_text(fn.__name__, located.source.lines[node.lineno - 1 : node.end_lineno])


def schedules(fn: FunctionType, stages: Stages, options: Options, fork: Forked) -> tuple[str | Policy, Learned | None]:
    """Return the schedule of lanes, and that of tasks; None for the order of the machine itself.

    Other blocks of the same source, as where containers have grown, run without the learned schedule.

    Raises:
        UsageError: A learned schedule is that of another program. (PCB426)
    """
    chosen, name = options.schedule, fn.__name__
    if isinstance(chosen, str):
        return stages.schedule, None
    if not isinstance(chosen, Learned):
        return chosen, None
    if options.strategy != "pc":
        return stages.schedule, None
    if source_of(fn) != chosen.source:
        raise _of_another(name, chosen)
    if chosen.machine != TASKS:
        fits = fingerprint.of_lanes(stages.opt) == chosen.blocks
        return chosen if fits else stages.schedule, None
    if fork.program is None:
        title = f"the schedule was learned for calls side by side, and `{name}` runs in lanes: {fork.reason}"
        help = 'write `fork="auto"`, or learn it again with the options that the function has now'
        raise usage("PCB426", title, help=help)
    fits = fingerprint.of_tasks(fork.program) == chosen.blocks
    return stages.schedule, chosen if fits else None


def _of_another(name: str, policy: Learned) -> UsageError:
    learned = "" if policy.summary is None else f" of `{policy.summary.function}`"
    return usage(
        "PCB426",
        f"the schedule was learned for another program than that of `{name}`",
        f"it knows {len(policy.labels)} blocks{learned}; a change of the source makes another program",
        help="learn it again: `policy = pcbatch.learn_schedule(f, *samples)`",
    )
