"""Draws in the form of ArviZ: `InferenceData`, or the tree of datasets that ArviZ has instead since version 1.0."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from pcbatch.call.usage import usage
from pcbatch.mcmc.target import leaves_by_name

if TYPE_CHECKING:
    from pcbatch.mcmc.posterior import Statistics


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
