"""`f.tune` on small functions, and what it refuses."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch


@pcbatch.batch
def digits(n: Any) -> Any:
    count = 1
    while n >= 10:
        n, count = n // 10, count + 1
    return count


class Scale:
    """An object that is a constant of the program."""

    @pcbatch.batch
    def times(self, x: Any) -> Any:
        return 3 * x


XS = jnp.array([7, 1000, 42, 123456], jnp.int32)
FEW: dict[str, Any] = {"schedules": ["sweep"], "emitters": [], "modes": []}


def test_candidates_are_measured_and_the_options_keep_the_result() -> None:
    told: list[tuple[int, int | None]] = []
    tuned = digits.tune(XS, seconds=20, lanes=[2], progress=lambda *counts: told.append(counts), **FEW)
    assert [row.name for row in tuned.rows] == ["as it is", "map, lanes=2", "schedule='sweep'"]
    assert all(row.runs >= 2 and not row.note for row in tuned.rows)
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert digits.with_options(**tuned)(XS).tolist() == [digits.plain(int(x)) for x in XS]


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
    assert not tuned


def test_an_error_of_the_function_itself_is_raised() -> None:
    with pytest.raises(ValueError, match="a fault"):
        digits.with_options(schedule=Broken()).tune(XS, seconds=20, **FEW)
