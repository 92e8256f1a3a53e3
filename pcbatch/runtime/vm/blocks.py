"""What a policy works with: the blocks of a program, and ways to run them. All of it is traced by JAX."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import jax
import jax.numpy as jnp

from pcbatch.ir.def_use import holds
from pcbatch.options import Mode
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.layout import Layout

if TYPE_CHECKING:
    from pcbatch.runtime.vm.step import StepContext

# Rounds that a loop inside of one trip makes at most: lanes that never end must not keep a trip from ending, or nobody
# could stop it (`max_trips`, `timeout`, Ctrl-C). What is left waits for the next trip.
PATIENCE = 1024
PATIENCE_WHEN_DEAR = 64  # in a block that may be expensive


@dataclass(frozen=True)
class Blocks:
    """The blocks of a program, numbered in order, and ways to run them; what a `pcbatch.Policy` is given.

    A policy uses `len(blocks)`, `labels`, `holding(text)`, `expensive` (numbers of the blocks worth waiting for) and
    `modes` (how each block is computed) while it is traced; `waiting(carry)` and `live(carry)` tell where lanes are;
    `visit`, `run`, `sweep` and `drain` give the state after running blocks. The other fields are the machine's own.
    """

    layout: Layout
    emitter: Emitter
    modes: tuple[Mode, ...]
    expensive: tuple[int, ...]
    stage: StepContext

    def __len__(self) -> int:
        return len(self.layout.codes)

    @property
    def labels(self) -> tuple[str, ...]:
        """What `f.lower(...).as_text("opt")` and `f.explain_schedule(...)` call them."""
        return tuple(code.block.label for code in self.layout.codes)

    def holding(self, text: str) -> tuple[int, ...]:
        """The blocks with a primitive whose source contains `text`."""
        return tuple(code.index for code in self.layout.codes if holds(code.block, text))

    def waiting(self, carry: Values) -> jax.Array:
        """int32[blocks]: how many lanes wait for each block."""
        numbers = jnp.arange(len(self), dtype=carry["pc"].dtype)
        return jnp.sum(carry["pc"][:, None] == numbers[None, :], axis=0, dtype=jnp.int32)

    def live(self, carry: Values) -> jax.Array:
        """bool[]: does any lane wait for a block?"""
        return jnp.min(carry["pc"], initial=len(self)) < len(self)

    def visit(self, block: int, carry: Values) -> Values:
        """Run a block, if any lane waits for it."""
        return self.emitter.visit(self, block, carry)

    def run(self, block: jax.Array, carry: Values, among: Sequence[int] | None = None) -> Values:
        """Run the block of this number (an integer that is known only at run time), for all lanes that wait for it;
        nothing, if none does. `among`: the blocks that it may be (None: all); fewer make a smaller program."""
        number = jnp.asarray(block).astype(jnp.int32)
        there = jnp.any(carry["pc"].astype(jnp.int32) == number) & (number < len(self))
        number = jnp.where(there, number, len(self))
        return self.emitter.run(self, number, carry, range(len(self)) if among is None else among)

    def sweep(self, blocks: Sequence[int], carry: Values) -> Values:
        """Visit some blocks, one after another."""
        return functools.reduce(lambda c, k: self.visit(k, c), blocks, carry)

    def drain(self, blocks: Sequence[int], carry: Values) -> Values:
        """Sweep over some blocks until no lane waits for any of them, or so often (`PATIENCE`) that the trip has to end
        for those who look after it."""
        if not blocks:
            return carry
        if list(blocks) == list(range(len(blocks))):  # the usual case: one comparison
            last = len(blocks)

            def any_left(c: Values) -> jax.Array:
                return jnp.min(c["pc"], initial=last) < last
        else:

            def any_left(c: Values) -> jax.Array:
                return functools.reduce(jnp.logical_or, [jnp.any(c["pc"] == k) for k in blocks])

        def going(c: tuple[Values, jax.Array]) -> jax.Array:
            return any_left(c[0]) & (c[1] < PATIENCE)

        def turn(c: tuple[Values, jax.Array]) -> tuple[Values, jax.Array]:
            return self.sweep(blocks, c[0]), c[1] + 1

        drained: Values = jax.lax.while_loop(going, turn, (carry, jnp.zeros((), jnp.int32)))[0]
        return drained


class Emitter(Protocol):
    """An emission strategy: how a block is run."""

    @property
    def name(self) -> str:
        """What options call it."""

    def visit(self, blocks: Blocks, block: int, carry: Values) -> Values:
        """The state after running a block, if any lane waits for it."""

    def run(self, blocks: Blocks, block: jax.Array, carry: Values, among: Sequence[int]) -> Values:
        """The state after running the block of this number (int32[]), one of `among` that a lane waits for; as it was
        where the number is `len(blocks)`."""
