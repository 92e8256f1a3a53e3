"""`mask`: every block runs in every trip for the lanes that wait for it; nothing is tested.

The choice where a test costs more than the work it would save.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp

from pcbatch.runtime.code import Values
from pcbatch.runtime.emit.guard import visited
from pcbatch.runtime.layout import Layout
from pcbatch.runtime.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Mask:
    """Masked blocks. Under a policy that names one block, the others' lanes are held back."""

    name: str = "mask"

    def trip(self, layout: Layout, schedule: Schedule, carry: Values, shared: Values) -> Values:
        following = schedule.choose(carry["pc"], layout.exit)
        for code in layout.codes:
            if following is None:
                carry = {**carry, **visited(layout, code, carry, shared)}
            else:
                # A lane elsewhere is shown as standing at no block, and then put back.
                held = jnp.where(following == code.index, carry["pc"], layout.nowhere)
                out = visited(layout, code, {**carry, "pc": held}, shared)
                pc = jnp.where(following == code.index, out["pc"], carry["pc"])
                carry = {**carry, **out, "pc": pc}
        return carry
