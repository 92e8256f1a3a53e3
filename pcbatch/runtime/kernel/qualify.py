"""The reasons for which a program cannot be one kernel, each with the place in the user's source."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pcbatch.diagnostics.diagnostic import Diagnostic, Label, Loc
from pcbatch.diagnostics.short_repr import short
from pcbatch.ir.ops import Prim, Print
from pcbatch.ir.stack import StackBlock
from pcbatch.lowering.analysis.cost import all_equations
from pcbatch.lowering.typing.trace import JaxprFn
from pcbatch.runtime.kernel.block_kernel import SHARED, BlockKernel
from pcbatch.runtime.kernel.kernel_plan import KernelPlan
from pcbatch.runtime.kernel.rules import check
from pcbatch.runtime.vm.layout import Layout
from pcbatch.runtime.vm.policies import POLICIES, Policy

FEW = 8  # elements of a value
PRODUCT = 2**12  # multiplications of one lane, from which a product is computed for all lanes at once
MOST_SHARED = 2**18  # elements of a shared array that every tile reads as a whole


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A part of a program that no kernel holds.

    Attributes:
        reason: Why, as a sentence without a capital or a full stop.
        block: The label of the block; empty for a feature of the whole program.
        loc: The place in the user's source, if there is one.
    """

    reason: str
    block: str = ""
    loc: Loc | None = None

    def __str__(self) -> str:
        where = "" if self.loc is None else f" (line {self.loc.line})"
        return self.reason + where


def of_machine(layout: Layout, policy: Policy) -> list[Obstacle]:
    """Return the obstacles that are known before blocks are traced."""
    found = []
    if not any(policy is ours for ours in POLICIES.values()):
        found.append(Obstacle(f"the schedule {short(policy.name)} counts all lanes, and tiles choose for themselves"))
    if layout.stats or layout.timed:
        counted = "statistics, of `stats=True` or `f.profile`, count all lanes together"
        found.append(Obstacle(f"{counted}, and tiles make their visits apart"))
    for block in layout.program.blocks:
        printed = next((op for op in block.ops if isinstance(op, Print)), None)
        if printed is not None:
            found.append(Obstacle("it prints, which only the host can do", block.label, printed.loc))
    return found


def of_blocks(plan: KernelPlan) -> list[Obstacle]:
    """Return the obstacles in the blocks of a program."""
    return list(dict.fromkeys(each for block in plan.blocks for each in _of_block(plan, block)))


def _of_block(plan: KernelPlan, traced: BlockKernel) -> Iterator[Obstacle]:
    block = traced.code.block
    jaxpr: Any = traced.jaxpr  # untyped in some releases of JAX
    for refused in check(jaxpr.replace(eqns=list(traced.by_rules))):
        yield Obstacle(str(refused).partition(" (/")[0], block.label, _place(block, refused.primitive))
    whole = {traced.names[v] for v in traced.used_whole if v in traced.names}
    for v in (v for v in traced.code.shared if (SHARED, v) in whole):
        if plan.layout.stored_type(v).size > MOST_SHARED:
            text = (
                f"every tile reads all of a shared array {tuple(plan.layout.stored_type(v).shape)}, and holds at most"
            )
            yield Obstacle(f"{text} {MOST_SHARED:,} elements", block.label, _place(block, ""))


def prefers_all_lanes(plan: KernelPlan, traced: BlockKernel) -> Obstacle | None:
    """Return the reason for which a block is better computed for all lanes at once, between two kernels.

    A large product of one tile holds the registers of all its threads; that of all lanes keeps the device busy. This is
    the split by occupancy of "Cocktailer" (OSDI 2023), section 4.
    """
    work = max((_work(eqn) // plan.tile for eqn in all_equations(traced.jaxpr)), default=0)
    if work < PRODUCT:
        return None
    reason = f"a product of {work:,} multiplications in a lane keeps the device busy with all lanes, not with a tile"
    return Obstacle(reason, traced.code.block.label, _place(traced.code.block, "dot_general"))


def _work(eqn: Any) -> int:
    """Return the multiplications of a product of matrices, 0 for other equations."""
    if eqn.primitive.name != "dot_general":
        return 0
    (summed, _), _ = eqn.params["dimension_numbers"]
    left = eqn.invars[0].aval.shape
    multiplications: int = math.prod(eqn.outvars[0].aval.shape) * math.prod(left[k] for k in summed)
    return multiplications


def _place(block: StackBlock, primitive: str) -> Loc | None:
    """Return the place of the first operation with such a primitive, else that of the first one."""
    for op in block.ops:
        if isinstance(op, Prim) and isinstance(op.expr.fn, JaxprFn):
            if primitive in {eqn.primitive.name for eqn in all_equations(op.expr.fn.closed.jaxpr)}:
                return op.loc
    return next((op.loc for op in block.ops if isinstance(op, Prim)), None)


def refusal(name: str, obstacles: list[Obstacle]) -> Diagnostic:
    """Return the diagnostic for a function that is to run in a kernel and cannot."""
    first = next((each for each in obstacles if each.loc is not None), obstacles[0])
    primary = None if first.loc is None else Label(first.loc, first.reason)
    notes = [f"{each}" for each in obstacles if each is not first or primary is None]
    title = f'`{name}` cannot run with `emitter="kernel"`'
    help = 'leave `emitter` out, or write `emitter="port"`: one switch for each trip, for any program'
    return Diagnostic("PCB428", title, primary, notes=tuple(notes[:5]), helps=(help,))


def platform_refusal(name: str, platform: str) -> Diagnostic:
    """Return the diagnostic for a platform that has no kernels of this kind."""
    title = f'`{name}` is lowered for {platform}, where `emitter="kernel"` has no kernel'
    note = "kernels are written for Triton, which compiles for GPUs of NVIDIA and AMD; on a CPU they are interpreted"
    return Diagnostic("PCB428", title, notes=(note,), helps=('leave `emitter` out there, or write `emitter="port"`',))


def size_refusal(plan: KernelPlan, key: str, size: int) -> Diagnostic:
    """Return the diagnostic for an array of the state, by state key, that is too large for a kernel."""
    program = plan.layout.program
    name = program.blocks[plan.layout.index[program.entry]].function
    title = f'`{name}` has too many lanes for `emitter="kernel"`: `{key}` has {size:,} elements'
    note = "kernels find elements by numbers of 32 bits, which end at 2,147,483,647"
    help = 'run fewer lanes at a time, `f.map(..., lanes=...)`, or write `emitter="port"`'
    return Diagnostic("PCB428", title, notes=(note,), helps=(help,))


def uses_arrays(layout: Layout) -> bool:
    """Whether blocks compute on arrays of more than a few elements in a lane."""
    sizes = [var.type.size for var in layout.program.vars.values() if var.type is not None]
    return max(sizes, default=1) > FEW
