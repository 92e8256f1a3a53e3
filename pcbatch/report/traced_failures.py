"""Lanes that fail in a call that JAX traces, where nothing can be raised: what is told of them, and when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from pcbatch.call.arguments import Arguments
from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.ir.ops import Fail
from pcbatch.options import Options
from pcbatch.report.lane_failures import FailedRun, findings
from pcbatch.runtime.execute.executor import PcExecutable
from pcbatch.runtime.vm.raw_result import RawResult
from pcbatch.runtime.vm.status import Site
from pcbatch.transforms.failure_callback import Notice, failure_mode, notify_if

if TYPE_CHECKING:
    from pcbatch.compiler.program import Program

NOBODY = Arguments({}, frozenset(), {}, {}, 0)  # inputs are not kept to be shown


def watched(compiled: Program, name: str, outcome: RawResult) -> RawResult:
    """What a call leaves; where it is traced, people are told of lanes that fail (`on_failure`)."""
    if not isinstance(outcome.status, jax.core.Tracer) or not outcome.values or not may_fail(compiled):
        return outcome
    rest, tree = jax.tree.flatten((outcome.pc, outcome.depths, outcome.back, outcome.shown))
    if name not in compiled.notices:
        describe = partial(_findings, name, compiled.options, compiled.where, tree, outcome.depth)
        compiled.notices.setdefault(name, Notice(describe))
    flags = (outcome.status, *rest)
    values = notify_if(compiled.notices[name], failure_mode(compiled.options), flags, outcome.values)
    return replace(outcome, values=tuple(values))


def may_fail(compiled: Program) -> bool:
    """May a lane of a traced run end in another way than by returning?"""
    options, executable = compiled.options, compiled.executable
    if options.max_steps is not None:
        return True
    ends: list[object]
    if isinstance(executable, PcExecutable):
        deepest = executable.static_depth
        opens = executable.machine.layout.frames is not None  # calls in tail position are jumps
        too_deep = opens and (deepest is None or deepest > executable.traced_depth())
        ends = [block.terminator for block in compiled.stages.opt.blocks]
    else:
        too_deep = options.max_depth is not None
        ends = [block.terminator for f in compiled.stages.optimised_cfg.functions for block in f.blocks]
    return too_deep or any(isinstance(end, Fail) for end in ends)


def _findings(
    name: str,
    options: Options,
    where: Callable[[int, int | None], Site],
    tree: Any,
    depth: int,
    status: Any,
    *rest: Any,
) -> Sequence[Diagnostic]:
    """Of the statuses of all lanes, and what else is known of each; elements of `vmap`s may stand in front."""
    pc, depths, back, shown = jax.tree.unflatten(tree, [_by_lane(x, status.ndim, status.shape) for x in rest])
    outcome = RawResult((), status.reshape(-1), None, (), pc, depths, back, shown, depth)

    def locate(lane: int) -> Site:
        return where(int(pc[lane]), None if back is None else int(back[lane]))

    return findings(FailedRun(name, outcome, options, NOBODY, locate))


def _by_lane(x: Any, ndim: int, front: tuple[int, ...]) -> Any:
    """[..., lanes, ...] with all lanes in one axis; what elements have in common is repeated for each."""
    if x.shape[:ndim] != front:
        x = np.broadcast_to(x, (*front[: len(front) - 1], *x.shape))
    return x.reshape(-1, *x.shape[ndim:])
