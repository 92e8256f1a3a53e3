"""The schedule of the lanes of a program, and the check of a learned one: that of another function is refused."""

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


def lane_schedule(fn: FunctionType, stages: Stages, options: Options, fork: Forked) -> str | Policy:
    """Return the schedule of lanes, and check a learned one; tasks have theirs in `fork`.

    Other blocks of the same source, as where containers have grown, run without the learned schedule.

    Raises:
        UsageError: A learned schedule is that of another function. (PCB426)
    """
    chosen, name = options.plan.schedule, fn.__name__
    if isinstance(chosen, str):
        return stages.schedule
    if not isinstance(chosen, Learned):
        policy: Policy = chosen
        return policy
    if options.strategy != "pc":
        return stages.schedule
    if source_of(fn) != chosen.source:
        raise _of_another(name, chosen)
    if chosen.machine != TASKS:
        return chosen if fingerprint.of_lanes(stages.opt) == chosen.blocks else stages.schedule
    if fork.tasks is None:
        title = f"the schedule was learned for calls side by side, and `{name}` runs in lanes: {fork.reason}"
        help = 'write `fork="auto"`, or learn it again with the options that the function has now'
        raise usage("PCB426", title, help=help)
    return stages.schedule


def _of_another(name: str, policy: Learned) -> UsageError:
    learned = "" if policy.summary is None else f" of `{policy.summary.function}`"
    return usage(
        "PCB426",
        f"the schedule was learned for another program than that of `{name}`",
        f"it knows {len(policy.labels)} blocks{learned}; a change of the source makes another program",
        help="learn it again: `policy = pcbatch.learn_schedule(f, *samples)`",
    )


def order_for(options: Options) -> str:
    """The schedule that blocks are ordered for; a policy of the user's gets the order that ours would have."""
    return options.plan.schedule if isinstance(options.plan.schedule, str) else "auto"
