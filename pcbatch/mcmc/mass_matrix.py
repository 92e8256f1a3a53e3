"""Estimates of the inverse mass matrix from draws: their variance or covariance, shrunk as Stan does."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from pcbatch.mcmc.hamiltonian import Mass

PRIOR, SCALE = 5.0, 1e-3  # so many draws are imagined, of this variance
FAR = 20.0  # standard deviations from the median chain, beyond which a chain is taken for lost


def unit(size: int, dense: bool, dtype: np.dtype, chains: int | None = None) -> Mass:
    """The identity, once or for each of `chains`."""
    one = np.eye(size, dtype=dtype) if dense else np.ones(size, dtype)
    if chains is not None:
        one = np.broadcast_to(one, (chains, *one.shape))
    return Mass(jnp.asarray(one), jnp.asarray(one))


def shrunk(q: np.ndarray, dense: bool) -> np.ndarray:
    """Variances or covariances of the rows of `q`, shrunk towards a small multiple of the identity.

    Args:
        q: float64 [draws, n].
        dense: all covariances.

    Returns:
        [n], or [n, n] if `dense`.
    """
    count = q.shape[0]
    centred = q - q.mean(axis=0)
    found: np.ndarray = centred.T @ centred if dense else np.square(centred).sum(axis=0)
    prior: np.ndarray = np.eye(q.shape[1]) if dense else np.ones(q.shape[1])
    shrunken: np.ndarray = (found + PRIOR * SCALE * prior) / (count + PRIOR)
    return shrunken


def pooled(q: np.ndarray, dense: bool) -> np.ndarray:
    """The estimate from all chains together, with their spread, but without chains that are lost.

    Args:
        q: [chains, draws, n].
        dense: all covariances.
    """
    return shrunk(q[near(q)].reshape(-1, q.shape[2]).astype(np.float64), dense)


def near(q: np.ndarray) -> np.ndarray:
    """Whether the mean of each chain is near that of the others, bool [chains].

    A chain that is stuck far away would make the variance of all that of its distance. Distances are measured in
    standard deviations of the middle chain, or of the chains' means where these are wider spread.
    """
    means = q.mean(axis=1, dtype=np.float64)
    middle = np.median(means, axis=0)
    away = np.abs(means - middle)
    width = np.maximum(np.median(q.std(axis=1, dtype=np.float64), axis=0), 1.4826 * np.median(away, axis=0))
    kept = np.all(away <= FAR * np.maximum(width, np.finfo(np.float64).tiny), axis=1)
    return kept if kept.any() else np.ones_like(kept)


def per_chain(q: np.ndarray, dense: bool) -> np.ndarray:
    """The estimate of each chain from its own draws, [chains, n] or [chains, n, n]."""
    return np.stack([shrunk(one.astype(np.float64), dense) for one in q])


def mass_of(inverse: np.ndarray, dense: bool, dtype: np.dtype) -> Mass:
    """The mass matrix whose inverse is given, with or without an axis of chains in front."""
    root = np.linalg.inv(np.linalg.cholesky(inverse)).swapaxes(-1, -2) if dense else 1 / np.sqrt(inverse)
    return Mass(jnp.asarray(inverse, dtype), jnp.asarray(root, dtype))
