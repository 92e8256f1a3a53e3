"""Keep small kernels on one thread: handing them to XLA's thread pool costs more than it gains.

XLA on CPU splits every kernel that touches more than some hundred kilobytes over its threads. A trip of the machine
is a few dozen such kernels of a few microseconds each, so the hand-over dominates (docs/performance.md). The pass
that splits them is left out of the compilation where no kernel is dear enough to be worth it; matrix products have
threads of their own and are not touched.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.ir.ops import Prim
from pcbatch.ir.stack import StackProgram
from pcbatch.lowering.cost import dearest_kernel
from pcbatch.lowering.frequency import visits
from pcbatch.lowering.trace import JaxprFn

OPTIONS = {"xla_disable_hlo_passes": "cpu-parallel-task-assigner"}
WORTH_SPLITTING = 5e5  # estimated operations of a kernel over all lanes; measured in docs/performance.md


def compiler_options(kernel: float, lanes: int) -> dict[str, Any] | None:
    """Options for `jax.jit` of a run outside any trace, for a program of this `typical_kernel`; None for XLA's own."""
    if kernel * lanes >= WORTH_SPLITTING or jax.default_backend() != "cpu" or not _known():
        return None
    return OPTIONS


def typical_kernel(program: StackProgram) -> float:
    """The cost per lane of a block's dearest kernel, as a mean over expected visits."""
    often = visits(program)
    total = sum(often[block.label] * _dearest(block.ops) for block in program.blocks)
    return total / sum(often.values())


def _dearest(ops: Iterable[object]) -> float:
    fns = [op.expr.fn for op in ops if isinstance(op, Prim)]
    return max((dearest_kernel(fn.closed.jaxpr) for fn in fns if isinstance(fn, JaxprFn)), default=0.0)


@cache
def _known() -> bool:
    """Does this XLA take the option? It is none that JAX promises to keep."""
    try:
        jax.jit(lambda: jnp.int32(0), compiler_options=OPTIONS)()
    except Exception:
        return False
    return True
