"""Which block runs next: policies. They change how long a run takes, never what it gives.

A policy sees the program counters of all lanes and names one block, or sweeps (each trip visits every block that some
lane waits for, in order). No policy can starve a lane that others finish without: they all take a block that some
live lane waits for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import jax
import jax.numpy as jnp


class Schedule(Protocol):
    """A scheduling policy."""

    @property
    def name(self) -> str:
        """What options call it."""

    def choose(self, pc: jax.Array, blocks: int) -> jax.Array | None:
        """The next block (int32[], `blocks` when no lane is live), or None to sweep."""


@dataclass(frozen=True, slots=True)
class Earliest:
    """The smallest program counter: Algorithm 2 of Radul et al."""

    name: str = "earliest"

    def choose(self, pc: jax.Array, blocks: int) -> jax.Array:
        return jnp.minimum(jnp.min(pc), blocks)


@dataclass(frozen=True, slots=True)
class Largest:
    """The block that most lanes wait for; the earliest of several."""

    name: str = "largest"

    def choose(self, pc: jax.Array, blocks: int) -> jax.Array:
        waiting = jnp.sum(pc[:, None] == jnp.arange(blocks, dtype=pc.dtype)[None, :], axis=0, dtype=jnp.int32)
        fullest = jnp.argmax(waiting).astype(pc.dtype)
        return jnp.where(jnp.any(pc < blocks), fullest, jnp.asarray(blocks, pc.dtype))


@dataclass(frozen=True, slots=True)
class Sweep:
    """Every trip goes once through all blocks that some lane waits for."""

    name: str = "sweep"

    def choose(self, pc: jax.Array, blocks: int) -> None:
        return None


POLICIES: dict[str, Schedule] = {"earliest": Earliest(), "largest": Largest(), "sweep": Sweep()}
