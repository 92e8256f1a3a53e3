"""Arguments and results of every kind: structures, keys, static and donated arguments, weak types."""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial, register_dataclass, register_pytree_node_class

import pcbatch
from tests.api.test_usage import refused
from tests.oracles.plans import planned

pytestmark = pytest.mark.share(3)


class Point(NamedTuple):
    """A namedtuple."""

    x: Any
    y: Any = None


@functools.partial(register_dataclass, data_fields=["w", "b"], meta_fields=["kind"])
@dataclasses.dataclass(frozen=True)
class Layer:
    """A dataclass with a static field."""

    w: Any
    b: Any
    kind: str = "relu"


@register_pytree_node_class
class Node:
    """A node of the user's own."""

    def __init__(self, value: Any, tag: str) -> None:
        self.value, self.tag = value, tag

    def tree_flatten(self) -> tuple[tuple[Any], str]:
        return (self.value,), self.tag

    @classmethod
    def tree_unflatten(cls, tag: str, children: tuple[Any]) -> Node:
        return cls(children[0], tag)


X, M = np.arange(4, dtype=np.float32), np.ones((4, 2, 3), np.float32)
TREES: dict[str, Any] = {
    "dict": {"b": X, "a": M},
    "nested": {"z": [X, (M, {"q": X})], "e": [], "n": None, "t": ()},
    "namedtuple": Point(X, M),
    "None in a namedtuple": Point(X),
    "dataclass": Layer(M, X, "tanh"),
    "node": Node([X, Point(M, X)], "t"),
    "OrderedDict": collections.OrderedDict(b=X, a=M),
    "defaultdict": collections.defaultdict(list, a=X),
    "numbers as keys": {2: X, 1: M},
    "tuples of one": ((X,),),
    "all of them": [Point(Layer(X, None), {"a": Node(X, "u")}), None],
    "no elements": {"x": X, "e": np.zeros((4, 0), np.float32)},
    "Partial": Partial(divmod, X),
}
every_tree = pytest.mark.parametrize("tree", TREES.values(), ids=TREES)


def doubled(tree):
    turns = 0
    while turns < 3:
        tree = jax.tree.map(lambda v: v + v, tree)
        turns += 1
    return tree


def climbing(tree, n):
    if n <= 0:
        return tree
    return climbing_batched(jax.tree.map(lambda v: v + 1.0, tree), n - 1)


climbing_batched = pcbatch.batch(climbing)


def same(got: Any, want: Any) -> None:
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        assert getattr(a, "weak_type", False) == getattr(b, "weak_type", False)
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        np.testing.assert_array_equal(a, b)


class TestStructures:
    """In and out, carried by loops, through recursion, in every way to call."""

    @pytest.mark.share(6)
    @every_tree
    def test_in_and_out(self, tree: Any) -> None:
        want = jax.tree.map(lambda v: jnp.asarray(v * 8), tree)
        f = pcbatch.batch(doubled)
        same(f(tree), want)
        same(jax.jit(f)(tree), want)
        same(f.map(tree, lanes=2).value, want)
        same(f.lower(tree).compile()(tree), want)

    @every_tree
    def test_through_recursion(self, tree: Any) -> None:
        n = np.arange(4, dtype=np.int32)
        want = jax.tree.map(lambda v: jnp.asarray(v + n.reshape(4, *[1] * (v.ndim - 1)).astype(np.float32)), tree)
        same(climbing_batched(tree, n), want)

    @every_tree
    def test_shared(self, tree: Any) -> None:
        def f(k, tree):
            while k < 3:
                k = k + 1
            return jax.tree.map(lambda v: v + v, tree)

        got = pcbatch.batch(f, in_axes=(0, None))(np.arange(2, dtype=np.int32), tree)
        same(got, jax.tree.map(lambda v: jnp.stack([v + v] * 2), tree))

    def test_nothing_at_all(self) -> None:
        def f(x, rest):
            return rest

        for rest in (None, (), {}, [None, {}]):
            assert pcbatch.batch(f)(X, rest) == rest
            assert jax.jit(pcbatch.batch(f))(X, rest) == rest

    def test_static_fields_are_part_of_the_type(self) -> None:
        def f(layer):
            return layer.b * 2 if layer.kind == "relu" else layer.b * 3

        batched = pcbatch.batch(f)
        np.testing.assert_array_equal(batched(Layer(M, X)), X * 2)
        np.testing.assert_array_equal(batched(Layer(M, X, "tanh")), X * 3)
        assert len(batched._programs.cache) == 2


class TestStaticAndDonated:
    """`static_argnames` and `donate_argnames`, as `jax.jit` has them."""

    def test_static(self) -> None:
        def power(x, *, n, how=len):
            y = x
            for _ in range(n):
                y = y * x
            return y + how((1, 2))

        batched = pcbatch.batch(power, static_argnames=("n", "how"))
        np.testing.assert_array_equal(batched(X, n=2), X**3 + 2)
        np.testing.assert_array_equal(batched(X, n=1, how=max), X**2 + 2)
        jitted = jax.jit(batched, static_argnames=("n", "how"))
        np.testing.assert_array_equal(jitted(X, n=2), X**3 + 2)

    def step(self, **options: Any) -> pcbatch.Batched:
        def step(x, y, w):
            while x[0] < 10.0:
                x = x + y * w
            return x, y

        made: pcbatch.Batched = pcbatch.batch(step, **planned(in_axes=(0, 0, None), **options))
        return made

    def test_a_donated_array_is_used_up(self) -> None:
        x, y, w = jnp.ones((4, 3)), jnp.ones((4, 3)), jnp.float32(2)
        want = self.step()(x, y, w)
        same(self.step(donate_argnames="x")(x, y, w), want)
        assert x.is_deleted() and not y.is_deleted() and not w.is_deleted()
        x = jnp.ones((4, 3))
        same(self.step(donate_argnames=("x", "y")).run(x, y, w).value, want)
        assert x.is_deleted() and y.is_deleted()

    def test_inside_jit(self) -> None:
        x, y, w = jnp.ones((4, 3)), jnp.ones((4, 3)), jnp.float32(2)
        want = self.step()(x, y, w)
        same(jax.jit(self.step(), donate_argnames="x")(x, y, w), want)
        assert x.is_deleted() and not y.is_deleted()
        x = jnp.ones((4, 3))
        same(jax.jit(self.step(donate_argnames="x"))(x, y, w), want)
        assert not x.is_deleted()  # what is inside a program is its own

    def test_keys_and_trees(self) -> None:
        @pcbatch.batch(donate_argnames="state")
        def draw(state):
            key, sub = jax.random.split(state["key"])
            return {"key": key, "x": state["x"] + jax.random.normal(sub)}

        def state() -> dict[str, Any]:
            return {"key": jax.random.split(jax.random.key(0), 4), "x": jnp.zeros(4)}

        given = state()
        same(draw(given), draw.with_options(donate_argnames=())(state()))
        assert given["x"].is_deleted() and given["key"].is_deleted()

    def test_stacks_grow_all_the_same(self) -> None:
        @pcbatch.batch(donate_argnames="n")
        def down(n):
            if n <= 0:
                return 0
            return 1 + down(n - 1)

        np.testing.assert_array_equal(down(jnp.array([3, 200])), [3, 200])

    def test_a_failure_is_told_without_what_is_gone(self) -> None:
        @pcbatch.batch(donate_argnames="x")
        def checked(x, y):
            assert x < 2.0
            return x + y

        with pytest.raises(pcbatch.BatchRuntimeError, match=r"first lanes: 2 \(y=1.0\), 3 \(y=1.0\)"):
            checked(jnp.arange(4.0), jnp.ones(4))

    def test_a_nan_is_looked_for_in_arguments_that_are_there(self) -> None:
        @pcbatch.batch(donate_argnames="x")
        def quotient(x):
            return x / x

        with jax.debug_nans(True), pytest.raises(FloatingPointError, match="quotient|div"):
            quotient(jnp.arange(3.0))

    @pytest.mark.full_only
    def test_several_devices_and_maps_leave_arrays_alone(self) -> None:
        x, y, w = jnp.ones((4, 3)), jnp.ones((4, 3)), jnp.float32(2)
        step = self.step(donate_argnames="x")
        same(step(x, y, w, devices=2), self.step()(x, y, w))
        same(step.map(x, y, w).value, self.step()(x, y, w))
        same(step.with_options(strategy="local")(x, y, w), self.step()(x, y, w))

    def test_what_cannot_be_donated(self) -> None:
        def f(x, n):
            return x

        refused("PCB403", lambda: pcbatch.batch(f, donate_argnames="z"))
        refused("PCB401", lambda: pcbatch.batch(f, donate_argnames=3))
        refused("PCB403", lambda: pcbatch.batch(f, donate_argnames="n", static_argnames=("n",)))


def walk(key, n):
    x = 0.0
    for _ in range(n):
        key, sub = jax.random.split(key)
        x += jax.random.normal(sub)
    return x, key


class TestKeys:
    """Typed keys and raw words: in, out, carried by loops, in stacks, shared."""

    N = np.arange(4, dtype=np.int32)

    @pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
    @pytest.mark.parametrize("make", [jax.random.key, jax.random.PRNGKey], ids=["typed", "raw"])
    def test_lanes_draw_what_the_plain_function_draws(self, make: Callable[..., Any], impl: str) -> None:
        with jax.default_prng_impl(impl):  # whose keys raw words are
            keys = jnp.stack([make(seed) for seed in range(4)])
            x, last = pcbatch.batch(walk)(keys, self.N)
            for lane in range(4):
                want, key = walk(keys[lane], int(self.N[lane]))
                np.testing.assert_allclose(x[lane], want, rtol=1e-5)
                assert bool(jnp.all(last[lane] == key))

    @pytest.mark.parametrize("make", [jax.random.key, jax.random.PRNGKey], ids=["typed", "raw"])
    def test_shared(self, make: Callable[..., Any]) -> None:
        key = make(3)
        x, last = pcbatch.batch(walk, in_axes=(None, 0))(key, self.N)
        for lane in range(4):
            want, end = walk(key, int(self.N[lane]))
            np.testing.assert_allclose(x[lane], want, rtol=1e-5)
            assert bool(jnp.all(last[lane] == end))

    @pytest.mark.parametrize("make", [jax.random.key, jax.random.PRNGKey], ids=["typed", "raw"])
    def test_through_recursion(self, make: Callable[..., Any]) -> None:
        @pcbatch.batch
        def tree(key, depth):
            if depth <= 0:
                return jax.random.uniform(key)
            left, right = jax.random.split(key)
            return tree(left, depth - 1) - tree(right, depth - 1)

        keys = jnp.stack([make(seed) for seed in range(4)])
        got = tree(keys, self.N)
        for lane in range(4):
            np.testing.assert_allclose(got[lane], tree.plain(keys[lane], int(self.N[lane])), atol=1e-6)


class TestWeakTypes:
    """Weak exactly where `jax.vmap` of the plain function makes it so; where paths meet, where all of them are weak."""

    @pytest.mark.parametrize(
        "f",
        [
            lambda x: x,
            lambda x: 1,
            lambda x: (2.5, True, x * 2),
            lambda x: {"a": x + 1.0, "b": jnp.float32(3), "c": jnp.asarray(3.0)},
            lambda x: jnp.zeros(2),
            lambda x: [x.astype(jnp.float32), jnp.sin(2.0)],
        ],
        ids=["x", "1", "numbers", "dict", "zeros", "list"],
    )
    @pytest.mark.parametrize("weak", [False, True])
    def test_straight_lines_are_as_under_vmap(self, f: Callable[..., Any], weak: bool) -> None:
        x = jax.vmap(lambda k: 0.5)(jnp.arange(3)) if weak else jnp.arange(3.0)
        assert x.weak_type is weak
        want = jax.vmap(f)(x)
        batched = pcbatch.batch(f)
        same(batched(x), want)
        same(batched.run(x).value, want)
        same(batched.map(x, lanes=2).value, want)
        same(jax.jit(batched)(x), jax.jit(jax.vmap(f))(x))

    def test_where_paths_meet(self) -> None:
        def f(x):
            both, one, count = 1.0, 1.0, 0
            if x > 1.0:
                both, one = 2.0, x
            while count < 3:
                count += 1
            return both, one, count

        got = pcbatch.batch(f)(jnp.arange(3.0))
        assert [leaf.weak_type for leaf in got] == [True, False, True]
        where = jnp.where(jnp.arange(3.0) > 1.0, 2.0, 1.0), jnp.where(jnp.arange(3.0) > 1.0, jnp.arange(3.0), 1.0)
        assert [leaf.weak_type for leaf in where] == [True, False]
