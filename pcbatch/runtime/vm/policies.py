"""Which block runs next: policies. They change how long a run takes, never what it gives.

A policy is an object with a `name` and a method `trip(blocks, carry)`, which gives the carried state after one trip of
the machine: it reads how many lanes wait for each block (`blocks.waiting`) and runs blocks (`visit`, `sweep`, `drain`,
or `run` for a block that is known only at run time). A trip of a user's policy need not run anything, and may pass
lanes over for as long as it likes: every `FAIR`-th trip is followed by a sweep over all blocks, so every lane gets on.
See docs/users/schedule.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp

from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.diagnostics.short_repr import short
from pcbatch.errors import UsageError
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.blocks import Blocks

FAIR = 1024


@runtime_checkable
class Policy(Protocol):
    """What `schedule=` takes: an object with a `name` and a method that makes one trip of the machine.

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
        """What reports call it."""

    def trip(self, blocks: Blocks, carry: Values) -> Values:
        """The carried state after one trip."""


@dataclass(frozen=True, slots=True)
class Earliest:
    """The smallest program counter: Algorithm 2 of Radul et al."""

    name: str = "earliest"

    def trip(self, blocks: Blocks, carry: Values) -> Values:
        return blocks.emitter.run(blocks, jnp.min(carry["pc"]).astype(jnp.int32), carry, range(len(blocks)))


@dataclass(frozen=True, slots=True)
class Largest:
    """The block that most lanes wait for; the earliest of several."""

    name: str = "largest"

    def trip(self, blocks: Blocks, carry: Values) -> Values:
        fullest = jnp.argmax(blocks.waiting(carry)).astype(jnp.int32)
        return blocks.emitter.run(blocks, fullest, carry, range(len(blocks)))


@dataclass(frozen=True, slots=True)
class Sweep:
    """Every trip goes once through all blocks that some lane waits for."""

    name: str = "sweep"

    def trip(self, blocks: Blocks, carry: Values) -> Values:
        return blocks.sweep(range(len(blocks)), carry)


@dataclass(frozen=True, slots=True)
class Drain:
    """Cheap blocks run until every live lane waits at an expensive one; then the fullest of those runs.

    With one expensive block, it runs exactly as often as the lane that needs it most often: no lane waits at another
    block when it does (the sufficient condition of Fegade et al., ED-Batch, ICML 2023, lemma 2.1).
    """

    name: str = "drain"

    def trip(self, blocks: Blocks, carry: Values) -> Values:
        cheap = [k for k in range(len(blocks)) if k not in blocks.expensive]
        carry = blocks.drain(cheap, carry)
        if not blocks.expensive:
            return carry
        if len(blocks.expensive) == 1:
            return blocks.visit(blocks.expensive[0], carry)
        dear = jnp.array(blocks.expensive, jnp.int32)
        fullest = dear[jnp.argmax(blocks.waiting(carry)[dear])]
        return blocks.run(fullest, carry, blocks.expensive)


POLICIES: dict[str, Policy] = {p.name: p for p in (Earliest(), Largest(), Sweep(), Drain())}


def is_ours(policy: Policy) -> bool:
    """Is it known that every trip of this policy runs a block that a lane waits for?"""
    return any(policy is known for known in POLICIES.values())


def one_trip(policy: Policy, blocks: Blocks, carry: Values) -> Values:
    """A trip as the policy makes it; UsageError if what it gives is no carried state."""
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
