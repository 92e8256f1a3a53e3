"""NUTS with a fixed step size: gradients per second, side by side. `python -m benchmarks.nuts [--target logistic]`

Programs take turns in one process: the batched leapfrog steps alone (the ceiling of any sampler), pcbatch on the
textbook sampler of `pcbatch.mcmc`, and, if they are installed, the hand-written samplers of BlackJAX and NumPyro under
`jax.vmap`. Useful gradients are those that a chain's own trajectory asked for; a batched gradient serves every chain,
wanted or not. With `--devices 4` all of them split their chains over so many devices of the CPU.

XLA gets one thread per device unless NPROC says otherwise, which suits all of them: their kernels are small, and
passing them between threads costs more than it gains.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from benchmarks.common import Row, interleaved_medians, report, seconds, timed
from benchmarks.devices import split, use
from benchmarks.samplers import (
    Sampler,
    batches,
    ceiling,
    correlated,
    pcbatch_sampler,
    peers,
    regression,
    utilisation,
)

SETTINGS = {"gaussian": correlated, "logistic": regression}
DRAWS = {"gaussian": 50, "logistic": 20}
REPEATS = {"gaussian": 5, "logistic": 11}  # the regression asks for one part in twenty
CHAINS = {"gaussian": [100, 1000], "logistic": [100]}
WORK = {"gaussian": 100_000, "logistic": 10_000}  # gradients of the run that measures the ceiling
OURS, CEILING, RIVAL = "pcbatch", "leapfrog alone", "blackjax"

# Useful gradients per second over those of BlackJAX: (target, chains, devices).
RIVAL_GOALS = {
    ("gaussian", 100, 1): 1.8,
    ("gaussian", 1000, 1): 4.0,
    ("gaussian", 100, 4): 1.2,
    ("gaussian", 1000, 4): 2.5,
}
CEILING_GOALS = {("logistic", 100): 0.95}  # batched gradients over those of the leapfrog alone in that time
COMPILE_GOAL = 10.0


def ready(sampler: Sampler, devices: int, compiled: bool) -> Callable[[], Any]:
    """A call of all its chains; `compiled` if it has to be compiled first, which `f.run` does by itself."""
    if compiled:
        return split(sampler.run, sampler.arguments, devices)
    return lambda: sampler.run(*sampler.arguments)


def rows(target: str, chains: int, draws: int, devices: int, repeats: int) -> list[Row]:
    """Measure one number of chains."""
    setting = SETTINGS[target]()
    calls = {OURS: ready(pcbatch_sampler(setting, chains, draws, devices), devices, compiled=False)}
    calls |= {name: ready(make(setting, chains, draws), devices, compiled=True) for name, make in peers().items()}
    first = {name: timed(call) for name, call in calls.items()}
    wanted = {name: np.asarray(found[1]) for name, (_, found) in first.items()}
    steps = max(1, WORK[target] // chains)
    calls[CEILING] = ready(ceiling(setting, chains, steps), devices, compiled=True)
    seconds(calls[CEILING])
    times = interleaved_medians(calls, repeats, warm_up=False)
    rates = {name: float(gradients.sum()) / times[name] for name, gradients in wanted.items()}
    rates[CEILING] = chains * steps / times[CEILING]
    title = f"{setting.name}, {chains} chains" + (f" on {devices} devices" if devices > 1 else "")
    usual = draws == DRAWS[target]  # goals are for that many
    compile_goal = COMPILE_GOAL if (chains, devices) == (100, 1) else None
    out = [Row(f"{title}: compile and first call, pcbatch", first[OURS][0], "s", compile_goal)]
    out += [Row(f"{title}: useful gradients, {name}", rate, "1/s") for name, rate in rates.items()]
    out += _trees(title, wanted)
    if devices == 1:
        rate = rates[CEILING] * times[OURS] / chains
        goal = CEILING_GOALS.get((target, chains)) if usual else None
        out += _counted(title, batches(setting, chains, draws), rate, goal)
    return out + _ratios(title, rates, RIVAL_GOALS.get((target, chains, devices)) if usual else None)


def _trees(title: str, wanted: dict[str, np.ndarray]) -> list[Row]:
    """What the samplers did: their trees should be about alike."""
    out = [Row(f"{title}: gradients per draw, {name}", float(n.mean()), "") for name, n in wanted.items()]
    waiting = {name: n for name, n in wanted.items() if name != OURS}
    return out + [Row(f"{title}: utilisation, {name}", utilisation(n), "") for name, n in waiting.items()]


def _counted(title: str, counted: tuple[int, np.ndarray], possible: float, goal: float | None) -> list[Row]:
    """How many batched gradients it took, of those that the leapfrog alone would have made in that time."""
    count, wanted = counted
    longest = int(wanted.sum(axis=1).max())
    return [
        Row(f"{title}: gradient batches", count, "", longest, False, "the longest chain's gradients", longest),
        Row(f"{title}: utilisation, pcbatch", float(wanted.sum()) / (len(wanted) * count), ""),
        Row(f"{title}: batched gradients / ceiling", count / possible, "x", goal, True, CEILING, possible),
    ]


def _ratios(title: str, rates: dict[str, float], goal: float | None) -> list[Row]:
    """Ours over everybody else's."""
    return [
        Row(
            f"{title}: pcbatch / {name}",
            rates[OURS] / rate,
            "x",
            goal if name == RIVAL else None,
            True,
            f"{name} (1/s)",
            rate,
        )
        for name, rate in rates.items()
        if name != OURS
    ]


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", choices=SETTINGS, default="gaussian")
    parser.add_argument("--chains", type=int, nargs="+", help="default: 100 and 1000; for the regression 100")
    parser.add_argument("--draws", type=int, help="default: 50, for the regression 20")
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--repeats", type=int, help="default: 5, for the regression 11")
    parser.add_argument("--json", metavar="OUT")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    chosen = parse(arguments)
    os.environ.setdefault("NPROC", "1")  # read by XLA at its first computation
    use(chosen.devices)
    target, draws = chosen.target, chosen.draws or DRAWS[chosen.target]
    found = [
        row
        for chains in chosen.chains or CHAINS[target]
        for row in rows(target, chains, draws, chosen.devices, chosen.repeats or REPEATS[target])
    ]
    report(f"NUTS, {target}, {draws} draws, {jax.device_count()} device(s)", found, chosen.json)


if __name__ == "__main__":
    main()
