"""The operations that no native function holds: their blocks are outside, or they keep lanes together."""

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
from pcbatch.runtime.vm.block_body import BlockCode
from pcbatch.runtime.vm.layout import Layout

# Operations that XLA:CPU calls a library or the host for, whatever is around them.
HOSTED = {*HOST, "debug_callback"}
CALLED = {*LINALG, *HOSTED, "tridiagonal_solve", "approx_top_k", "select_and_scatter_add", "fft"}


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
    """Return what is in the way, for blocks that are written for one lane: what the host does, or, where no block is
    without such an operation, what no native function holds."""
    found = [Obstacle("statistics over time are those of trips of all lanes")] if layout.timed else []
    held_by_none = {code.index: list(_in_block(code)) for code in layout.codes}
    for code in layout.codes:
        found += [Obstacle("it prints, which the host does", op.loc) for op in code.block.ops if isinstance(op, Print)]
        found += [each for each, name in held_by_none[code.index] if name in HOSTED]
    if not found and all(held_by_none[code.index] for code in layout.codes if code.awaited):
        found = [each for operations in held_by_none.values() for each, _ in operations]
    return tuple(dict.fromkeys(found))


def blocked(layout: Layout) -> frozenset[int]:
    """Return the numbers of the blocks of which no native function holds all, written for one lane as they are."""
    return frozenset(code.index for code in layout.codes if any(True for _ in _in_block(code)))


def _in_block(code: BlockCode) -> Iterator[tuple[Obstacle, str]]:
    """The operations of a block that no native function holds, each with its name."""
    for op in code.block.ops:
        if isinstance(op, Prim) and isinstance(op.expr.fn, JaxprFn):
            yield from ((Obstacle(reason, op.loc), name) for reason, name in reasons(op.expr.fn.closed.jaxpr))


def reasons(jaxpr: jex.Jaxpr) -> Iterator[tuple[str, str]]:
    """The operations of a jaxpr, rewritten for one lane, that no native function holds: why, and the name of each."""
    for eqn in all_equations(jaxpr):
        name = eqn.primitive.name
        if name in CALLED:
            yield f"`{name}` is a call of a library or of the host", name
        elif is_left(eqn) or _lowers_to_kernels(eqn):
            yield f"`{name}` has no form for one lane here", name


def _lowers_to_kernels(eqn: Any) -> bool:
    """Whether an operation outside of `jax.lax` lowers to what no native function holds."""
    text = "" if eqn.primitive.name in LOOPS else lowered_text(eqn)
    return text is None or any(kernel in text for kernel in KERNELS)
