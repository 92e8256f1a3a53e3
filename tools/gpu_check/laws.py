"""Laws of programs on GPUs: what must hold whatever release of XLA compiles them."""

from __future__ import annotations

from collections.abc import Iterator

from tools.gpu_check.cases import ONE_KERNEL, TILE, Case
from tools.gpu_check.measure import MACHINE, Measured, Refused


def broken(case: Case, outcome: Measured | Refused) -> Iterator[str]:
    """Give a sentence for each law that a case breaks.

    Of programs that are more than one kernel, the record alone says whether they compile with `emitter="kernel"`.
    """
    whole = case.program in ONE_KERNEL
    if isinstance(outcome, Refused):
        if whole or case.emitter != "kernel":
            yield f"does not compile: {outcome.why}"
        return
    found = outcome.launches
    if case.graphs and found.run.waits:
        kinds = ", ".join(found.obstacles) or "a driver that XLA takes for too old, or too few thunks for a graph"
        yield f"the host waits {found.run.waits} times where each loop runs once; what keeps loops out: {kinds}"
    if case.emitter == "kernel" and whole:
        number = found.custom.count(MACHINE)
        if number != 1 or found.trip is not None:
            yield f"{number} kernels `{MACHINE}` per run, {'no loop' if found.trip is None else 'in a loop'}: not one"
        spilled = sum(kernel.spilled for kernel in outcome.kernels)
        if spilled:
            yield f"the kernel spills {spilled} bytes in tiles of {TILE} lanes, not 0"
