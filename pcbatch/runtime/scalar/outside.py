"""The blocks that lanes which run one after the other do not run: they are so expensive that a visit for all pays.

Both functions depend on the program, its types and the number of lanes alone, so that equal calls run equally.
"""

from __future__ import annotations

from pcbatch.lowering.typing.jax_types import storage_type
from pcbatch.runtime.costs.plan_modes import Costs
from pcbatch.runtime.scalar import worth
from pcbatch.runtime.vm.layout import Layout, reg
from pcbatch.runtime.vm.step import written


def blocks(costs: Costs, lanes: int) -> frozenset[int]:
    """Return the numbers of the blocks that are faster for all of so many lanes at once, by estimate."""
    return frozenset(k for k, block in enumerate(costs.blocks) if worth.is_outside(block, lanes))


def in_place(layout: Layout, costs: Costs, outside: frozenset[int]) -> frozenset[str]:
    """Return the state keys of the arrays of which no lane is cut out in a trip with these blocks outside.

    A register that is not cut out is copied in each visit that reads or writes it; one that is, in each trip, but then
    its parts are stored in place.
    """
    trips = sum(costs.blocks[k].often for k in outside)
    read, wrote = dict.fromkeys(layout.registers, 0.0), dict.fromkeys(layout.registers, 0.0)
    for code, block in zip(layout.codes, costs.blocks, strict=True):
        if code.index not in outside:
            stored = {*written(layout, code)}
            for v in layout.registers:
                read[v] += block.often * (v in code.reads)
                wrote[v] += block.often * (reg(v) in stored)
    arrays = [v for v in layout.registers if (t := layout.program.vars[v].type) is not None and storage_type(t).shape]
    kept = [v for v in arrays if read[v] + wrote[v] <= trips * (1 + (wrote[v] > 0))]
    return frozenset({*layout.buffers, *map(reg, kept)})
