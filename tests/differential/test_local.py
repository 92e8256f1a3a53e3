"""The strategy "local": lanes wait for each other at calls; recursion runs on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import BatchRuntimeError, Status, UsageError
from pcbatch.runtime.local_strategy.executor import DEPTH_LIMIT as LIMIT
from tests.oracles.interpret_cfg import interpret_cfg
from tests.oracles.plans import planned
from tests.programs import REGISTRY
from tests.programs.classics import fib, fib_dear
from tests.programs.compare import assert_lanes_equal, assert_same_bits

pytestmark = [pytest.mark.share(3), pytest.mark.older_emitters]

OK, STACK_FULL, STEP_LIMIT = int(Status.OK), int(Status.STACK_FULL), int(Status.STEP_LIMIT)
SMALLEST = np.iinfo(np.int32).min


def local(fn: Any, **options: Any) -> Any:
    """The function under the strategy "local"."""
    return pcbatch.batch(fn, **planned(strategy="local", **options))


def i32(*values: int) -> np.ndarray:
    """A vector of int32."""
    return np.array(values, np.int32)


def status(result: Any) -> list[int]:
    """How the lanes ended."""
    return np.asarray(result.status).tolist()


def sum_to(n):
    if n <= 0:
        return 0
    return n + sum_to(n - 1)


def spin(n):
    while n > 0:
        n = n + 1 if n > 100 else n - 1
    return n


@pcbatch.batch
def steps_down(n):
    k = 0
    while n > 0:
        n -= 3
        k += 1
    return k


def two_calls(n):
    a = steps_down(n)
    if a > 2:
        a = a + steps_down(n * 2)
    return a


def down_first(n):
    if n > 0:
        return down_first(n - 1)
    return 5


def base_first(n):
    if n <= 0:
        return n - 7
    return base_first(n - 3)


@pcbatch.batch
def even(n):
    if n == 0:
        return True
    return odd(n - 1)


@pcbatch.batch
def odd(n):
    if n == 0:
        return False
    return even(n - 1)


def parity(n):
    return even(n)


@pcbatch.batch
def pairs(n, total, product):
    for _ in range(n % 3):
        total += 1
    if n <= 1:
        return total, product
    if n % 2 == 0:
        n -= 1
    return pairs(n - 1, total + n, product * n % 97)


def two_results(n):
    return pairs(n, 0, 1)


def collatz_steps(n, count):
    if n == 1:
        return count
    if n % 2 == 0:
        return collatz_steps(n // 2, count + 1)
    return collatz_steps(3 * n + 1, count + 1)


TAILS = [down_first, base_first, parity, two_results]


def halvings(n):
    return jax.lax.while_loop(lambda s: s[0] != 0, lambda s: (s[0] - 1, s[1] + 1), (n, 0))[1]


class TestStaged:
    """Without recursion: one program."""

    def test_it_is_one_jaxpr_of_nested_loops(self) -> None:
        lowered = local(two_calls).lower(i32(1, 5, 9))
        text = lowered.as_text("jaxpr")
        assert text.count("while") >= 2 and "callback" not in text
        assert "while" in lowered.as_text("stablehlo")
        compiled = lowered.compile()
        assert np.asarray(compiled(i32(1, 5, 9))).tolist() == [1, 2, 9]

    def test_inside_jit_and_vmap(self) -> None:
        batched = local(two_calls)
        want = [1, 2, 9, 11]
        assert np.asarray(jax.jit(batched)(i32(1, 5, 9, 10))).tolist() == want
        assert np.asarray(jax.vmap(batched)(i32(1, 5, 9, 10).reshape(2, 2))).ravel().tolist() == want
        result = jax.jit(batched.run)(i32(1, 5, 9, 10))
        assert status(result) == [OK] * 4

    def test_forward_derivative(self) -> None:
        def grow(x, n):
            while n > 0:
                x = x * x
                n -= 1
            return x

        x = jnp.array([1.5, 2.0], jnp.float32)
        _, tangent = jax.jvp(lambda x: local(grow)(x, i32(1, 2)), (x,), (jnp.ones_like(x),))
        np.testing.assert_allclose(tangent, [3.0, 32.0], rtol=1e-6)

    @pytest.mark.full_only
    def test_max_depth_is_a_limit_of_nesting(self) -> None:
        result = local(two_calls, max_depth=1).run(i32(1, 9))
        assert status(result) == [OK, OK]

        def outer(n):
            if n > 3:
                return two_calls_batched(n)
            return n

        two_calls_batched = pcbatch.batch(two_calls)
        result = local(outer, max_depth=1).run(i32(1, 9, 2, 12))
        assert status(result) == [OK, STACK_FULL, OK, STACK_FULL]
        assert np.asarray(result.value).tolist() == [1, SMALLEST, 2, SMALLEST]

    def test_max_steps(self) -> None:
        result = local(spin, max_steps=2000).run(i32(4, 500, 0, 9))
        assert status(result) == [OK, STEP_LIMIT, OK, OK]
        assert np.asarray(result.value).tolist() == [0, SMALLEST, 0, 0]

    @pytest.mark.full_only
    def test_the_step_limit_is_exact(self) -> None:
        """As many blocks as the interpreter runs for the lane, with calls and without."""
        for fn in (spin, two_calls, sum_to):
            lanes = i32(0, 3, 1, 9)
            program = local(fn).lower(lanes).stages.optimised_cfg
            steps = [sum(interpret_cfg(program, [n])[1].blocks.values()) for n in lanes]
            for limit in (1, steps[1] - 1, steps[1], steps[1] + 1):
                result = local(fn, max_steps=limit).run(lanes)
                assert status(result) == [OK if n <= limit else STEP_LIMIT for n in steps]

    def test_a_lane_that_fails_in_a_call_leaves_the_loop_around_it(self) -> None:
        leaf = pcbatch.batch(spin)

        @pcbatch.batch
        def middle(n):
            if n > 3:
                return leaf(n)
            return n - 1

        def outer(n):
            while n > 0:
                n = middle(n)
            return n

        assert status(local(outer, max_depth=1).run(i32(2, 9, 0, 4))) == [OK, STACK_FULL, OK, STACK_FULL]

    def test_max_steps_inside_a_callee(self) -> None:
        @pcbatch.batch
        def callee(n):
            return spin_batched(n) + 1

        spin_batched = pcbatch.batch(spin)

        def caller(n):
            total = 0
            for _ in range(2):
                total += callee(n)
            return total

        result = local(caller, max_steps=500).run(i32(4, 500, 0))
        assert status(result) == [OK, STEP_LIMIT, OK]
        assert np.asarray(result.value)[[0, 2]].tolist() == [2, 2]

    @pytest.mark.full_only
    def test_steps_of_a_lane_do_not_depend_on_the_others(self) -> None:
        alone = [status(local(spin, max_steps=40).run(i32(n)))[0] for n in range(30)]
        assert status(local(spin, max_steps=40).run(i32(*range(30)))) == alone
        assert {OK, STEP_LIMIT} == set(alone)


class TestHost:
    """With recursion: Python makes the calls."""

    def test_counts_of_fib(self) -> None:
        result = local(fib, stats=True, numbers="jax").run(i32(3, 7, 4, 5))
        np.testing.assert_array_equal(result.value, [3, 21, 5, 8])
        # All lanes of an activation add together, so there are as many additions as the deepest lane makes.
        assert int(result.stats.visits("+")) == 20
        assert sum(b.active for b in result.stats.blocks if any("+" in t for t in b.texts)) == 2 + 20 + 4 + 7
        assert int(result.stats.trips) == sum(b.visits for b in result.stats.blocks)
        assert [b.label for b in result.stats.blocks] == ["fib:bb0", "fib:bb1", "fib:bb2"]

    def test_it_waits_where_program_counters_do_not(self) -> None:
        """Lanes at different depths never run together."""
        args = (i32(3, 7, 4, 5),)
        waiting = local(fib_dear, stats=True).run(*args).stats.visits("dear_sum")
        eager = (
            pcbatch.batch(fib_dear, stats=True, plan=pcbatch.Plan(schedule="earliest"))
            .run(*args)
            .stats.visits("dear_sum")
        )
        assert int(waiting) >= int(eager)

    def test_a_trace_is_refused(self) -> None:
        batched = local(fib)
        for use in (
            lambda: jax.jit(batched)(i32(3, 4)),
            lambda: jax.jit(lambda: batched(i32(3, 4)))(),
            lambda: jax.vmap(batched)(i32(3, 4)[None]),
            lambda: batched.lower(i32(3, 4)).as_text("jaxpr"),
            lambda: batched.lower(i32(3, 4)).as_text(),
            lambda: batched.lower(i32(3, 4)).compile(),
        ):
            with pytest.raises(UsageError, match='strategy="pc"') as info:
                use()
            assert info.value.diagnostics[0].code == "PCB411"
        assert "call @fib" in batched.lower(i32(3, 4)).as_text("cfg")

    def test_only_the_deep_lanes_fail(self) -> None:
        result = local(sum_to, max_depth=10).run(i32(3, 50, 5, 2000, 0))
        assert status(result) == [OK, STACK_FULL, OK, STACK_FULL, OK]
        assert np.asarray(result.value).tolist() == [6, SMALLEST, 15, SMALLEST, 0]

    @pytest.mark.full_only
    def test_the_limit_is_that_of_the_other_strategy(self) -> None:
        """It counts all calls, the other only those that need a frame: not the last one, which returns at once."""
        for depth in range(1, 9):
            want = status(pcbatch.batch(sum_to, max_depth=depth).run(i32(6)))
            assert status(local(sum_to, max_depth=depth + 1).run(i32(6))) == want

    def test_failed_lanes_do_not_change_the_others(self) -> None:
        alone = local(fib, max_depth=6).run(i32(3, 5)).value
        beside = local(fib, max_depth=6).run(i32(3, 30, 5, 40)).value
        assert_same_bits(np.asarray(alone), np.asarray(beside)[[0, 2]])

    def test_deep_recursion(self) -> None:
        values = local(sum_to)(i32(5000, 2, 100, 0))
        assert np.asarray(values).tolist() == [12502500, 3, 5050, 0]

    def test_the_usual_limit_and_a_higher_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Both are told in docs/users/language.md."""
        assert LIMIT == 10_000
        monkeypatch.setattr("pcbatch.runtime.local_strategy.executor.DEPTH_LIMIT", 10)
        ns = i32(9, 12, 0)
        assert status(local(sum_to).run(ns)) == [OK, STACK_FULL, OK]
        assert status(local(sum_to, max_depth=13).run(ns)) == [OK, OK, OK]
        with pytest.raises(BatchRuntimeError, match="depth 10") as info:
            local(sum_to)(ns)
        assert "max_depth=20" in info.value.diagnostics[0].helps[0]

    @pytest.mark.parametrize("fn", TAILS, ids=lambda fn: str(fn.__name__))
    def test_calls_in_tail_position_use_no_depth(self, fn: Callable[..., Any]) -> None:
        ns = i32(40, 0, 7, 1, 25)
        found = local(fn, max_depth=1).run(ns)
        assert status(found) == [OK] * 5
        for lane, n in enumerate(ns):
            want = jax.tree.leaves(pcbatch.batch(fn).plain(int(n)))
            assert [int(got[lane]) for got in jax.tree.leaves(found.value)] == [int(w) for w in want]
        assert_same_bits(found.value, pcbatch.batch(fn).run(ns).value)

    def test_lanes_that_end_in_two_calls(self) -> None:
        """The first of them counts, the last does not."""
        ns = i32(27, 1, 97, 6)
        found = local(collatz_steps).run(ns, i32(0, 0, 0, 0))
        assert np.asarray(found.value).tolist() == [collatz_steps(int(n), 0) for n in ns]

    def test_lanes_that_fail_on_the_way_of_tail_calls(self) -> None:
        def down(n):
            assert n != 3
            if n > 10:
                return down(n - 2)
            return n

        found = local(down, max_depth=1).run(i32(30, 3, 21, 5))
        assert status(found) == [OK, int(Status.ASSERTION), OK, OK]
        assert np.asarray(found.value).tolist()[0::2] == [10, 9]

    def test_endless_recursion_ends(self) -> None:
        def endless(n):
            if n == 0:
                return 0
            return endless(n) + 1

        assert status(local(endless).run(i32(0, 1))) == [OK, STACK_FULL]
        assert status(local(endless, max_steps=300).run(i32(0, 1))) == [OK, STEP_LIMIT]

    def test_errors_say_where(self) -> None:
        with pytest.raises(BatchRuntimeError) as info:
            local(sum_to, max_depth=10)(i32(3, 50, 5, 2000))
        (diagnostic,) = info.value.diagnostics
        assert diagnostic.code == "PCB901" and "2 of 4 lanes" in str(info.value)
        assert "return n + sum_to(n - 1)" in str(info.value)
        with pytest.raises(BatchRuntimeError) as info:
            local(spin, max_steps=500)(i32(4, 500, 0))
        assert info.value.diagnostics[0].code == "PCB902"
        assert info.value.diagnostics[0].primary is not None

    def test_an_entry_off_the_cycle(self) -> None:
        @pcbatch.batch
        def down(n):
            return 0 if n <= 0 else n + down(n - 1)

        @pcbatch.batch
        def between(n):
            return down(n - 1) * 2

        def twice(n):
            return down(n) + between(n) if n > 2 else -down(n)

        batched = local(twice)
        assert np.asarray(batched(i32(4, 9, 0, 2))).tolist() == [batched.plain(n) for n in (4, 9, 0, 2)]

    def test_callees_off_the_cycle_are_staged(self) -> None:
        def climb(n):
            k = steps_down(n)
            if n <= 0:
                return 0
            return k + climb(n - 1)

        batched = local(climb, stats=True, numbers="jax")
        result = batched.run(i32(4, 9, 0))
        assert np.asarray(result.value).tolist() == [batched.plain(n) for n in (4, 9, 0)]
        assert int(result.stats.trips) == sum(b.visits for b in result.stats.blocks)
        inner = [b for b in result.stats.blocks if b.function == "steps_down"]
        assert inner and all(b.visits for b in inner)

    @pytest.mark.parametrize("limits", [{"max_steps": 60}, {"max_depth": 5}], ids=["steps", "depth"])
    def test_limits_reach_into_staged_callees(self, limits: dict[str, int]) -> None:
        def climb(n):
            if n <= 0:
                return 0
            return steps_down(n * 20) + climb(n - 1)

        result = local(climb, **limits).run(i32(1, 9, 2, 0))
        assert status(result)[0] == status(result)[3] == OK and status(result)[1] != OK
        assert np.asarray(result.value)[[0, 3]].tolist() == [7, 0]

    def test_pieces_are_compiled_once(self) -> None:
        helper = Mock(side_effect=lambda x: x + 1)

        def count(n):
            if n <= 0:
                return 0
            return helper(count(n - 1))

        batched = local(count)
        batched(i32(3, 4))
        before = helper.call_count
        batched(i32(9, 5))
        assert helper.call_count == before > 0


class TestJunk:
    """Blocks also run on lanes that did not ask for it."""

    def test_a_primitive_that_would_hang_on_junk(self) -> None:
        def cautious(n):
            if n < 0:
                return -1
            total = 0
            for _ in range(2):
                total += halvings(n)
            return total

        assert np.asarray(local(cautious)(i32(3, -(2**31), -5, 0, 7))).tolist() == [6, -1, -1, 0, 14]

    @pytest.mark.parametrize("recursive", [False, True])
    def test_it_is_not_run_when_all_lanes_have_failed(self, recursive: bool) -> None:
        @pcbatch.batch
        def long(n):
            while n < 1000:
                n += 0
            return n

        @pcbatch.batch
        def caller(n):
            m = long(n)
            return jax.lax.while_loop(lambda s: s != 0, lambda s: s - 2, m - 1)

        @pcbatch.batch
        def again(n):
            if n > 5000:
                return again(n - 1)
            return caller(n)

        result = (again if recursive else caller).with_options(strategy="local", max_steps=50).run(i32(-5, -7))
        assert status(result) == [STEP_LIMIT, STEP_LIMIT]

    def test_debug_nans_sees_only_values_that_were_asked_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Else all lanes would run again, to find out that none of them gave the NaN."""

        def run_again(*_: Any) -> None:
            raise AssertionError

        monkeypatch.setattr("pcbatch.compiler.jax_errors.ErrorMapper._without_debugging", run_again)

        def guarded_log(x, n):
            if x <= 0.0:
                return 0.0 * x
            y = jnp.log(x)
            if n > 0:
                y = y + guarded_log(x, n - 1)
            return y

        def kept_over_a_call(x, n):
            if n <= 0 or x <= 0.0:
                return 0.0 * x
            y = jnp.log(x)
            return y + kept_over_a_call(x, n - 1)

        args = np.array([-1.0, 2.0, 0.0], np.float32)
        with jax.debug_nans(True):
            result, other = local(guarded_log)(args, i32(0, 1, 2)), local(kept_over_a_call)(args, i32(3, 2, 2))
        np.testing.assert_allclose(result, [0.0, 2 * np.log(2.0), 0.0], rtol=1e-6)
        np.testing.assert_allclose(other, [0.0, 2 * np.log(2.0), 0.0], rtol=1e-6)


class TestShared:
    """Values that all lanes share stay unbatched."""

    W = np.eye(3, dtype=np.float32) * 2

    def test_a_product_with_a_shared_matrix_is_one_dot(self) -> None:
        def iterate(w, x, n):
            while n > 0:
                x = step(w, x)
                n -= 1
            return x

        @pcbatch.batch
        def step(w, x):
            return w.T @ x

        batched = local(iterate, in_axes=(None, 0, 0))
        args = (self.W, np.ones((4, 3), np.float32), i32(0, 1, 2, 3))
        np.testing.assert_allclose(batched(*args)[:, 0], [1, 2, 4, 8])
        text = batched.lower(*args).as_text()
        dots = [line for line in text.splitlines() if "dot_general" in line]
        assert len(dots) == 1 and "tensor<3x3xf32>" in dots[0] and "batching" not in dots[0]
        assert "tensor<4x3x3xf32>" not in text

    def test_through_recursion(self) -> None:
        def iterate(w, x, n):
            if n <= 0:
                return x
            return w @ iterate(w, x, n - 1)

        batched = local(iterate, in_axes=(None, 0, 0))
        np.testing.assert_allclose(batched(self.W, np.ones((4, 3), np.float32), i32(0, 1, 2, 3))[:, 0], [1, 2, 4, 8])

    def test_a_shared_parameter_that_is_reassigned(self) -> None:
        def scale(w, n):
            while n > 0:
                w = w * 2
                n -= 1
            return w

        batched = local(scale, in_axes=(None, 0))
        assert np.asarray(batched(np.float32(3), i32(0, 1, 2))).tolist() == [3, 6, 12]

    def test_a_shared_leaf_that_is_reassigned(self) -> None:
        def scale(pair):
            w, n = pair
            while n > 0:
                w = w * 2
                n -= 1
            return w

        batched = local(scale, in_axes=((None, 0),))
        assert np.asarray(batched((np.float32(3), i32(0, 1, 2)))).tolist() == [3, 6, 12]

    def test_a_shared_argument_that_the_callee_reassigns(self) -> None:
        @pcbatch.batch
        def scale(w, n):
            while n > 0:
                w = w * 2
                n -= 1
            return w

        def caller(w, n):
            return scale(w, n) + w

        batched = local(caller, in_axes=(None, 0))
        assert np.asarray(batched(np.float32(3), i32(0, 1, 2))).tolist() == [6, 9, 15]

    def test_a_shared_value_as_the_result_and_the_condition(self) -> None:
        def pick(flag, w, n):
            if flag:
                return w
            return w + n

        batched = local(pick, in_axes=(None, None, 0))
        assert np.asarray(batched(True, np.int32(7), i32(1, 2))).tolist() == [7, 7]
        assert np.asarray(batched(False, np.int32(7), i32(1, 2))).tolist() == [8, 9]


@pcbatch.batch
def grow(x, w):
    n = 0
    while x < 100.0:
        x = x * w
        n += 1
    return jnp.sin(x), n


class TestDerivatives:
    """JAX differentiates the loops of a staged program forwards, and is not asked to backwards."""

    X, W = jnp.array([1.0, 40.0, 200.0]), jnp.float32(1.5)
    batched = staticmethod(local(grow, in_axes=(0, None)))

    def both(self, derivative: Any) -> None:
        """The same as under the other strategy, and inside `jit`."""
        want = derivative(lambda w: self.batched.with_options(strategy="pc")(self.X, w)[0])
        for f in (lambda w: self.batched(self.X, w)[0], lambda w: self.batched.run(self.X, w).value[0]):
            np.testing.assert_allclose(derivative(f), want, rtol=1e-5)
            np.testing.assert_allclose(derivative(jax.jit(f)), want, rtol=1e-5)
            np.testing.assert_allclose(jax.jit(lambda f=f: derivative(f))(), want, rtol=1e-5)

    @pytest.mark.share(6)
    @pytest.mark.parametrize(
        "derivative",
        [
            lambda f: jax.jvp(f, (TestDerivatives.W,), (jnp.float32(2),)),
            lambda f: jax.jacfwd(f)(TestDerivatives.W),
            lambda f: jax.jacfwd(jax.jacfwd(f))(TestDerivatives.W),
            lambda f: jax.linearize(f, TestDerivatives.W)[1](jnp.float32(2)),
            lambda f: jax.vmap(jax.jacfwd(f))(TestDerivatives.W + jnp.arange(2.0)),
            lambda f: jax.jacfwd(lambda w: jax.vmap(f)(w + jnp.arange(2.0)))(TestDerivatives.W),
        ],
        ids=["jvp", "jacfwd", "twice", "linearize", "vmap_outside", "vmap_inside"],
    )
    def test_forwards(self, derivative: Any) -> None:
        self.both(derivative)

    @pytest.mark.parametrize(
        "derivative",
        [
            jax.grad,
            jax.jacrev,
            lambda f: lambda w: jax.vjp(f, w)[1](w),
            lambda f: jax.vmap(jax.grad(f), axis_size=2, in_axes=None),
            lambda f: jax.grad(lambda w: jnp.sum(jax.vmap(f)(jnp.stack([w, w])))),
            lambda f: jax.grad(lambda w: jax.jvp(f, (w,), (w,))[1]),
            lambda f: jax.grad(jax.checkpoint(f)),
        ],
        ids=["grad", "jacrev", "vjp", "vmap_outside", "vmap_inside", "jvp", "checkpoint"],
    )
    def test_backwards(self, derivative: Any) -> None:
        def f(w):
            return jnp.sum(self.batched(self.X, w)[0])

        def captured(w):
            return jnp.sum(local(lambda x: grow(x, w)[0])(self.X))

        for g in (derivative(f), jax.jit(derivative(f)), derivative(jax.jit(f)), derivative(captured)):
            with pytest.raises(UsageError) as info:
                g(self.W)
            (found,) = info.value.diagnostics
            assert found.code == "PCB415" and 'strategy="pc"' in found.helps[0] and "jax.jacfwd(f)" in found.helps[1]

    def test_also_of_a_straight_line(self) -> None:
        with pytest.raises(UsageError, match="PCB415"):
            jax.grad(lambda x: local(lambda x: x * x)(x).sum())(self.X)

    def test_what_elements_share(self) -> None:
        f = local(lambda x, w: (jnp.sin(x), x * w), in_axes=(0, None))
        of_x, of_both = jax.vmap(lambda w: f(self.X, w))(self.W + jnp.arange(2.0))
        assert_lanes_equal(of_x, [jnp.sin(self.X)] * 2)
        assert_lanes_equal(of_both, [self.X * 1.5, self.X * 2.5])

    def test_what_needs_no_cotangents(self) -> None:
        assert jax.grad(lambda w: w * self.batched(self.X, 1.5)[0].sum())(self.W).shape == ()
        assert jax.grad(lambda w: w * self.batched(self.X, w)[1].sum().astype(jnp.float32))(self.W) == 15
        assert jax.grad(lambda w: w * jax.lax.stop_gradient(self.batched(self.X, w)[0]).sum())(self.W).shape == ()


def test_no_lanes() -> None:
    for fn in (fib, two_calls):
        assert local(fn)(i32()).shape == (0,)


def test_typed_keys_through_host_calls() -> None:
    program = REGISTRY["random_tree"]
    with program.mode():
        result = program.batched(strategy="local", stats=True).run(*program.args(7))
        assert_lanes_equal(result.value, program.expected(7), rtol=program.rtol)
    assert all(block.visits is not None for block in result.stats.blocks)


@pytest.mark.full_only
def test_a_lane_does_not_depend_on_the_others() -> None:
    for name in ("fib", "random_tree", "newton_sqrt", "array_through_recursion"):
        program = REGISTRY[name]
        batched = program.batched(strategy="local")
        large, small = batched(*program.args(16)), batched(*program.args(2))
        for a, b in zip(jax.tree.leaves(large), jax.tree.leaves(small), strict=True):
            assert_same_bits(a[:2], b)
