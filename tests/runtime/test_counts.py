"""How often things run and how much is kept: counts are behaviour, unlike times."""

from __future__ import annotations

import collections
from typing import Any
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import pcbatch
from pcbatch.compiler import pipeline
from pcbatch.ir.ops import Fail
from pcbatch.ir.stack import Pop, Push, PushJump, StackProgram
from tests.oracles.interpret_stack import interpret_stack
from tests.programs import REGISTRY
from tests.programs.classics import dear_sum, fib, fib_dear, iota_sum

pytestmark = pytest.mark.older_emitters

FIB_ARGS = (np.array([3, 7, 4, 5], np.int32),)


def optimised(name: str, lanes: int = 4) -> StackProgram:
    """The optimised stack IR of a named program."""
    program = REGISTRY[name]
    with program.mode():
        return pipeline.stages(program.batched(), program.args(lanes))["opt"]


def static_count(program: StackProgram, kind: type) -> int:
    """Operations or jumps of one kind in the text of the program."""
    return sum(isinstance(op, kind) for block in program.blocks for op in (*block.ops, block.terminator))


def stacked(program: StackProgram) -> set[str]:
    """Variables with a stack."""
    return {name for name, var in program.vars.items() if var.storage is not None and var.storage.has_frames}


def test_the_addition_in_fib_runs_twenty_times() -> None:
    """Where it is worth counting: a cheap one would be copied, and run for lanes that do not need it."""
    batched = pcbatch.batch(fib_dear, plan=pcbatch.Plan(schedule="earliest"), stats=True)
    result = batched.run(*FIB_ARGS)
    np.testing.assert_array_equal(result.value, [3, 21, 5, 8])
    assert result.stats.visits("dear_sum") == 20


def test_counts_are_asked_for_as_the_user_wrote_it() -> None:
    """Passes rename temporaries and what has several live ranges."""

    def tree(n: Any) -> Any:
        if n <= 1:
            return 1
        left = tree(n - 1)
        right = tree(n - 2)
        left = dear_sum(left + right, n)
        if left > 3:
            left = left // 2
        return dear_sum(tree(n - 3) + left, n)

    stats = pcbatch.batch(tree, stats=True, plan=pcbatch.Plan(schedule="earliest")).run(*FIB_ARGS).stats
    for text in ("left + right", "left+right", "(left + right)", "dear_sum(left + right, n)"):
        assert stats.visits(text) == stats.visits("left + right") > 0
    assert stats.visits("dear_sum(tree(n - 3) + left, n)") == stats.visits("tree(n - 3) + left") > 0
    for elsewhere in ("tree(n - 3)", "right + left"):
        with pytest.raises(ValueError, match="no primitive contains"):
            stats.visits(elsewhere)
    kept = export.deserialize(export.export(jax.jit(lambda: stats))().serialize()).call()
    assert kept.visits("(left + right)") == stats.visits("left + right")


@pytest.mark.parametrize("emitter", ["guard", "port"])
def test_counts_do_not_depend_on_the_emitter(emitter: str) -> None:
    batched = pcbatch.batch(fib_dear, plan=pcbatch.Plan(schedule="earliest", emitter=emitter), stats=True)
    assert batched.run(*FIB_ARGS).stats.visits("dear_sum") == 20


def test_active_lanes_add_up_to_the_work_of_all_lanes() -> None:
    batched = pcbatch.batch(fib_dear, plan=pcbatch.Plan(schedule="earliest"), stats=True)
    stats = batched.run(*FIB_ARGS).stats
    additions = [int(batched.plain(n)) - 1 for n in FIB_ARGS[0]]
    (block,) = (block for block in stats.blocks if any("dear_sum" in text for text in block.texts))
    assert int(block.active) == sum(additions)
    assert 0 < stats.utilisation("dear_sum") <= 1


def test_sweep_needs_fewer_trips_than_one_block_at_a_time() -> None:
    trips = {
        schedule: int(pcbatch.batch(fib, plan=pcbatch.Plan(schedule=schedule)).run(*FIB_ARGS).stats.trips)
        for schedule in ("earliest", "sweep")
    }
    assert trips["sweep"] < trips["earliest"]


def counting_helper() -> Mock:
    """A primitive that notes its calls, which are those of tracing."""
    return Mock(side_effect=lambda x: x * 2 + 1)


def types_of_calls(helper: Mock) -> collections.Counter[Any]:
    """The shape and dtype of the argument of each call so far."""
    return collections.Counter((jnp.shape(call.args[0]), jnp.result_type(call.args[0])) for call in helper.mock_calls)


def test_a_signature_is_compiled_once_and_several_are_kept() -> None:
    helper = counting_helper()

    @pcbatch.batch
    def climb(x, n):
        while n > 0:
            x = helper(x)
            n -= 1
        return x

    steps = np.array([1, 2, 3], np.int32)
    first = climb(np.ones(3, np.float32), steps)
    traced = helper.call_count
    assert traced > 0
    np.testing.assert_allclose(first, [3, 7, 15])
    np.testing.assert_allclose(climb(np.zeros(3, np.float32), steps), [1, 3, 7])
    assert helper.call_count == traced, "the same signature was traced again"
    climb(np.ones((3, 2), np.float32), steps)
    more = helper.call_count
    assert more > traced
    climb(np.full(3, 5, np.float32), steps)
    climb(np.ones((3, 2), np.float32), steps)
    assert helper.call_count == more, "an older signature was forgotten"


@pytest.mark.promotion("standard")
@pytest.mark.parametrize("lanes", [2, 64])
def test_a_helper_is_traced_once_per_signature(lanes: int) -> None:
    helper = counting_helper()

    @pcbatch.batch
    def climb(x, n):
        while n > 0:
            x = helper(x)
            n -= 1
        return helper(n) + helper(x)

    climb(np.ones(lanes, np.float32), np.full(lanes, 3, np.int32))
    assert types_of_calls(helper) == {((), jnp.dtype("float32")): 2, ((), jnp.dtype("int32")): 1}, (
        "once for each place of a call"
    )


def test_tail_recursion_keeps_nothing() -> None:
    program = optimised("iota_sum")
    assert stacked(program) == set()
    assert static_count(program, Push) == static_count(program, PushJump) == 0
    args = (np.array([20000, 3], np.int32), np.array([0, 0], np.int32))
    result = pcbatch.batch(iota_sum, max_depth=1).run(*args)
    assert np.all(np.asarray(result.status) == pcbatch.Status.OK)
    np.testing.assert_array_equal(result.value, [200010000, 6])


@pytest.mark.parametrize("name", ["is_even", "mutual_tail_calls", "gcd_subtractive"])
def test_tail_calls_run_in_constant_stack(name: str) -> None:
    program = optimised(name)
    assert stacked(program) == set()
    assert static_count(program, PushJump) == 0


def test_fib_pushes_no_more_than_it_must() -> None:
    program = optimised("fib")
    _, trace = interpret_stack(program, [jnp.int32(14)])
    assert trace.pushes <= 1218


@pytest.mark.parametrize("name", ["countdown", "collatz", "bubble_sort", "random_walk"])
def test_programs_without_calls_have_no_stack(name: str) -> None:
    program = optimised(name)
    assert stacked(program) == set()
    assert static_count(program, Pop) == static_count(program, PushJump) == 0


def test_a_branch_around_a_selection_becomes_one_too() -> None:
    def f(x):
        y = x
        if x > 1:
            y = y + 2
            if x > 10:
                y = y * 2
        return y + 1

    program = pcbatch.batch(f).lower(np.arange(3, dtype=np.int32)).stages.opt
    assert sum(not isinstance(block.terminator, Fail) for block in program.blocks) == 1


def test_ifs_that_end_in_a_return_are_selections() -> None:
    """The return stays in one place until they are."""
    program = REGISTRY["nested_ifs"]
    with program.mode():
        found = program.batched().lower(*program.args(4)).stages.optimised_cfg
    assert [len(function.blocks) for function in found.functions] == [1]


def test_no_recompilation_for_the_same_shapes_under_jit() -> None:
    batched = pcbatch.batch(fib, max_depth=16)
    compiled = jax.jit(batched.run)
    compiled(*FIB_ARGS)
    compiled(np.array([1, 2, 3, 4], np.int32))
    assert compiled._cache_size() == 1
