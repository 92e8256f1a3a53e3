"""Pictures: utilisation against batch size, traces, posteriors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from examples.nuts.run import Run, fixed_chain, start
from examples.nuts.targets import Target
from pcbatch.mcmc.nuts import GRADIENT, LEAF, LEAPFROGS

SHOWN = 6  # coordinates in the pictures of draws
SIZES = (1, 3, 10, 30, 100)
STRATEGIES = {"pc": "program counter", "local": "local"}


def utilisation(target: Target, strategy: str, chains: int, draws: int, step: float, max_tree_depth: int) -> float:
    """Part of the batched gradients that some chain wanted, without adaptation."""
    chain, arguments = fixed_chain(target, start(target, chains), step, draws, max_tree_depth)
    result = chain.with_options(strategy=strategy, stats=True).run(*arguments)
    useful = np.asarray(result.value[-1].numbers)[..., LEAPFROGS].sum()
    return float(useful / (LEAF * chains * int(result.stats.visits(GRADIENT))))


def plot_utilisation(run: Run, path: Path, draws: int = 10, sizes: tuple[int, ...] = SIZES) -> None:
    """Figure 7 of Radul et al. (2020): what part of a batched gradient is of use, for both strategies."""
    figure, axes = plt.subplots(figsize=(6, 4))
    depth = run.posterior.settings.max_tree_depth
    for strategy, label in STRATEGIES.items():
        values = [utilisation(run.target, strategy, n, draws, run.step_size, depth) for n in sizes]
        axes.plot(sizes, values, marker="o", label=label)
    axes.set(xscale="log", ylim=(0, 1.05), xlabel="chains", ylabel="utilisation of batched gradients")
    axes.set_title(f"{run.target.name}, {draws} draws, step size {run.step_size:.3g}")
    axes.legend()
    _save(figure, path)


def plot_traces(run: Run, path: Path) -> None:
    """The first coordinates against time, a line for each of a few chains, and the distribution of all draws."""
    count = min(SHOWN, run.target.size)
    figure, grid = plt.subplots(count, 2, figsize=(9, 1.6 * count), squeeze=False, width_ratios=(1, 2))
    for j, (density, trace) in enumerate(grid):
        x = run.q[:, :, j]
        density.hist(x.ravel(), bins=50, density=True, histtype="step")
        density.set_title(run.target.names[j], fontsize=8)
        trace.plot(x[:8].T, linewidth=0.5)
    _save(figure, path)


def plot_posterior(run: Run, path: Path) -> None:
    """Means and central 90 % intervals of all coordinates."""
    q = run.q.reshape(-1, run.target.size)
    low, middle, high = np.quantile(q, (0.05, 0.5, 0.95), axis=0)
    rows = np.arange(run.target.size)[::-1]
    figure, axes = plt.subplots(figsize=(6, 1 + 0.18 * run.target.size))
    axes.hlines(rows, low, high)
    axes.plot(middle, rows, "o", markersize=3)
    axes.set_yticks(rows, run.target.names, fontsize=6)
    axes.axvline(0, linewidth=0.5, color="grey")
    axes.set_xlabel("posterior: median and central 90 %")
    _save(figure, path)


def plot_all(run: Run, directory: Path) -> None:
    """Write all pictures of a run into `directory`."""
    plt.switch_backend("Agg")  # files, whatever screen there is
    directory.mkdir(parents=True, exist_ok=True)
    plot_traces(run, directory / "traces.png")
    plot_posterior(run, directory / "posterior.png")
    plot_utilisation(run, directory / "utilisation.png")


def _save(figure: Any, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    plt.close(figure)
