"""Sampling from a log density by many Markov chains in one batched program."""

from pcbatch.mcmc.advice import SamplingWarning as SamplingWarning
from pcbatch.mcmc.posterior import Posterior as Posterior
from pcbatch.mcmc.posterior import Statistics as Statistics
from pcbatch.mcmc.sample import sample as sample
from pcbatch.mcmc.summary import Summary as Summary

__all__ = ["Posterior", "SamplingWarning", "Statistics", "Summary", "sample"]
