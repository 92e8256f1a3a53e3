"""`guard`: a block is a while loop that runs 0 or 1 times, or while lanes wait.

XLA must update a while loop's carry in place, but copies what goes through a conditional. So the loop carries what
the block writes and closes over what it reads: a block that is not taken costs one test, and no frame is ever copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

import jax
import jax.numpy as jnp

from pcbatch.plan import Dense, Few, Mode, Strips
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.blocks import PATIENCE, PATIENCE_WHEN_EXPENSIVE, BlockLike, Blocks, StepLike
from pcbatch.runtime.vm.lane_reductions import any_lane, count_lanes
from pcbatch.runtime.vm.lane_window import everyone, first
from pcbatch.runtime.vm.layout import DEBT
from pcbatch.runtime.vm.step import waits, wanted


@dataclass(frozen=True, slots=True)
class Guard:
    """The emitter that guards each block by a loop: the block runs only if lanes wait for it."""

    name: str = "guard"
    visits_singly: bool = False

    def visit(self, blocks: Blocks, block: int, carry: Values) -> Values:
        code = blocks.layout.codes[block]
        if is_always(blocks.modes[block]):
            return {**carry, **visited(blocks, code, carry)}
        return self._in_mode(blocks, code, carry, wanted(carry, code))

    def run(self, blocks: Blocks, block: jax.Array, carry: Values, among: Sequence[int]) -> Values:
        for code in (blocks.layout.codes[k] for k in among if blocks.layout.codes[k].awaited):
            runs = block == code.index
            if code.needs_active_lane:  # under `vmap`, a machine whose run has ended names a block too
                runs &= wanted(carry, code)
            carry = self._in_mode(blocks, code, carry, runs)
        return carry

    def _in_mode(self, blocks: Blocks, code: BlockLike, carry: Values, pred: jax.Array) -> Values:
        with jax.named_scope(code.scope):
            return _Guarded(blocks.stage, code).in_mode(carry, pred, blocks.modes[code.index])


@dataclass(frozen=True, slots=True)
class _Guarded:
    """One block and the four ways to guard it. `pred` is a bool[]: whether the block runs at all."""

    stage: StepLike
    code: BlockLike

    def in_mode(self, carry: Values, pred: jax.Array, mode: Mode) -> Values:
        match mode:
            case Dense(spins=0) | Dense(always=True):
                return self.once(carry, pred)
            case Dense(spins=repeats):
                return self.spinning(carry, pred, 1 if self.code.may_not_end else repeats)
            case Few(width=width):
                return self.few(carry, pred, width)
            case Strips(width=width):
                return self.strips(carry, pred, width)
            case _:
                assert_never(mode)

    def once(self, carry: Values, pred: jax.Array) -> Values:
        """Run the block once for all waiting lanes, if `pred`."""

        # `on` is true, except under `vmap`, where bodies also run for elements whose loop has ended.
        def body(state: Values, on: jax.Array, _: None) -> tuple[Values, jax.Array, None]:
            return self._all(state, on), jnp.zeros((), bool), None

        return self._loop(carry, pred, body, None)[0]

    def spinning(self, carry: Values, pred: jax.Array, repeats: int) -> Values:
        """Run the block for all waiting lanes, again and again while that is better than another trip.

        It is while the lanes that have left the block have waited less, in sum, than one more visit of all of them
        would take. That is looked at after every `repeats` visits.
        """
        start = _count(carry, self.code)

        def body(state: Values, on: jax.Array, memory: Any) -> tuple[Values, jax.Array, Any]:
            debt, rounds = memory
            names = self.stage.written(self.code)
            rest = {k: v for k, v in state.items() if k not in names}

            def visit(_: int, changing: Values) -> Values:
                return self._all({**rest, **changing}, on)

            changing = {k: state[k] for k in names}
            state = rest | (jax.lax.fori_loop(0, repeats, visit, changing) if repeats > 1 else visit(0, changing))
            waiting = _count(state, self.code)
            debt = debt + repeats * (start - waiting)  # visits that lanes which have left the block sat out
            return state, (waiting > 0) & (debt < start) & (rounds < PATIENCE_WHEN_EXPENSIVE), (debt, rounds + 1)

        zero = jnp.zeros((), jnp.int32)
        new, (debt, _) = self._loop(carry, pred, body, (zero, zero))
        return {**new, DEBT: new[DEBT] + debt} if DEBT in new else new  # lanes of a queue count how long they sit idle

    def few(self, carry: Values, pred: jax.Array, width: int) -> Values:
        """Run the block for the first `width` waiting lanes, again and again until no lane waits.

        After `PATIENCE` rounds those may be lanes that never end: from then on each group of `width` neighbours gets
        one round, so that no lane keeps others from leaving the block.
        """
        groups = -(-carry["pc"].shape[0] // width)
        group = jnp.arange(carry["pc"].shape[0], dtype=jnp.int32) // width

        def body(state: Values, on: jax.Array, rounds: jax.Array) -> tuple[Values, jax.Array, jax.Array]:
            waiting = waits(state, self.code)
            chosen = waiting & ((rounds < PATIENCE) | (group == rounds - PATIENCE))
            if self.code.needs_active_lane:  # the round of a group without waiting lanes must not run for no lane
                chosen = jnp.where(any_lane(chosen), chosen, waiting)
            new = self.stage.step(self.code, state, first(chosen, width), on)
            return new, wanted(new, self.code) & (rounds < PATIENCE + groups), rounds + 1

        return self._loop(carry, pred, body, jnp.zeros((), jnp.int32))[0]

    def strips(self, carry: Values, pred: jax.Array, width: int) -> Values:
        """Run the block once for each waiting lane: for all lanes at once if more than half of them wait, else for
        `width` lanes at a time."""
        waiting = waits(carry, self.code)
        most_wait = 2 * count_lanes(waiting) > waiting.shape[0]

        def body(
            state: Values, on: jax.Array, memory: tuple[jax.Array, jax.Array]
        ) -> tuple[Values, jax.Array, tuple[jax.Array, jax.Array]]:
            # Not asked again: a lane that comes back to the block waits for the next visit.
            remaining, continues_visit = memory
            window = first(remaining, width)
            new = self.stage.step(self.code, state, window, on, continues_visit)
            remaining = remaining.at[window.index].set(False, mode="drop")
            return new, any_lane(remaining), (remaining, jnp.ones((), bool))

        carry = self._loop(carry, pred & ~most_wait, body, (waiting, jnp.zeros((), bool)))[0]
        return self.once(carry, pred & most_wait)

    def _all(self, state: Values, on: jax.Array) -> Values:
        window = everyone(waits(state, self.code), careful=self.code.may_not_end)
        return self.stage.step(self.code, state, window, on)

    def _loop(
        self,
        carry: Values,
        pred: jax.Array,
        body: Callable[[Values, jax.Array, Any], tuple[Values, jax.Array, Any]],
        memory: Any,
    ) -> tuple[Values, Any]:
        """Return the state and the memory after `body(state, pred, memory)`, repeated while its second result is true.

        The loop carries only what the block writes: XLA copies nothing that stays as it is.
        """
        names = self.stage.written(self.code)
        rest = {k: v for k, v in carry.items() if k not in names}

        def iteration(c: tuple[jax.Array, Values, Any]) -> tuple[jax.Array, Values, Any]:
            new, again, memory = body({**rest, **c[1]}, c[0], c[2])
            return again, {k: new[k] for k in names}, memory

        _, new, memory = jax.lax.while_loop(lambda c: c[0], iteration, (pred, {k: carry[k] for k in names}, memory))
        return {**rest, **new}, memory


def is_always(mode: Mode) -> bool:
    """Whether a visit computes the block without asking whether any lane waits."""
    return isinstance(mode, Dense) and mode.always


def _count(carry: Values, code: BlockLike) -> jax.Array:
    return count_lanes(waits(carry, code))


def visited(blocks: Blocks, code: BlockLike, carry: Values) -> Values:
    """Return what a visit of a block writes, by state key; there is no test, unless the block is unsafe without one."""
    with jax.named_scope(code.scope):
        if code.needs_active_lane:
            return _Guarded(blocks.stage, code).once(carry, wanted(carry, code))
        return blocks.stage.step(code, carry, everyone(waits(carry, code)))
