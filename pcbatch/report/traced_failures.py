"""Failures of lanes in a call that JAX traces: reported when the program runs, as nothing can be raised before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np

from pcbatch.call.arguments import Arguments
from pcbatch.compiler.program import Program
from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.ir.ops import Fail
from pcbatch.options import Options
from pcbatch.report.lane_failures import FailedRun, failure_diagnostics
from pcbatch.runtime.execute.executor import PcExecutable
from pcbatch.runtime.vm.raw_result import RawResult
from pcbatch.runtime.vm.status import Site
from pcbatch.transforms.failure_callback import Notice, failure_mode, notify_if

NO_INPUTS = Arguments({}, frozenset(), {}, {}, 0)  # a traced program does not keep its inputs to show them


def report_when_run(program: Program, name: str, raw: RawResult) -> RawResult:
    """Make a traced call warn of lanes that fail, or raise, when it runs (`on_failure`); a call outside of traces is
    returned as it is."""
    if not isinstance(raw.status, jax.core.Tracer) or not raw.values or not _may_fail(program):
        return raw
    rest, tree = jax.tree.flatten((raw.pc, raw.depths, raw.back, raw.shown))
    if name not in program.notices:
        describe = partial(
            _diagnostics, name, program.options, program.executable.where, tree, raw.depth, program.capacity
        )
        program.notices.setdefault(name, Notice(describe))
    flags = (raw.status, *rest)
    values = notify_if(program.notices[name], failure_mode(program.options), flags, raw.values)
    return replace(raw, values=tuple(values))


def _may_fail(program: Program) -> bool:
    """Whether a lane of a traced run may end in another way than by returning."""
    options, executable = program.options, program.executable
    if options.max_steps is not None:
        return True
    if isinstance(executable, PcExecutable):
        deepest = executable.static_depth
        opens = executable.machine.layout.frames is not None  # calls in tail position are jumps
        too_deep = opens and (deepest is None or deepest > executable.stacks.traced())
    else:
        too_deep = options.max_depth is not None
    return too_deep or any(isinstance(end, Fail) for end in program.ends)


def _diagnostics(
    name: str,
    options: Options,
    where: Callable[[int, int | None], Site],
    tree: Any,
    depth: int,
    capacity: int,
    status: Any,
    *rest: Any,
) -> Sequence[Diagnostic]:
    """One diagnostic for every kind of failure.

    `status` is int32[..., lanes], with an axis in front for each `vmap` around the call; `rest` are the other leaves of
    the raw result, of which `tree` is the structure.
    """
    pc, depths, back, shown = jax.tree.unflatten(tree, [_by_lane(x, status.ndim, status.shape) for x in rest])
    raw = RawResult((), status.reshape(-1), None, (), pc, depths, back, shown, depth)

    def locate(lane: int) -> Site:
        return where(int(pc[lane]), None if back is None else int(back[lane]))

    return failure_diagnostics(FailedRun(name, raw, options, NO_INPUTS, locate, capacity=capacity, traced=True))


def _by_lane(x: Any, ndim: int, front: tuple[int, ...]) -> Any:
    """Reshape [..., lanes, ...] to have all lanes in one axis; a value that elements share is repeated for each."""
    if x.shape[:ndim] != front:
        x = np.broadcast_to(x, (*front[: len(front) - 1], *x.shape))
    return x.reshape(-1, *x.shape[ndim:])
