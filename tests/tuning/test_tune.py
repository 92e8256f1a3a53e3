"""`f.tune` on small functions, and what it refuses."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.api.tune import CallBench, TuneOptions, _about_budget, _candidates, _emitters, _forks, _scout, combined
from pcbatch.tuning.race import INTERRUPTED, Candidate, Race, Row
from pcbatch.tuning.tolerance import difference


@pcbatch.batch
def digits(n: Any) -> Any:
    count = 1
    while n >= 10:
        n, count = n // 10, count + 1
    return count


@pcbatch.batch
def checked(n: Any) -> Any:
    assert n >= 0, "it has no digits"
    return digits(n)


@pcbatch.batch
def wide_calls(n: Any) -> Any:
    """Its calls are independent, but by estimate its records are too large for that to pay."""
    wide = jnp.arange(200) * n
    if n < 2:
        return wide
    return jnp.sort(wide_calls(n - 1)) + wide_calls(n - 2)


@pcbatch.batch
def fib(n: Any) -> Any:
    return n if n < 2 else fib(n - 2) + fib(n - 1)


class Differs:
    """Runs of which each candidate has another result, half of it."""

    compiled = 1

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def run(self, candidate: Candidate) -> Any:
        self.time += 1
        return np.array([0, len(candidate.fields)])


class Scale:
    """An object that is a constant of the program."""

    @pcbatch.batch
    def times(self, x: Any) -> Any:
        return 3 * x


XS = jnp.array([7, 1000, 42, 123456], jnp.int32)
FEW: dict[str, Any] = {"schedules": ["sweep"], "emitters": [], "modes": [], "unrolls": []}


def test_candidates_are_measured_and_the_options_keep_the_result() -> None:
    told: list[tuple[int, int | None]] = []
    tuned = digits.tune(XS, seconds=20, lanes=[2], progress=lambda *counts: told.append(counts), **FEW)
    # Whether a combination is tried besides depends on what is fast here.
    assert [row.name for row in tuned.rows[:3]] == ["as it is", "schedule='sweep'", "map, lanes=2"]
    assert all(row.runs >= 1 and not row.note for row in tuned.rows)
    assert told[:3] == [(1, 3), (2, 3), (3, 3)]
    assert digits.with_options(plan=tuned.plan)(XS).tolist() == [digits.plain(int(x)) for x in XS]


def test_failed_inputs_are_told() -> None:
    tuned = checked.tune(jnp.array([4, -1, 9], jnp.int32), seconds=20, lanes=[2], **FEW)
    assert tuned.note.startswith("1 of 3 inputs fail (`checked.run(...).status` says how)")
    assert all(not row.note for row in tuned.rows)


def test_a_tiny_budget_is_told() -> None:
    tuned = digits.with_options(max_steps=9).tune(XS, seconds=1e-9, **FEW)
    assert not tuned.changes and tuned.lanes is None and tuned.rows[0].runs == 0
    assert tuned.note.startswith("nothing was compared: the first run of `digits` took ")
    assert "`seconds=" in tuned.note and f"note: {tuned.note}" in str(tuned)


def test_ctrl_c_is_told() -> None:
    race = Race(Differs(), 100, difference, interrupted=True)
    race.rows = [Row(Candidate("as it is", {}), 1.0, [1.0, 1.0]), Row(Candidate("a", {"a": 1}), 1.0, [1.0, 1.0])]
    race.rows.append(Row(Candidate("b", {"b": 1}), note=INTERRUPTED))
    assert list(_about_budget(race, "f")) == ["interrupted: 1 of 2 candidates were measured"]


def test_chaos_needs_a_word_of_the_user() -> None:
    """The candidate is another function here: what differs must be refused, and the note says what to do."""
    race = Race(Differs(), 100, partial(difference, alike=1.0))
    race.run([Candidate("as it is", {}), Candidate("other", {"emitter": "port"})])
    assert "`alike=0.9`" in "".join(_about_budget(race, "f"))
    race = Race(Differs(), 100, partial(difference, alike=0.5))
    race.run([Candidate("as it is", {}), Candidate("other", {"emitter": "port"})])
    assert not list(_about_budget(race, "f"))


@pytest.mark.parametrize(("f", "tried"), [(fib, ["never"]), (wide_calls, ["always"]), (digits, [])])
def test_calls_side_by_side_are_a_candidate_where_they_are_possible(f: Any, tried: list[str]) -> None:
    program, call = f._programs.of_call((XS,), {})
    assert list(_forks(program, call, None)) == tried


def test_a_candidate_that_is_named_twice_is_tried_once() -> None:
    tuned = digits.tune(XS, seconds=20, lanes=[np.int64(2), 2], **(FEW | {"schedules": ["sweep"] * 2}))
    assert [row.name for row in tuned.rows[:3]] == ["as it is", "schedule='sweep'", "map, lanes=2"]
    assert not any(row.name in ("as it is", "schedule='sweep'", "map, lanes=2") for row in tuned.rows[3:])


def test_combinations_are_of_options_that_go_together() -> None:
    fork, width = Candidate("fork", {"fork": "always"}), Candidate("map", {}, 32)
    sweep, port = Candidate("sweep", {"schedule": "sweep"}), Candidate("port", {"emitter": "port"})
    assert combined(width, sweep) == Candidate("map + sweep", {"schedule": "sweep"}, 32)
    assert combined(fork, sweep) is None and combined(width, fork) is None
    assert combined(fork, port) is not None


def test_arguments_are_not_used_up() -> None:
    xs = XS + 0
    digits.with_options(donate_argnames=("n",)).tune(xs, seconds=20, **FEW)
    assert xs.tolist() == XS.tolist()


def test_a_method_keeps_its_object() -> None:
    tuned = Scale().times.tune(XS, seconds=20, **FEW)
    assert all(not row.note for row in tuned.rows)


def calls_back(x: Any) -> Any:
    return jax.pure_callback(lambda v: np.asarray(v), jax.ShapeDtypeStruct((), jnp.int32), x)


@pcbatch.batch
def with_callback(n: Any) -> Any:
    return calls_back(n)


@pcbatch.batch
def with_print(n: Any) -> Any:
    print(n)
    return n


@pytest.mark.parametrize(
    ("f", "args", "options", "message"),
    [
        (with_print, (XS,), {}, "and it prints"),
        (with_callback, (XS,), {}, "calls back to Python"),
        (digits, (XS[:0],), {}, "no inputs"),
        (digits, (iter([XS]),), {}, "an iterator"),
        (digits, (XS,), {"timeout": 3}, "`timeout` is an option of a run"),
        (digits, (XS,), {"seconds": 0}, "seconds must be"),
        (digits, (XS,), {"schedules": ["random"]}, "unknown schedule"),
        (digits, (XS,), {"schedules": [3]}, "kept in files"),
        (digits, (XS,), {"modes": ["dense"]}, "modes must be"),
        (digits, (XS,), {"lanes": [0]}, "lanes must be"),
        (digits, (XS,), {"lanes": [None]}, "lanes must be"),
        (digits, (XS,), {"lanes": 64}, r"`lanes` must be a list of candidates, not 64\n.*`lanes=\[64\]`"),
        (digits, (XS,), {"modes": pcbatch.Dense()}, "`modes` must be a list of candidates"),
        (digits, (XS,), {"modes": {"n": pcbatch.Dense()}}, "`modes` must be a list of candidates"),
        (digits, (XS,), {"schedule": "sweep"}, r"`schedules=\['sweep'\]`"),
        (digits, (XS,), {"alike": 2}, "alike must be a share"),
        (digits.with_options(strategy="local"), (XS,), {}, "strategy"),
    ],
)
def test_refused(f: Any, args: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(pcbatch.UsageError, match=message):
        f.tune(*args, **options)


def test_a_trace_is_refused() -> None:
    with pytest.raises(pcbatch.UsageError, match="cannot be traced"):
        jax.jit(lambda xs: digits.tune(xs).lanes or xs)(XS)


class Broken:
    """A policy with a fault."""

    name = "broken"

    def trip(self, blocks: Any, carry: Any) -> Any:
        raise ValueError("a fault of the policy")


def test_a_candidate_that_raises_is_a_line_of_the_table() -> None:
    modes = [{"no such text": pcbatch.Dense()}]
    tuned = digits.tune(XS, seconds=20, schedules=[], emitters=[], modes=modes)
    assert tuned.rows[1].note.startswith("impossible: ") and tuned.rows[1].seconds is None
    assert "modes" not in tuned.changes


def test_an_error_of_the_function_itself_is_raised() -> None:
    with pytest.raises(ValueError, match="a fault"):
        digits.with_options(plan=pcbatch.Plan(schedule=Broken())).tune(XS, seconds=20, **FEW)


def test_what_auto_stands_for_is_no_candidate() -> None:
    everything = TuneOptions(1, None, None, None, None, None, 1.0, None)
    program, call = digits._programs.of_call((jnp.arange(100),), {})
    names = [c.name for c in _candidates(digits._programs, program, call, None, everything)]
    explained = digits.explain_schedule(jnp.arange(100))
    assert (
        names[1] == "emitter='scalar'" and "emitter='port'" in names and f"emitter={explained.emitter!r}" not in names
    )
    assert "schedule='largest'" in names and f"schedule={explained.policy!r}" not in names
    assert "map, lanes=32" in names and "map, lanes=128" not in names
    assert "unroll=1" in names and "unroll=8" in names


@pytest.mark.parametrize(("inputs", "widths"), [(3, []), (100, [32]), (1024, [512, 128, 32]), (5000, [1024, 512, 128])])
def test_widths_are_those_that_inputs_fill(inputs: int, widths: list[int]) -> None:
    everything = TuneOptions(1, [], [], [], [], None, 1.0, None)
    program, call = digits._programs.of_call((jnp.arange(inputs),), {})
    found = _candidates(digits._programs, program, call, None, everything)
    assert [c.lanes for c in found if "narrow" not in c.name] == [None, *widths]


@pcbatch.batch
def tower(n: Any) -> Any:
    """A list that grows twice, and calls that nest more deeply than stacks are at first."""
    xs: Any = []
    for k in range(n):
        xs.append(k)
    return len(xs) + depth(n)


@pcbatch.batch
def depth(n: Any) -> Any:
    return 0 if n == 0 else 1 + depth(n - 1)


@pytest.mark.together
def test_the_room_that_lists_and_stacks_need_is_found_by_what_compiles_soonest() -> None:
    long = jnp.array([300, 2])
    program, call = tower._programs.of_call((long,), {})
    everything = TuneOptions(1, [], None, [], [], [], 1.0, None)
    candidates = list(_candidates(tower._programs, program, call, None, everything))
    scout = _scout(tower._programs, program, call, candidates)
    assert scout == Candidate("emitter='scalar'", {"emitter": "scalar"})
    bench = CallBench(tower._programs, tower._with_programs, (long,), {}, scout)
    assert np.asarray(bench.run(candidates[0])[0]).tolist() == [600, 4]
    grown, begun = (len(bench.made[key][0].cache) for key in ("{'emitter': 'scalar'}", "{}"))
    assert grown > 1 and begun == 2  # the program that was asked for candidates, and the one with the room
    bench.run(Candidate("port", {"emitter": "port"}))
    assert len(bench.made["{'emitter': 'port'}"][0].cache) == bench.compiled == 1
    again = tower._programs.of_call((long,), {})[0]
    assert _scout(tower._programs, again, call, candidates) is None
    assert again.with_pc("a test").depth > 300


def test_libraries_are_not_called_from_native_functions() -> None:
    solves = pcbatch.batch(lambda a: jnp.linalg.solve(a, a).sum())
    program, call = solves._programs.of_call((jnp.ones((2, 2, 2)),), {})
    assert "scalar" not in _emitters(program.with_pc("a test"))


def test_lane_after_lane_is_combined_with_what_it_obeys() -> None:
    scalar = Candidate("scalar", {"emitter": "scalar"})
    assert combined(scalar, Candidate("sweep", {"schedule": "sweep"})) is None
    assert combined(scalar, Candidate("map", {}, 32)) is not None
