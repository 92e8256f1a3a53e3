"""`pcbatch.learn_schedule`: a schedule that is learned from sample inputs of a function."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pcbatch.api.batched import Batched
from pcbatch.api.public import public
from pcbatch.call.arguments import Arguments
from pcbatch.call.usage import usage
from pcbatch.compiler.program import Program
from pcbatch.diagnostics.short_repr import short
from pcbatch.errors import UsageError
from pcbatch.learning.learn import WEIGHTS, learn
from pcbatch.learning.q_learning import Training
from pcbatch.runtime.learned.encodings import ENCODINGS
from pcbatch.runtime.learned.policy import Learned
from pcbatch.runtime.vm.raw_result import is_tracing


@public
def learn_schedule(
    f: Batched[Any, Any],
    /,
    *args: Any,
    encoding: str = "sort",
    episodes: int = 300,
    seed: int = 0,
    weights: str = "visits",
    **kwargs: Any,
) -> Learned:
    """Learn which block of a function should run next, by Q-learning on sample inputs (ED-Batch, ICML 2023).

    The samples are run once, to see which executions of blocks need each other; then visits are simulated on the host.
    Equal arguments give equal schedules. Results of the function never depend on its schedule.

    Args:
        f: the batched function. What is learned is for its options: for calls side by side if it runs so, else for
            lanes.
        *args, **kwargs: the samples, a batch as in a call; 32 are enough as a rule.
        encoding: what a state is: "base" (the blocks that something waits for), "max" (and for which most waits) or
            "sort" (in the order of how much waits).
        episodes: simulated runs to learn from.
        seed: of what is chosen at random.
        weights: "visits" to make few visits, or "cost" to weigh each by what its block is estimated to cost.

    Returns:
        A `Learned`, for `pcbatch.Plan(schedule=...)`; its `report()` has the visits beside those of fixed policies.

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
    _one_of("encoding", encoding, ENCODINGS)
    _one_of("weights", weights, WEIGHTS)
    _whole("episodes", episodes)
    _whole("seed", seed)
    program, given = sampled(f, args, kwargs)
    return learn(f.fn, program, given, Training(encoding, episodes, seed), weights)


def sampled(f: Batched[Any, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Program, Arguments]:
    """Return the program of a call without a learned schedule, which has room for its containers; and its arguments."""
    plan = f.options.plan
    plain = f if isinstance(plan.schedule, str) else f.with_options(plan=replace(plan, schedule="auto"))
    program, given = plain._programs.of_call(args, kwargs)
    if program.may_be_full and given.lanes and not is_tracing(given.arrays):
        plain.run(*args, **kwargs)  # containers get the room that they need
        program, given = plain._programs.of_call(args, kwargs)
    return program, given


def _one_of(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise _unknown(f"unknown {name} {short(value)}", f"choose one of {', '.join(map(repr, choices))}")


def _whole(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _unknown(f"{name} must be a whole number, not {short(value)}", f"leave {name} out, or write `{name}=100`")


def _unknown(title: str, help: str) -> UsageError:
    return usage("PCB426", title, help=help)
