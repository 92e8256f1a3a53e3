"""The first positions of chains: those that are given, or drawn around one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from pcbatch.call.usage import usage
from pcbatch.diagnostics.short_repr import short
from pcbatch.mcmc.hamiltonian import Sample
from pcbatch.mcmc.target import LogDensity, Target, make_target, ravel

JITTER = 1.0
MOST_TRIES = 100  # as Stan
STREAM = 0x57A7  # of the seed of the jitter


def each_chain(start: Any) -> int:
    """The number of chains of a start with an axis of chains.

    Raises:
        UsageError: PCB461.
    """
    shapes = [np.shape(leaf) for leaf in jax.tree.leaves(start)]
    lengths = {shape[0] if shape else None for shape in shapes}
    if len(lengths) != 1 or None in lengths:
        raise usage(
            "PCB461",
            f"without `chains`, all leaves of `start` have one leading axis of chains; these have the shapes {shapes}",
            help="give `chains=64` and a start of one chain, or a leading axis of the same length to all leaves",
        )
    return int(lengths.pop() or 0)


def target_of(logp: LogDensity, start: Any, chains: int | None, jitter: float | None, data: tuple[Any, ...]) -> Target:
    """The target of a log density, of the parameters of one chain.

    Args:
        logp, data: as in `make_target`.
        start: checked parameters, with an axis of chains if `chains` is None.
        chains: or None.
        jitter: as the user has given it.

    Raises:
        UsageError: PCB460 or PCB461.
    """
    if chains is None:
        return make_target(logp, jax.tree.map(lambda leaf: leaf[0], start), data)
    if jitter is None and all(leaf.ndim and leaf.shape[0] == chains for leaf in jax.tree.leaves(start)):
        raise usage(
            "PCB461",
            f"all leaves of `start` have {chains} rows: that may be an axis of chains, or the parameters of one chain",
            help="leave out `chains` for the first, and write `jitter=1.0` for the second",
        )
    return make_target(logp, start, data)


def positions(
    target: Target, start: Any, chains: int | None, jitter: float, seed: int, begin: Callable[[np.ndarray], Sample]
) -> Sample:
    """The first samples, at positions where log density and gradient are finite.

    Args:
        target: the log density.
        start: as in `target_of`.
        chains: their number, or None.
        jitter: half the width of the uniform distribution around the start of one chain; a position where the
            density is not finite is drawn again.
        seed: of the jitter.
        begin: log densities and gradients of positions [chains, n].

    Raises:
        UsageError: PCB462.
    """
    rng = np.random.default_rng((seed, STREAM))
    if chains is None:
        q = ravel(start, each_chain(start))
        tries = 1
    else:
        one = ravel(start)
        q = (one + rng.uniform(-jitter, jitter, (chains, one.size))).astype(target.dtype)
        tries = MOST_TRIES if jitter > 0 else 1
    for tries_left in reversed(range(tries)):
        sample = begin(q)
        lost = ~finite(sample)
        if not lost.any():
            return sample
        if tries_left:
            again = (one + rng.uniform(-jitter, jitter, q.shape)).astype(target.dtype)
            q = np.where(lost[:, None], again, q)
    chain = int(np.argmax(lost))
    place = short(jax.tree.map(np.asarray, target.unravel(q[chain])))
    what = "log density" if not np.isfinite(np.asarray(sample.logp)[chain]) else "gradient of the log density"
    raise usage(
        "PCB462",
        f"the {what} is not finite where {_chains(int(lost.sum()), q.shape[0])} start",
        f"chain {chain} starts at {place}, where it is {short(float(np.asarray(sample.logp)[chain]))}",
        help="start where the density is positive, with less jitter, or transform parameters to the whole real line",
    )


def finite(sample: Sample) -> np.ndarray:
    """Whether log density and gradient are finite, bool [chains]."""
    return np.asarray(np.isfinite(sample.logp) & np.isfinite(sample.grad).all(axis=1))


def _chains(some: int, all: int) -> str:
    return "all chains" if some == all else f"{some} of {all} chains"
