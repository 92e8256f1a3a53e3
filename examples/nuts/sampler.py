"""The No-U-Turn Sampler as a textbook writes it: one chain, plain Python, recursion and loops.

Nothing below knows that there are other chains. `@pcbatch.batch` turns the functions that branch, loop or recurse
into one batched program in which every chain has its own program counter, so that a chain in a small tree does not
wait for one in a large tree, and a chain that finishes a draw begins the next.

The algorithm doubles a trajectory until it turns back (Hoffman and Gelman 2014, "The No-U-Turn Sampler: Adaptively
Setting Path Lengths in Hamiltonian Monte Carlo"), picks the next position among its points by multinomial weights,
and measures turning by the sum of momenta (Betancourt 2017, "A Conceptual Introduction to Hamiltonian Monte Carlo").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import pcbatch
from examples.nuts.hamiltonian import Point, Sample, kinetic, leapfrog, turning
from examples.nuts.stepsize import adjust

DIVERGENCE = -1000.0  # a point whose weight is below exp(this) ends the trajectory: the integrator has failed


class Walker(NamedTuple):
    """The integrator on its way along one half of a trajectory: where it stands and what it met."""

    key: jax.Array
    point: Point
    sample: Sample  # one of the points met in this half, each with probability in proportion to its weight
    log_weight: jax.Array  # of those points together, relative to the start of the trajectory
    ok: jax.Array  # neither a turn nor a divergence so far
    diverged: jax.Array
    leapfrogs: jax.Array  # in the whole trajectory
    accept: jax.Array  # sum over the whole trajectory of min(1, exp(energy lost))


class Span(NamedTuple):
    """A stretch of trajectory, reduced to what the test for a turn needs."""

    p_first: jax.Array  # momentum where the walker entered it
    momenta: jax.Array  # sum over its points


class Trajectory(NamedTuple):
    """All halves added so far: the two ends, the sum of momenta, and the sample with the weight it stands for."""

    left: Point
    right: Point
    momenta: jax.Array
    sample: Sample
    log_weight: jax.Array


class Trace(NamedTuple):
    """What a chain records: one row for each draw."""

    q: jax.Array
    leapfrogs: jax.Array
    accept: jax.Array
    diverged: jax.Array


class Nuts(NamedTuple):
    """The batched functions of one target."""

    build_tree: Any
    transition: Any
    chain: Any


def start(
    key: jax.Array, noise: jax.Array, sample: Sample, inv_mass: jax.Array
) -> tuple[Walker, Trajectory, jax.Array]:
    """The trajectory of one point, with momentum from Normal(0, mass), and its energy."""
    p = noise / jnp.sqrt(inv_mass)
    point = Point(sample.q, p, sample.grad)
    zero = jnp.zeros_like(sample.logp)
    walker = Walker(key, point, sample, zero, jnp.array(True), jnp.array(False), jnp.array(0), zero)
    return walker, Trajectory(point, point, p, sample, zero), kinetic(p, inv_mass) - sample.logp


def choose(take: jax.Array, new: Any, old: Any) -> Any:
    """`new if take else old`, for any structure."""
    return jax.tree.map(lambda a, b: jnp.where(take, a, b), new, old)


def set_out(walker: Walker, trajectory: Trajectory, step: jax.Array) -> tuple[Walker, jax.Array]:
    """Put the walker at a random end of the trajectory, facing outward: a negative step goes left."""
    key, key_side = jax.random.split(walker.key)
    rightward = jax.random.bernoulli(key_side)
    point = choose(rightward, trajectory.right, trajectory.left)
    nothing = jnp.full_like(walker.log_weight, -jnp.inf)
    return walker._replace(key=key, point=point, log_weight=nothing), jnp.where(rightward, step, -step)


def join(walker: Walker, first: Span, second: Span, inv_mass: jax.Array) -> tuple[Walker, Span]:
    """Two spans, one after the other, as one."""
    momenta = first.momenta + second.momenta
    ok = walker.ok & ~turning(first.p_first, walker.point.p, momenta, inv_mass)
    return walker._replace(ok=ok), Span(first.p_first, momenta)


def extend(
    walker: Walker, trajectory: Trajectory, span: Span, step: jax.Array, inv_mass: jax.Array
) -> tuple[Walker, Trajectory]:
    """The trajectory with the walker's half added on its side; the sample stays if that half is not sound.

    The sample prefers the new half (biased progressive sampling: Betancourt 2017, appendix A.3.2).
    """
    key, key_take = jax.random.split(walker.key)
    log_odds = walker.log_weight - trajectory.log_weight
    take = walker.ok & (jnp.log(jax.random.uniform(key_take)) < log_odds)
    left = choose(step < 0, walker.point, trajectory.left)
    right = choose(step > 0, walker.point, trajectory.right)
    momenta = trajectory.momenta + span.momenta
    ok = walker.ok & ~turning(left.p, right.p, momenta, inv_mass)
    log_weight = jnp.logaddexp(trajectory.log_weight, walker.log_weight)
    sample = choose(take, walker.sample, trajectory.sample)
    return walker._replace(key=key, ok=ok), Trajectory(left, right, momenta, sample, log_weight)


def record(trace: Trace, t: jax.Array | int, sample: Sample, walker: Walker, accept: jax.Array) -> Trace:
    """Write row `t`."""
    row = Trace(sample.q, walker.leapfrogs, accept, walker.diverged)
    return jax.tree.map(lambda column, value: column.at[t].set(value), trace, row)


def nuts(logp_and_grad: Callable[[jax.Array], tuple[jax.Array, jax.Array]], max_tree_depth: int = 10) -> Nuts:
    """The sampler of a target whose log density and gradient at `q` are `logp_and_grad(q)`."""

    def visit(walker: Walker, step: jax.Array, energy: jax.Array, inv_mass: jax.Array) -> tuple[Walker, Span]:
        """One leapfrog step and the span of the point it reaches: the only gradient of the sampler.

        The point replaces the walker's sample with the probability that keeps the choice among all points met
        multinomial (progressive sampling: Betancourt 2017, appendix A.3.1).
        """
        point, logp = leapfrog(logp_and_grad, walker.point, step, inv_mass)
        log_weight = energy + logp - kinetic(point.p, inv_mass)
        ok = log_weight > DIVERGENCE  # false for NaN as well
        key, key_take = jax.random.split(walker.key)
        total = jnp.logaddexp(walker.log_weight, log_weight)
        take = jnp.log(jax.random.uniform(key_take)) < log_weight - total
        sample = choose(take, Sample(point.q, logp, point.grad), walker.sample)
        accept = walker.accept + jnp.where(ok, jnp.exp(jnp.minimum(log_weight, 0.0)), 0.0)
        return Walker(key, point, sample, total, ok, ~ok, walker.leapfrogs + 1, accept), Span(point.p, point.p)

    @pcbatch.batch
    def build_tree(walker, depth, step, energy, inv_mass):
        """Take 2**depth leapfrog steps, fewer if a subtree turns; return the walker and the span it covered."""
        if depth == 0:
            return visit(walker, step, energy, inv_mass)
        walker, first = build_tree(walker, depth - 1, step, energy, inv_mass)
        if not walker.ok:
            return walker, first
        walker, second = build_tree(walker, depth - 1, step, energy, inv_mass)
        return join(walker, first, second, inv_mass)

    @pcbatch.batch
    def transition(key, noise, sample, step, inv_mass):
        """One draw: double the trajectory until it turns, diverges or is as long as it may be."""
        walker, trajectory, energy = start(key, noise, sample, inv_mass)
        depth, growing = 0, True
        while growing:
            walker, outward = set_out(walker, trajectory, step)
            walker, span = build_tree(walker, depth, outward, energy, inv_mass)
            walker, trajectory = extend(walker, trajectory, span, outward, inv_mass)
            depth += 1
            growing = walker.ok & (depth < max_tree_depth)
        return walker, trajectory.sample

    @pcbatch.batch(in_axes=(0, 0, 0, None, 0, None))
    def chain(key, sample, stepper, inv_mass, trace, draws):
        """`draws` draws, written to the rows of `trace`; the step size adapts as `stepper` says."""
        key, key_noise = jax.random.split(key)
        noise = jax.random.normal(key_noise, trace.q.shape, trace.q.dtype)  # of all momenta: cheaper in one go
        for t in range(draws):
            walker, sample = transition(key, noise[t], sample, stepper.step, inv_mass)
            key, accept = walker.key, walker.accept / walker.leapfrogs.astype(walker.accept.dtype)
            stepper = adjust(stepper, accept)
            trace = record(trace, t, sample, walker, accept)
        return key, sample, stepper, trace

    return Nuts(build_tree, transition, chain)
