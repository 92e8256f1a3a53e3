"""The gallery's samplers against `jax.vmap` of the same loops written by hand.

    python -m benchmarks.gallery_samplers [--lanes 32 256 2048] [--only filter]

Delayed acceptance, coupled chains, sequential Monte Carlo with adaptive temperatures, and a particle filter that
resamples seldom, with the sizes of the gallery; slice and elliptical slice sampling are in `benchmarks.cheap_loops`.
Peers draw the same numbers from the same keys. Results are compared before anything is timed; CPU seconds of one
thread, in turn, the median of the ratios of pairs, by hand over ours: above 1, ours is faster.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from benchmarks.common import check_lanes_agree, paired_cpu
from examples.gallery import coupled_chains, delayed_acceptance, particle_filter, tempered_smc

LANES = (32, 256, 2048)
DRAWS, FIRST, LAST, COUNT, LENGTHS = 200, 10, 40, 100, (5, 30)


def delayed_by_hand(key: jax.Array) -> Any:
    """Delayed acceptance; under `vmap` the dear density is computed for all lanes in any case."""
    cheap, dear = delayed_acceptance.cheap, delayed_acceptance.dear

    def one(_: int, s: Any) -> Any:
        key, x, low, high, mean, square, asked = s
        key, step, first, second = jax.random.split(key, 4)
        new = x + 2.4 * jax.random.normal(step)
        new_low, new_high = cheap(new), dear(new)
        asks = jnp.log(jax.random.uniform(first)) < new_low - low
        moves = asks & (jnp.log(jax.random.uniform(second)) < new_high - high - (new_low - low))
        x, low, high = jnp.where(moves, new, x), jnp.where(moves, new_low, low), jnp.where(moves, new_high, high)
        return key, x, low, high, mean + x / DRAWS, square + x**2 / DRAWS, asked + asks

    x = jnp.float32(0.0)
    start = (key, x, cheap(x), dear(x), x, x, jnp.int32(0))
    return jax.lax.fori_loop(0, DRAWS, one, start)[4:]


def coupled_by_hand(key: jax.Array) -> Any:
    """Coupled chains: a loop that proposes in a loop that lasts until the chains have met."""
    size, log_proposal, accept = coupled_chains.SIZE, coupled_chains.log_proposal, coupled_chains.accept

    def level(key: jax.Array, new: jax.Array, old: jax.Array) -> jax.Array:
        return jnp.log(jax.random.uniform(key)) + log_proposal(new, old)

    def propose(key: jax.Array, x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        def again(s: Any) -> Any:
            key, step, height = jax.random.split(s[0], 3)
            new_y = y + size * jax.random.normal(step)
            return key, new_y, level(height, new_y, y) >= log_proposal(new_y, x)

        key, step, height = jax.random.split(key, 3)
        new_x = x + size * jax.random.normal(step)
        start = (key, new_x, level(height, new_x, x) < log_proposal(new_x, y))
        return new_x, jax.lax.while_loop(lambda s: ~s[2], again, start)[1]

    def one(s: Any) -> Any:
        key, x, y, mean, correction, time, met = s
        mean = mean + jnp.where((FIRST <= time) & (time <= LAST), share, 0.0) * jnp.array([x, x**2])
        correction = correction + jnp.clip(share * (time - FIRST), 0, 1) * jnp.array([x - y, x**2 - y**2])
        met = jnp.where(x != y, time + 1, met)
        key, now, accepted = jax.random.split(key, 3)
        new_x, new_y = propose(now, x, y)
        return key, accept(accepted, new_x, x), accept(accepted, new_y, y), mean, correction, time + 1, met

    share = 1 / (LAST - FIRST + 1)
    key, begin, step, now = jax.random.split(key, 4)
    x, y = coupled_chains.START + jax.random.normal(begin, 2)
    x = accept(now, x + size * jax.random.normal(step), x)
    start = (key, x, y, jnp.zeros(2), jnp.zeros(2), jnp.int32(1), jnp.int32(1))
    end = jax.lax.while_loop(lambda s: (s[5] <= LAST) | (s[1] != s[2]), one, start)
    return end[3], end[3] + end[4], end[6]


def smc_by_hand(key: jax.Array, seen: jax.Array) -> Any:
    """Sequential Monte Carlo: loops that find a temperature and that move particles, in a loop over temperatures."""
    log_likelihood, prior = tempered_smc.log_likelihood, tempered_smc.PRIOR

    def too_few(step: jax.Array, heights: jax.Array) -> jax.Array:
        return tempered_smc.effective_size(step * heights) < 0.5 * COUNT

    def ladder(most: jax.Array, heights: jax.Array) -> jax.Array:
        def halve(s: Any) -> Any:
            low, high, _ = s
            step = (low + high) / 2
            few = too_few(step, heights)
            return jnp.where(few, low, step), jnp.where(few, step, high), step

        needed = too_few(most, heights)
        start = (jnp.zeros_like(most), most, most)
        return jax.lax.while_loop(lambda s: needed & (s[1] - s[0] > 1e-3 * s[1]), halve, start)[2]

    def one(s: Any) -> Any:
        key, particles, temperature, evidence, rungs = s
        heights = log_likelihood(particles, seen)
        step = ladder(1 - temperature, heights)
        evidence = evidence + jax.nn.logsumexp(step * heights) - jnp.log(COUNT)
        temperature = temperature + step
        key, now = jax.random.split(key)
        particles = tempered_smc.resample(now, particles, step * heights)
        size = jnp.std(particles, 0)

        def move(s: Any) -> Any:
            key, walk, levels = jax.random.split(s[0], 3)
            new = s[1] + size * jax.random.normal(walk, s[1].shape)
            gain = temperature * (log_likelihood(new, seen) - log_likelihood(s[1], seen))
            gain += 0.5 * jnp.sum(s[1] ** 2 - new**2, -1) / prior**2
            moved = jnp.log(jax.random.uniform(levels, (COUNT,))) < gain
            return key, jnp.where(moved[:, None], new, s[1]), s[2] + jnp.mean(moved)

        key, particles, _ = jax.lax.while_loop(lambda s: s[2] < 3, move, (key, particles, jnp.float32(0.0)))
        return key, particles, temperature, evidence, rungs + 1

    key, now = jax.random.split(key)
    zero = jnp.float32(0.0)
    start = (key, prior * jax.random.normal(now, (COUNT, len(seen))), zero, zero, jnp.int32(0))
    _, particles, _, evidence, rungs = jax.lax.while_loop(lambda s: s[2] < 1, one, start)
    return jnp.mean(particles, 0), evidence, rungs


def filter_by_hand(key: jax.Array, seen: jax.Array, length: jax.Array) -> Any:
    """A particle filter; under `vmap` particles are resampled in any case, and selected."""
    noise = particle_filter.NOISE

    def one(s: Any) -> Any:
        time, key, particles, weights, total, resampled = s
        few = 1 / jnp.sum(weights**2) < 0.5 * COUNT
        other, now = jax.random.split(key)
        key = jnp.where(few, other, key)
        particles = jnp.where(few, particle_filter.resample(now, particles, weights), particles)
        weights = jnp.where(few, 1 / COUNT, weights)
        key, now = jax.random.split(key)
        particles = particle_filter.KEEP * particles + jax.random.normal(now, (COUNT,))
        heights = -0.5 * ((seen[time] - particles) / noise) ** 2 - jnp.log(noise * jnp.sqrt(2 * jnp.pi))
        weights = jnp.log(weights) + heights
        total = total + jax.nn.logsumexp(weights)
        return time + 1, key, particles, jax.nn.softmax(weights), total, resampled + few

    key, now = jax.random.split(key)
    particles, zero = jax.random.normal(now, (COUNT,)), jnp.int32(0)
    start = (zero, key, particles, jnp.full(COUNT, 1 / COUNT), jnp.float32(0.0), zero)
    return jax.lax.while_loop(lambda s: s[0] < length, one, start)[4:]


def delayed(lanes: int) -> tuple[Calls, Calls]:
    """Both sides, with their arguments."""
    run = delayed_acceptance.sample.with_options(in_axes=(0, None, None))
    return (run, (_keys(lanes), 0.0, DRAWS)), (delayed_by_hand, (_keys(lanes),))


def coupled(lanes: int) -> tuple[Calls, Calls]:
    """Both sides, with their arguments."""
    run = coupled_chains.estimate.with_options(in_axes=(0, None, None))
    return (run, (_keys(lanes), FIRST, LAST)), (coupled_by_hand, (_keys(lanes),))


def smc(lanes: int) -> tuple[Calls, Calls]:
    """Both sides, with their arguments."""
    seen = jnp.asarray(np.random.default_rng(0).normal(0, tempered_smc.PRIOR, (lanes, 2)), jnp.float32)
    run = tempered_smc.sample.with_options(in_axes=(0, 0, None))
    return (run, (_keys(lanes), seen, COUNT)), (smc_by_hand, (_keys(lanes), seen))


def filtering(lanes: int) -> tuple[Calls, Calls]:
    """Both sides, with their arguments: lists, and rows of one length with the numbers that count."""
    rng = np.random.default_rng(0)
    data = [particle_filter.series(rng, int(length)) for length in rng.integers(*LENGTHS, lanes)]
    rows = np.zeros((lanes, LENGTHS[1]), np.float32)
    for row, some in zip(rows, data, strict=True):
        row[: len(some)] = some
    lengths = jnp.array([len(some) for some in data], jnp.int32)
    run = particle_filter.log_likelihood.with_options(in_axes=(0, 0, None))
    ours = run, (_keys(lanes), jax.device_put(pcbatch.ragged(data)), COUNT)
    return ours, (filter_by_hand, (_keys(lanes), jnp.asarray(rows), lengths))


def _keys(lanes: int) -> jax.Array:
    return jax.random.split(jax.random.key(0), lanes)


Calls = tuple[Callable[..., Any], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Problem:
    """Both sides for a number of lanes, and the share of the lanes that must agree.

    A draw that rounding decides another way changes all that a run draws later: of many particles some will.
    """

    calls: Callable[[int], tuple[Calls, Calls]]
    agree: float = 0.98


PROBLEMS = {
    "delayed": Problem(delayed),
    "coupled": Problem(coupled),
    "smc": Problem(smc, 0.5),
    "filter": Problem(filtering),
}


def measured(name: str, lanes: int, repeats: int) -> str:
    """Compare results, and return a line of the table."""
    (run, given), (by_hand, theirs) = PROBLEMS[name].calls(lanes)
    peer = jax.jit(jax.vmap(by_hand))
    check_lanes_agree(run(*given), peer(*theirs), PROBLEMS[name].agree)
    hand, mine, ratio = paired_cpu(lambda: peer(*theirs), lambda: run(*given), repeats)
    return f"| {name} | {lanes} | {1e3 * mine:.1f} | {1e3 * hand:.1f} | {ratio:.2f} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lanes", type=int, nargs="*", default=LANES)
    parser.add_argument("--only", nargs="*", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args(arguments)
    print("CPU milliseconds; ratio: by hand over ours\n")
    print("| sampler | lanes | ours | by hand | ratio |\n|---|---|---|---|---|")
    for name in options.only:
        for lanes in options.lanes:
            print(measured(name, lanes, options.repeats), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("NPROC", "1")
    main()
