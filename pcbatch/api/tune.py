"""`f.tune`: the candidates for one call, and their runs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import jax
import numpy as np

from pcbatch.api.programs import Programs
from pcbatch.call.arguments import Arguments
from pcbatch.call.results import Result
from pcbatch.call.signature import signature
from pcbatch.call.usage import usage
from pcbatch.compiler.growth import may_grow
from pcbatch.compiler.program import Program
from pcbatch.compiler.schedules import source_of
from pcbatch.data.capacity import Room
from pcbatch.diagnostics.short_repr import short
from pcbatch.errors import PcbatchError
from pcbatch.ir.ops import Prim
from pcbatch.lowering.analysis.cost import HOST, inner_jaxprs
from pcbatch.plan import Dense, Few, Kernel, Mode, Plan, Strips
from pcbatch.report.tuned import Measured, Tuned
from pcbatch.runs.run_options import Progress, RunOptions, reporting
from pcbatch.runtime import kernel
from pcbatch.runtime.costs.plan_modes import LEAST_NARROW
from pcbatch.runtime.execute.executor import PcExecutable
from pcbatch.runtime.execute.host_loop import RunCounts
from pcbatch.runtime.local_strategy.executor import needs_pc
from pcbatch.runtime.lowering_platform import lowering_platform
from pcbatch.runtime.scalar import obstacles
from pcbatch.runtime.sharding.lane_sharding import Devices
from pcbatch.runtime.vm.raw_result import is_tracing
from pcbatch.tuning.race import COMBINATIONS, SKIPPED, Candidate, Impossible, Race, Row, together, winner
from pcbatch.tuning.tolerance import difference

SCHEDULES = ("sweep", "drain", "earliest", "largest")
EMITTERS = ("scalar", "guard", "port")
# Lists of candidates, and the name of one.
LISTS = {"schedules": "schedule", "emitters": "emitter", "modes": "mode", "unrolls": "unroll", "lanes": "width"}
SCOUTED = 256  # lanes, up to which they run one after the other to find the room that lists need
WIDTH = 32  # of modes that compute some lanes at a time
ROUNDS = (1, 8)  # of small loops
WIDTHS = (1024, 512, 128, 32)  # of `f.map`
KERNELS = ("cuda", "rocm")  # platforms on which the emitter `kernel` is no interpreter
MOST_WIDTHS = 3  # of them, the widest that inputs fill twice: each is several machines to compile


class Runs(Protocol):
    """A batched function, as far as it is measured."""

    def run(self, /, *args: Any, **kwargs: Any) -> Result:
        """Run a lane for each input."""

    def map(self, /, *args: Any, lanes: int | None = None, **kwargs: Any) -> Result:
        """Run the inputs through a number of lanes."""


@dataclass(frozen=True, slots=True)
class TuneOptions:
    """The options of one call of `f.tune`; None for the candidates that are tried unless the user names some."""

    seconds: float
    schedules: Sequence[str] | None
    emitters: Sequence[str] | None
    modes: Sequence[Mode | Mapping[str, Mode]] | None
    unrolls: Sequence[int] | None
    lanes: Sequence[int] | None
    alike: float
    progress: Progress | bool | None


@dataclass(slots=True)
class CallBench:
    """Runs candidates on the arguments of a call, which no run uses up.

    A candidate begins with the room in lists and stacks that the run before the first of its own has needed, which
    hardly depends on options: most are compiled once. Where the function itself is new, the candidate `scout`, which
    compiles in half the time, runs before it.
    """

    programs: Programs
    make: Callable[[Programs], Runs]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    scout: Candidate | None = None
    made: dict[str, tuple[Programs, Runs]] = field(default_factory=dict)
    failed: int | None = None  # of the inputs, in the first run
    compiled: int = 1  # programs, in the last run; two of the scout count as one
    rooms: dict[Any, Room] = field(default_factory=dict)  # that runs have needed
    depth: int = 0  # of stacks, that runs have needed

    def now(self) -> float:
        """Return the time in seconds."""
        return time.perf_counter()

    def run(self, candidate: Candidate) -> Any:
        """Run a candidate, and return the values and how each lane ended."""
        try:
            return self._run(candidate)
        except Exception as error:  # the user did not ask for this candidate: a fault of it must not lose the others
            if not candidate.fields and candidate.lanes is None:
                raise
            text = (str(error).strip() or "no message").splitlines()[0]
            raise Impossible(text if isinstance(error, PcbatchError) else f"{type(error).__name__}: {text}") from error

    def _run(self, candidate: Candidate) -> Any:
        scouted, scout, self.scout = 0, self.scout, None
        if scout is not None:
            with suppress(Exception):  # told where it is tried as a candidate
                self._run(scout)
                scouted = (self.compiled + 1) // 2
        key, kwargs = str(dict(candidate.fields)), dict(self.kwargs)
        if begins := key not in self.made:
            programs = _with_plan(self.programs, candidate.fields) if candidate.fields else self.programs
            programs.rooms.update(self.rooms)
            self.made[key] = programs, self.make(programs)
            self._executable(programs).stacks.remember(self.depth)
        programs, f = self.made[key]
        before = len(programs.cache)
        if candidate.lanes is None:
            result = f.run(*self.args, **kwargs)
        else:
            result = f.map(*self.args, lanes=candidate.lanes, **kwargs)
        outcome: Any = (result.value, result.status)
        self.compiled = 1 + len(programs.cache) - before + scouted
        if begins:
            self.rooms, self.depth = dict(programs.rooms), self._executable(programs).depth
        if self.failed is None:
            self.failed = int(np.count_nonzero(result.status))
        jax.tree.map(lambda leaf: leaf.block_until_ready() if isinstance(leaf, jax.Array) else leaf, outcome)
        return outcome

    def _executable(self, programs: Programs) -> PcExecutable:
        kwargs = dict(self.kwargs)
        programs.pop_devices(kwargs)
        return programs.of_call(self.args, kwargs)[0].with_pc("tune")


def tune_call(
    programs: Programs,
    make: Callable[[Programs], Runs],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    options: TuneOptions,
) -> Tuned:
    """Measure the candidates for a call. `make` gives the function with other programs."""
    _check(programs, args, kwargs, options)
    if programs.options.donate_argnames:
        programs = programs.with_options(donate_argnames=())  # each run needs the arguments again
    plain = dict(kwargs)
    devices = programs.pop_devices(plain)
    program, call = programs.of_call(args, plain)
    if program.captures or is_tracing(call.arrays):
        help = "call it outside of `jax.jit` and other transformations, with arrays that have values"
        raise usage("PCB427", "`tune` measures runs, and cannot be traced", help=help)
    if not call.lanes:
        raise usage("PCB427", "no inputs to measure runs of", help="give a batch of the size that is to be fast")
    refuse_effects(programs.name, program, "tune")
    candidates = list(_candidates(programs, program, call, devices, options))
    bench = CallBench(programs, make, args, kwargs, _scout(programs, program, call, candidates))
    with reporting(options.progress, "candidates") as report:

        def told(done: int, of: int) -> None:
            if report is not None:
                report(RunCounts(total=of, finished=done))

        race = Race(bench, options.seconds, partial(difference, alike=options.alike), combined, told)
        race.run(candidates)
    lines = [*_about_inputs(programs.name, bench.failed or 0, call.lanes), *_about_budget(race, programs.name)]
    return report_of(race.rows, programs.options.plan, programs.name, source_of(programs.fn), "\n".join(lines))


def report_of(rows: Sequence[Row], plan: Plan, function: str, fingerprint: str, note: str = "") -> Tuned:
    """Return the plan of the row that won, and all rows; `plan`: that of the function, which they change."""
    seconds = (None if math.isinf(row.seconds) else row.seconds for row in rows)
    table = tuple(
        Measured(row.candidate.name, row.first, median, len(row.times), row.note)
        for row, median in zip(rows, seconds, strict=True)
    )
    best = winner(rows).candidate
    return Tuned(replace(plan, **best.fields), tuple(best.fields), best.lanes, function, fingerprint, table, note)


def _with_plan(programs: Programs, fields: Mapping[str, Any]) -> Programs:
    """The programs under a plan with other fields; refuses what is no value of a field."""
    return programs.with_options(plan=replace(programs.options.plan, **fields))


def combined(one: Candidate, other: Candidate) -> Candidate | None:
    """Return the candidate that changes what both change; None if it would be no other program than one of them, or
    cannot be."""
    pair = together(one, other)
    if pair is None or ("fork" in pair.changes and pair.changes & {"schedule", "modes", "lanes"}):
        return None
    # A lane after the other, there are no trips, of which options could say what they compute.
    return None if pair.fields.get("emitter") == "scalar" and pair.changes - {"emitter", "lanes"} else pair


def _about_inputs(name: str, failed: int, lanes: int) -> Iterator[str]:
    if failed:
        which = "every input fails" if failed == lanes else f"{failed:,} of {lanes:,} inputs fail"
        yield f"{which} (`{name}.run(...).status` says how); what was measured is how long that takes"


def _about_budget(race: Race, name: str) -> Iterator[str]:
    """Yield what keeps the table from being complete, and what to do about it."""
    default, *others = race.rows
    skipped = sum(row.note == SKIPPED for row in others)
    refused = sum(row.note.startswith("refused") for row in others)
    if race.interrupted:
        yield f"interrupted: {sum(row.compared for row in others)} of {len(others)} candidates were measured"
    elif skipped:
        more = sum(race.expected(row) for row in others if row.note == SKIPPED)
        enough = math.ceil(1.2 * (race.budget + more + COMBINATIONS * race.expected(default)))
        first = f"the first run of `{name}` took {default.first or 0.0:.3g} s"
        what = f"{skipped} of {len(others)} candidates were not tried"
        if skipped == len(others):
            what = f"nothing was compared: {first}, of {race.budget:.3g} s in all"
        yield f"{what}; `seconds={enough}` should be enough for all"
    if refused and refused == sum(row.first is not None for row in others):
        yield (
            "no candidate has the result of the defaults; if rounding sends runs another way (random draws that are "
            "accepted or not, chaos), let fewer numbers agree: `alike=0.9`, or `alike=0`"
        )


def _check(programs: Programs, args: tuple[Any, ...], kwargs: dict[str, Any], options: TuneOptions) -> None:
    seconds: object = options.seconds
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 < seconds < float("inf"):
        title = f"seconds must be a positive number, not {short(seconds)}"
        raise usage("PCB427", title, help="leave seconds out, or give a number such as `seconds=30`")
    if programs.options.strategy == "local":
        raise needs_pc("`tune`")
    alike: object = options.alike
    if not isinstance(alike, int | float) or isinstance(alike, bool) or not 0 <= alike <= 1:
        title = f"alike must be a share from 0 to 1, not {short(alike)}"
        raise usage(
            "PCB427", title, help="leave alike out, or give the share of the numbers that must agree: `alike=0.9`"
        )
    given = RunOptions.pop_from(dict(kwargs), signature(programs.fn).parameters)
    if given is not None:
        title = f"`{given.first_given}` is an option of a run, and `tune` makes many"
        raise usage("PCB427", title, help=f"leave `{given.first_given}` out, and limit the time by `seconds=30`")
    if any(isinstance(arg, Iterator) for arg in args):
        title = "`tune` runs its arguments many times, and an iterator gives them only once"
        raise usage("PCB427", title, help="give the arrays of a typical chunk")
    _check_lists(programs, kwargs, options)
    for schedule in options.schedules or ():
        if not isinstance(schedule, str):
            title = f"tuned options are kept in files, and {short(schedule)} cannot be"
            help = 'name schedules, as in `schedules=["sweep", "drain"]`; measure a policy of your own by itself'
            raise usage("PCB427", title, help=help)
    for width in options.lanes or ():
        if not isinstance(width, int | np.integer) or isinstance(width, bool) or width < 1:
            title = f"lanes must be a list of positive integers, and {short(width)} is none"
            raise usage("PCB427", title, help="write `lanes=[32, 128]`, or `lanes=[]` to leave `map` out")


def _check_lists(programs: Programs, kwargs: dict[str, Any], options: TuneOptions) -> None:
    """Refuse one candidate where a list of them belongs, and the name of one option where there is one for a list."""
    given = (options.schedules, options.emitters, options.modes, options.unrolls, options.lanes)
    for name, values in zip(LISTS, given, strict=True):
        if values is not None and (isinstance(values, str) or not isinstance(values, Sequence)):
            title = f"`{name}` must be a list of candidates, not {short(values)}"
            raise usage("PCB427", title, help=f"write `{name}=[{_example(values)}]`, or `{name}=[]` for none")
    for name, wanted in LISTS.items():
        if wanted in kwargs and wanted not in signature(programs.fn).parameters:
            title = f"`{wanted}` is one option, and `tune` measures several"
            help = f"name candidates in a list: `{name}=[{_example(kwargs[wanted])}]`"
            raise usage("PCB427", title, help=help)


def _example(value: object) -> str:
    return str(short(value)) if isinstance(value, str | int | Mode | Mapping) else "..."


def refuse_effects(name: str, program: Program, who: str) -> None:
    """Refuse a function that would do something besides computing in each of many runs, which `who` makes."""
    if program.prints:
        title = f"`{who}` runs `{name}` many times, and it prints"
        raise usage("PCB427", title, help="measure it without the `print`")
    if any(_calls_host(op) for block in program.stages.opt.blocks for op in block.ops):
        title = f"`{who}` runs `{name}` many times, and it calls back to Python"
        raise usage("PCB427", title, help="measure it without the callback")


def _calls_host(op: object) -> bool:
    closed = getattr(op.expr.fn, "closed", None) if isinstance(op, Prim) else None
    return closed is not None and _has_host(closed.jaxpr)


def _has_host(jaxpr: Any) -> bool:
    return any(eqn.primitive.name in HOST or any(map(_has_host, inner_jaxprs(eqn))) for eqn in jaxpr.eqns)


def _candidates(
    programs: Programs, program: Program, call: Arguments, devices: Devices, options: TuneOptions
) -> Iterator[Candidate]:
    """Yield what is tried, the options of the function first. The budget may end before the last, so the first value of
    each option comes before the second of any, and `map`, which compiles several machines, behind what compiles
    sooner."""
    lanes, runs = call.lanes, program.with_pc("tune")
    yield Candidate("as it is", {})
    widths = [w for w in WIDTHS if 2 * w <= lanes][:MOST_WIDTHS] if options.lanes is None else options.lanes
    tried: list[tuple[str, Sequence[Any]]] = [
        ("emitter", _emitters(runs) if options.emitters is None else options.emitters),
        ("fork", _forks(program, call, devices)),
        ("schedule", _others(SCHEDULES, runs.schedule) if options.schedules is None else options.schedules),
        ("modes", _modes(runs, lanes) if options.modes is None else options.modes),
        ("narrow", _narrows(runs, lanes)),
        ("unroll", _rounds(program) if options.unrolls is None else options.unrolls),
        ("lanes", widths),
    ]
    for number in range(max(len(values) for _, values in tried)):
        for name, values in tried:
            if values[number : number + 1] and values[number] not in values[:number]:
                yield from _candidate(programs, name, values[number])


def _candidate(programs: Programs, name: str, value: Any) -> Iterator[Candidate]:
    """Yield the candidate that changes one option, if that is another value than the function has."""
    if name == "lanes":  # of `map`, which is no option
        yield Candidate(f"map, lanes={value}", {}, int(value))
        return
    if _with_plan(programs, {name: value}).options != programs.options:
        yield Candidate(f"{name}={value!r}", {name: value})


def _scout(programs: Programs, program: Program, call: Arguments, candidates: Sequence[Candidate]) -> Candidate | None:
    """The candidate that finds the room which lists of a new function need; its lanes run one after the other."""
    if programs.rooms or not may_grow(program) or call.lanes > SCOUTED:
        return None
    return next((c for c in candidates if c.fields == {"emitter": "scalar"}), None)


def _forks(program: Program, call: Arguments, devices: Devices) -> Sequence[str]:
    """The choice that calls of this program do not make by themselves, where they have one."""
    if program.runs_tasks(call, devices):
        return ("never",)
    return ("always",) if program.forked.possible else ()


def _others(values: Sequence[str], now: object) -> Sequence[str]:
    """The values that do not give the program that there is: what "auto" stands for is one of them."""
    return [value for value in values if value != now]


def _narrows(runs: PcExecutable, lanes: int) -> Sequence[bool]:
    """Whether the last lanes go on in a narrower machine, if they do not, where there are lanes enough."""
    if runs.narrower(lanes):
        return (False,)
    return (True,) if min(runs.narrower(lanes, always=True), default=0) >= LEAST_NARROW else ()


def _rounds(program: Program) -> Sequence[int]:
    """Other rounds of small loops in one visit, where there are such loops."""
    unrolled = any(block.rounds > 1 for block in program.stages.opt.blocks)
    return ROUNDS if unrolled else ()


def _emitters(runs: PcExecutable) -> Sequence[str]:
    """The emitters that give another program: "scalar" on a CPU if nothing is in its way, a kernel where there is a GPU
    that can hold the program."""
    native = lowering_platform() == "cpu" and not obstacles(runs.machine.layout)
    others = [name for name in _others(EMITTERS, runs.machine.emitter.name) if native or name != "scalar"]
    if lowering_platform() not in KERNELS or runs.machine.emitter.name == "kernel":
        return others
    return others if kernel.planned(runs.machine, Kernel()).plan is None else [*others, "kernel"]


def _modes(runs: PcExecutable, lanes: int) -> list[Mode]:
    """The modes that compute a block otherwise than the program does; only one emitter has a choice."""
    if runs.machine.emitter.name != "guard":
        return []
    now = {mode for mode, _ in runs.costs.choices(runs.costs.lanes(lanes))}
    narrow: list[Mode] = [Few(WIDTH), Strips(WIDTH)] if lanes > WIDTH else []
    return [mode for mode in (Dense(), *narrow) if now != {mode}]
