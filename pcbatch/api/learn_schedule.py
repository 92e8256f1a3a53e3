"""`pcbatch.learn_schedule`: a schedule that is learned from sample inputs of a function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pcbatch.api.batched import Batched
from pcbatch.api.programs import Programs
from pcbatch.api.public import public
from pcbatch.api.tune import CallBench, refuse_effects
from pcbatch.call.arguments import Arguments
from pcbatch.call.results import Result
from pcbatch.call.usage import usage
from pcbatch.compiler.growth import run_growing
from pcbatch.compiler.program import Program
from pcbatch.diagnostics.short_repr import short
from pcbatch.errors import UsageError
from pcbatch.learning.learn import learn_task, task_of
from pcbatch.learning.q_learning import Training
from pcbatch.runtime.learned.encodings import ENCODINGS
from pcbatch.runtime.learned.policy import Learned
from pcbatch.runtime.vm.raw_result import is_tracing
from pcbatch.tuning.race import Candidate, Race


@public
def learn_schedule(
    f: Batched[Any, Any],
    /,
    *args: Any,
    encoding: str = "sort",
    episodes: int = 300,
    seed: int = 0,
    seconds: int = 0,
    **kwargs: Any,
) -> Learned:
    """Learn which block of a function should run next, from sample inputs (ED-Batch, ICML 2023), where that gains.

    The samples are run once, to see which executions of blocks need each other; then visits are simulated on the host.
    A table is learned by Q-learning, and a rule is fitted, on every second sample. The others judge both and the fixed
    schedules, and the best is deployed. Equal arguments give equal schedules. Results of the function never depend on
    its schedule.

    Args:
        f: the batched function. What is learned is for its options: for calls side by side if it runs so, else for
            lanes.
        *args, **kwargs: the samples, a batch as in a call: twice as many as calls will have, if those are few.
        encoding: what a state is: "base" (the blocks that something waits for), "max" (and for which most waits) or
            "sort" (in the order of how much waits).
        episodes: simulated runs to learn from.
        seed: of what is chosen at random.
        seconds: judge by measured time, for about so long, as `f.tune` does: the schedule is then that of this machine.
            0: by visits and their estimated time.

    Returns:
        A `Learned`, for `pcbatch.Plan(schedule=...)`. Its `deployed` is the name of the best, `report()` compares all.

    Raises:
        CompileError, UsageError: as in a call; UsageError also where there is nothing to choose or to learn from.

    Example:
        >>> import jax.numpy as jnp, pcbatch
        >>> @pcbatch.batch
        ... def collatz(n):
        ...     steps = 0
        ...     while n != 1:
        ...         n = n // 2 if n % 2 == 0 else 3 * n + 1
        ...         steps = steps + 1
        ...     return steps
        >>> policy = pcbatch.learn_schedule(collatz, jnp.arange(1, 20), episodes=20)
        >>> collatz.with_options(plan=pcbatch.Plan(schedule=policy))(jnp.array([6, 27, 1])).tolist()
        [8, 111, 0]
    """
    if not isinstance(f, Batched):
        shown = getattr(f, "__name__", None) or type(f).__name__
        help = "decorate the function with `@pcbatch.batch`"
        raise usage("PCB426", f"a schedule is learned for a batched function, and `{shown}` is none", help=help)
    if encoding not in ENCODINGS:
        raise _unknown(f"unknown encoding {short(encoding)}", f"choose one of {', '.join(map(repr, ENCODINGS))}")
    _whole("episodes", episodes)
    _whole("seed", seed)
    _whole("seconds", seconds)
    plain = f.with_options(plan=replace(f.options.plan, schedule="auto"))
    program, given = sampled(plain, args, kwargs)
    if given.lanes < 2:  # every second one is held out
        help = "give a batch of typical inputs, as in a call: two at least, and 32 are enough as a rule"
        raise _unknown(f"too few samples to learn a schedule of `{f.fn.__name__}` from", help)
    alone = plain._programs.of_call(args, kwargs, alone=True)[0].is_alone_by_choice
    measure = None
    if seconds:
        refuse_effects(f.fn.__name__, program, "learn_schedule")
        call = replace(given.part(slice(1, None, 2)), alone=True)
        held_out: Any = partial(_HeldOut, call)
        measure = partial(_measured, CallBench(plain._programs, held_out, args, kwargs), seconds)
    task = replace(task_of(f.fn, program, given), alone=alone)
    return learn_task(f.fn.__name__, task, Training(encoding, episodes, seed), measure)


def sampled(f: Batched[Any, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Program, Arguments]:
    """Return the program of a call, which has room for its containers, and its arguments."""
    program, given = f._programs.of_call(args, kwargs)
    if program.may_be_full and given.lanes and not is_tracing(given.arrays):
        f.run(*args, **kwargs)  # containers get the room that they need
        program, given = f._programs.of_call(args, kwargs)
    return program, given


@dataclass(frozen=True, slots=True)
class _HeldOut:
    """A function that runs the samples held out, whatever it is called with."""

    call: Arguments
    programs: Programs

    def run(self, /, *args: Any, **kwargs: Any) -> Result:
        run = partial(run_growing, run=lambda program: program.execute(self.call, None))
        program, raw = self.programs.run(self.programs.program(self.call), self.call, run)
        return program.result(raw, self.call.lanes, self.call)


def _measured(bench: CallBench, seconds: float, policies: Sequence[Learned]) -> dict[str, float]:
    """Return the seconds of the policies that were measured within the budget, by name."""
    rows = Race(bench, seconds, lambda one, other: None).run([Candidate(p.deployed, {"schedule": p}) for p in policies])
    return {row.candidate.name: row.seconds for row in rows if row.times}


def _whole(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _unknown(f"{name} must be a whole number, not {short(value)}", f"leave {name} out, or write `{name}=100`")


def _unknown(title: str, help: str) -> UsageError:
    return usage("PCB426", title, help=help)
