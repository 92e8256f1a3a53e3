"""Throughput and utilisation against the number of lanes, by strategy: NUTS, as in figures 6 and 7 of the paper.

Radul et al. 2020, "Automatically Batching Control-Intensive Programs for Modern Accelerators". Figure 6 is gradients
per second on a logistic regression, figure 7 the share of batched gradients that are of use on a correlated Gaussian.
Strategies: program counters, local autobatching (lanes wait for each other at calls; recursion runs on the host),
BlackJAX under `jax.vmap`, and plain Python, one chain.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from benchmarks.common import Curve, Row, interleaved_medians, timed
from benchmarks.samplers import (
    Setting,
    batches,
    chain,
    correlated,
    draws_of,
    pcbatch_sampler,
    peers,
    regression,
    utilisation,
)
from pcbatch.mcmc.nuts import LEAPFROGS

DRAWS = 10  # as in figure 7
GAUSSIAN_CHAINS = (1, 3, 10, 30, 100, 300, 1000)
LOGISTIC_CHAINS = (1, 3, 10, 30, 100, 300)
PC, LOCAL, RIVAL, PLAIN = "program counter", "local", "BlackJAX", "plain Python"


def calls(setting: Setting, chains: int) -> dict[str, Callable[[], Any]]:
    """Every strategy on so many chains; each gives draws and gradients."""
    ours = pcbatch_sampler(setting, chains, DRAWS)
    local, arguments = chain(setting, chains, DRAWS, strategy="local")
    found = {PC: lambda: ours.run(*ours.arguments), LOCAL: lambda: draws_of(local.run(*arguments))}
    if "blackjax" in peers():
        theirs = peers()["blackjax"](setting, chains, DRAWS)
        compiled = jax.jit(theirs.run)
        found[RIVAL] = lambda: compiled(*theirs.arguments)
    return found


def busy(setting: Setting, chains: int, strategy: str, gradients: np.ndarray) -> float:
    """The share of batched gradients that are of use."""
    if strategy == RIVAL:
        return utilisation(gradients)
    count, wanted = batches(setting, chains, DRAWS, strategy="pc" if strategy == PC else "local")
    return float(wanted.sum()) / (chains * count)


def plain_rate(setting: Setting, draws: int = 2) -> float:
    """Gradients per second of one chain in plain Python."""
    batched, (sample, stepper, mass, keys, noise, trace, _, depth, data) = chain(setting, 1, draws)
    sample, stepper, *own = jax.tree.map(lambda a: a[0], (sample, stepper, keys, noise, trace))
    call = lambda: batched.plain(sample, stepper, mass, *own, draws, int(depth), data)  # noqa: E731
    call()
    began = time.perf_counter()
    gradients = np.asarray(call()[-1].numbers)[:, LEAPFROGS].sum()
    return float(gradients) / (time.perf_counter() - began)


def sweep(setting: Setting, sizes: Sequence[int], repeats: int, name: str) -> tuple[list[Row], list[Curve]]:
    """Rates and utilisation of all strategies at all sizes."""
    rates: dict[str, list[float]] = {}
    shares: dict[str, list[float]] = {}
    for chains in sizes:
        ways = calls(setting, chains)
        gradients = {way: np.asarray(timed(call)[1][1]) for way, call in ways.items()}
        times = interleaved_medians(ways, repeats, warm_up=False)
        for way, wanted in gradients.items():
            rates.setdefault(way, []).append(float(wanted.sum()) / times[way])
            shares.setdefault(way, []).append(busy(setting, chains, way, wanted))
    alone = plain_rate(setting)
    rows = [
        Row(f"{setting.name}, 1 chain: useful gradients, {PLAIN}", alone, "1/s"),
        *_rows(setting, sizes, rates, "useful gradients", "1/s"),
        *_rows(setting, sizes, shares, "utilisation", ""),
    ]
    rates[PLAIN] = [alone] * len(sizes)
    curves = [Curve(f"throughput {name}", way, list(sizes), values) for way, values in rates.items()]
    return rows, curves + [Curve(f"utilisation {name}", way, list(sizes), v) for way, v in shares.items()]


def _rows(setting: Setting, sizes: Sequence[int], values: dict[str, list[float]], what: str, unit: str) -> list[Row]:
    """A row for each number."""
    return [
        Row(f"{setting.name}, {chains} chains: {what}, {way}", value, unit)
        for way, column in values.items()
        for chains, value in zip(sizes, column, strict=True)
    ]


def on_gaussian(repeats: int, sizes: Sequence[int] = GAUSSIAN_CHAINS) -> tuple[list[Row], list[Curve]]:
    """Figure 7, and throughput."""
    return sweep(correlated(), sizes, repeats, "gaussian")


def on_logistic(repeats: int, sizes: Sequence[int] = LOGISTIC_CHAINS) -> tuple[list[Row], list[Curve]]:
    """Figure 6, and utilisation."""
    return sweep(regression(), sizes, repeats, "logistic")
