"""`out_axes` is that of `jax.vmap`; and so is `in_axes`, prefixes with None included."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.lowering.analysis.divergence import same_results
from tests.api.test_usage import refused
from tests.programs import PROGRAMS, Program

pytestmark = pytest.mark.share(3)


class Pair(NamedTuple):
    """A result with names."""

    grown: Any
    steps: Any


def grow(x, w):
    steps = 0
    while jnp.sum(x) < 9.0:
        x = x * w
        steps += 1
    return Pair(x, {"steps": steps, "twice": w * 2.0})


def grow_masked(x, w):
    """The same for `jax.vmap`."""

    def body(c: Any) -> Any:
        return c[0] * w, c[1] + 1

    x, steps = jax.lax.while_loop(lambda c: jnp.sum(c[0]) < 9.0, body, (x, 0))
    return Pair(x, {"steps": steps, "twice": w * 2.0})


XS, W = jnp.arange(1.0, 13.0).reshape(4, 3), jnp.float32(1.5)
AXES: tuple[Any, ...] = (
    0,
    (0, 0),
    Pair(1, 0),
    Pair(-1, 0),
    Pair(-2, -1),
    Pair(1, {"steps": 0, "twice": None}),
    Pair(0, {"steps": -1, "twice": 0}),
    (1, {"steps": 0, "twice": None}),
)


def same(got: Any, want: Any) -> None:
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=1e-6)


class TestOutAxes:
    """Against `jax.vmap`."""

    @pytest.mark.share(6)
    @pytest.mark.parametrize("out_axes", [axes for axes in AXES if type(axes) is not tuple], ids=str)
    def test_as_vmap(self, out_axes: Any) -> None:
        want = jax.vmap(grow_masked, (0, None), out_axes)(XS, W)
        f = pcbatch.batch(grow, in_axes=(0, None), out_axes=out_axes)
        same(f(XS, W), want)
        same(f.run(XS, W).value, want)
        same(f.map(XS, W, lanes=2).value, want)
        same(jax.jit(f)(XS, W), want)
        same(f.lower(XS, W).compile()(XS, W), want)
        out = f.trace(XS, W).out_info
        assert [x.shape for x in jax.tree.leaves(out)] == [x.shape for x in jax.tree.leaves(want)]

    @pytest.mark.parametrize("out_axes", [axes for axes in AXES if type(axes) is tuple], ids=str)
    def test_a_tuple_is_no_prefix_of_a_namedtuple(self, out_axes: Any) -> None:
        with pytest.raises(ValueError):
            jax.vmap(grow_masked, (0, None), out_axes)(XS, W)
        refused("PCB431", lambda: pcbatch.batch(grow, in_axes=(0, None), out_axes=out_axes)(XS, W))

    def test_the_local_strategy(self) -> None:
        f = pcbatch.batch(grow, in_axes=(0, None), out_axes=Pair(1, {"steps": 0, "twice": None}), strategy="local")
        same(f(XS, W), jax.vmap(grow_masked, (0, None), f.options.out_axes)(XS, W))

    def test_chunks_of_the_host(self) -> None:
        f = pcbatch.batch(grow, in_axes=(0, None), out_axes=Pair(1, {"steps": 0, "twice": None}))
        got = f.map(np.asarray(XS), W, chunk=2).value
        assert all(isinstance(x, np.ndarray | np.generic) for x in jax.tree.leaves(got))
        same(got, f(XS, W))

    @pytest.mark.full_only
    def test_several_devices(self) -> None:
        f = pcbatch.batch(grow, in_axes=(0, None), out_axes=Pair(1, {"steps": 0, "twice": None}), devices=2)
        same(f(XS, W), f.with_options(devices=None)(XS, W))

    def test_keys_and_both_axes(self) -> None:
        def keys(key):
            return jax.random.split(key, 3)

        f = pcbatch.batch(keys, in_axes=1, out_axes=1)
        for given in (jax.random.split(jax.random.key(0), (1, 4))[0][None], jnp.ones((2, 4), jnp.uint32)):
            args = given.reshape(4, 1)[:, 0][None][0] if given.dtype != jnp.uint32 else given
            axis = 0 if given.dtype != jnp.uint32 else 1
            got = f.with_options(in_axes=axis)(args)
            want = jax.vmap(keys, axis, 1)(args)
            assert got.shape == want.shape and bool(jnp.all(got == want))

    def test_no_lanes(self) -> None:
        f = pcbatch.batch(grow, in_axes=(0, None), out_axes=Pair(1, {"steps": 0, "twice": None}))
        got = f(XS[:0], W)
        assert [x.shape for x in jax.tree.leaves(got)] == [(3, 0), (0,), ()]

    def test_none_in_the_result_has_no_axis(self) -> None:
        def nothing(x):
            return x, None, {}

        got = pcbatch.batch(nothing, out_axes=(-1, None, 0))(XS)
        assert got[0].shape == (3, 4) and got[1:] == (None, {})

    def test_a_callee_has_one_lane(self) -> None:
        """Axes are those of a call from outside."""

        @pcbatch.batch(out_axes=1)
        def double(x):
            return 2 * x

        def outer(x):
            return double(x) + 1

        same(pcbatch.batch(outer)(XS), 2 * XS + 1)
        same(double(XS), 2 * XS.T)

    def test_the_wrong_axes(self) -> None:
        f = pcbatch.batch(grow, in_axes=(0, None))
        assert "which has 2 in all" in str(refused("PCB431", lambda: f.with_options(out_axes=Pair(2, 0))(XS, W)))
        refused("PCB431", lambda: f.with_options(out_axes=-2)(XS, W))
        refused("PCB431", lambda: f.with_options(out_axes="x")(XS, W))
        refused("PCB431", lambda: f.with_options(out_axes=True)(XS, W))
        assert "result.grown" in str(refused("PCB432", lambda: f.with_options(out_axes=None)(XS, W)))


class TestWithoutLanes:
    """None in `out_axes`: for what `jax.vmap` takes it for."""

    def test_failed_lanes_do_not_count(self) -> None:
        @pcbatch.batch(in_axes=(0, None), out_axes=(0, None))
        def checked(x, w):
            assert x > 1.0
            return x * w, w + 1.0

        result = checked.run(jnp.array([0.0, 1.0, 2.0]), 3.0)
        assert result.status.tolist()[2] == 0 and float(result.value[1]) == 4.0
        assert np.isnan(checked.run(jnp.zeros(2), 3.0).value[1])

    def test_what_is_the_same(self) -> None:
        def f(x, w, n):
            y = w * 2.0
            total = 0.0
            for k in range(n):  # all lanes make as many turns
                total += y * k
            while x < 3.0:
                x = x + w
            again = 0
            while again < 3:  # here lanes have met again
                again += 1
            return x, y, total, 7, again, w

        args = jnp.arange(4.0), 2.0, 3
        got = pcbatch.batch(f, in_axes=(0, None, None), out_axes=(0, None, None, None, None, None))(*args)
        assert [float(v) for v in got[1:]] == [4.0, 12.0, 7.0, 3.0, 2.0]

    @pytest.mark.parametrize("which", range(6))
    def test_what_may_differ(self, which: int) -> None:
        @pcbatch.inline
        def same_number(w):
            return w

        @pcbatch.batch
        def called(w):
            return w

        def f(x, w):
            chosen = w if x > 1.0 else w + 1.0
            count = 0
            while x < 3.0:
                x = x + 1.0
                count += 1
            late = 0.0
            for k in range(3):
                for j in range(3):
                    late = 1.0 * k
                    if j + x > 4.0:
                        break
                if k + x > 4.5:
                    break
            return chosen, count, x * 0.0, late, called(w) + called(w + 1.0), same_number(w) * x

        axes = tuple(None if k == which else 0 for k in range(6))
        assert f"result[{which}]`" in str(
            refused("PCB432", lambda: pcbatch.batch(f, in_axes=(0, None), out_axes=axes)(XS[:, 0], 2.0))
        )

    def test_a_lane_that_is_not_there_for_a_turn_keeps_an_old_value(self) -> None:
        """`y` is assigned in one place alone, but of what changes."""

        def f(x, n):
            y = 0.0
            for k in range(n):
                if x > k:
                    y = 2.0 * k
            return y

        refused("PCB432", lambda: pcbatch.batch(f, in_axes=(0, None), out_axes=None)(XS[:, 0], 3))

    def test_what_is_assigned_in_a_loop_that_lanes_leave_by_themselves(self) -> None:
        """It happens to be the same here; `jax.vmap` carries it with the lanes as well."""

        def f(x, n):
            k = 0
            while True:
                while True:
                    y = 2.0 * k
                    if x > 1.0:
                        break
                    x = x + 1.0
                k = k + 1
                if k >= n:
                    break
            return x, y

        refused("PCB432", lambda: pcbatch.batch(f, in_axes=(0, None), out_axes=(0, None))(jnp.arange(3.0), 3))

    @pytest.mark.share(10)
    @pytest.mark.promotion("standard")
    @pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
    def test_never_claims_too_much(self, program: Program) -> None:
        """What is said to be the same is so."""
        with program.mode():
            batched, args = program.batched(max_depth=32), program.args(8)
            claims = same_results(batched.lower(*args).stages.cfg, frozenset())
            if not any(claims):
                return
            result = batched.run(*args)
        ended = np.flatnonzero(np.asarray(result.status) == 0)
        for leaf, claimed in zip(jax.tree.leaves(result.value), claims, strict=True):
            values = np.asarray(leaf)[ended]
            if claimed and len(values):
                np.testing.assert_array_equal(values, np.broadcast_to(values[0], values.shape))


class TestInAxes:
    """Prefixes, with None anywhere in them."""

    TREE = {"a": XS, "b": (jnp.float32(2), [XS.T, None])}

    @pytest.mark.parametrize(
        "axes",
        [
            ({"a": 0, "b": (None, [1, None])},),
            ({"a": 0, "b": (None, 1)},),
            ({"a": -2, "b": (None, [-1, 0])},),
            [{"a": 0, "b": (None, [1, None])}],
        ],
        ids=str,
    )
    def test_as_vmap(self, axes: Any) -> None:
        def f(tree):
            return tree["a"] * tree["b"][0] + tree["b"][1][0]

        same(pcbatch.batch(f, in_axes=axes)(self.TREE), jax.vmap(f, tuple(axes))(self.TREE))
        same(pcbatch.batch(f, in_axes={"tree": axes[0]})(tree=self.TREE), jax.vmap(f, tuple(axes))(self.TREE))

    def test_a_prefix_of_none_shares_all_of_it(self) -> None:
        def f(x, tree):
            while x < 10.0:
                x = x + tree["b"][0] + tree["a"][0, 0]
            return x

        got = pcbatch.batch(f, in_axes=(0, None))(XS[:, 0], self.TREE)
        np.testing.assert_array_equal(got, [f(x, self.TREE) for x in XS[:, 0]])
