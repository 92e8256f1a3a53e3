"""The result of `pcbatch.mcmc.sample`: draws, statistics of every draw, and what was learned in the warm-up."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pcbatch.call.usage import usage
from pcbatch.mcmc import nuts
from pcbatch.mcmc.settings import Settings
from pcbatch.mcmc.summary import Summary, summarise
from pcbatch.mcmc.target import leaves_by_name


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of draws, arrays [chains, draws]."""

    logp: np.ndarray
    """log density"""
    energy: np.ndarray
    """total energy of the draw's trajectory, at its start"""
    leapfrogs: np.ndarray
    """leapfrog steps, which is the number of gradients; int32"""
    tree_depth: np.ndarray
    """doublings of the trajectory; int32"""
    acceptance: np.ndarray
    """mean acceptance probability over the trajectory"""
    diverging: np.ndarray
    """whether the trajectory ended because the integrator failed; bool"""
    step_size: np.ndarray
    """of the leapfrog steps"""

    @classmethod
    def of(cls, numbers: np.ndarray) -> Statistics:
        """Take apart the numbers [chains, draws, NUMBERS] that chains keep."""
        return cls(
            logp=numbers[..., nuts.LOGP],
            energy=numbers[..., nuts.ENERGY],
            leapfrogs=numbers[..., nuts.LEAPFROGS].astype(np.int32),
            tree_depth=numbers[..., nuts.DEPTH].astype(np.int32),
            acceptance=numbers[..., nuts.ACCEPT],
            diverging=numbers[..., nuts.DIVERGED] > 0,
            step_size=numbers[..., nuts.STEP],
        )


@dataclass(frozen=True, slots=True)
class Posterior:
    """Draws of a distribution by many chains.

    Example:
        >>> import jax.numpy as jnp, pcbatch.mcmc
        >>> posterior = pcbatch.mcmc.sample(
        ...     lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(3), chains=16, draws=200, warmup=200)
        >>> posterior.draws.shape
        (16, 200, 3)
    """

    draws: Any
    """a pytree like the parameters, with leaves [chains, draws, ...]"""
    statistics: Statistics
    """of these draws"""
    warmup: Statistics
    """of the draws of the warm-up, which are not kept themselves"""
    step_size: np.ndarray
    """of each chain after the warm-up, [chains]"""
    inverse_mass: np.ndarray
    """the inverse mass matrix after the warm-up: [n] or, if it is dense, [n, n]; with an axis of chains in front if
    each has one of its own. The order of coordinates is that of `jax.flatten_util.ravel_pytree`"""
    settings: Settings
    """the options of the run"""
    warnings: tuple[str, ...] = ()
    """what was found wrong with the draws"""
    seconds: dict[str, float] = field(default_factory=dict)
    """wall time of "compile", "warmup" and "draws"; a run that goes on from a file compiles with its first draws"""
    gradients_computed: int = 0
    """for these draws: each batched gradient is one for every chain, whether it wants it or not. With `stats=True`"""

    @property
    def utilisation(self) -> float:
        """The part of the gradients computed that chains wanted, at most 1; NaN without `stats=True`."""
        wanted = float(self.statistics.leapfrogs.sum())
        return wanted / self.gradients_computed if self.gradients_computed else math.nan

    def summary(self) -> Summary:
        """A table with a row for each coordinate: mean, sd, quantiles, R-hat, bulk and tail effective sample size.

        Returns:
            A mapping from names to rows; `print` shows it as a table.
        """
        return summarise(self.draws)

    def to_arviz(self) -> Any:
        """The draws and their statistics for ArviZ.

        Returns:
            `arviz.InferenceData` (ArviZ before 1.0) or `xarray.DataTree`, with the groups `posterior` and
            `sample_stats`.

        Raises:
            UsageError: ArviZ, which the extra `mcmc` installs, is missing (PCB463).
        """
        return to_arviz(self.draws, self.statistics)


def to_arviz(draws: Any, statistics: Statistics) -> Any:
    """Make ArviZ's form of draws; statistics get the names that ArviZ's plots look for.

    Raises:
        UsageError: PCB463.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ArviZ announces its next version when it is imported
            import arviz
    except ImportError:
        help = "install it with `pip install 'pcbatch[mcmc]'`; `posterior.summary()` works without it"
        raise usage("PCB463", "`to_arviz` needs the package arviz, which is not installed", help=help) from None
    posterior = leaves_by_name(draws)
    sample_stats = {
        "lp": statistics.logp,
        "energy": statistics.energy,
        "n_steps": statistics.leapfrogs,
        "tree_depth": statistics.tree_depth,
        "acceptance_rate": statistics.acceptance,
        "diverging": statistics.diverging,
        "step_size": statistics.step_size,
    }
    if int(arviz.__version__.partition(".")[0]) >= 1:
        return arviz.from_dict({"posterior": posterior, "sample_stats": sample_stats})
    return arviz.from_dict(posterior=posterior, sample_stats=sample_stats)
