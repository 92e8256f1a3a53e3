"""`f.profile(...)`: the visits of a run, as a whole, by block and over time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from pcbatch.call.arguments import Arguments
from pcbatch.call.results import Result
from pcbatch.call.usage import usage
from pcbatch.compiler.growth import run_growing
from pcbatch.compiler.program import Program
from pcbatch.diagnostics.tables import bars, number, ranges, shortened, table
from pcbatch.report.profile_html import page
from pcbatch.report.profile_plot import plot
from pcbatch.report.profile_source import SourceLines, source_lines
from pcbatch.report.profile_tasks import ProfiledTasks, profiled_tasks
from pcbatch.report.schedule import BlockPlan, Explanation, explain_call
from pcbatch.runtime.sharding.lane_sharding import Devices
from pcbatch.runtime.vm.raw_result import RawResult, is_tracing

TEXT = 44  # characters of a block's text
BARS = 64  # characters of a line over time
Counts = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class BlockProfile:
    """The counts of one block in a run.

    Attributes:
        plan: how the block is run, with estimated times.
        label: its name in the program.
        visits: batched executions, see `BlockStats`.
        active: lanes that took part, summed over visits.
        offered: lanes that visits had room for, summed over them.
        work: its share of the run, from 0 to 1, from `offered` and the estimated cost of a lane.
    """

    plan: BlockPlan = field(repr=False)
    label: str
    visits: int
    active: int
    offered: int
    work: float

    @property
    def utilisation(self) -> float:
        """The share of the lanes computed that took part, from 0 to 1."""
        return self.active / self.offered if self.offered else 0.0

    @property
    def is_unused_exit(self) -> bool:
        """Whether it computes nothing, as a block where lanes fail, and no lane came there."""
        return self.visits == 0 and self.plan.is_exit


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """A run in stretches of `span` trips (a power of two; at most 256 stretches), with sums over the trips of each.

    Attributes:
        span: trips in a stretch; the last one may have fewer.
        trips: int64[stretches].
        live: int64[stretches], lanes that have not ended.
        lanes: int64[stretches], all lanes.
        visits, active, offered: int64[stretches, blocks], as in `BlockProfile`.
    """

    span: int
    trips: Counts
    live: Counts
    lanes: Counts
    visits: Counts
    active: Counts
    offered: Counts

    def utilisation(self, weights: Sequence[float]) -> np.ndarray[Any, Any]:
        """Compute the utilisation of each stretch.

        Args:
            weights: one for each block, such as the estimated costs of a lane.

        Returns:
            float64[stretches], from 0 to 1; NaN where no block of positive weight ran.
        """
        offered = self.offered @ np.asarray(weights, float)
        active = self.active @ np.asarray(weights, float)
        shares: np.ndarray[Any, Any] = np.full(len(offered), np.nan)
        np.divide(active, offered, out=shares, where=offered > 0)
        return shares

    @property
    def alive(self) -> np.ndarray[Any, Any]:
        """The share of live lanes in each stretch, float64[stretches]."""
        return self.live / np.maximum(self.lanes, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """The result of `f.profile(...)`. `str()` of it is a table.

    Attributes:
        schedule: how the program was run, and why.
        trips: iterations of the machine.
        blocks: the counts of each block, in order of the program.
        timeline: the counts over time.
        result: the `Result` that `f.run(...)` returns.
        source: the user's lines, see `html`.

    Example:
        >>> import jax.numpy as jnp, pcbatch
        >>> @pcbatch.batch
        ... def collatz(n):
        ...     while n != 1:
        ...         n = n // 2 if n % 2 == 0 else 3 * n + 1
        ...     return n
        >>> profile = collatz.profile(jnp.array([1, 6, 27]))
        >>> 0.0 < profile.utilisation <= 1.0
        True
        >>> profile.html("profile.html")  # doctest: +SKIP
    """

    schedule: Explanation = field(repr=False)
    trips: int
    blocks: tuple[BlockProfile, ...] = field(repr=False)
    timeline: Timeline = field(repr=False)
    result: Result = field(repr=False)
    source: SourceLines = field(repr=False)

    @property
    def title(self) -> str:
        """The function, and how it was run, in one line."""
        plan = self.schedule
        streamed = f" for {plan.inputs} inputs" if plan.lanes < plan.inputs else ""
        return f"{plan.function}: {plan.lanes} lanes{streamed}, policy {plan.policy}, {self.trips} trips"

    @property
    def utilisation(self) -> float:
        """The share of lanes computed that took part, blocks weighed by the estimated cost of a lane, from 0 to 1."""
        offered = sum(block.offered * block.plan.lane_ns for block in self.blocks)
        return sum(block.active * block.plan.lane_ns for block in self.blocks) / offered if offered else 0.0

    @property
    def expensive(self) -> tuple[BlockProfile, ...]:
        """The expensive blocks, where lanes waited for each other."""
        return tuple(block for block in self.blocks if block.plan.expensive)

    def to_json(self) -> str:
        """The counts, also those over time, as JSON (the results of the run are not part of it)."""
        line = self.timeline
        names = ("trips", "live", "lanes", "visits", "active", "offered")
        blocks = [
            {"label": b.label, "function": b.plan.function, "lines": b.plan.lines, "text": b.plan.text}
            | {"mode": b.plan.mode, "expensive": b.plan.expensive, "lane_ns": b.plan.lane_ns}
            | {"visits": b.visits, "active": b.active, "offered": b.offered}
            | {"utilisation": b.utilisation, "work": b.work}
            for b in self.blocks
        ]
        plan = self.schedule
        summary = {"function": plan.function, "inputs": plan.inputs, "lanes": plan.lanes, "policy": plan.policy}
        summary |= {"trips": self.trips, "utilisation": self.utilisation, "blocks": blocks}
        summary |= {"timeline": {"span": line.span} | {name: getattr(line, name).tolist() for name in names}}
        return json.dumps(summary, indent=2)

    def plot(self, path: str | PathLike[str]) -> None:
        """Draw utilisation over time and by block into a file (needs matplotlib: `pip install 'pcbatch[viz]'`)."""
        plot(self, path)

    def html(self, path: str | PathLike[str]) -> None:
        """Write a page for a browser: the source with the work of each line, the run over time, the blocks.

        Args:
            path: of the file, which is replaced.
        """
        Path(path).write_text(page(self), encoding="utf-8")

    def __str__(self) -> str:
        line = self.timeline
        of_blocks = "".join(f", {100 * b.utilisation:.0f} % of {b.label}" for b in self.expensive)
        lines = [self.title, f"  utilisation  {100 * self.utilisation:.0f} % of all work{of_blocks}"]
        shown = _at_most(line.alive, line.trips, BARS)
        lines += [f"  live lanes   |{bars(shown)}|"]
        weights = [block.plan.lane_ns for block in self.blocks]
        shown = _at_most(np.nan_to_num(line.utilisation(weights)), line.trips, BARS)
        lines += [f"  utilisation  |{bars(shown)}|  over {self.trips} trips", "", self._table(), ""]
        return "\n".join([*lines, *_LEGEND])

    def _table(self) -> str:
        head = ("block", "function", "lines", "holds", "computed", "visits", "a trip", "lanes", "utilisation", "work")
        return table(head, (_cells(b, self.trips) for b in self.blocks if not b.is_unused_exit), right=head[5:])


_LEGEND = (
    "  * waited for; lanes: that took part in a visit, on average; utilisation: their share of the lanes computed;",
    "  work: the block's share of all lanes computed, weighed by the estimated cost of a lane (no time is measured:",
    "  blocks are fused into one program)",
)


def _cells(block: BlockProfile, trips: int) -> tuple[str, ...]:
    plan = block.plan
    return (
        plan.label + (" *" if plan.expensive else ""),
        plan.function,
        ranges(plan.lines),
        shortened(plan.text, TEXT),
        plan.mode,
        str(block.visits),
        number(block.visits / max(1, trips)),
        number(block.active / max(1, block.visits)),
        f"{100 * block.utilisation:.0f} %",
        f"{100 * block.work:.0f} %",
    )


def _at_most(shares: np.ndarray[Any, Any], trips: Counts, width: int) -> list[float]:
    """Shorten a line over time to `width` characters: means of neighbouring stretches, weighed by their trips."""
    groups = np.array_split(np.arange(len(shares)), min(width, len(shares))) if len(shares) else []
    return [float(np.average(shares[g], weights=trips[g])) for g in groups]


def profile_call(name: str, compiled: Program, given: Arguments, lanes: int | None, mesh: Devices = None) -> Profile:
    """Run the inputs of a call with statistics over time. `lanes`: of a machine as `f.map` makes it."""
    plan = explain_call(name, compiled, given, lanes, mesh)
    if is_tracing(compiled.args(given)):
        help = "call it outside of `jax.jit` and other transformations"
        raise usage("PCB421", "`profile` runs the program, and cannot be traced", help=help)
    if lanes is None and compiled.runs_tasks(given, mesh):
        return _of_tasks(profiled_tasks(name, compiled, given), given)
    streamed = lanes is not None and given.lanes > 0

    def run(program: Program) -> RawResult:
        timed = replace(program, executable=program.with_pc("profile").profiling)
        return timed.stream(given, lanes, mesh) if streamed else timed.execute(given, mesh)

    program, raw = run_growing(compiled, run)
    if program.room != compiled.room:
        plan, compiled = explain_call(name, program, given, lanes, mesh), program
    result = compiled.result(raw, given.lanes, given)
    line = raw.line or (np.zeros((1, len(plan.rows), 3)), np.zeros((1, 2)), np.ones((1,)), np.zeros((1,)))
    return profile_of(plan, line, result, source_lines(compiled.stages.opt))


def profile_of(plan: Explanation, line: tuple[Any, Any, Any, Any], result: Result, source: SourceLines) -> Profile:
    """Make the profile of a run of its record over time, `RawResult.line`."""
    *record, trips_of_devices = (np.asarray(part) for part in line)
    trips = int(trips_of_devices.max())  # devices run side by side
    return _profile(plan, _merged(trips, *record), result, source)


def _of_tasks(found: ProfiledTasks, given: Arguments) -> Profile:
    """Make the profile of a run by tasks."""
    record, result = found.record, found.program.result(found.raw, given.lanes, given)
    visits, active, offered = (record.counts[..., k] for k in range(3))
    span = int(max(1, *record.trips, 1))
    timeline = Timeline(span, record.trips, record.live, record.trips * given.lanes, visits, active, offered)
    return _profile(found.plan, timeline, result, found.source)


def _profile(plan: Explanation, timeline: Timeline, result: Result, source: SourceLines) -> Profile:
    trips = int(timeline.trips.sum())
    totals = zip(
        plan.rows, *(part.sum(axis=0) for part in (timeline.visits, timeline.active, timeline.offered)), strict=True
    )
    counts = [(row, int(visits), int(active), int(offered)) for row, visits, active, offered in totals]
    work = sum(offered * row.lane_ns for row, _, _, offered in counts)
    blocks = tuple(
        BlockProfile(row, row.label, visits, active, offered, offered * row.lane_ns / work if work else 0.0)
        for row, visits, active, offered in counts
    )
    return Profile(plan, trips, blocks, timeline, result, source)


def _merged(trips: int, counts: Any, crowd: Any, span: Any) -> Timeline:
    """Add the records of all devices, at the resolution of the coarsest.

    Args:
        trips: of the device that made most of them.
        counts: [devices..., stretches, blocks, 3], visits, active and offered lanes.
        crowd: [devices..., stretches, 2], live and all lanes.
        span: [devices...], trips in a stretch.
    """
    counts, crowd = counts.reshape(-1, *counts.shape[-3:]), crowd.reshape(-1, *crowd.shape[-2:])
    longest = int(span.max())
    both = zip(counts.astype(np.int64), crowd.astype(np.int64), span.reshape(-1), strict=True)
    parts = [(_coarser(c, longest // int(s)), _coarser(d, longest // int(s))) for c, d, s in both]
    used = -(-trips // longest)
    total: Any = sum(c for c, _ in parts)[:used]  # type: ignore[index]
    people: Any = sum(d for _, d in parts)[:used]  # type: ignore[index]
    each = np.clip(trips - longest * np.arange(used), 0, longest)
    return Timeline(longest, each, people[:, 0], people[:, 1], total[..., 0], total[..., 1], total[..., 2])


def _coarser(buckets: Counts, factor: int) -> Counts:
    sums = buckets.reshape(len(buckets) // factor, factor, *buckets.shape[1:]).sum(axis=1)
    return np.concatenate([sums, np.zeros((len(buckets) - len(sums), *sums.shape[1:]), sums.dtype)])
