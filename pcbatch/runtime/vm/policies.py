"""Policies choose the blocks that run in a trip; they change the time that a run takes, never its results.

A policy is an object with a `name` and a method `trip(blocks, carry)`, which gives the carried state after one trip of
the machine: it reads how many lanes wait for each block (`blocks.waiting`) and runs blocks (`visit`, `sweep`, `drain`,
or `run` for a block that is known only at run time). A trip of a user's policy need not run anything, and may pass
over lanes in any number of trips: every `FAIR`-th trip is followed by a sweep over all blocks, so that every lane
comes to its end. See docs/users/schedule.md.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp

from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.diagnostics.short_repr import short
from pcbatch.errors import UsageError
from pcbatch.runtime.learned.policy import Learned
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.blocks import Blocks
from pcbatch.runtime.vm.lane_reductions import count_lanes

FAIR = 1024  # trips


@runtime_checkable
class Policy(Protocol):
    """The protocol of a plan's schedule: an object with a `name` and a method that makes one trip of the machine.

    `trip` is traced by JAX once per program, so it decides with JAX operations on `blocks.waiting(carry)`, and may use
    Python freely on what is known then: `len(blocks)`, `blocks.expensive`, `blocks.holding(text)`.

    Example:
        >>> class Fullest:
        ...     name = "fullest"
        ...     def trip(self, blocks, carry):
        ...         return blocks.run(jax.numpy.argmax(blocks.waiting(carry)), carry)
    """

    @property
    def name(self) -> str:
        """The name of the policy in reports."""

    def trip(self, blocks: Blocks, carry: Values) -> Values:
        """Return the carried state after one trip.

        Args:
            blocks: The blocks of the program, with methods to run them.
            carry: The carried state, a dict of arrays; the result has the same keys, shapes and dtypes.
        """


@runtime_checkable
class Stepwise(Protocol):
    """A policy that can make a visit a trip: for emitters that have one switch over all blocks."""

    def following(self, blocks: Blocks, carry: Values, last: jax.Array) -> jax.Array:
        """Return the block to visit after the block `last`, int32[], one that lanes wait for.

        Some lane is live.
        """


@dataclass(frozen=True, slots=True)
class Earliest:
    """Run the block with the smallest program counter: Algorithm 2 of Radul et al. (MLSys 2020)."""

    name: str = "earliest"

    def trip(self, blocks: Blocks, carry: Values) -> Values:
        return blocks.emitter.run(blocks, jnp.min(carry["pc"]).astype(jnp.int32), carry, range(len(blocks)))


@dataclass(frozen=True, slots=True)
class Largest:
    """Run the block that most lanes wait for; the earliest of several."""

    name: str = "largest"

    def trip(self, blocks: Blocks, carry: Values) -> Values:
        fullest = jnp.argmax(blocks.waiting(carry)).astype(jnp.int32)
        return blocks.emitter.run(blocks, fullest, carry, range(len(blocks)))


@dataclass(frozen=True, slots=True)
class Sweep:
    """Run, in order, every block that some lane waits for when its turn comes."""

    name: str = "sweep"

    def trip(self, blocks: Blocks, carry: Values) -> Values:
        return blocks.sweep(range(len(blocks)), carry)

    def following(self, blocks: Blocks, carry: Values, last: jax.Array) -> jax.Array:
        return _next_after(last, carry["pc"], carry["pc"] < len(blocks), len(blocks))


@dataclass(frozen=True, slots=True)
class Drain:
    """Run cheap blocks until every live lane waits for an expensive one; then the expensive one that most wait for.

    A single expensive block runs exactly as often as the lane that needs it most often: no lane waits for another block
    when it does (the sufficient condition of Fegade et al., ED-Batch, ICML 2023, lemma 2.1). Where cheap blocks form
    loops of their own, which the last lanes may go round many times, it does not wait for a few (`left_behind`).
    """

    name: str = "drain"

    def trip(self, blocks: Blocks, carry: Values) -> Values:
        cheap = [k for k in range(len(blocks)) if k not in blocks.expensive]
        carry = blocks.drain(cheap, carry, blocks.left_behind)
        if not blocks.expensive:
            return carry
        if len(blocks.expensive) == 1:
            return blocks.visit(blocks.expensive[0], carry)
        return blocks.run(_fullest(blocks, carry), carry, blocks.expensive)

    def following(self, blocks: Blocks, carry: Values, last: jax.Array) -> jax.Array:
        live = carry["pc"] < len(blocks)
        if not blocks.expensive:
            return _next_after(last, carry["pc"], live, len(blocks))
        cheap = live & functools.reduce(jnp.logical_and, [carry["pc"] != k for k in blocks.expensive])
        few = jnp.float32(blocks.left_behind) * count_lanes(live).astype(jnp.float32)
        enough = count_lanes(cheap) > few.astype(jnp.int32)
        # All others may have ended, so that those that were left behind are all that there is.
        enough |= ~jnp.any(live & ~cheap)
        return jnp.where(enough, _next_after(last, carry["pc"], cheap, len(blocks)), _fullest(blocks, carry))


def _next_after(last: jax.Array, pc: jax.Array, lanes: jax.Array, blocks: int) -> jax.Array:
    """Return the first block after `last`, the numbers going round, for which some of these lanes wait, int32[].

    Args:
        last: int32[], the number of a block.
        pc: Program counters, [lanes].
        lanes: bool[lanes], of which there must be some.
        blocks: The number of blocks.
    """
    steps = jnp.remainder(pc.astype(jnp.int32) - last - 1, blocks)
    nearest = jnp.min(jnp.where(lanes, steps, blocks))
    return jnp.remainder(last + 1 + nearest, blocks)


def _fullest(blocks: Blocks, carry: Values) -> jax.Array:
    """Return the expensive block that most lanes wait for, int32[]."""
    expensive = jnp.array(blocks.expensive, jnp.int32)
    return expensive[jnp.argmax(blocks.waiting(carry)[expensive])]


POLICIES: dict[str, Policy] = {p.name: p for p in (Earliest(), Largest(), Sweep(), Drain())}


def is_ours(policy: Policy) -> bool:
    """Whether a policy is one of `POLICIES` or learned: every trip is known to run a block that a lane waits for."""
    return isinstance(policy, Learned) or any(policy is known for known in POLICIES.values())


def one_trip(policy: Policy, blocks: Blocks, carry: Values) -> Values:
    """Return the carried state after one trip of a policy.

    Raises:
        UsageError: The result of the user's policy is no carried state.
    """
    new = policy.trip(blocks, carry)
    if not is_ours(policy):
        _check(policy, carry, new)
    return new


def _check(policy: Policy, carry: Values, new: object) -> None:
    shapes = jax.tree.map(lambda x: (x.shape, x.dtype), carry)
    if isinstance(new, dict) and new.keys() == carry.keys():
        if all(getattr(x, "shape", None) == shapes[k][0] and x.dtype == shapes[k][1] for k, x in new.items()):
            return
        what = "a state with arrays of other types"
    else:
        what = "None" if new is None else f"a {type(new).__name__} that is not the carried state"
    title = f"`trip` of the policy {short(policy.name)} gives {what}"
    help = "return what `blocks.visit`, `run`, `sweep` or `drain` gave, or the `carry` itself"
    raise UsageError(Diagnostic("PCB420", title, helps=(help,)))
