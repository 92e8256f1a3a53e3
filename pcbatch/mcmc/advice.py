"""Warnings about draws that should not be trusted, in Stan's words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pcbatch.mcmc import convergence
from pcbatch.mcmc.posterior import Statistics
from pcbatch.mcmc.settings import Settings

LOW_BFMI = 0.3
HIGH_RHAT = 1.05
LEAST_ESS, COUNTED_CHAINS = 100, 4  # for each chain, of so many: more chains need no more draws in all
LEAST_DRAWS = 50  # of a chain, for what is estimated of a chain


class SamplingWarning(UserWarning):
    """Draws may not be what they should be: they diverged, or the chains have not mixed."""


def advice(settings: Settings, statistics: Statistics, q: np.ndarray) -> Iterator[str]:
    """Say what is wrong with the draws `q`, [chains, draws, n]."""
    diverging = int(statistics.diverging.sum())
    if diverging:
        yield (
            f"There were {diverging} divergent transitions after warmup ({diverging / statistics.diverging.size:.2%}). "
            "Raise target_accept, or reparameterise the model."
        )
    deep = int((~statistics.diverging & (statistics.tree_depth >= settings.max_tree_depth)).sum())
    if deep:
        yield (
            f"There were {deep} transitions after warmup that exceeded the maximum treedepth. "
            f"Increase max_tree_depth above {settings.max_tree_depth}."
        )
    if settings.draws < LEAST_DRAWS:
        return
    low = int((convergence.bfmi(statistics.energy) < LOW_BFMI).sum())
    if low:
        yield (
            f"There were {low} chains where the estimated Bayesian Fraction of Missing Information was low (below "
            f"{LOW_BFMI}): the energy changes slowly. Reparameterise the model."
        )
    yield from _mixing(settings, q)


def _mixing(settings: Settings, q: np.ndarray) -> Iterator[str]:
    """Yield the warnings about R-hat and effective sample sizes, which are NaN for a coordinate that does not move."""
    largest = float(np.max(convergence.rhat(q)))
    if not largest <= HIGH_RHAT:
        yield f"The largest R-hat is {largest:.2f}, indicating chains have not mixed. Run more draws, and more warmup."
    wanted = LEAST_ESS * min(settings.chains, COUNTED_CHAINS)
    bulk = float(np.min(convergence.ess_bulk(q)))
    if not bulk >= wanted:
        yield (
            f"Bulk Effective Samples Size (ESS) is too low ({bulk:.0f}, below {wanted}), indicating posterior "
            "means and medians may be unreliable."
        )
    tail = float(np.min(convergence.ess_tail(q)))
    if not tail >= wanted:
        yield (
            f"Tail Effective Samples Size (ESS) is too low ({tail:.0f}, below {wanted}), indicating posterior "
            "variances and tail quantiles may be unreliable."
        )
