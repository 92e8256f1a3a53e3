"""Options of XLA for the compilation of a run, which JAX takes at the outermost `jit` only.

On a GPU of NVIDIA, the host waits for the device in each iteration of a loop, unless XLA makes the loop a part of a
CUDA graph (a *command buffer*). It does that for conditionals by itself, and for loops if it is asked to: then a whole
run is one graph, and the host waits once.

On a CPU XLA splits every kernel that touches more than some hundred kilobytes over its threads. A trip of the machine
is a few dozen such kernels of a few microseconds each, so the hand-over dominates (docs/users/performance.md). The pass
that splits them is left out of the compilation where no kernel is expensive enough to be worth it; matrix products have
threads of their own and are not affected.

And XLA copies a buffer of which one block reads and writes parts, unless it analyses the order of the two: frames that
a block pops from and pushes to, registers of which a few lanes are gathered and scattered back. Where that option
cannot be given, steps read in a loop of its own (`runtime/vm/run_once.py`, `isolated`). It is not given to programs
with a loop of JAX inside a primitive, for which it is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache, partial
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp

from pcbatch.data.by_width import by_width_p
from pcbatch.data.rounding import rounded_p
from pcbatch.ir.ops import Prim
from pcbatch.ir.stack import StackProgram
from pcbatch.lowering.analysis.block_frequency import visits
from pcbatch.lowering.analysis.cost import inner_jaxprs, most_expensive_kernel
from pcbatch.lowering.jaxpr_passes.rewrite_jaxprs import CALLS
from pcbatch.lowering.typing.jax_types import array_struct
from pcbatch.lowering.typing.trace import JaxprFn
from pcbatch.runtime.lowering_platform import lowering_platform

ONE_THREAD = {"xla_disable_hlo_passes": "cpu-parallel-task-assigner"}
ON_CPUS: dict[str, Any] = {}  # of every program; the tests choose XLA's emitters here
IN_PLACE = {"xla_cpu_copy_insertion_use_region_analysis": True}
# Those behind "while" have loops in what they lower to; "pcbatch" is the primitive of runs of other programs.
LOOPS = {"scan", "while", "pcbatch", "igamma", "igammac", "igamma_grad_a", "random_gamma", "random_gamma_grad"}
LOOPS |= {"regularized_incomplete_beta", "threefry2x32", "random_bits", "random_fold_in", "random_split"}
# Those of keys and platforms, which are outside `jax.lax` and cannot be lowered by themselves, and marks.
LOOPLESS = {"xla_metadata_value", "platform_index", "iota_2x32_shape", "random_wrap", "random_unwrap", "random_clone"}
LOOPLESS |= {rounded_p.name, by_width_p.name}  # the latter beside those of the form for lanes together
LOOPS_IN_GRAPHS: dict[str, Any] = {
    "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,DYNAMIC_SLICE_FUSION,CONDITIONAL,WHILE",
    "xla_gpu_graph_min_graph_size": 1,  # by default, the loop of a small program is not worth a graph
}
GRAPHS = "--xla_gpu_enable_command_buffer"
OLDER_EMITTERS = "--xla_cpu_use_fusion_emitters=false"
WORTH_SPLITTING = 5e5  # estimated operations of a kernel over all lanes; measured in docs/users/performance.md


def compiler_options(kernel: float, lanes: int, in_place: bool = True) -> dict[str, Any] | None:
    """Return options for the `jax.jit` of a run outside any trace; None for XLA's defaults.

    Args:
        kernel: The `typical_kernel` of the program.
        lanes: The number of lanes.
        in_place: Whether XLA may analyse the order of reads and writes, see `keeps_in_place`.
    """
    match lowering_platform():
        case "cuda" if not _is_set(GRAPHS) and _known(tuple(LOOPS_IN_GRAPHS.items())):
            return LOOPS_IN_GRAPHS
        case "cpu":
            return _for_cpu(kernel, lanes, in_place)
        case _:
            return None


def _for_cpu(kernel: float, lanes: int, in_place: bool) -> dict[str, Any] | None:
    wanted = [ON_CPUS] if ON_CPUS else []
    wanted += [IN_PLACE] if in_place and not _older_emitters() else []
    wanted += [] if kernel * lanes >= WORTH_SPLITTING else [ONE_THREAD]
    return {k: v for option in wanted if _known(tuple(option.items())) for k, v in option.items()} or None


def keeps_in_place(program: StackProgram | None = None) -> bool:
    """Whether XLA has the option to analyse the order of reads and writes, and is right to use it for this program."""
    if program is not None and has_loops(program):
        return False
    return lowering_platform() == "cpu" and not _older_emitters() and _known(tuple(IN_PLACE.items()))


def has_loops(program: StackProgram) -> bool:
    """Whether a primitive has a loop of JAX, such as `jax.lax.scan`, or runs another program.

    What such a loop reads but does not change, XLA with `IN_PLACE` may overwrite before the loop runs: a register that
    the same block assigns after the loop (`tests/runtime/test_xla_options.py` has a program of a few lines).
    """
    fns = (op.expr.fn for op in program.ops if isinstance(op, Prim))
    return any(_loops(fn.closed.jaxpr) for fn in fns if isinstance(fn, JaxprFn))


def _loops(jaxpr: jex.Jaxpr) -> bool:
    return any(
        eqn.primitive.name in LOOPS or any(map(_loops, inner_jaxprs(eqn))) or _lowers_to_loops(eqn)
        for eqn in jaxpr.eqns
    )


def _lowers_to_loops(eqn: Any) -> bool:
    """Whether an equation has a loop in what it lowers to for several lanes."""
    text = lowered_text(eqn, 2)
    return text is None or "stablehlo.while" in text


def lowered_text(eqn: Any, *lanes: int) -> str | None:
    """Return what an equation lowers to, with axes of lanes in front; nothing where its primitive is one of `jax.lax`,
    and None where it cannot be tried."""
    if _is_known(eqn.primitive.name):
        return ""
    compute = partial(eqn.primitive.bind, **eqn.params)
    try:
        ins = [array_struct((*lanes, *v.aval.shape), v.aval.dtype) for v in eqn.invars]
        text: str = jax.jit(jax.vmap(compute) if lanes else compute).lower(*ins).as_text()
    except Exception:
        return None
    return text


@cache
def _is_known(name: str) -> bool:
    """Whether a primitive, by its name, is one of `jax.lax`, or another without loops and library calls."""
    return name in CALLS | LOOPLESS or hasattr(jax.lax, name.replace("-", "_") + "_p")


def _older_emitters() -> bool:
    """Whether XLA's flags ask for its older emitters: with `IN_PLACE` they overwrite registers that are still read."""
    return OLDER_EMITTERS in os.environ.get("XLA_FLAGS", "").lower().split()


def _is_set(flag: str) -> bool:
    """Whether the user has set a flag of XLA, over which an option of ours would go."""
    return any(given.partition("=")[0] == flag for given in os.environ.get("XLA_FLAGS", "").split())


def typical_kernel(program: StackProgram) -> float:
    """Return the mean, over expected visits of blocks, of the cost per lane of a block's most expensive kernel."""
    often = visits(program)
    total = sum(often[block.label] * _most_expensive(block.ops) for block in program.blocks)
    return total / sum(often.values())


def _most_expensive(ops: Iterable[object]) -> float:
    fns = [op.expr.fn for op in ops if isinstance(op, Prim)]
    return max((most_expensive_kernel(fn.closed.jaxpr) for fn in fns if isinstance(fn, JaxprFn)), default=0.0)


@cache
def _known(option: tuple[tuple[str, Any], ...]) -> bool:
    """Whether this XLA takes the option, which JAX does not promise to keep."""
    try:
        with jax.ensure_compile_time_eval():  # inside a trace JAX takes no options
            jax.jit(lambda: jnp.int32(0), compiler_options=dict(option))()
    except Exception:
        return False
    return True
