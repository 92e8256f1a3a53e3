"""What a run says about the target and about itself: a table, a summary, JSON."""

from __future__ import annotations

import platform
import warnings
from typing import Any, NamedTuple

import jax
import numpy as np

import pcbatch
from examples.nuts.run import Run

MOST_ROWS = 40  # coordinates that the table shows


class Row(NamedTuple):
    """Summary of one coordinate."""

    name: str
    mean: float
    sd: float
    ess: float
    rhat: float


def summarise(run: Run) -> list[Row]:
    """Mean and standard deviation; bulk effective sample size and rank-normalised R-hat by ArviZ."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ArviZ announces its next version when imported
        import arviz

        q = run.trace.q.astype(np.float64)
        if min(q.shape[:2]) < 1 or q.shape[1] < 4:
            return [Row(name, float("nan"), float("nan"), float("nan"), float("nan")) for name in run.target.names]
        columns = [q[:, :, j] for j in range(q.shape[2])]
        return [
            Row(name, float(x.mean()), float(x.std()), float(arviz.ess(x)), float(arviz.rhat(x)))
            for name, x in zip(run.target.names, columns, strict=True)
        ]


def metrics(run: Run, rows: list[Row]) -> dict[str, Any]:
    """The numbers of a run that a program may want to read."""
    settings = run.settings
    return {
        "target": run.target.name,
        "chains": settings.chains,
        "draws": settings.draws,
        "warmup": settings.warmup,
        "adapt": settings.adapt,
        "seed": settings.seed,
        "max_depth": settings.max_tree_depth,
        "devices": settings.devices,
        "step_size": run.step_size,
        "mean_accept": float(run.trace.accept.mean()),
        "divergences": int(run.trace.diverged.sum()),
        "useful_gradients": int(run.gradients.sum()),
        "gradient_batches": int(run.meter.batches.max()),
        "gradient_batches_per_device": run.meter.batches.tolist(),
        "longest_chain_gradients": int(run.gradients.max()),
        "utilisation": run.utilisation,
        "useful_gradients_per_second": run.gradients_per_second,
        "compile_seconds": run.compile_seconds,
        "warmup_seconds": run.warmup_seconds,
        "run_seconds": run.meter.seconds,
        "max_rhat": _finite(max(row.rhat for row in rows)),
        "min_ess": _finite(min(row.ess for row in rows)),
        "device": jax.devices()[0].device_kind,
        "platform": jax.devices()[0].platform,
        "versions": {
            "python": platform.python_version(),
            "jax": jax.__version__,
            "pcbatch": getattr(pcbatch, "__version__", None),
            "numpy": np.__version__,
        },
    }


def table(rows: list[Row]) -> str:
    """One line for each coordinate."""
    width = max(len(row.name) for row in rows)
    lines = [f"{'':{width}}  {'mean':>9} {'sd':>9} {'ess':>7} {'r_hat':>6}"]
    for row in rows[:MOST_ROWS]:
        lines.append(f"{row.name:{width}}  {row.mean:9.3f} {row.sd:9.3f} {row.ess:7.0f} {row.rhat:6.3f}")
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
        )
    )


def _finite(value: float) -> float | None:
    """None for what JSON cannot say: one draw has no R-hat."""
    return value if np.isfinite(value) else None


def _shown(value: float | None, form: str) -> str:
    return "unknown" if value is None else format(value, form)
