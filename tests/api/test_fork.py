"""The option `fork`: independent calls side by side give what lanes give, failures included."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.runtime.tasks.executable import run_chunks
from tests.oracles.plans import planned
from tests.programs.compare import assert_lanes_equal


def pairs(n):
    """Two calls whose results meet."""
    if n <= 1:
        return 0.5
    return pairs(n - 2) * 0.5 + pairs(n - 1)


def count(n):
    """A sum of integers."""
    if n <= 1:
        return 1
    return count(n - 2) + count(n - 1)


def picky(n):
    """Some lanes raise, one call deep or at once."""
    if n < 0:
        raise ValueError(f"bad {n}")
    if n == 0:
        return 1.5
    return picky(n - 2) * 0.5 + picky(n - 1)


def waiting(n):
    """Python never comes to the second call, which has no end."""
    if n == 7:
        raise KeyError("seven")
    if n > 7:
        while n > 0:
            n = n + 1 - 1
        return 0.5
    if n <= 1:
        return 0.25
    return waiting(7) - waiting(n + 8)


def quicksort(xs):
    """Lists as arguments and results."""
    if len(xs) <= 1:
        return xs
    pivot = xs[0]
    return quicksort([x for x in xs[1:] if x < pivot]) + [pivot] + quicksort([x for x in xs[1:] if x >= pivot])


def doubled(n):
    """A list that is longer than those of the callees."""
    if n <= 0:
        return [n]
    return doubled(n - 1) + doubled(n - 1)


def chain(n):
    """One call waits for the other."""
    if n <= 0:
        return 0
    return chain(chain(n - 2)) * 2


def shown(n):
    """Lines are printed in the order of the calls."""
    if n <= 0:
        return 0.5
    print("at", n)
    return shown(n - 1) + shown(n - 2) * 0.5


N = jnp.array([0, 9, 1, 2, 11, 3, 0], jnp.int32)


@pytest.mark.parametrize("fn", [pairs, count])
def test_calls_side_by_side_give_what_lanes_give(fn: Any) -> None:
    forked = pcbatch.batch(fn, plan=pcbatch.Plan(fork="always"))
    assert_lanes_equal(forked(N), [fn(int(n)) for n in N], rtol=1e-6)
    assert_lanes_equal(forked(N[:1]), [fn(0)])


def test_lanes_that_fail_are_told_as_lanes_tell_them() -> None:
    """Values, statuses and messages; a batch in which most fail goes to lanes altogether."""
    few = jnp.array([0, 0, 0, 0, -3, 0, 0, 2], jnp.int32)
    lanes, tasks = (pcbatch.batch(picky, plan=pcbatch.Plan(fork=fork)) for fork in ("never", "always"))
    for values in (few, few[3:6]):
        want, found = lanes.run(values), tasks.run(values)
        assert found.status.tolist() == want.status.tolist()
        np.testing.assert_array_equal(found.value, want.value)
    messages = []
    for batched in (lanes, tasks):
        with pytest.raises(pcbatch.BatchRuntimeError) as caught:
            batched(few)
        # How deep a lane is counts frames, and copies of a body need fewer of these.
        lines = (re.sub(r", \d+ calls deep", "", line) for line in str(caught.value).splitlines())
        messages.append([line for line in lines if " bad " in line])
    assert messages[0] == messages[1]
    assert messages[0]


def test_what_has_no_end_does_not_keep_a_failed_example() -> None:
    result = pcbatch.batch(waiting, plan=pcbatch.Plan(fork="always")).run(jnp.array([0, 2, 1, 1, 0], jnp.int32))
    assert [pcbatch.Status(s).name for s in result.status.tolist()] == ["OK", "ERROR", "OK", "OK", "OK"]


def test_lists_grow() -> None:
    """A full list is no result of tasks: lanes tell it, and the program is compiled with more room."""
    found = pcbatch.batch(doubled, plan=pcbatch.Plan(fork="always"))(jnp.array([4, 0, 1], jnp.int32))
    assert found.tolist() == [doubled(n) for n in (4, 0, 1)]


@pytest.mark.full_only
def test_quicksort() -> None:
    """Loops, lists as arguments and results, one of them longer than there is room for at first."""
    lists = [list(map(int, np.random.default_rng(k).integers(0, 99, n))) for k, n in enumerate((3, 0, 41))]
    found = pcbatch.batch(quicksort, plan=pcbatch.Plan(fork="always"))(pcbatch.ragged(lists, jnp.int32))
    assert found.tolist() == [sorted(xs) for xs in lists]


@pytest.mark.parametrize(
    ("fn", "options", "said"),
    [
        (chain, {}, "no two of its calls are seen to be independent"),
        (shown, {}, "`shown` prints"),
        (pairs, {"modes": pcbatch.Dense()}, "the option `modes` is for lanes"),
        (pairs, {"strategy": "local"}, "the strategy is 'local'"),
    ],
)
def test_always_says_why_not(fn: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(pcbatch.UsageError, match=said):
        pcbatch.batch(fn, **planned(fork="always", **options))(N[:2])
    if fn is not shown:
        assert pcbatch.batch(fn, **planned(fork="auto", **options))(N[:2]).tolist() == [fn(0), fn(9)]


def test_a_wrong_choice_is_refused() -> None:
    with pytest.raises(pcbatch.UsageError, match="unknown fork 'yes'"):
        pcbatch.batch(pairs, plan=pcbatch.Plan(fork="yes"))


def test_traced_calls_give_the_same() -> None:
    """In JAX's programs tasks run too, and lanes what they cannot finish; derivatives are those of lanes."""
    expected = [pairs(int(n)) for n in N]
    forked = pcbatch.batch(pairs, plan=pcbatch.Plan(fork="always"))
    assert_lanes_equal(jax.jit(forked)(N), expected, rtol=1e-6)
    assert_lanes_equal(jax.vmap(forked)(N[:6].reshape(2, 3)).reshape(6), expected[:6], rtol=1e-6)
    values = jnp.array([0, 2, 0, -4, 0, 0], jnp.int32)
    found, want = (
        jax.jit(pcbatch.batch(picky, plan=pcbatch.Plan(fork=fork)).run)(values) for fork in ("always", "never")
    )
    assert found.status.tolist() == want.status.tolist()
    np.testing.assert_array_equal(found.value, want.value)


def halves(x, n):
    """A float that is divided among two calls."""
    if n <= 0:
        return x * x
    return halves(x * 0.5, n - 1) + 3.0 * halves(x * 0.25, n - 2)


def test_derivatives() -> None:
    x, n = jnp.array([1.0, 2.0, 0.5]), jnp.array([3, 0, 4], jnp.int32)
    slopes = [
        jax.grad(lambda x, fork=fork: jnp.sum(pcbatch.batch(halves, plan=pcbatch.Plan(fork=fork))(x, n)))(x)
        for fork in ("always", "never")
    ]
    np.testing.assert_allclose(slopes[0], slopes[1], rtol=1e-6)


def test_the_schedule_says_how_calls_run() -> None:
    """And nothing where side by side was not asked for."""
    example = jax.ShapeDtypeStruct((4,), "int32")
    assert "  calls    side by side" in str(
        pcbatch.batch(pairs, plan=pcbatch.Plan(fork="auto")).explain_schedule(example)
    )
    assert "  calls    in lanes: `shown` prints" in str(
        pcbatch.batch(shown, plan=pcbatch.Plan(fork="auto")).explain_schedule(example)
    )
    assert "  calls " not in str(pcbatch.batch(pairs, plan=pcbatch.Plan(fork="never")).explain_schedule(example))


def test_many_examples_run_some_at_a_time() -> None:
    """Chunks have one size; what fills up the last one is left out."""
    values = jnp.array([0, 1, 2, 3, 4, 0, 1, 2, 3, -5, 0], jnp.int32)
    program, given = pcbatch.batch(picky, plan=pcbatch.Plan(fork="always"))._programs.of_call((values,), {})
    assert program.tasks is not None
    (param,) = program.tasks.program.params
    outcome = run_chunks(program.tasks, {param: values}, frozenset({param}), 11, chunk=4)
    expected = [None if n in (2, 3, 4, 1, -5) else 1.5 for n in values.tolist()]
    assert outcome.unfinished.tolist() == [want is None for want in expected]
    assert_lanes_equal(outcome.raw.values[0][np.array([0, 5, 10])], [1.5] * 3)
    assert_lanes_equal(
        pcbatch.batch(pairs, plan=pcbatch.Plan(fork="always")).map(N).value, [pairs(int(n)) for n in N], rtol=1e-6
    )


def wide(xs, n):
    """Moves a large array with each call, and computes next to nothing."""
    if n <= 0:
        return xs
    return wide(xs + 1, n - 1) + wide(xs, n - 2)


def test_auto_asks_whether_it_pays() -> None:
    """Large records with little work stay in lanes, and a single example of scalars."""
    example, rows = jax.ShapeDtypeStruct((4,), "int32"), jax.ShapeDtypeStruct((4, 200), "float32")
    assert (
        "a record of 400 numbers"
        in pcbatch.batch(wide, plan=pcbatch.Plan(fork="auto")).explain_schedule(rows, example).calls
    )
    assert (
        "but for a single example"
        in pcbatch.batch(pairs, plan=pcbatch.Plan(fork="auto")).explain_schedule(example).calls
    )
    assert pcbatch.batch(pairs, plan=pcbatch.Plan(fork="auto"))(N[1:2]).tolist() == [pairs(9)]


def arrays(x, n):
    """Arrays that are added."""
    if n <= 1:
        return jnp.tanh(x)
    return arrays(x, n // 2) + arrays(x, n - n // 2)


@pytest.mark.parametrize(("size", "stays"), [(3_000, False), (9_000, True)])
def test_one_example_with_large_results_stays_a_lane(size: int, stays: bool) -> None:
    """Its results would only be moved."""
    x, n = jax.ShapeDtypeStruct((4, size), "float32"), jax.ShapeDtypeStruct((4,), "int32")
    told = str(pcbatch.batch(arrays).explain_schedule(x, n))
    assert "side by side" in told
    assert ("but for a single example" in told) is stays
