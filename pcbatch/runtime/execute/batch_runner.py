"""A call outside traces with a lane for each input: all lanes run at once, and stacks grow between programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pcbatch.runtime.execute.batch_programs import run_again, run_whole
from pcbatch.runtime.sharding.lane_sharding import LaneSharding
from pcbatch.runtime.vm.raw_result import KEEPING, RawResult, debug_checks

if TYPE_CHECKING:
    from pcbatch.runtime.execute.executor import PcExecutable


def run_batch(executable: PcExecutable, args: Mapping[str, Any], sharding: LaneSharding) -> RawResult:
    """Run all lanes to their end, or until stacks may not grow any more."""
    lanes = sharding.each
    growth = executable.stacks.repeated_growth("run", sharding, lanes, 0)
    call = _donated(executable, args) if sharding.over is None else (executable.placed(args, sharding), {})
    # A program that was compiled for stacks that grew later is used again, but makes no trip (`go` is false) if it is
    # known that they will grow: running it to find that out would be in vain.
    go = np.bool_(not growth.known) if growth.grows else None
    start = executable.jitted(run_whole, lanes)
    out, state = start(*call, go, spread=sharding, depth=growth.depth, keep=growth.grows)
    while state is not None and (growth.repeat() or growth.grow_if_full(out.status)):
        go = np.bool_(not growth.known)
        out, state = executable.jitted(run_again, lanes)(state, go, spread=sharding, depth=growth.depth)
    growth.remember()
    return executable.gathered(out, sharding)


def _donated(executable: PcExecutable, args: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments that a run must leave alone, and those whose buffers it may use."""
    # Where a NaN came from is looked for in a second run.
    away = frozenset() if debug_checks() or KEEPING.get() else executable.donated
    return {v: x for v, x in args.items() if v not in away}, {v: x for v, x in args.items() if v in away}
