"""`assert` and `raise`: lanes that fail are reported, keep their values, and disturb nobody."""

from __future__ import annotations

import pickle
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import BatchRuntimeError, Status
from pcbatch.ir.ops import Fail
from tests.oracles.plans import planned
from tests.programs import failing
from tests.programs.compare import assert_same_bits

OK, ASSERTION, ERROR = int(Status.OK), int(Status.ASSERTION), int(Status.ERROR)
STACK_FULL, STEP_LIMIT = int(Status.STACK_FULL), int(Status.STEP_LIMIT)

pytestmark = [pytest.mark.share(3), pytest.mark.promotion("standard")]

OPTIONS: tuple[dict[str, Any], ...] = (
    {"strategy": "local"},
    *({"emitter": e, "schedule": s} for e in ("guard", "port") for s in ("earliest", "largest", "sweep")),
)
every_option = pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options.values()))
both = pytest.mark.parametrize("strategy", ["pc", "local"])


def i32(*values: int) -> np.ndarray:
    """A vector of int32."""
    return np.array(values, np.int32)


def status(result: Any) -> list[int]:
    """How the lanes ended."""
    return np.asarray(result.status).tolist()


def checked(n, x):
    assert n > 0, f"n must be positive, not {n}"
    while n > 0:
        x = x * 2.0
        if x > 100.0:
            raise ValueError(f"x is {x:.1f} with {n} to go")
        n -= 1
    return x


ARGS = (i32(3, -1, 2, 5, 0, 1), np.array([1, 2, 70, 40, 3, 0], np.float32))


@every_option
def test_status_and_values(options: dict[str, str]) -> None:
    result = pcbatch.batch(checked, **planned(**options)).run(*ARGS)
    assert status(result) == [OK, ASSERTION, ERROR, ERROR, ASSERTION, OK]
    np.testing.assert_array_equal(result.value, np.array([8, np.nan, np.nan, np.nan, np.nan, 0], np.float32))


@pytest.mark.share(2)
@pytest.mark.long
@every_option
def test_the_others_are_not_disturbed(options: dict[str, str]) -> None:
    batched = pcbatch.batch(checked, **planned(**options))
    together = batched.run(*ARGS)
    alone = batched.run(*[leaf[[0, 5]] for leaf in ARGS])
    assert_same_bits(together.value[np.array([0, 5])], alone.value)


@both
def test_the_message(strategy: str) -> None:
    with pytest.raises(BatchRuntimeError) as info:
        pcbatch.batch(checked, strategy=strategy)(*ARGS)
    first, second = info.value.diagnostics
    assert (first.code, second.code) == ("PCB903", "PCB904")
    assert first.title == "2 of 6 lanes failed an assertion"
    assert second.title == "2 of 6 lanes raised `ValueError`"
    text = str(info.value)
    assert "assert n > 0" in text and "raise ValueError" in text
    assert "1 (n=-1, x=2.0): n must be positive, not -1" in text
    assert "4 (n=0, x=3.0): n must be positive, not 0" in text
    assert "2 (n=2, x=70.0): x is 140.0 with 2 to go" in text
    assert "3 (n=5, x=40.0): x is 160.0 with 4 to go" in text
    assert "checked.run(...)" in text
    assert str(pickle.loads(pickle.dumps(info.value))) == text


@both
def test_constant_messages_stand_in_the_title(strategy: str) -> None:
    with pytest.raises(BatchRuntimeError) as info:
        pcbatch.batch(failing.several_kinds, strategy=strategy)(i32(-4, -3, 1, 3, -4))
    titles = [d.title for d in info.value.diagnostics]
    assert titles == [
        "2 of 5 lanes raised `IndexError`",
        "1 of 5 lanes failed an assertion: text",
        "1 of 5 lanes failed an assertion",
    ]
    assert "3 (n=3): raised 3 times 6" in str(info.value)


@both
def test_failures_and_limits_in_one_error(strategy: str) -> None:
    def f(n):
        if n == 2:
            raise RuntimeError("two")
        while n > 0:
            n -= 1
        return n

    batched = pcbatch.batch(f, max_steps=30, strategy=strategy)
    assert status(batched.run(i32(1, 2, 500))) == [OK, ERROR, STEP_LIMIT]
    with pytest.raises(BatchRuntimeError) as info:
        batched(i32(1, 2, 500))
    assert [d.code for d in info.value.diagnostics] == ["PCB902", "PCB904"]


@both
def test_failures_in_recursion_while_stacks_grow(strategy: str) -> None:
    def f(n):
        assert n != 77, f"{n}"
        if n <= 0:
            return 0
        return 1 + f(n - 1)

    batched = pcbatch.batch(f, strategy=strategy)
    result = batched.run(i32(3, 70, 90, 200, 0))
    assert status(result) == [OK, OK, ASSERTION, ASSERTION, OK]
    assert np.asarray(result.value)[[0, 1, 4]].tolist() == [3, 70, 0]
    with pytest.raises(BatchRuntimeError, match=r"2 \(n=90.*\): 77"):
        batched(i32(3, 70, 90, 200, 0))
    limited = batched.with_options(max_depth=20)
    assert status(limited.run(i32(3, 70, 90))) == [OK, STACK_FULL, ASSERTION]


@both
def test_inside_jit_nothing_is_raised(strategy: str) -> None:
    batched = pcbatch.batch(checked, strategy=strategy)
    result = jax.jit(batched.run)(*ARGS)
    assert status(result) == [OK, ASSERTION, ERROR, ERROR, ASSERTION, OK]
    assert np.isnan(np.asarray(jax.jit(batched)(*ARGS))).tolist() == [False, True, True, True, True, False]


def test_integers_and_booleans_of_failed_lanes() -> None:
    def f(n):
        assert n > 0
        return n, n > 3, n * 1.5

    a, b, c = pcbatch.batch(f).run(i32(5, 0)).value
    assert np.asarray(a).tolist() == [5, np.iinfo(np.int32).min]
    assert np.asarray(b).tolist() == [True, False]
    assert np.isnan(c[1])


@pytest.mark.full_only
def test_statistics() -> None:
    for strategy in ("pc", "local"):
        result = pcbatch.batch(checked, stats=True, strategy=strategy, plan=pcbatch.Plan(unroll=1)).run(*ARGS)
        assert int(result.stats.visits("x * 2.0")) >= 3
        assert 0 < float(result.stats.utilisation("x * 2.0")) <= 1


@both
def test_compiled_ahead_of_time(strategy: str) -> None:
    compiled = pcbatch.batch(checked, strategy=strategy).lower(*ARGS).compile()
    with pytest.raises(BatchRuntimeError, match="x is 140.0 with 2 to go"):
        compiled(*ARGS)


@both
def test_a_shared_value_in_a_message(strategy: str) -> None:
    def f(n, limit):
        if n > limit:
            raise ValueError(f"{n} of {limit * 2}")
        return n

    batched = pcbatch.batch(f, in_axes=(0, None), strategy=strategy)
    with pytest.raises(BatchRuntimeError, match=r"1 \(n=9\): 9 of 8"):
        batched(i32(1, 9), i32(4)[0])


@both
def test_only_the_first_lanes_are_listed(strategy: str) -> None:
    def f(n):
        assert n < 10, f"<{n}>"
        return n

    with pytest.raises(BatchRuntimeError) as info:
        pcbatch.batch(f, strategy=strategy)(np.arange(100, dtype=np.int32))
    text = str(info.value)
    assert "90 of 100 lanes" in text and "<14>" in text and "<15>" not in text


@both
def test_what_is_decided_while_compiling_costs_nothing(strategy: str) -> None:
    def f(x, *, kind="mean"):
        if x.ndim != 1:
            raise TypeError(f"a vector, not {x.ndim} axes")
        assert x.shape[0] > 0
        if kind == "mean":
            return x.sum() / x.shape[0]
        raise NotImplementedError(kind)

    batched = pcbatch.batch(f, strategy=strategy, static_argnames="kind")
    lowered = batched.lower(np.ones((2, 3), np.float32))
    assert not any(isinstance(block.terminator, Fail) for block in lowered.stages.opt.blocks)
    assert len(lowered.stages.opt.blocks) == 1
    assert np.asarray(batched(np.ones((2, 3), np.float32))).tolist() == [1, 1]
    with pytest.raises(pcbatch.CompileError, match=r"TypeError: a vector, not 2 axes"):
        batched(np.ones((2, 3, 1), np.float32))
    with pytest.raises(pcbatch.CompileError, match=r"NotImplementedError: median"):
        batched(np.ones((2, 3), np.float32), kind="median")


def test_an_arm_that_fails_is_not_turned_into_a_selection() -> None:
    def f(n):
        m = n + 1
        if n > 3:
            raise ValueError
        return m

    ends = [block.terminator for block in pcbatch.batch(f).lower(i32(1, 5)).stages.opt.blocks]
    assert [end.name for end in ends if isinstance(end, Fail) and end.kind == "error"] == ["ValueError"]


def test_a_call_that_never_returns_needs_no_frame() -> None:
    program = pcbatch.batch(failing.callee_that_never_returns).lower(i32(1, 5)).as_text("opt")
    assert program.count("fail error ValueError") >= 1
    assert "pushjump" not in program


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.int8, np.bool_])
def test_messages_of_several_dtypes(kind: Any) -> None:
    def f(x):
        assert not x, f"{x!r}"
        return x

    with pytest.raises(BatchRuntimeError) as info:
        pcbatch.batch(f)(np.array([0, 1], kind))
    assert str(info.value).count(f": {kind(1)}\n") == 1


def test_a_format_of_a_small_float() -> None:
    def f(x):
        assert not x, f"{x:.2f}"
        return x

    with pytest.raises(BatchRuntimeError, match=r": 1\.00"):
        pcbatch.batch(f)(np.array([0, 1], jnp.bfloat16))


@both
def test_a_lane_shows_what_it_had_when_it_failed(strategy: str) -> None:
    """Also if others fail later, in a deeper call of the same function."""

    @pcbatch.batch(strategy=strategy)
    def down(n, stop):
        if n <= stop:
            raise ValueError(f"stopped at {n}")
        return n if stop < 0 else down(n - 1, stop) + 1

    with pytest.raises(BatchRuntimeError) as info:
        down(i32(3, 3, 4), i32(2, 0, 1))
    assert [int(n) for n in re.findall(r"stopped at (\d)\n", str(info.value))] == [2, 0, 1]


def test_the_plain_function_raises_as_python_does() -> None:
    batched = pcbatch.batch(checked)
    with pytest.raises(AssertionError, match="n must be positive, not -1"):
        batched.plain(-1, 2.0)
    with pytest.raises(ValueError, match=r"x is 140.0 with 2 to go"):
        batched.plain(2, 70.0)


@both
def test_a_function_that_always_fails_is_refused(strategy: str) -> None:
    def f(n):
        raise NotImplementedError("later")

    with pytest.raises(pcbatch.CompileError, match="`f` fails on every path"):
        pcbatch.batch(f, strategy=strategy)(i32(1))


def test_an_assertion_in_a_helper_is_plain_python() -> None:
    def f(x):
        def halve(v):
            assert v.ndim == 1
            return v / 2

        return halve(x)

    assert np.asarray(pcbatch.batch(f)(jnp.ones((2, 2)))).tolist() == [[0.5, 0.5]] * 2
    with pytest.raises(pcbatch.CompileError, match="AssertionError"):
        pcbatch.batch(f)(jnp.ones(2))
