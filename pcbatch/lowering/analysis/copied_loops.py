"""Loops that are unrolled though each copy of the body is large.

A loop over constants such as `for dr, dc in [(1, 0), (-1, 0), (0, 1), (0, -1)]` is unrolled, as the loop variables are
then known while compiling. That is fast where the body is small. Where it looks up dicts, sets or heaps, the copies
make most of the program, and of the time to compile it, and the lanes gain nothing by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.ir.cfg import CfgProgram
from pcbatch.lowering.analysis.cost import all_equations
from pcbatch.lowering.typing.inferred import Inferred

LARGE = 150  # equations of JAX in the body of a loop


@dataclass(frozen=True, slots=True)
class CopiedLoop:
    """A loop that is unrolled: how often its body is copied, and the places of the operations inside."""

    trips: int
    inside: frozenset[Loc]


def large(loops: Mapping[Loc, CopiedLoop], program: CfgProgram, inferred: Inferred) -> frozenset[Loc]:
    """Return the loops whose copies make a large part of a program, the types of which are known."""
    if not loops:
        return frozenset()
    sizes = dict[Loc, int]()
    for function in program.functions:
        for block in function.blocks:
            for place, op in enumerate(block.ops):
                traced = inferred.traced.get((function.name, block.label, place))
                if traced is not None and op.loc is not None:
                    size = sum(1 for _ in all_equations(traced.closed.jaxpr))
                    sizes[op.loc] = max(size, sizes.get(op.loc, 0))
    bodies = {loc: sum(sizes.get(place, 0) for place in loop.inside) for loc, loop in loops.items()}
    return frozenset(loc for loc, size in bodies.items() if size > LARGE and loops[loc].trips > 2)
