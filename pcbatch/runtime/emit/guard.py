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

from pcbatch.options import Dense, Few, Mode, Strips
from pcbatch.runtime.vm.block_body import BlockCode, Values
from pcbatch.runtime.vm.blocks import PATIENCE, PATIENCE_WHEN_DEAR, Blocks
from pcbatch.runtime.vm.lane_window import everyone, first
from pcbatch.runtime.vm.layout import DEBT
from pcbatch.runtime.vm.step import StepContext, waits, wanted


@dataclass(frozen=True, slots=True)
class Guard:
    """Guarded blocks."""

    name: str = "guard"

    def visit(self, blocks: Blocks, block: int, carry: Values) -> Values:
        code = blocks.layout.codes[block]
        return self._as_planned(blocks, code, carry, wanted(carry, code))

    def run(self, blocks: Blocks, block: jax.Array, carry: Values, among: Sequence[int]) -> Values:
        for code in (blocks.layout.codes[k] for k in among):
            go = block == code.index
            if code.unsafe_when_inactive:  # under `vmap`, a machine whose run has ended names a block too
                go &= wanted(carry, code)
            carry = self._as_planned(blocks, code, carry, go)
        return carry

    def _as_planned(self, blocks: Blocks, code: BlockCode, carry: Values, go: jax.Array) -> Values:
        with jax.named_scope(code.scope):
            return _Guarded(blocks.stage, code).as_planned(carry, go, blocks.modes[code.index])


@dataclass(frozen=True, slots=True)
class _Guarded:
    stage: StepContext
    code: BlockCode

    def as_planned(self, carry: Values, go: jax.Array, mode: Mode) -> Values:
        match mode:
            case Dense(spins=0):
                return self.once(carry, go)
            case Dense(spins=turns):
                return self.spinning(carry, go, 1 if self.code.risky else turns)
            case Few(width=width):
                return self.few(carry, go, width)
            case Strips(width=width):
                return self.strips(carry, go, width)
            case _:
                assert_never(mode)

    def once(self, carry: Values, go: jax.Array) -> Values:
        """All waiting lanes, once, if `go`."""

        # `on` is true here, except under `vmap`, where bodies also run for those whose loop has ended.
        def body(state: Values, on: jax.Array, _: None) -> tuple[Values, jax.Array, None]:
            return self._all(state, on), jnp.zeros((), bool), None

        return self._loop(carry, go, body, None)[0]

    def spinning(self, carry: Values, go: jax.Array, turns: int) -> Values:
        """All waiting lanes, again while the lanes that have moved on have not waited longer, in all, than one more
        round of all of them would take. Asked after every so many `turns`."""
        start = _count(carry, self.code)

        def body(state: Values, on: jax.Array, memory: Any) -> tuple[Values, jax.Array, Any]:
            debt, rounds = memory
            names = self.stage.written(self.code)
            rest = {k: v for k, v in state.items() if k not in names}

            def turn(_: int, some: Values) -> Values:
                return self._all({**rest, **some}, on)

            some = {k: state[k] for k in names}
            state = rest | (jax.lax.fori_loop(0, turns, turn, some) if turns > 1 else turn(0, some))
            waiting = _count(state, self.code)
            debt = debt + turns * (start - waiting)
            return state, (waiting > 0) & (debt < start) & (rounds < PATIENCE_WHEN_DEAR), (debt, rounds + 1)

        nothing = jnp.zeros((), jnp.int32)
        new, (debt, _) = self._loop(carry, go, body, (nothing, nothing))
        return {**new, DEBT: new[DEBT] + debt} if DEBT in new else new

    def few(self, carry: Values, go: jax.Array, width: int) -> Values:
        """At most `width` waiting lanes, the first of them, again until none waits. After many rounds those are lanes
        that may never end: then each `width` neighbours get a round, so that none keeps others from going on."""
        groups = -(-carry["pc"].shape[0] // width)
        group = jnp.arange(carry["pc"].shape[0], dtype=jnp.int32) // width

        def body(state: Values, on: jax.Array, rounds: jax.Array) -> tuple[Values, jax.Array, jax.Array]:
            there = waits(state, self.code)
            chosen = there & ((rounds < PATIENCE) | (group == rounds - PATIENCE))
            if self.code.unsafe_when_inactive:
                chosen = jnp.where(jnp.any(chosen), chosen, there)
            new = self.stage.step(self.code, state, first(chosen, width), on)
            return new, wanted(new, self.code) & (rounds < PATIENCE + groups), rounds + 1

        return self._loop(carry, go, body, jnp.zeros((), jnp.int32))[0]

    def strips(self, carry: Values, go: jax.Array, width: int) -> Values:
        """All lanes at once if more than half of them wait; else each waiting lane once, `width` at a time."""
        there = waits(carry, self.code)
        most = 2 * jnp.sum(there, dtype=jnp.int32) > there.shape[0]

        def body(
            state: Values, on: jax.Array, memory: tuple[jax.Array, jax.Array]
        ) -> tuple[Values, jax.Array, tuple[jax.Array, jax.Array]]:
            left, goes_on = memory
            window = first(left, width)
            new = self.stage.step(self.code, state, window, on, goes_on)
            left = left.at[window.index].set(False, mode="drop")
            return new, jnp.any(left), (left, jnp.ones((), bool))

        carry = self._loop(carry, go & ~most, body, (there, jnp.zeros((), bool)))[0]
        return self.once(carry, go & most)

    def _all(self, state: Values, on: jax.Array) -> Values:
        window = everyone(waits(state, self.code), careful=self.code.risky)
        return self.stage.step(self.code, state, window, on)

    def _loop(
        self,
        carry: Values,
        go: jax.Array,
        body: Callable[[Values, jax.Array, Any], tuple[Values, jax.Array, Any]],
        memory: Any,
    ) -> tuple[Values, Any]:
        names = self.stage.written(self.code)
        rest = {k: v for k, v in carry.items() if k not in names}

        def turn(c: tuple[jax.Array, Values, Any]) -> tuple[jax.Array, Values, Any]:
            new, again, kept = body({**rest, **c[1]}, c[0], c[2])
            return again, {k: new[k] for k in names}, kept

        _, new, kept = jax.lax.while_loop(lambda c: c[0], turn, (go, {k: carry[k] for k in names}, memory))
        return {**rest, **new}, kept


def _count(carry: Values, code: BlockCode) -> jax.Array:
    return jnp.sum(waits(carry, code), dtype=jnp.int32)


def visited(blocks: Blocks, code: BlockCode, carry: Values) -> Values:
    """What a visit writes, without a test where the block may run with no lane waiting for it."""
    with jax.named_scope(code.scope):
        if code.unsafe_when_inactive:
            return _Guarded(blocks.stage, code).once(carry, wanted(carry, code))
        return blocks.stage.step(code, carry, everyone(waits(carry, code)))
