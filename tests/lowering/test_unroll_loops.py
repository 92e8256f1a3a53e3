"""Loops of one small block, of which a visit computes several rounds."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.ir.text.printer import print_program
from pcbatch.lowering.left_out import without
from pcbatch.lowering.stack_passes import unroll_loops
from tests.oracles.plans import replanned
from tests.oracles.text.parser import parse_program

N = np.array([0, 1, 2, 3, 5, 8, 13, 27], np.int32)


def collatz(n):
    count = 0
    while n > 1:
        n = n >> 1 if n & 1 == 0 else 3 * n + 1
        count += 1
    return count


def roots(x, limit):
    """The inner loop computes roots of negative numbers for lanes that have left it."""
    total = 0.0
    for k in range(3):
        y = x + k
        while y > limit:
            y = jnp.sqrt(y - limit)
        total = total + y
    return total


def with_break(n):
    i, total = 0, 0
    while i < n:
        total += i * i
        if total > 50:
            return -total
        i += 1
    return total


def with_exits(n, m):
    while n > 0:
        n -= 2
        if n == m:
            break
        m += 1
    else:
        return 100 + m
    return m


def recursive(n):
    """The loop stands behind a call: it reads what the frame has kept."""
    if n <= 1:
        return n
    below = recursive_lanes(n - 2)
    k = n
    while k > 3:
        k -= 2
    return below + k * n


recursive_lanes = pcbatch.batch(recursive)

PROGRAMS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "collatz": (collatz, (N,)),
    "break": (with_break, (N,)),
    "exits": (with_exits, (N, N[::-1].copy())),
}


def rounds(f: Any, *args: Any) -> list[int]:
    """The rounds of every loop that is unrolled."""
    return [b.rounds for b in f.lower(*args).stages.opt.blocks if b.rounds > 1]


def opt(f: Any, *args: Any) -> Any:
    return f.lower(*args).stages.opt


class TestResults:
    """Each lane gives what plain Python gives."""

    @pytest.mark.share(4, 0, 3)
    @pytest.mark.parametrize("unroll", [None, 1, 2, 7])
    @pytest.mark.parametrize("name", PROGRAMS)
    def test_are_those_of_python(self, name: str, unroll: int | None) -> None:
        fn, args = PROGRAMS[name]
        f = pcbatch.batch(fn, plan=pcbatch.Plan(unroll=unroll))
        want = [int(fn(*map(int, lane))) for lane in zip(*args, strict=True)]
        assert f(*args).tolist() == want
        for emitter in ("port", "guard", "kernel"):
            assert replanned(f, emitter=emitter)(*args).tolist() == want

    @pytest.mark.parametrize("schedule", ["sweep", "drain", "earliest", "largest"])
    def test_of_every_schedule(self, schedule: str) -> None:
        f = pcbatch.batch(collatz, plan=pcbatch.Plan(schedule=schedule, unroll=4))
        assert f(N).tolist() == [collatz(int(n)) for n in N]

    def test_behind_calls(self) -> None:
        f = recursive_lanes.with_options(plan=pcbatch.Plan(fork="never", unroll=4))
        g = replanned(f, unroll=1)
        assert f(N).tolist() == g(N).tolist()

    def test_of_rounds_that_were_not_to_be(self) -> None:
        x, limit = jnp.linspace(0.5, 9.0, 8), jnp.full(8, 1.5)
        f, g = (pcbatch.batch(roots, plan=pcbatch.Plan(unroll=k)) for k in (4, 1))
        np.testing.assert_allclose(f(x, limit), g(x, limit), rtol=1e-6)
        assert np.isfinite(f(x, limit)).all()

    def test_gradients_ignore_such_rounds(self) -> None:
        x, limit = jnp.linspace(0.5, 9.0, 8), jnp.full(8, 1.5)
        f, g = (pcbatch.batch(roots, plan=pcbatch.Plan(unroll=k)) for k in (4, 1))
        slopes = (jax.grad(lambda *a, h=h: h(*a).sum(), (0, 1))(x, limit) for h in (f, g))
        for got, want in zip(*slopes, strict=True):
            assert np.isfinite(got).all()
            np.testing.assert_allclose(got, want, rtol=1e-5)
        got, want = (jax.jvp(h, (x, limit), (x, limit))[1] for h in (f, g))
        np.testing.assert_allclose(got, want, rtol=1e-5)


class TestRounds:
    """How many a visit computes."""

    def test_by_cost(self) -> None:
        assert rounds(pcbatch.batch(collatz, numbers="jax"), N) == [unroll_loops.MOST_ROUNDS]
        assert rounds(pcbatch.batch(collatz), N) == [2]  # its checks cost as much as a round
        assert [unroll_loops.rounds_by_cost(cost) for cost in (0.0, 8.0, 12.0, 32.0, 33.0)] == [4, 4, 3, 2, 1]

    def test_as_the_option_says(self) -> None:
        assert rounds(pcbatch.batch(collatz, plan=pcbatch.Plan(unroll=1)), N) == []
        assert rounds(pcbatch.batch(collatz, plan=pcbatch.Plan(unroll=7)), N) == [7]

    def test_are_fewer_trips(self) -> None:
        f, g = (pcbatch.batch(collatz, plan=pcbatch.Plan(unroll=k, modes=pcbatch.Dense())) for k in (4, 1))
        assert 2 * int(f.run(N).stats.trips) < int(g.run(N).stats.trips)

    def test_without_the_pass(self) -> None:
        with without("unroll_loops"):
            assert rounds(pcbatch.batch(collatz, plan=pcbatch.Plan(unroll=4)), N) == []

    def test_one_of_what_is_large(self) -> None:
        @pcbatch.batch
        def powers(x):
            while x[0] < 100.0:
                x = x * 2.0
            return x

        assert rounds(powers, jnp.ones((4, 64))) == []
        assert rounds(replanned(powers, unroll=3), jnp.ones((4, 64))) == [3]
        assert replanned(powers, unroll=3)(jnp.ones((4, 64))).tolist() == [[128.0] * 64] * 4

    @pytest.mark.parametrize("unroll", [None, 4])
    def test_one_of_what_may_not_be_computed_for_nothing(self, unroll: int | None) -> None:
        @pcbatch.batch(plan=pcbatch.Plan(unroll=unroll))
        def prints(n):
            while n > 1:
                print(n)
                n -= 1
            return n

        @pcbatch.batch(plan=pcbatch.Plan(unroll=unroll))
        def inner(n):
            while n > 1:
                n = n - 1 - jax.lax.while_loop(lambda c: c != 0, lambda c: c // 2, jnp.maximum(n, 0))
            return n

        assert rounds(prints, N) == rounds(inner, N) == []

    def test_failing_lanes_fail_where_they_did(self) -> None:
        @pcbatch.batch(on_failure="ignore")
        def checked(n):
            k = 0
            while k < n:
                k += 3
                assert k != 6
            return k

        for unroll in (1, 4):
            result = checked.with_options(plan=pcbatch.Plan(unroll=unroll)).run(N)
            assert result.status.tolist() == [0 if n <= 3 else 4 for n in N]

    def test_limits_count_rounds(self) -> None:
        """With `max_steps` a visit is a round, whatever `unroll` says: a limit means the same."""

        @pcbatch.batch(max_steps=12)
        def down(n):
            while n > 0:
                n = n - 1
            return n

        one, eight = (
            down.with_options(plan=pcbatch.Plan(unroll=rounds)).run(N * 5).status.tolist() for rounds in (1, 8)
        )
        assert one == eight and {0, 2} <= set(one)

    def test_a_loop_that_never_ends_is_ended(self) -> None:
        @pcbatch.batch(max_steps=50)
        def spins(n):
            while n > 1:
                n = n + 2 if n > 5 else n - 1
            return n

        assert spins.run(N).status.tolist() == [0 if n <= 5 else 2 for n in N]

    def test_must_be_positive(self) -> None:
        with pytest.raises(pcbatch.UsageError, match="PCB401"):
            pcbatch.batch(collatz, plan=pcbatch.Plan(unroll=0))


class TestInsideJit:
    """On a CPU, XLA splits larger kernels of many lanes over threads there."""

    def test_many_lanes_have_one_round(self) -> None:
        f, told = pcbatch.batch(collatz), []

        @jax.jit
        def many(n):
            told.append(f._programs.compile(f._programs.prepare((n,), {})))
            return f(n)

        n = np.arange(600, dtype=np.int32)
        assert many(n).tolist() == [collatz(k) for k in range(600)]
        many(n[:512])
        many(np.tile(n, 4))  # through 512 lanes
        assert [max(b.rounds for b in program.stages.opt.blocks) for program in told] == [1, 2, 2]
        assert f(n).tolist() == [collatz(k) for k in range(600)]


class TestReports:
    """What users see of it."""

    def test_text_form(self) -> None:
        text = print_program(opt(pcbatch.batch(collatz), N))
        assert "(2 rounds):" in text
        parsed = parse_program(text)
        assert print_program(parsed) == text

    def test_the_schedule_names_rounds(self) -> None:
        plan = pcbatch.batch(collatz).explain_schedule(N)
        assert max(row.rounds for row in plan.rows) == 2 and ", 2 rounds" in str(plan)

    def test_tune_tries_others(self) -> None:
        few: dict[str, Any] = {"schedules": [], "emitters": [], "modes": [], "lanes": [], "seconds": 30}
        f = pcbatch.batch(collatz)
        table = str(f.tune(N, unrolls=[1, 3], **few))
        assert "unroll=1" in table and "unroll=3" in table
        assert "unroll" not in str(replanned(f, unroll=1).tune(N, **few))
