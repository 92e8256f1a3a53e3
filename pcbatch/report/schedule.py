"""`f.explain_schedule(...)`: how a program would run, and why."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from pcbatch.call.arguments import Arguments
from pcbatch.call.results import BlockStats
from pcbatch.compiler.program import Program
from pcbatch.diagnostics.tables import number, ranges, shortened, table, time
from pcbatch.ir.ops import Prim
from pcbatch.ir.stack import StackBlock
from pcbatch.lowering.analysis.cost import op_cost
from pcbatch.options import Dense, Mode
from pcbatch.runtime.costs import trip_time
from pcbatch.runtime.costs.plan_modes import WIDEST, Costs
from pcbatch.runtime.costs.trip_time import XlaCost
from pcbatch.runtime.sharding.lane_sharding import Devices, LaneSharding
from pcbatch.runtime.vm.machine import Machine
from pcbatch.runtime.vm.policies import FAIR, is_ours

TEXT = 44  # characters of a block's text


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """One block. Times are estimates in nanoseconds; `visits` are expected ones, relative to the most visited block's;
    `text` is the source of its dearest primitive. `xla`: XLA's own analysis, per lane."""

    label: str
    function: str
    lines: tuple[int, ...]
    text: str
    lane_ns: float
    dense_ns: float
    visits: float
    expensive: bool
    width: int
    mode: str
    why: str
    trip_ns: float
    xla: XlaCost | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a program would run: what `f.explain_schedule(...)` gives. `str()` of it is a table."""

    function: str
    inputs: int  # of a device
    lanes: int
    policy: str
    reason: str
    emitter: str
    map_lanes: int  # what `f.map` would take for many inputs
    rows: tuple[BlockPlan, ...] = field(repr=False)

    @property
    def expensive(self) -> tuple[str, ...]:
        """The labels of the blocks worth waiting for."""
        return tuple(row.label for row in self.rows if row.expensive)

    @property
    def trip_ns(self) -> float:
        """The estimated time of a trip, in nanoseconds."""
        return sum(row.trip_ns for row in self.rows)

    def to_json(self) -> str:
        """All of it as JSON."""
        return json.dumps(asdict(self) | {"trip_ns": self.trip_ns}, indent=2)

    def __str__(self) -> str:
        streamed = f" for {self.inputs} inputs" if self.lanes < self.inputs else ""
        size = f"{self.lanes} lanes{streamed}, {len(self.rows)} blocks"
        lines = [
            f"{self.function}: {size}, very roughly {time(self.trip_ns)} a trip",
            f"  policy   {self.policy}: {self.reason}",
            f"  emitter  {self.emitter}",
            f"  map      {self.map_lanes} lanes for many inputs",
            "",
            self._table(),
        ]
        return "\n".join([*lines, "", *_LEGEND])

    def _table(self) -> str:
        numbers = ("ns/lane", "dense", "visits", "trip", "flops", "bytes")
        head = ("block", "function", "lines", "holds", *numbers, "computed", "why")
        return table(head, map(_cells, self.rows), right=numbers)


_LEGEND = (
    "  * waited for: it runs when every live lane waits at such a block",
    "  ns/lane, dense: estimated time per lane and of a visit for all lanes; visits: expected, relative to the most",
    "  visited block; trip: estimated part of a trip's time; flops, bytes: XLA's own analysis of the block, per lane",
)


def _cells(row: BlockPlan) -> tuple[str, ...]:
    return (
        row.label + (" *" if row.expensive else ""),
        row.function,
        ranges(row.lines),
        shortened(row.text, TEXT),
        number(row.lane_ns),
        time(row.dense_ns),
        number(row.visits),
        time(row.trip_ns),
        number(None if row.xla is None else row.xla.flops),
        number(None if row.xla is None else row.xla.bytes),
        row.mode,
        row.why,
    )


def explain_call(
    name: str, compiled: Program, given: Arguments, lanes: int | None, mesh: Devices = None
) -> Explanation:
    """Explain how the inputs of a call would run through `lanes` lanes of each device (None: as in a plain call)."""
    executable = compiled.with_pc("explain_schedule")
    each = LaneSharding(compiled.placed(given, mesh), given.lanes).each
    width = max(1, executable.width(each) if lanes is None else min(lanes, each))
    said = compiled.options.schedule != "auto"
    return _explain(name, executable.machine, executable.costs, compiled.infos, each, width, said)


def _explain(
    name: str, machine: Machine, costs: Costs, infos: Sequence[BlockStats], inputs: int, lanes: int, said: bool
) -> Explanation:
    """Explain a machine of so many lanes that has so many inputs. `said`: has the user named the policy?"""
    choices = _choices(machine, costs, lanes)
    modes = tuple(mode for mode, _ in choices)
    policy = machine.schedule.name
    times = trip_time.trip_times(costs, modes, lanes, policy)
    rows = tuple(
        BlockPlan(
            label=info.label,
            function=info.function,
            lines=info.lines,
            text=_telling(code.block),
            lane_ns=block.lane,
            dense_ns=block.dense(lanes),
            visits=block.often,
            expensive=block.expensive,
            width=trip_time.width_of(mode, lanes),
            mode=str(mode),
            why=why,
            trip_ns=trip,
            xla=trip_time.xla_cost(code, trip_time.width_of(mode, lanes)),
        )
        for info, code, block, (mode, why), trip in zip(
            infos, machine.layout.codes, costs.blocks, choices, times, strict=True
        )
    )
    streamed = costs.stream_lanes(WIDEST)
    return Explanation(name, inputs, lanes, policy, _reason(machine, rows, said), machine.emitter.name, streamed, rows)


def _choices(machine: Machine, costs: Costs, lanes: int) -> tuple[tuple[Mode, str], ...]:
    if machine.emitter.name == "guard":
        return costs.choices(lanes)
    return ((Dense(), f"`{machine.emitter.name}` computes all lanes"),) * len(costs.blocks)


def _telling(block: StackBlock) -> str:
    """The source of the dearest primitive; the shortest of several."""
    texts = [(op_cost(op), -len(op.expr.text), op.expr.text) for op in block.ops if isinstance(op, Prim)]
    return max(texts, default=(0.0, 0, ""))[2]


def _reason(machine: Machine, rows: Sequence[BlockPlan], said: bool) -> str:
    if not is_ours(machine.schedule):
        return f"a policy of yours; every {FAIR}th trip is followed by a sweep"
    if said:
        return "as `schedule` says"
    dear = [row.label for row in rows if row.expensive]
    if machine.schedule.name == "drain":
        return f"{' and '.join(dear) or 'a block'} decide{'s' * (len(dear) < 2)} the time, so lanes gather there"
    return "no block is so dear that lanes should wait for each other there"
