"""The operations that keep a program from running lane after lane in one native function."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax.extend.core as jex

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.ir.ops import Prim, Print
from pcbatch.lowering.analysis.cost import HOST, LINALG, all_equations
from pcbatch.lowering.typing.trace import JaxprFn
from pcbatch.runtime.costs.xla_options import LOOPS, lowered_text
from pcbatch.runtime.scalar.rules import ForOneLane, is_left
from pcbatch.runtime.vm.layout import Layout

# Operations that XLA:CPU calls a library or the host for, whatever is around them.
CALLED = {*LINALG, *HOST, "tridiagonal_solve", "approx_top_k", "select_and_scatter_add", "fft", "debug_callback"}


KERNELS = ("stablehlo.scatter", "stablehlo.sort", "stablehlo.custom_call", "chlo.top_k", "stablehlo.fft")


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A part of a program that no native function holds.

    Attributes:
        reason: The reason, as a sentence without a capital or a full stop.
        loc: The place in the user's source, if there is one.
    """

    reason: str
    loc: Loc | None = None

    def __str__(self) -> str:
        return self.reason if self.loc is None else f"{self.reason} (line {self.loc.line})"


def for_one_lane(layout: Layout) -> Layout:
    """Return the layout of a machine with the bodies of blocks written for one lane, as far as there are rules."""
    return ForOneLane().program(layout)


def obstacles(layout: Layout) -> tuple[Obstacle, ...]:
    """Return what is in the way of running the lanes of a machine in one native function."""
    return left_in(for_one_lane(layout))


def left_in(layout: Layout) -> tuple[Obstacle, ...]:
    """Return what no native function holds of blocks that are written for one lane."""
    found = [Obstacle("statistics over time are those of trips of all lanes")] if layout.timed else []
    for code in layout.codes:
        for op in code.block.ops:
            match op:
                case Print(loc=loc):
                    found.append(Obstacle("it prints, which the host does", loc))
                case Prim(expr=expr, loc=loc) if isinstance(expr.fn, JaxprFn):
                    found += [Obstacle(reason, loc) for reason in _reasons(expr.fn.closed.jaxpr)]
    return tuple(dict.fromkeys(found))


def _reasons(jaxpr: jex.Jaxpr) -> Iterator[str]:
    for eqn in all_equations(jaxpr):
        if eqn.primitive.name in CALLED:
            yield f"`{eqn.primitive.name}` is a call of a library or of the host"
        elif is_left(eqn) or _lowers_to_kernels(eqn):
            yield f"`{eqn.primitive.name}` has no form for one lane here"


def _lowers_to_kernels(eqn: Any) -> bool:
    """Whether an operation outside of `jax.lax` lowers to what no native function holds."""
    text = "" if eqn.primitive.name in LOOPS else lowered_text(eqn)
    return text is None or any(kernel in text for kernel in KERNELS)
