"""Warm-up: step sizes and mass matrices are learned, of all chains together or of each chain by itself.

Both follow Stan's windows. In the first window each chain adapts a step size of its own, to get from where it starts to
where the others are. From then on, pooled, all chains have one step size, which is adjusted by the mean acceptance of
all of them in rounds of few draws: of so many chains that mean is precise at once, and no chain has a tiny step that
the others would wait for. Chains that are stuck have shorter steps meanwhile.

The schedule of a warm-up, as in Stan: a fast window, slow windows of doubling length, a fast window.

In fast windows only the step size is adapted; after each slow one the mass matrix is estimated from its draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pcbatch.mcmc import mass_matrix
from pcbatch.mcmc.hamiltonian import Mass
from pcbatch.mcmc.machine import ChainMachine, Chains, Piece
from pcbatch.mcmc.nuts import ACCEPT, DIVERGED
from pcbatch.mcmc.settings import Settings
from pcbatch.mcmc.step_size import adaptive, fixed, settled

MOST_TRIES = 40  # a factor of 2**40 either way: beyond it the target is at fault
GAIN, FADING = 2.0, 0.6  # of the pooled search: log(step) moves by gain * round**-fading * error
STUCK, MOST_STUCK = 0.2, 0.5  # acceptance below which a chain is stuck; more than these shorten the step of all
STILL_STUCK, SHORTEST = np.log(2.0), np.log(16.0)  # of logarithms by which a step is shortened
# Where transitions diverge, the acceptance aimed at is higher by so many times their share, within a limit.
# That is the share among the last so many draws, as chains may not come to where they diverge for long; and no chain
# counts for more than so large a share of its draws, so that one that is lost does not set the pace of all.
PENALTY, MOST_PENALTY = 200.0, 0.15
RECENT, MOST_OF_A_CHAIN = 200, 0.05
TRANSIENT = 4  # the first rounds of a window, in which the step may be far too long
RESTART = 8.0  # a step found anew for a new mass matrix within this factor of the one in use is not better than it
SEARCH = 0x57E9  # of the seed of the noise with which first steps are looked for

Tick = Callable[[int], object]


@dataclass(frozen=True)
class Warm:
    """The result of a warm-up: step sizes, mass and positions that were found, and its draws."""

    chains: Chains  # with fixed step sizes
    mass: Mass
    pieces: tuple[Piece, ...]


def warm_up(machine: ChainMachine, chains: Chains, tick: Tick) -> Warm:
    """Run the warm-up; the chains leave it with fixed step sizes and mass matrices."""
    settings = machine.settings
    mass, pieces = machine.unit_mass(), list[Piece]()
    step, since_mass = np.asarray(chains.stepper.step), list[Piece]()  # draws since there is a mass matrix
    for number, window in enumerate(windows(settings.warmup)):
        if settings.pooled:
            step = np.full_like(step, np.median(step))
        found = _first_step(machine, chains, step, mass, number)
        again = settings.pooled and number > 1 and bool(np.all(np.abs(np.log(found / step)) < np.log(RESTART)))
        step = step if again else found
        opening = window.early and not window.estimates
        if settings.pooled and not opening:
            chains, step, drawn = _pooled_window(machine, chains, step, mass, window, tick, since_mass)
            since_mass = [] if window.early else since_mass + drawn[TRANSIENT:]
        else:
            chains, step, drawn = _own_window(machine, chains, step, mass, window, tick)
        pieces += drawn
        if window.estimates:
            mass = _estimate(settings, np.concatenate([piece.q for piece in drawn], axis=1))
    return Warm(chains._replace(stepper=fixed(step)), mass, tuple(pieces))


def _estimate(settings: Settings, q: np.ndarray) -> Mass:
    estimate = mass_matrix.pooled if settings.pooled else mass_matrix.per_chain
    return mass_matrix.mass_of(estimate(q, settings.dense), settings.dense, q.dtype)


def _first_step(machine: ChainMachine, chains: Chains, step: np.ndarray, mass: Mass, window: int) -> np.ndarray:
    """Step sizes of the right order of magnitude (Hoffman and Gelman 2014, algorithm 4).

    They are doubled or halved until one leapfrog step is no longer, or is, accepted with a probability of 1/2: for
    each chain, or for the mean of all.
    """
    rng = np.random.default_rng((machine.settings.seed, SEARCH, window))
    noise = rng.normal(size=chains.sample.q.shape).astype(step.dtype)

    def accepted(step: np.ndarray) -> np.ndarray:
        accept = np.exp(np.minimum(machine.gains(chains.sample, step, mass, noise), 0.0))
        return np.full(accept.shape, accept.mean() > 0.5) if machine.settings.pooled else accept > 0.5

    growing = accepted(step)
    factor = np.where(growing, 2.0, 0.5).astype(step.dtype)
    searching = np.ones(step.shape, bool)
    for _ in range(MOST_TRIES):
        step = np.where(searching, step * factor, step)
        searching &= accepted(step) == growing
        if not searching.any():
            break
    return step


def _depth(machine: ChainMachine, window: WarmupWindow) -> int:
    """Return the largest depth of trees in a window."""
    deepest = machine.settings.max_tree_depth
    return min(deepest, EARLY_DEPTH) if window.early else deepest


def _own_window(
    machine: ChainMachine, chains: Chains, step: np.ndarray, mass: Mass, window: WarmupWindow, tick: Tick
) -> tuple[Chains, np.ndarray, list[Piece]]:
    """A window in which each chain adjusts its own step size after every draw, by dual averaging."""
    chains = chains._replace(stepper=adaptive(step, machine.settings.target_accept))
    pieces = []
    for first in range(0, window.draws, machine.rows):
        count = min(machine.rows, window.draws - first)
        chains, piece = machine.advance(chains, mass, count, _depth(machine, window))
        pieces.append(piece)
        tick(count)
    return chains, settled(chains.stepper), pieces


def diverging(pieces: list[Piece]) -> float:
    """The share of the last draws that have diverged."""
    if not pieces:
        return 0.0
    recent: list[np.ndarray] = []
    for piece in reversed(pieces):
        recent.append(piece.numbers[:, :, DIVERGED])
        if sum(numbers.shape[1] for numbers in recent) >= RECENT:
            break
    of_chains = np.concatenate(recent, axis=1).mean(axis=1)
    return float(np.minimum(of_chains, MOST_OF_A_CHAIN).mean())


def _pooled_window(
    machine: ChainMachine,
    chains: Chains,
    step: np.ndarray,
    mass: Mass,
    window: WarmupWindow,
    tick: Tick,
    before: list[Piece],
) -> tuple[Chains, np.ndarray, list[Piece]]:
    """A window in which the step size of all chains is adjusted by their mean acceptance after every round.

    This is the iteration of Robbins and Monro; what is kept is the mean of the later half (Polyak and Ruppert). A
    chain that accepts next to nothing is stuck where only shorter steps are accepted: it makes them until it gets
    away, and does not count. If it is still there in the end it keeps shorter steps, within a limit.
    """
    log_step, tried, shortened, pieces = float(np.log(step[0])), [], [], []
    shorter = np.zeros(step.shape, step.dtype)  # logarithm of what the steps of stuck chains are shortened by
    for number, count in enumerate(rounds(window.draws, window.early), 1):
        tried.append(log_step)
        stepper = fixed(np.exp(log_step - shorter).astype(step.dtype))
        chains, piece = machine.advance(chains._replace(stepper=stepper), mass, count, _depth(machine, window))
        accept = piece.numbers[:, :, ACCEPT].mean(axis=1)
        stuck = accept < STUCK
        shorter = np.where(stuck, shorter + np.log(2.0), np.maximum(shorter - np.log(2.0), 0.0)).astype(step.dtype)
        usual = ~stuck & (shorter == 0)
        counted = usual if usual.mean() > MOST_STUCK else np.ones_like(usual)
        error = float(accept[counted].mean()) - machine.settings.target_accept
        pieces.append(piece)
        error -= min(PENALTY * diverging([*before, *pieces[TRANSIENT:]]), MOST_PENALTY)
        log_step += GAIN * number**-FADING * error
        shortened.append(shorter)
        tick(count)
    tried.append(log_step)
    late = len(shortened) // 2
    shorter = np.mean(shortened[late:], axis=0)
    shorter[shorter < STILL_STUCK] = 0.0
    kept = np.exp(np.mean(tried[late:]) - np.minimum(shorter, SHORTEST))
    return chains, kept.astype(step.dtype), pieces


OPENING, FIRST, CLOSING = 75, 25, 50  # draws, when there is time for them
EARLY_DEPTH = 8  # of trees before the second mass matrix: a chain with a bad one has no use for longer trajectories
ROUND = 16  # most draws between two adjustments of a pooled step size


class WarmupWindow(NamedTuple):
    """A stretch of warm-up: its draws, whether the mass matrix is estimated from them, whether trees are kept small."""

    draws: int
    estimates: bool
    early: bool = False


def windows(warmup: int) -> Iterator[WarmupWindow]:
    """The stretches of a warm-up of `warmup` draws in all."""
    if warmup < FIRST:
        yield WarmupWindow(warmup, False)  # too short to learn a mass matrix from
        return
    opening, closing = OPENING, CLOSING
    if warmup < OPENING + FIRST + CLOSING:
        opening, closing = int(0.15 * warmup), max(1, int(0.1 * warmup))
    left, size = warmup - opening - closing, FIRST
    early = True
    if opening:
        yield WarmupWindow(opening, False, early)
    while left > 0:
        if left < 3 * size:  # the next window would not have twice the length: take what is left
            size = left
        yield WarmupWindow(size, True, early)
        left, size, early = left - size, 2 * size, False
    yield WarmupWindow(closing, False)


def rounds(draws: int, early: bool = True) -> Iterator[int]:
    """The draws between two adjustments of a pooled step size: one by one at first, then longer, as it settles.

    Not `early`, the step size is nearly right from the first draw on, and rounds are longer at once.
    """
    size = 1 if early else 2
    while draws > 0:
        for _ in range(4):
            if draws <= 0:
                return
            taken = min(size, draws)
            yield taken
            draws -= taken
        size = min(2 * size, ROUND)
