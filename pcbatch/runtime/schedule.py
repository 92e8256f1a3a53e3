"""Which block runs next: policies. They change how long a run takes, never what it gives.

A policy is an object with a `name` and a method `trip(blocks, carry)`, which gives the carried state after one trip of
the machine: it reads how many lanes wait for each block (`blocks.waiting`) and runs blocks (`visit`, `sweep`, `drain`,
or `run` for a block that is known only at run time). A trip must run some block that a lane waits for, or the machine
would not end; so that a policy cannot starve a lane either, every `FAIR`-th trip is a sweep over all blocks, whatever
the policy says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import jax.numpy as jnp

from pcbatch.runtime.blocks import Blocks
from pcbatch.runtime.code import Values

FAIR = 1024


@runtime_checkable
class Schedule(Protocol):
    """A scheduling policy. Hashable, because compiled programs are kept by it."""

    @property
    def name(self) -> str:
        """What options and reports call it."""

    def trip(self, blocks: Blocks, carry: Values) -> Values:
        """The state after one trip."""


@dataclass(frozen=True, slots=True)
class Earliest:
    """The smallest program counter: Algorithm 2 of Radul et al."""

    name: str = "earliest"

    def trip(self, blocks: Blocks, carry: Values) -> Values:
        return blocks.run(jnp.min(carry["pc"]).astype(jnp.int32), carry)


@dataclass(frozen=True, slots=True)
class Largest:
    """The block that most lanes wait for; the earliest of several."""

    name: str = "largest"

    def trip(self, blocks: Blocks, carry: Values) -> Values:
        return blocks.run(jnp.argmax(blocks.waiting(carry)).astype(jnp.int32), carry)


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
        waiting = blocks.waiting(carry)[jnp.array(blocks.expensive)]
        fullest = jnp.array(blocks.expensive, jnp.int32)[jnp.argmax(waiting)]
        return blocks.run(fullest, carry)


POLICIES: dict[str, Schedule] = {p.name: p for p in (Earliest(), Largest(), Sweep(), Drain())}
