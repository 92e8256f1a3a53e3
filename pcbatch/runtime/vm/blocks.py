"""The blocks of a program as policies and emitters see them: where lanes wait, and how to run a block.

All methods are traced by JAX. The protocols `BlockLike`, `LayoutLike` and `StepLike` are what `Blocks` asks of a
machine: the machine itself fulfils them with `BlockCode`, `Layout` and `StepContext`, and the backward machine of
gradients with types of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from pcbatch.ir.analysis.def_use import holds
from pcbatch.ir.stack import StackBlock
from pcbatch.plan import Mode
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.lane_reductions import any_lane, count_lanes, least
from pcbatch.runtime.vm.lane_window import Window

# The most iterations of a loop inside of one trip: lanes that never end must not keep a trip from ending, or no host
# could stop it (`max_trips`, `timeout`, Ctrl-C). Lanes that still wait then run in the next trip.
PATIENCE = 1024
PATIENCE_WHEN_EXPENSIVE = 64  # for a block that may be expensive


class BlockLike(Protocol):
    """One block as emitters see it."""

    @property
    def index(self) -> int:
        """The program counter of the lanes that wait for the block."""

    @property
    def block(self) -> StackBlock:
        """The block of the stack IR."""

    @property
    def scope(self) -> str:
        """The name of the block in XLA's programs and profiles."""

    @property
    def may_not_end(self) -> bool:
        """Whether inactive lanes must compute on the values of an active lane."""

    @property
    def awaited(self) -> bool:
        """Whether a lane may ever wait for the block; if not, emitters leave it out."""

    @property
    def needs_active_lane(self) -> bool:
        """Whether the block must not run when no lane is active."""


class LayoutLike(Protocol):
    """The blocks of a machine in order of their program counters."""

    @property
    def codes(self) -> Sequence[BlockLike]:
        """The blocks, each at the index that is its program counter."""

    @property
    def exit(self) -> int:
        """The program counter of lanes that are done: the number of blocks."""


class StepLike(Protocol):
    """A way to run one block of a machine for the lanes of a window.

    `code` is a block of the machine's layout; each machine has a type of its own for them.
    """

    def step(
        self,
        code: Any,
        carry: Values,
        window: Window,
        prints_enabled: bool | jax.Array = True,
        continues_visit: bool | jax.Array = False,
        /,
    ) -> Values:
        """Return the parts of the state that the block writes, see `StepContext.step`."""

    def written(self, code: Any, /) -> tuple[str, ...]:
        """Return the state keys that `step` gives for this block."""


@dataclass(frozen=True)
class Blocks:
    """The blocks of a program in order of their numbers, and methods to run them: the argument of a `pcbatch.Policy`.

    While a policy is traced it may use `len(blocks)`, `labels`, `holding(text)`, `expensive` (numbers of the blocks
    that lanes should gather for) and `modes` (how each block is computed); `waiting(carry)` and `live(carry)` tell
    where lanes are; `visit`, `run`, `sweep` and `drain` give the state after running blocks. `carry` is the state of
    all lanes, a dict of arrays by name that a policy only hands on. The other fields are the machine's own.

    Example:
        >>> class Fullest:
        ...     name = "fullest"
        ...     def trip(self, blocks, carry):
        ...         return blocks.run(jax.numpy.argmax(blocks.waiting(carry)), carry)
    """

    layout: LayoutLike
    emitter: Emitter
    modes: tuple[Mode, ...]
    expensive: tuple[int, ...]
    stage: StepLike
    left_behind: float = 0.0  # the share of the live lanes that the policy `drain` does not wait for at cheap blocks

    def __len__(self) -> int:
        return len(self.layout.codes)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the blocks, as in `f.lower(...).as_text("opt")` and `f.explain_schedule(...)`."""
        return tuple(code.block.label for code in self.layout.codes)

    def holding(self, text: str) -> tuple[int, ...]:
        """Return the numbers of the blocks with a primitive whose source contains `text`."""
        return tuple(code.index for code in self.layout.codes if holds(code.block, text))

    def waiting(self, carry: Values) -> jax.Array:
        """Return the number of lanes that wait for each block, int32[blocks]."""
        numbers = jnp.arange(len(self), dtype=carry["pc"].dtype)
        return jnp.sum(carry["pc"][:, None] == numbers[None, :], axis=0, dtype=jnp.int32)

    def live(self, carry: Values) -> jax.Array:
        """Return whether any lane waits for a block, bool[]."""
        return least(carry["pc"], len(self)) < len(self)

    def count_live(self, carry: Values) -> jax.Array:
        """Return how many lanes wait for blocks, int32[]."""
        return jnp.sum(carry["pc"] < len(self), dtype=jnp.int32)

    def visit(self, block: int, carry: Values) -> Values:
        """Return the state after a visit of a block, for all lanes that wait for it; the same state if none does.

        Args:
            block: The number of the block, known while tracing.
            carry: The state.
        """
        return self.emitter.visit(self, block, carry) if self.layout.codes[block].awaited else carry

    def run(self, block: jax.Array, carry: Values, among: Sequence[int] | None = None) -> Values:
        """Return the state after a visit of a block that is known only at run time; the same state if no lane waits.

        Args:
            block: The number of the block, an integer array of shape []. Numbers that no block has run nothing.
            carry: The state.
            among: The numbers that `block` may have (None: all); fewer make a smaller program.
        """
        number = jnp.asarray(block).astype(jnp.int32)
        is_waited_for = jnp.any(carry["pc"].astype(jnp.int32) == number) & (number < len(self))
        number = jnp.where(is_waited_for, number, len(self))
        return self.emitter.run(self, number, carry, range(len(self)) if among is None else among)

    def sweep(self, blocks: Sequence[int], carry: Values) -> Values:
        """Return the state after one visit of each of these blocks, in this order."""
        return functools.reduce(lambda c, k: self.visit(k, c), blocks, carry)

    def drain(self, blocks: Sequence[int], carry: Values, left_behind: float = 0.0) -> Values:
        """Return the state after sweeping over these blocks until no lane waits for any of them.

        At most `PATIENCE` sweeps are made, so that the trip ends even if the lanes never do.

        Args:
            blocks: The numbers of the blocks, known while tracing.
            carry: The state.
            left_behind: After the first sweep, the share of the live lanes that may still wait for these blocks.
        """
        if not blocks:
            return carry
        others = [k for k in range(len(self)) if k not in set(blocks)]

        def waiting(c: Values) -> jax.Array:
            if len(others) >= len(blocks):
                return _is_any(c["pc"], blocks)
            live: jax.Array = c["pc"] < len(self)  # fewer comparisons
            return jnp.logical_and(live, ~_is_any(c["pc"], others)) if others else live

        def unfinished(c: tuple[Values, jax.Array]) -> jax.Array:
            if not left_behind:
                any_waits = any_lane(waiting(c[0])) if others else self.live(c[0])
                return any_waits & (c[1] < PATIENCE)
            few = jnp.float32(left_behind) * count_lanes(c[0]["pc"] < len(self)).astype(jnp.float32)
            few = jnp.where(c[1] == 0, 0, few.astype(jnp.int32))
            return (count_lanes(waiting(c[0])) > few) & (c[1] < PATIENCE)

        def one_sweep(c: tuple[Values, jax.Array]) -> tuple[Values, jax.Array]:
            return self.sweep(blocks, c[0]), c[1] + 1

        drained: Values = jax.lax.while_loop(unfinished, one_sweep, (carry, jnp.zeros((), jnp.int32)))[0]
        return drained


def _is_any(pc: jax.Array, blocks: Sequence[int]) -> jax.Array:
    """Return the mask of the lanes at some blocks, bool[lanes]."""
    return functools.reduce(jnp.logical_or, [pc == k for k in blocks])


class Emitter(Protocol):
    """An emission strategy: the way in which the visit of a block is written in JAX."""

    @property
    def name(self) -> str:
        """The name that a plan has for it."""

    @property
    def visits_singly(self) -> bool:
        """Whether a trip is to be one visit, of a block that is chosen at run time, where the policy can choose one."""

    def visit(self, blocks: Blocks, block: int, carry: Values) -> Values:
        """Return the state after a visit of a block; the same state if no lane waits for it."""

    def run(self, blocks: Blocks, block: jax.Array, carry: Values, among: Sequence[int]) -> Values:
        """Return the state after a visit of the block of this number.

        `block` int32[] is one of `among` that a lane waits for, or `len(blocks)`, for which the state stays as it is.
        """
