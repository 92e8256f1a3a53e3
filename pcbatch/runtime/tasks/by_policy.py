"""Trips of a learned schedule: each is one visit, of the block that a table has for what can run."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from pcbatch.runtime.learned.policy import Learned
from pcbatch.runtime.tasks.plan import BlockPlan, TaskPlan
from pcbatch.runtime.tasks.pool import guarded, written
from pcbatch.runtime.tasks.trip import I32, Trips
from pcbatch.runtime.tasks.visit import visit
from pcbatch.runtime.vm.block_body import Values


def chosen_among(plan: TaskPlan) -> list[BlockPlan]:
    """Return the blocks that a schedule chooses among; the others run before and after all trips."""
    return [block for block in plan.blocks if block not in plan.first and block not in plan.last]


@dataclass(frozen=True, slots=True)
class PolicyTrips(Trips):
    """The trips of a machine with a learned schedule."""

    policy: Learned | None = None

    def trip(self, s: Values) -> Values:
        """Return the state after one trip; a trip in which nothing has room to run changes nothing."""
        blocks = chosen_among(self.machine.plan)
        if self.policy is None or tuple(block.label for block in blocks) != self.policy.labels:
            return Trips.trip(self, s)
        waiting = jnp.stack([self.available(s, block) for block in blocks])
        chosen = self.policy.chosen(waiting)
        for k, block in enumerate(blocks):
            n = jnp.where(chosen == k, waiting[k], 0)
            s = self._once(s, block, n)
        return s

    def _once(self, s: Values, block: BlockPlan, n: jax.Array) -> Values:
        """Visit a block at the narrowest width that holds n records, or at the widest."""
        widths = self.widths(block)
        changed = written(lambda s: visit(self.machine, block, s, jnp.zeros((), I32), widths[-1]), s)
        for width, less in zip(widths, (*widths[1:], 0), strict=True):
            fits = n > less if width == widths[0] else (n > less) & (n <= width)

            def body(s: Values, width: int = width) -> Values:
                return visit(self.machine, block, s, jnp.minimum(n, width), width)

            s = guarded(fits, body, s, None, changed)
        return s
