"""Convergence of draws: split, rank-normalised R-hat and effective sample sizes.

The definitions are those of Vehtari, Gelman, Simpson, Carpenter and Buerkner 2021, "Rank-normalization, folding, and
localization: An improved R-hat for assessing convergence of MCMC", as Stan and ArviZ compute them. All functions take
draws [chains, draws, ...] and return an array of the further axes.
"""

from __future__ import annotations

import math

import numpy as np
from jax.scipy.special import ndtri

LEAST_DRAWS = 4  # of a chain, for any of this


def rhat(x: np.ndarray) -> np.ndarray:
    """The larger one of R-hat of the ranks and of the ranks of the distances from the median."""
    halves = _split(np.asarray(x, np.float64))
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    larger: np.ndarray = np.maximum(_rhat(_ranked(halves)), _rhat(_ranked(folded)))
    return larger


def ess_bulk(x: np.ndarray) -> np.ndarray:
    """The number of independent draws that would tell as much of the centre of the distribution."""
    return _ess(_ranked(_split(np.asarray(x, np.float64))))


def ess_tail(x: np.ndarray) -> np.ndarray:
    """The smaller one of the effective sample sizes of the quantiles at 5 and at 95 percent."""
    halves = _split(np.asarray(x, np.float64))
    sizes = [_ess((halves <= np.quantile(halves, p, axis=(0, 1))).astype(np.float64)) for p in (0.05, 0.95)]
    smaller: np.ndarray = np.minimum(*sizes)
    return smaller


def ess_mean(x: np.ndarray) -> np.ndarray:
    """The number of independent draws whose mean would be as precise."""
    return _ess(_split(np.asarray(x, np.float64)))


def bfmi(energy: np.ndarray) -> np.ndarray:
    """The estimated Bayesian fraction of missing information of each chain (Betancourt 2016), of [chains, draws]."""
    energy = np.asarray(energy, np.float64)
    variance = energy.var(axis=1)
    moved = np.square(np.diff(energy, axis=1)).mean(axis=1)
    fraction: np.ndarray = np.divide(moved, variance, out=np.full_like(variance, np.nan), where=variance > 0)
    return fraction


def _split(x: np.ndarray) -> np.ndarray:
    """Each chain as two; the draw in the middle of an odd number is left out."""
    half = x.shape[1] // 2
    return np.concatenate([x[:, :half], x[:, x.shape[1] - half :]], axis=0)


def _ranked(x: np.ndarray) -> np.ndarray:
    """Normal scores of the ranks among all draws; equal values have the mean of their ranks."""
    flat = x.reshape(x.shape[0] * x.shape[1], -1)
    count = len(flat)
    ranks = np.empty(flat.shape)
    for j, column in enumerate(flat.T):
        _, which, counts = np.unique(column, return_inverse=True, return_counts=True)
        ranks[:, j] = (np.cumsum(counts) - (counts - 1) / 2)[which]
    return np.asarray(ndtri((ranks - 0.375) / (count + 0.25)), np.float64).reshape(x.shape)


def _rhat(x: np.ndarray) -> np.ndarray:
    draws = x.shape[1]
    within = x.var(axis=1, ddof=1).mean(axis=0)
    between = x.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: np.ndarray = np.sqrt((draws - 1) / draws + between / within)
    return ratio


def _ess(x: np.ndarray) -> np.ndarray:
    """Geyer's initial monotone sequence over the autocorrelations of all chains."""
    chains, draws = x.shape[:2]
    flat = x.reshape(chains, draws, -1)
    covariance = _autocovariance(flat)
    variance = covariance[:, 0].mean(axis=0) * draws / (draws - 1)
    total = variance * (draws - 1) / draws
    if chains > 1:
        total = total + flat.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = 1 - (variance - covariance.mean(axis=0)) / total
    rho[0] = 1.0
    sizes = [_from_autocorrelation(column, chains * draws) for column in rho.T]
    return np.array(sizes).reshape(x.shape[2:])


def _autocovariance(x: np.ndarray) -> np.ndarray:
    """Autocovariance [chains, lags, n] along the draws, each divided by their number."""
    draws = x.shape[1]
    centred = x - x.mean(axis=1, keepdims=True)
    transformed = np.fft.rfft(centred, 2 * draws, axis=1)
    both: np.ndarray = np.fft.irfft(transformed * transformed.conj(), 2 * draws, axis=1)[:, :draws]
    both /= draws
    return both


def _from_autocorrelation(rho: np.ndarray, count: int) -> float:
    """The effective number of `count` draws with these autocorrelations."""
    if not np.isfinite(rho).all():
        return float("nan")
    pairs = rho[: len(rho) // 2 * 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs[1:] < 0)
    last = int(negative[0]) + 1 if len(negative) else len(pairs)
    kept = np.minimum.accumulate(pairs[:last])
    odd = max(float(rho[2 * last]), 0.0) if 2 * last < len(rho) else 0.0  # reduces the variance of antithetic chains
    tau = max(-1 + 2 * float(kept.sum()) + odd, 1 / math.log10(count))
    return count / tau
