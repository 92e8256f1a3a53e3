"""Local static autobatching without recursion, as one staged program: calls are loops inside loops.

An activation is Algorithm 1 of Radul et al. (MLSys 2020): a program counter per lane, and the earliest block that some
lane waits for runs next, for those lanes. Blocks are guarded by loops of 0 or 1 iterations, as in `emit.guard`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.ir.ops import Fail
from pcbatch.lowering.typing.jax_types import zeros
from pcbatch.runtime.local_strategy.counters import Tally
from pcbatch.runtime.local_strategy.function_plans import (
    FunctionPlan,
    Item,
    LocalBlock,
    Planner,
    StraightCode,
    as_stored,
)
from pcbatch.runtime.vm import prints
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.run_once import run_once
from pcbatch.runtime.vm.status import why

State = tuple[Any, Values, Values]  # program counters, registers, counts


@dataclass(frozen=True, slots=True)
class Staged:
    """Runs activations of functions that reach no recursion, under a trace."""

    planner: Planner
    tally: Tally
    _jitted: dict[Any, Any] = field(default_factory=dict)

    def call(
        self, plan: FunctionPlan, args: Sequence[Any], active: jax.Array, counts: Values, depth: Any
    ) -> tuple[tuple[Any, ...], Values]:
        """Run a call for the active lanes.

        Args:
            plan: The function.
            args: The arguments in storage form, [lanes, ...], or unbatched for parameters in `plan.given`.
            active: bool[lanes].
            counts: The counts before the call.
            depth: int32[]: the depth of the activation; None where calls cannot fail.

        Returns:
            The results (of inactive lanes: junk), and the counts after the call.
        """
        if plan.key not in self._jitted:

            def activation(args: Sequence[Any], active: jax.Array, counts: Values, depth: Any) -> Any:
                return StagedCall(self, plan, depth).run(args, active, counts)

            # Several calls of a function are traced once.
            activation.__name__ = plan.function.name.replace(".", "_")
            self._jitted[plan.key] = jax.jit(activation)
        out: tuple[tuple[Any, ...], Values] = self._jitted[plan.key](tuple(args), active, counts, depth)
        return out


@dataclass(frozen=True, slots=True)
class StagedCall:
    """One activation of a function, under a trace."""

    staged: Staged
    plan: FunctionPlan
    depth: Any  # int32[]; None where calls cannot fail

    def run(self, args: Sequence[Any], active: jax.Array, counts: Values) -> tuple[tuple[Any, ...], Values]:
        """Return the results and the counts after all blocks have run."""
        plan, tally = self.plan, self.staged.tally
        registers = plan.enter(args, active.shape[0], zeros)
        pc = jnp.where(active, 0, plan.exit).astype(jnp.int32)
        counts, pc = tally.arrive(counts, plan.offset, plan.exit, pc)
        written = {v for block in plan.blocks for v in block.written}
        fixed = {v: value for v, value in registers.items() if v not in written}

        def sweep(state: State) -> State:
            return reduce(lambda s, block: self._guarded(block, fixed, s), plan.blocks, state)

        state: State = (pc, {v: registers[v] for v in registers if v in written}, counts)
        if plan.acyclic:
            state = sweep(state)
        else:
            state = jax.lax.while_loop(lambda s: jnp.min(s[0]) < plan.exit, sweep, state)
        registers = fixed | state[1]
        return tuple(registers[r] for r in plan.function.results), state[2]

    def _guarded(self, block: LocalBlock, fixed: Values, state: State) -> State:
        """Run the block if it is the earliest; only what it writes goes through the loop."""
        pc, registers, counts = state

        def step(s: State) -> State:
            return self._block(block, {**fixed, **registers, **s[1]}, s)

        inside: State = (pc, {v: registers[v] for v in block.written}, counts)
        if block.index == 0 and self.plan.acyclic and not self.staged.tally.fails:
            pc, changing, counts = step(inside)  # every call has an active lane
        else:
            pc, changing, counts = run_once(jnp.min(pc) == block.index, step, inside)
        return pc, {**registers, **changing}, counts

    def _block(self, block: LocalBlock, registers: Values, state: State) -> State:
        plan, tally = self.plan, self.staged.tally
        pc, old, counts = state
        active = pc == block.index
        if tally.prints:  # under `vmap` a block also runs for elements of which it is not the earliest
            active &= jnp.min(pc) == block.index
        counts = tally.block(counts, block.number, active)
        env, going, counts = self.items(block, block.items, registers, active, counts)
        cond = env[block.cond[0]] if block.cond else None
        pc = jnp.where(active, plan.target(block, cond, jnp.where), pc)
        if isinstance(fail := block.terminator, Fail):
            counts = tally.fail(counts, block.number, going, why(fail), plan.shown(env, fail))
        if tally.fails:
            pc = jnp.where(active & ~going, plan.exit, pc)
        counts, pc = tally.arrive(counts, plan.offset, plan.exit, pc.astype(jnp.int32))
        return pc, plan.landed(block, env, old, going), counts

    def items(
        self, block: LocalBlock, items: Sequence[Item], registers: Mapping[str, Any], active: jax.Array, counts: Values
    ) -> tuple[Values, jax.Array, Values]:
        """Return the values after some items of a block (of inactive lanes: junk), the lanes that are still active, and
        the counts."""
        env, tally = dict(registers), self.staged.tally
        sure = True  # a lane is certainly active
        for item in items:
            if isinstance(item, StraightCode):
                values, shown = item.run(env, active) if sure or not item.may_not_end else _run_some(item, env, active)
                env |= values
                if item.prints:
                    turn = prints.in_turn(item.prints, active, shown, counts["turn"], repeats=tally.raises)
                    counts = {**counts, "turn": turn}
            else:
                counts, active = tally.admit(counts, block.number, active, self.depth)
                deeper = None if self.depth is None else self.depth + jnp.int32(1)
                callee = self.staged.planner.callee(self.plan, item)
                results, counts = self.staged.call(callee, [env[a] for a in item.args], active, counts, deeper)
                active = tally.remaining(counts, active)
                env |= {d: as_stored(r, self.plan.type(d)) for d, r in zip(item.dsts, results, strict=True)}
                sure = sure and not tally.fails
        return env, active, counts


def _run_some(item: StraightCode, env: Values, active: jax.Array) -> tuple[Values, prints.Shown]:
    """Run code that must not see junk, unless all lanes have failed meanwhile."""
    shapes = jax.eval_shape(lambda: item.run(env, active))
    start = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    out: tuple[Values, prints.Shown] = run_once(jnp.any(active), lambda _: item.run(env, active), start)
    return out
