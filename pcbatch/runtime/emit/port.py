"""`port`: one switch per trip; frames stay outside it.

A stack that goes through a conditional is copied on every trip, so branches only read frames and return small values:
new registers, a value to save per variable, and where the lane goes. Frames are then written once, under the mask
that the branch gave.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from pcbatch.runtime import stacks
from pcbatch.runtime.code import BlockCode, Values
from pcbatch.runtime.emit.base import addresses, committed, count, effects, jump, masks, room, tell
from pcbatch.runtime.emit.guard import visited
from pcbatch.runtime.layout import Layout, is_frames, slot
from pcbatch.runtime.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Port:
    """One switch, frames written after it."""

    name: str = "port"

    def trip(self, layout: Layout, schedule: Schedule, carry: Values, shared: Values) -> Values:
        following = schedule.choose(carry["pc"], layout.exit)
        if following is None:  # a sweep tests nothing, so there is nothing to switch on
            for code in layout.codes:
                carry = {**carry, **visited(layout, code, carry, shared)}
            return carry
        branches = [lambda c, code=code: self._branch(layout, code, c, shared, following) for code in layout.codes]
        small = jax.lax.switch(jnp.minimum(following, layout.exit - 1), branches, carry)
        return self._after(carry, small)

    def _branch(
        self, layout: Layout, code: BlockCode, carry: Values, shared: Values, following: jax.Array
    ) -> tuple[Values, Values, Values]:
        """Small state (all of it, so that branches agree), values to save, and masks of who saves them."""
        active, pc = masks(layout, code, carry)
        # Under `vmap` all branches of a switch run: only the chosen one may print.
        done = effects(layout, code, carry, shared, active)
        active, pc = room(layout, code, carry, pc, active, done.conds)
        tell(code, active & (following == code.index), done)
        small = {k: v for k, v in carry.items() if not is_frames(k)}
        small |= committed(code, carry, done, active)
        moved = jump(layout, code, carry, pc, active, done.conds)
        moved.pop("pcs", None)
        small |= moved | count(layout, code, carry, active)
        nobody = jnp.zeros_like(active)
        saved = {slot(v): jnp.zeros(carry[slot(v)].shape[1:], carry[slot(v)].dtype) for v in layout.slots}
        who = {slot(v): nobody for v in layout.slots}
        for v, value in done.saved.items():
            saved[slot(v)], who[slot(v)] = value, active
        if layout.calls:
            saved["pcs"], who["pcs"] = addresses(layout, code, carry, active, done.conds)
        return small, saved, who

    def _after(self, carry: Values, result: tuple[Values, Values, Values]) -> Values:
        small, saved, who = result
        out = dict(small)
        for name, value in saved.items():
            row = carry["depth"] + 1 if name == "pcs" else carry["depth"]
            out[name] = stacks.write(carry[name], row, value, who[name])
        return out
