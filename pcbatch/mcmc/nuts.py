"""The No-U-Turn Sampler as a textbook writes it: one chain, plain Python, recursion and loops.

Nothing below knows that there are other chains. `@pcbatch.batch` turns the functions that branch, loop or recurse
into one batched program in which every chain has its own program counter, so that a chain in a small tree does not
wait for one in a large tree, and a chain that finishes a draw begins the next.

The algorithm doubles a trajectory until it turns back (Hoffman and Gelman 2014, "The No-U-Turn Sampler: Adaptively
Setting Path Lengths in Hamiltonian Monte Carlo"), picks the next position among its points by multinomial weights,
and measures turning by the sum of momenta (Betancourt 2017, "A Conceptual Introduction to Hamiltonian Monte Carlo").
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from pcbatch.api.batch import batch
from pcbatch.mcmc.hamiltonian import LogpAndGrad, Mass, Point, Sample, kinetic, leapfrog, momentum, turning
from pcbatch.mcmc.random import uniform
from pcbatch.mcmc.step_size import Stepper, adjust

DIVERGENCE = -1000.0  # a point whose weight is below exp(this) ends the trajectory: the integrator has failed
POINTS, SIDES, HALVES = 0, 1, 2  # the streams of a draw's random numbers, for each kind of choice one
LOGP, ENERGY, LEAPFROGS, DEPTH, ACCEPT, DIVERGED, STEP = range(7)  # the numbers that are kept of a draw
NUMBERS = 7
FRAMES = 3  # calls on the stack beside those of build_tree: the chain, the transition, and one to spare
GRADIENT = "leaf("  # the source text of the primitive that evaluates the gradient
LEAF = 2  # gradients of a chain in one evaluation of it


class Walker(NamedTuple):
    """The integrator on its way along one half of a trajectory: where it stands and what it met."""

    point: Point
    sample: Sample  # one of the points met in this half, each with probability in proportion to its weight
    log_weight: jax.Array  # of those points together, relative to the start of the trajectory
    ok: jax.Array  # neither a turn nor a divergence so far
    diverged: jax.Array
    leapfrogs: jax.Array  # in the whole trajectory
    accept: jax.Array  # sum over the whole trajectory of min(1, exp(energy lost))


class Stretch(NamedTuple):
    """A stretch of trajectory, reduced to what the test for a turn needs."""

    rows: jax.Array  # momentum where the walker entered it, and the sum of momenta over its points, [2, n]

    @property
    def p_first(self) -> jax.Array:
        """Momentum where the walker entered it."""
        return self.rows[0]

    @property
    def momenta(self) -> jax.Array:
        """Sum of the momenta of its points."""
        return self.rows[1]


class Trajectory(NamedTuple):
    """All halves added so far: the two ends, the sum of momenta, and the sample with the weight it stands for."""

    left: Point
    right: Point
    momenta: jax.Array
    sample: Sample
    log_weight: jax.Array


class Trace(NamedTuple):
    """The record of a chain: one row for each draw."""

    q: jax.Array  # [rows, n]
    numbers: jax.Array  # [rows, NUMBERS]


class Nuts(NamedTuple):
    """The batched functions of one target."""

    build_tree: Any
    transition: Any
    chain: Any


def begin(noise: jax.Array, sample: Sample, mass: Mass) -> tuple[Walker, Trajectory, jax.Array]:
    """The trajectory of one point, with momentum from Normal(0, mass), and its energy."""
    p = momentum(noise, mass)
    point = Point(jnp.concatenate([sample.rows, p[None]]))
    zero = jnp.zeros_like(sample.logp)
    walker = Walker(point, sample, zero, jnp.array(True), jnp.array(False), jnp.int32(0), zero)
    return walker, Trajectory(point, point, p, sample, zero), kinetic(p, mass) - sample.logp


def choose(take: jax.Array, new: Any, old: Any) -> Any:
    """`new if take else old`, for any structure."""
    return jax.tree.map(lambda a, b: jnp.where(take, a, b), new, old)


def set_out(
    walker: Walker, trajectory: Trajectory, key: jax.Array, depth: jax.Array | int, step: jax.Array
) -> tuple[Walker, jax.Array]:
    """Put the walker at a random end of the trajectory, facing outward: a negative step goes left."""
    rightward = uniform(key, SIDES, jnp.asarray(depth), step.dtype) < 0.5
    point = choose(rightward, trajectory.right, trajectory.left)
    nothing = jnp.full_like(walker.log_weight, -jnp.inf)
    return walker._replace(point=point, log_weight=nothing), jnp.where(rightward, step, -step)


def visit(
    logp_and_grad: LogpAndGrad,
    walker: Walker,
    key: jax.Array,
    step: jax.Array,
    energy: jax.Array,
    mass: Mass,
    data: tuple[Any, ...],
) -> tuple[Walker, Stretch]:
    """One leapfrog step and the span of the point it reaches: the only place where a gradient is taken.

    The point replaces the walker's sample with the probability that keeps the choice among all points met
    multinomial (progressive sampling: Betancourt 2017, appendix A.3.1).
    """
    point, logp = leapfrog(logp_and_grad, walker.point, step, mass, data)
    log_weight = energy + logp - kinetic(point.p, mass)
    ok = log_weight > DIVERGENCE  # false for NaN as well
    total = jnp.logaddexp(walker.log_weight, log_weight)
    take = jnp.log(uniform(key, POINTS, walker.leapfrogs, step.dtype)) < log_weight - total
    sample = choose(take, Sample(point.rows[:2], logp), walker.sample)
    accept = walker.accept + jnp.where(ok, jnp.exp(jnp.minimum(log_weight, 0.0)), 0.0)
    return Walker(point, sample, total, ok, ~ok, walker.leapfrogs + 1, accept), Stretch(jnp.stack([point.p, point.p]))


def join(walker: Walker, first: Stretch, second: Stretch, mass: Mass) -> tuple[Walker, Stretch]:
    """Two spans, one after the other, as one."""
    momenta = first.momenta + second.momenta
    ok = walker.ok & ~turning(first.p_first, walker.point.p, momenta, mass)
    return walker._replace(ok=ok), Stretch(jnp.stack([first.p_first, momenta]))


def leaf(
    logp_and_grad: LogpAndGrad,
    walker: Walker,
    depth: jax.Array,
    key: jax.Array,
    step: jax.Array,
    energy: jax.Array,
    mass: Mass,
    data: tuple[Any, ...],
) -> tuple[Walker, Stretch]:
    """The lowest two levels of a tree at once: one leapfrog step at depth 0, two at depth 1.

    A trajectory asks for depth 0 but once, in its first doubling, so nearly all gradients computed are used; and a
    chain has half as many calls to go through as with single steps.
    """
    once, first = visit(logp_and_grad, walker, key, step, energy, mass, data)
    twice, second = visit(logp_and_grad, once, key, step, energy, mass, data)
    both = join(twice, first, second, mass)
    found: tuple[Walker, Stretch] = choose((depth == 1) & once.ok, both, (once, first))
    return found


def extend(
    walker: Walker,
    trajectory: Trajectory,
    stretch: Stretch,
    key: jax.Array,
    depth: jax.Array | int,
    step: jax.Array,
    mass: Mass,
) -> tuple[Walker, Trajectory]:
    """The trajectory with the walker's half added on its side; the sample stays if that half is not sound.

    The sample prefers the new half (biased progressive sampling: Betancourt 2017, appendix A.3.2).
    """
    log_odds = walker.log_weight - trajectory.log_weight
    take = walker.ok & (jnp.log(uniform(key, HALVES, jnp.asarray(depth), step.dtype)) < log_odds)
    left = choose(step < 0, walker.point, trajectory.left)
    right = choose(step > 0, walker.point, trajectory.right)
    momenta = trajectory.momenta + stretch.momenta
    ok = walker.ok & ~turning(left.p, right.p, momenta, mass)
    log_weight = jnp.logaddexp(trajectory.log_weight, walker.log_weight)
    sample = choose(take, walker.sample, trajectory.sample)
    return walker._replace(ok=ok), Trajectory(left, right, momenta, sample, log_weight)


def record(
    trace: Trace,
    t: jax.Array | int,
    sample: Sample,
    walker: Walker,
    energy: jax.Array,
    depth: jax.Array,
    stepper: Stepper,
) -> tuple[Trace, Stepper]:
    """Write row `t`, and adjust the step size by the acceptance."""
    dtype = trace.numbers.dtype
    leapfrogs = walker.leapfrogs.astype(dtype)
    accept = walker.accept / leapfrogs
    row = [sample.logp, energy, leapfrogs, jnp.asarray(depth).astype(dtype), accept]
    row += [walker.diverged.astype(dtype), stepper.step]
    trace = Trace(trace.q.at[t].set(sample.q), trace.numbers.at[t].set(jnp.stack(row)))
    return trace, adjust(stepper, accept)


def nuts(logp_and_grad: LogpAndGrad, *, deepest: int = 10, mass_axis: int | None = None) -> Nuts:
    """Make the sampler of a target.

    Args:
        logp_and_grad: log density and gradient of it at a flat position, `logp_and_grad(q, *data)`.
        deepest: of all trees; the frames of the recursion are that many.
        mass_axis: 0 if each chain has a mass matrix of its own.
    """

    @batch(in_axes=(0, 0, 0, 0, 0, mass_axis, None))
    def build_tree(walker, depth, key, step, energy, mass, data):  # type: ignore[no-untyped-def]
        """Take 2**depth leapfrog steps, fewer if a subtree turns; return the walker and the span it covered."""
        if depth <= 1:
            return leaf(logp_and_grad, walker, depth, key, step, energy, mass, data)
        walker, first = build_tree(walker, depth - 1, key, step, energy, mass, data)
        if not walker.ok:
            return walker, first
        walker, second = build_tree(walker, depth - 1, key, step, energy, mass, data)
        return join(walker, first, second, mass)

    @batch(in_axes=(0, 0, 0, 0, mass_axis, None, None))
    def transition(key, noise, sample, step, mass, max_tree_depth, data):  # type: ignore[no-untyped-def]
        """One draw: double the trajectory until it turns, diverges or is as long as it may be."""
        walker, trajectory, energy = begin(noise, sample, mass)
        walker, outward = set_out(walker, trajectory, key, 0, step)
        depth, growing = 0, True
        while growing:
            walker, span = build_tree(walker, depth, key, outward, energy, mass, data)
            walker, trajectory = extend(walker, trajectory, span, key, depth, outward, mass)
            depth += 1
            walker, outward = set_out(walker, trajectory, key, depth, step)
            growing = walker.ok & (depth < max_tree_depth)
        return walker, trajectory.sample, energy, depth

    @batch(in_axes=(0, 0, mass_axis, 0, 0, 0, None, None, None), max_depth=deepest + FRAMES)
    def chain(sample, stepper, mass, keys, noise, trace, draws, max_tree_depth, data):  # type: ignore[no-untyped-def]
        """`draws` draws, written to the rows of `trace`; the step size adapts as `stepper` says."""
        for t in range(draws):
            walker, sample, energy, depth = transition(
                keys[t], noise[t], sample, stepper.step, mass, max_tree_depth, data
            )
            trace, stepper = record(trace, t, sample, walker, energy, depth, stepper)
        return sample, stepper, trace

    return Nuts(build_tree, transition, chain)
