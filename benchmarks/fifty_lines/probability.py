"""Random numbers and likelihoods."""

import math

import jax
import numpy as np

from benchmarks.fifty_lines.program import Program, each, integers, uniform


def changepoint(rate, counts, most):
    """The log likelihood of counts with change points that are found as they come."""
    loglik = 0.0
    level = rate
    since = 0
    total = 0.0
    changes = 0
    worst = 0.0
    for k in range(len(counts)):
        c = counts[k]
        factorial = 0.0
        j = 2
        while j <= c:
            factorial += math.log(j)
            j += 1
        here = c * math.log(level) - level - factorial
        since += 1
        total += c
        mean = (total + rate) / (since + 1)
        if since >= 3:
            other = c * math.log(mean) - mean - factorial
            surprise = other - here
            if surprise > 1.0 and changes < most:
                changes += 1
                loglik -= 2.0
                level = mean
                since = 0
                total = 0.0
            elif surprise > 0:
                level = 0.9 * level + 0.1 * mean
        if here < worst:
            worst = here
        loglik += here
        if loglik < -200.0:
            break
    if changes == most:
        loglik -= 1.0
    if worst < -20.0:
        return loglik + 0.1 * worst
    return loglik


def slice_chain(width, seed):
    """The last state of a slice sampler with stepping out, of a mixture of two bells."""
    key = jax.random.key(seed)

    def logp(x):
        a = -0.5 * (x - 1.5) ** 2
        b = -2.0 * (x + 1.5) ** 2
        top = max(a, b)
        return top + math.log(math.exp(a - top) + math.exp(b - top))

    x = 0.0
    kept = 0.0
    for draw in range(10):
        key, a, b = jax.random.split(key, 3)
        level = logp(x) + math.log(jax.random.uniform(a) + 1e-9)
        left = x - width * jax.random.uniform(b)
        right = left + width
        steps = 0
        while steps < 8 and logp(left) > level:
            left -= width
            steps += 1
        steps = 0
        while steps < 8 and logp(right) > level:
            right += width
            steps += 1
        tries = 0
        while tries < 30:
            key, a = jax.random.split(key)
            proposal = left + (right - left) * jax.random.uniform(a)
            if logp(proposal) > level:
                x = proposal
                break
            if proposal < x:
                left = proposal
            else:
                right = proposal
            tries += 1
        if draw >= 4:
            kept += x
    return kept / 6


def epidemic(infectivity, seed, people):
    """How many fall ill, by Gillespie's method, with a lockdown that starts and ends."""
    key = jax.random.key(seed)
    susceptible, exposed, ill, recovered, dead = people - 3, 0, 3, 0, 0
    t = 0.0
    locked = False
    lockdowns = 0
    peak = ill
    while ill + exposed > 0 and t < 60.0:
        contact = infectivity
        if locked:
            contact = contact * 0.3
        infect = contact * susceptible * ill / people
        onset = 0.3 * exposed
        recover = 0.2 * ill
        die = 0.01 * ill
        total = infect + onset + recover + die
        key, a, b = jax.random.split(key, 3)
        t += -math.log(jax.random.uniform(a) + 1e-9) / total
        u = jax.random.uniform(b) * total
        if u < infect:
            susceptible -= 1
            exposed += 1
        elif u < infect + onset:
            exposed -= 1
            ill += 1
        elif u < infect + onset + recover:
            ill -= 1
            recovered += 1
        else:
            ill -= 1
            dead += 1
        if ill > peak:
            peak = ill
        if not locked and ill > people // 5:
            locked = True
            lockdowns += 1
        elif locked and ill < people // 20:
            locked = False
    if lockdowns > 3:
        return recovered, dead, -peak
    return recovered, dead, peak


def seeds(rng, lanes):
    """Make one seed for each lane."""
    del rng
    return np.arange(lanes, dtype=np.int32)


def counts(rng, lanes):
    """Make twenty counts for each lane."""
    return rng.poisson(4, (lanes, 20)).astype(np.int32)


PROGRAMS = (
    Program(changepoint, each(uniform(2, 5), counts, integers(1, 4)), smooth=True),
    Program(slice_chain, each(uniform(0.5, 2), seeds), smooth=True),
    Program(epidemic, each(uniform(0.5, 1), seeds, integers(20, 40))),
)
