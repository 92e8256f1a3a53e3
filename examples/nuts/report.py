"""What a run says about the target and about itself: a table, a summary, JSON."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

import pcbatch
from examples.nuts.run import Run
from pcbatch.mcmc.summary import Row, summarise

MOST_ROWS = 40  # coordinates that the table shows


def coordinates(run: Run) -> dict[str, Row]:
    """The summary of each coordinate, by the names that the target has for them."""
    return dict(zip(run.target.names, summarise(run.q).values(), strict=True))


def metrics(run: Run, rows: Mapping[str, Row]) -> dict[str, Any]:
    """The numbers of a run that a program may want to read."""
    posterior, settings = run.posterior, run.posterior.settings
    seconds, statistics = posterior.seconds, posterior.statistics
    return {
        "target": run.target.name,
        "chains": settings.chains,
        "draws": run.q.shape[1],
        "warmup": settings.warmup or run.dropped,
        "adapt": settings.warmup > 0,
        "seed": settings.seed,
        "max_depth": settings.max_tree_depth,
        "devices": settings.devices or 1,
        "step_size": run.step_size,
        "mean_accept": float(statistics.acceptance.mean()),
        "divergences": int(statistics.diverging.sum()),
        "useful_gradients": int(run.gradients.sum()),
        "gradient_batches": run.batches,
        "longest_chain_gradients": int(run.gradients.max()),
        "utilisation": posterior.utilisation,
        "useful_gradients_per_second": float(run.gradients.sum() / seconds["draws"]),
        "compile_seconds": seconds["compile"],
        "warmup_seconds": seconds["warmup"],
        "run_seconds": seconds["draws"],
        "max_rhat": _finite(max(row.rhat for row in rows.values())),
        "min_ess": _finite(min(row.ess_bulk for row in rows.values())),
        "warnings": posterior.warnings,
        "device": jax.devices()[0].device_kind,
        "platform": jax.devices()[0].platform,
        "versions": {
            "python": platform.python_version(),
            "jax": jax.__version__,
            "pcbatch": getattr(pcbatch, "__version__", None),
            "numpy": np.__version__,
        },
    }


def table(rows: Mapping[str, Row]) -> str:
    """One line for each coordinate."""
    width = max(map(len, rows))
    lines = [f"{'':{width}}  {'mean':>9} {'sd':>9} {'ess':>7} {'r_hat':>6}"]
    for name, row in list(rows.items())[:MOST_ROWS]:
        lines.append(f"{name:{width}}  {row.mean:9.3f} {row.sd:9.3f} {row.ess_bulk:7.0f} {row.rhat:6.3f}")
    if len(rows) > MOST_ROWS:
        lines.append(f"... and {len(rows) - MOST_ROWS} more")
    return "\n".join(lines)


def summary(numbers: dict[str, Any]) -> str:
    """A few lines about cost and quality."""
    n = numbers
    return "\n".join(
        (
            f"{n['target']}: {n['chains']} chains x {n['draws']} draws on {n['devices']} x {n['device']}",
            f"step size {n['step_size']:.4g}, acceptance {n['mean_accept']:.2f}, {n['divergences']} divergences",
            f"compile {n['compile_seconds']:.1f} s, warm-up {n['warmup_seconds']:.1f} s, run {n['run_seconds']:.2f} s",
            f"{n['gradient_batches']} batched gradients, {n['longest_chain_gradients']} in the longest chain",
            f"{n['useful_gradients_per_second']:,.0f} useful gradients/s, utilisation {n['utilisation']:.2f}",
            f"largest R-hat {_shown(n['max_rhat'], '.3f')}, smallest ESS {_shown(n['min_ess'], '.0f')}",
            *n["warnings"],
        )
    )


def _finite(value: float) -> float | None:
    """None for what JSON cannot say: one draw has no R-hat."""
    return value if np.isfinite(value) else None


def _shown(value: float | None, form: str) -> str:
    return "unknown" if value is None else format(value, form)
