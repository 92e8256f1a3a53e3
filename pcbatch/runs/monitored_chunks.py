"""Monitored runs of `f.map` over chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pcbatch.call.arguments import Arguments
from pcbatch.compiler.program import Program
from pcbatch.runs import checkpoint_file, fingerprint
from pcbatch.runs.checkpoint_file import as_saved, check, header, refused
from pcbatch.runs.interrupts import Interrupted, interruptible
from pcbatch.runs.run_options import RunOptions, deadline, reporting
from pcbatch.runtime.execute.chunk_runner import Chunk, ChunkCheckpoint, ChunkPlan, StreamMismatch
from pcbatch.runtime.execute.host_loop import HostLoop, RunCounts
from pcbatch.runtime.sharding.lane_sharding import Devices, LaneSharding
from pcbatch.runtime.vm.raw_result import RawResult


def run_chunks_monitored(
    compiled: Program,
    given: Arguments,
    pieces: Callable[[Callable[[], bool]], Iterable[Chunk]],
    flow: ChunkPlan,
    mesh: Devices,
    options: RunOptions,
    again: bool = False,
) -> RawResult:
    """Run inputs that come in chunks to their end, or as far as the options allow.

    Args:
        compiled: the program.
        given: the call, for the arguments that all inputs share.
        pieces: makes the chunks; its argument tells whether the run has stopped.
        flow: how they come.
        mesh: the devices.
        options: progress, time limit and checkpoints.
        again: whether the run is a repetition with more room for lists, which begins from the start.
    """
    path, held = options.save_to, None
    about = _about(compiled, given, flow, mesh) if path is not None else {}
    if path is not None and path.exists() and not again:
        held = _checkpoint(path, compiled, about)
    with reporting(options.progress, "inputs") as report, interruptible() as interrupted:
        watch = HostLoop(until=deadline(options.timeout), report=report, interrupted=interrupted)
        if path is not None:
            watch.save, watch.every = _saving(path, about), options.every
        try:
            coming = partial(pieces, lambda: not watch.may_continue())
            outcome = compiled.stream_chunks(given, coming, replace(flow, watch=watch, held=held), mesh)
        except StreamMismatch:
            assert path is not None
            if watch.why == "interrupted":  # while they were read again
                raise _interrupted(path) from None
            note = "the chunks that the run has seen are read again, and these are not the same"
            raise refused(path, "was written for other inputs", note) from None
        if report is not None and not watch.stopped:
            inputs = len(outcome.status)
            report(RunCounts(inputs, finished=inputs, trips=int(outcome.trips)))
    if watch.why == "interrupted":
        raise _interrupted(path)
    return outcome


def resumed_program(compiled: Program, options: RunOptions | None) -> Program:
    """Return the program that a run with these options goes on with: its file tells how much room lists have."""
    if options is None or options.save_to is None or not options.save_to.exists() or not compiled.may_be_full:
        return compiled
    return as_saved(compiled, checkpoint_file.read(options.save_to)[0])


def _interrupted(path: Path | None) -> Interrupted:
    kept = "" if path is None or not path.exists() else f"; {path} holds what is done"
    return Interrupted(None, "stopped by Ctrl-C" + kept)


def _about(compiled: Program, given: Arguments, flow: ChunkPlan, mesh: Devices) -> dict[str, Any]:
    mapped = compiled.mapped(compiled.args(given))
    common = {v: x for v, x in compiled.args(given).items() if v not in mapped}
    return {
        **header(compiled, "map"),
        "shared": fingerprint.of_shared(common),
        "chunk": flow.size,
        "total": flow.total,
        "asked": flow.lanes,
        "devices": LaneSharding(mesh, 0).devices,
    }


def _saving(path: Path, about: Mapping[str, Any]) -> Callable[[Callable[[], ChunkCheckpoint]], None]:
    def save(snapshot: Callable[[], ChunkCheckpoint]) -> None:
        held = snapshot()
        checkpoint_file.write_if_possible(path, {**about, "held": held.about}, held.arrays)

    return save


def _checkpoint(path: Path, compiled: Program, about: Mapping[str, Any]) -> ChunkCheckpoint:
    found, arrays = checkpoint_file.read(path)
    wanted = {
        "shared": "shared arguments",
        "chunk": "chunks",
        "total": "inputs",
        "asked": "lanes",
        "devices": "devices",
    }
    check(path, found, compiled, "map", **{key: (about[key], what) for key, what in wanted.items()})
    with checkpoint_file.reading(path):
        held = dict(found["held"])
    return ChunkCheckpoint(held, {name: np.asarray(x) for name, x in arrays.items()})
