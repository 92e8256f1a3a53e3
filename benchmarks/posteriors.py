"""Six posteriors, sampled with adaptation: `python -m benchmarks.posteriors [--chains 64 512] [--model funnel]`

`pcbatch.mcmc.sample` against BlackJAX's window adaptation and NUTS under `jax.vmap`, and nutpie on its JAX back end,
where they are installed. All have the same numbers of draws and start at the same positions; times are CPU
seconds of one core, without compiling. What counts is the smallest effective sample size over all coordinates (the
smaller one of its bulk and of its mean) for a second of drawing, for a second of warm-up and drawing, and for a
thousand gradients; and that all agree: the largest difference of two means, in Monte-Carlo standard errors.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.common import Row, report
from benchmarks.posterior_models import MODELS, Model
from pcbatch.mcmc import convergence, sample

OURS = "pcbatch"
DEPTH, ACCEPT = 10, 0.8


@dataclass(frozen=True)
class Run:
    """Draws [chains, draws, n], gradients and divergences [chains, draws], and what they cost in CPU seconds."""

    q: np.ndarray
    gradients: np.ndarray
    diverging: np.ndarray
    compiling: float
    warmup: float
    drawing: float

    @property
    def ess(self) -> float:
        """Smallest effective sample size over all coordinates."""
        return float(min(convergence.ess_bulk(self.q).min(), convergence.ess_mean(self.q).min()))


def ours(model: Model, chains: int, draws: int, warmup: int, adapt: Any = "pooled") -> Run:
    """`pcbatch.mcmc`, twice: the first run compiles."""
    start, cpu = model.start(chains), []
    for _ in range(2):
        began = time.process_time()
        with patch("pcbatch.mcmc.sample.time.perf_counter", time.process_time):  # the machine may have other work
            posterior = sample(
                model.logp,
                start,
                draws=draws,
                warmup=warmup,
                adapt=adapt,
                target_accept=ACCEPT,
                max_tree_depth=DEPTH,
            )
        cpu.append(time.process_time() - began)
    seconds = posterior.seconds  # "compile" is the first positions here: nothing is compiled any more
    warm, drawn = seconds["compile"] + seconds["warmup"], seconds["draws"]
    statistics = posterior.statistics
    return Run(posterior.draws, statistics.leapfrogs, statistics.diverging, cpu[0] - cpu[1], warm, drawn)


def blackjax_run(model: Model, chains: int, draws: int, warmup: int) -> Run:
    """Window adaptation and NUTS of BlackJAX under `vmap`: chains wait for each other at every draw."""
    import blackjax

    adaptation = blackjax.window_adaptation(
        blackjax.nuts,
        model.logp,
        target_acceptance_rate=ACCEPT,
        max_num_doublings=DEPTH,
        initial_step_size=0.1,
        adaptation_info_fn=lambda *_: (),
    )
    kernel = blackjax.nuts.build_kernel()

    @jax.jit
    @jax.vmap
    def warm(key: jax.Array, q: jax.Array) -> Any:
        (state, parameters), _ = adaptation.run(key, q, num_steps=warmup)
        return state, parameters["step_size"], parameters["inverse_mass_matrix"]

    @jax.jit
    def run(key: jax.Array, states: Any, step: jax.Array, inverse: jax.Array) -> Any:
        def one(states: Any, key: jax.Array) -> Any:
            keys = jax.random.split(key, chains)
            move = jax.vmap(lambda k, state, e, m: kernel(k, state, model.logp, e, m, DEPTH))
            states, info = move(keys, states, step, inverse)
            return states, (states.position, info.num_integration_steps, info.is_divergent)

        return jax.lax.scan(one, states, jax.random.split(key, draws))[1]

    keys, start, times = jax.random.split(jax.random.key(0), chains), jnp.asarray(model.start(chains)), []
    for _ in range(2):
        began = time.process_time()
        found = jax.block_until_ready(warm(keys, start))
        warmed = time.process_time()
        q, gradients, diverging = jax.block_until_ready(run(jax.random.key(1), *found))
        times.append((warmed - began, time.process_time() - warmed))
    arrays = (np.asarray(x).swapaxes(0, 1) for x in (q, gradients, diverging))
    return Run(*arrays, sum(times[0]) - sum(times[1]), *times[1])


def nutpie_run(model: Model, chains: int, draws: int, warmup: int) -> Run:
    """Nutpie with a log density that JAX compiles; its chains run one after another on one core."""
    import nutpie

    gradient = jax.jit(jax.value_and_grad(model.logp))

    def logp(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = gradient(x.astype(np.float32))
        return float(value), np.asarray(slope, np.float64)

    compiled = nutpie.compiled_pyfunc.from_pyfunc(
        model.size,
        lambda: logp,
        lambda *_: lambda x: {"x": np.asarray(x)},
        [np.dtype(np.float64)],
        [(model.size,)],
        ["x"],
        make_initial_point_fn=lambda seed: model.start(1, int(seed) % 2**31)[0].astype(np.float64),
    )
    logp(np.zeros(model.size))
    began = time.process_time()
    trace = nutpie.sample(
        compiled, draws=draws, tune=warmup, chains=chains, cores=1, seed=1, target_accept=ACCEPT, progress_bar=False
    )
    seconds = time.process_time() - began
    kept, warm = trace.sample_stats, trace.warmup_sample_stats
    both = float(kept.n_steps.sum()), float(warm.n_steps.sum())
    share = both[0] / sum(both)
    q = np.asarray(trace.posterior["x"])
    return Run(q, np.asarray(kept.n_steps), np.asarray(kept.diverging), 0.0, seconds * (1 - share), seconds * share)


RUNS: dict[str, Callable[[Model, int, int, int], Run]] = {
    OURS: ours,
    "blackjax": blackjax_run,
    "nutpie": nutpie_run,
}


def apart(one: Run, other: Run) -> float:
    """The largest difference of means, in standard errors."""
    variance = sum(run.q.var((0, 1)) / convergence.ess_mean(run.q) for run in (one, other))
    return float(np.max(np.abs(one.q.mean((0, 1)) - other.q.mean((0, 1))) / np.sqrt(variance)))


def rows(name: str, chains: int, draws: int, warmup: int, samplers: Sequence[str]) -> list[Row]:
    """Measure one posterior."""
    model, out = MODELS[name](), []
    found = {sampler: RUNS[sampler](model, chains, draws, warmup) for sampler in samplers}
    speeds: dict[str, tuple[float, float, float]] = {}
    for sampler, run in found.items():
        title = f"{name}, {chains} chains, {sampler}"
        ess = run.ess
        warm = run.drawing + run.warmup
        speeds[sampler] = ess / run.drawing, ess / warm, ess / (warm + run.compiling)
        out += [
            Row(f"{title}: ESS, drawing", speeds[sampler][0], "1/s"),
            Row(f"{title}: ESS, warm-up and drawing", speeds[sampler][1], "1/s"),
            Row(f"{title}: ESS per 1000 gradients", 1000 * ess / float(run.gradients.sum()), ""),
            Row(f"{title}: divergences", 100 * float(run.diverging.mean()), "%"),
            Row(f"{title}: compiling", run.compiling, "s"),
        ]
    for sampler in samplers:
        if sampler == OURS or OURS not in found:
            continue
        goal = 1.5 if sampler == "blackjax" else 1.0
        whats = ("drawing", "warm-up and drawing", "compiling, warm-up and drawing")
        for what, mine, theirs in zip(whats, speeds[OURS], speeds[sampler], strict=True):
            ratio = f"{name}, {chains} chains: pcbatch / {sampler}, {what}"
            out.append(Row(ratio, mine / theirs, "x", goal, True, f"{sampler} (1/s)", theirs))
        z = apart(found[OURS], found[sampler])
        out.append(Row(f"{name}, {chains} chains: means apart, {sampler}", z, "standard errors", 4.5))
    return out


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, nargs="+", default=list(MODELS))
    parser.add_argument("--chains", type=int, nargs="+", default=[64, 512])
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--warmup", type=int, default=500)
    parser.add_argument("--samplers", choices=RUNS, nargs="+", help="default: those that are installed, but nutpie")
    parser.add_argument("--json", metavar="OUT")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    chosen = parse(arguments)
    os.environ.setdefault("NPROC", "1")  # read by XLA at its first computation
    warnings.simplefilter("ignore")
    samplers = chosen.samplers or [OURS, *(["blackjax"] if find_spec("blackjax") else [])]
    found = [
        row
        for chains in chosen.chains
        for name in chosen.model
        for row in rows(name, chains, chosen.draws, chosen.warmup, samplers)
    ]
    report(f"posteriors, {chosen.warmup} and {chosen.draws} draws of each chain", found, chosen.json)


if __name__ == "__main__":
    main()
