"""Unrolled draws: the bits of `jax.random`, whatever is drawn, wherever, under every setting; and no loop left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.extend.core as jex
import jax.extend.random as jex_random
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.ir.ops import Prim
from pcbatch.ir.stack import StackProgram
from pcbatch.lowering.analysis.cost import inner_jaxprs, may_not_end, most_expensive_kernel
from pcbatch.lowering.jaxpr_passes import unroll_threefry
from pcbatch.lowering.jaxpr_passes.unroll_threefry import agrees, threefry2x32, unrolled
from pcbatch.lowering.typing.trace import JaxprFn

pytestmark = [pytest.mark.share(3), pytest.mark.long]

LANES = 5
ROLLED = {"random_bits", "random_split", "random_fold_in", "threefry2x32"}
SHAPES = ((), (0,), (1,), (5,), (2, 3), (3, 1, 2))


@pytest.fixture(params=[True, False], ids=["partitionable", "original"])
def partitionable(request: pytest.FixtureRequest) -> Iterator[bool]:
    with jax.threefry_partitionable(request.param):
        yield request.param


def keys(*shape: int) -> Any:
    return jax.random.split(jax.random.key(3, impl="threefry2x32"), shape)


def primitives(jaxpr: Any) -> set[str]:
    found = {eqn.primitive.name for eqn in jaxpr.eqns}
    return found.union(*(primitives(inner) for eqn in jaxpr.eqns for inner in inner_jaxprs(eqn)))


def leaves(values: Any) -> list[np.ndarray]:
    def raw(x: Any) -> np.ndarray:
        return np.asarray(jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x)

    return list(map(raw, jax.tree.leaves(values)))


def check(fn: Callable[..., Any], *args: Any, left: frozenset[str] = frozenset()) -> None:
    """For one example and for a batch the unrolled jaxpr gives exactly what the function gives."""
    one = [x[0] for x in args]
    closed = jax.make_jaxpr(fn)(*one)
    assert primitives(closed.jaxpr) & ROLLED
    changed = unrolled(closed)
    assert primitives(changed.jaxpr) & ROLLED == left
    run = jex.jaxpr_as_fun(changed)
    same(run(*one), fn(*one))
    same(jax.jit(jax.vmap(run))(*args), [fn(*(x[k] for x in args)) for k in range(LANES)], stacked=True)


def same(found: Any, expected: Any, stacked: bool = False) -> None:
    wanted = [np.stack(xs) for xs in zip(*map(leaves, expected), strict=True)] if stacked else leaves(expected)
    for x, y in zip(leaves(found), wanted, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


class TestBits:
    def test_the_hash_has_the_published_answers(self) -> None:
        """From the known-answer tests that the authors of Threefry publish with Random123."""
        ones = 0xFFFFFFFF
        answers = {
            (0, 0, 0, 0): (0x6B200159, 0x99BA4EFE),
            (ones, ones, ones, ones): (0x1CB996FC, 0xBB002BE7),
            (0x13198A2E, 0x03707344, 0x243F6A88, 0x85A308D3): (0xC4923A9C, 0x483DF7A0),
        }
        found = threefry2x32(*np.array(list(answers), np.uint32).T)
        np.testing.assert_array_equal(np.stack(found, 1), np.array(list(answers.values()), np.uint32))

    @pytest.mark.share(6)
    @pytest.mark.parametrize("width", [8, 16, 32, 64])
    def test_bits_of_every_width_and_shape(self, width: int, partitionable: bool) -> None:
        with jax.enable_x64(width == 64):
            dtype = np.dtype(f"uint{width}")
            check(lambda key: [jax.random.bits(key, shape, dtype) for shape in SHAPES], keys(LANES))

    @pytest.mark.share(4)
    @pytest.mark.parametrize("x64", [False, True])
    def test_keys(self, x64: bool, partitionable: bool) -> None:
        def made(key: Any, data: Any) -> Any:
            folded = jax.random.fold_in(key, data), jax.random.fold_in(key, 2**32 - 1)
            return folded, [jax.random.split(key, shape) for shape in (1, 2, 7, (2, 3), (0,))]

        with jax.enable_x64(x64):
            check(made, keys(LANES), jnp.arange(LANES) * 1000)

    def test_raw_keys(self, partitionable: bool) -> None:
        def made(key: Any) -> Any:
            key, at = jax.random.split(key)
            return key, jax.random.fold_in(key, 4), jax.random.bits(at, (3,))

        check(made, jax.random.key_data(keys(LANES)))

    def test_the_hash_itself(self, partitionable: bool) -> None:
        check(lambda key, count: jex_random.threefry_2x32(key, count), jax.random.key_data(keys(LANES)), counts())

    @pytest.mark.full_only
    def test_arrays_of_keys(self, partitionable: bool) -> None:
        def made(several: Any) -> Any:
            folded = jax.vmap(jax.vmap(jax.random.fold_in, (None, 0)), (0, None))(several[0], jnp.arange(4))
            split = jax.vmap(jax.vmap(jax.random.split))(several)
            return folded, split, jax.vmap(jax.vmap(lambda key: jax.random.bits(key, (2, 3))))(several)

        check(made, keys(LANES, 2, 3))

    @pytest.mark.full_only
    def test_distributions(self, partitionable: bool) -> None:
        def made(key: Any) -> Any:
            many = (jax.random.uniform, jax.random.normal, jax.random.exponential, jax.random.bernoulli)
            rest = jax.random.randint(key, (3,), 0, 10), jax.random.permutation(key, 7), jax.random.choice(key, 9)
            return [draw(key, shape=(4,)) for draw in many], rest

        batched, single = jax.jit(jax.vmap(made)), keys(LANES)
        run = jex.jaxpr_as_fun(unrolled(jax.make_jaxpr(made)(single[0])))
        same(jax.jit(jax.vmap(run))(single), batched(single))


def counts() -> Any:
    return jnp.arange(LANES * 7, dtype=np.uint32).reshape(LANES, 7)


# Draws inside of what holds jaxprs.


def in_loops(key: Any) -> Any:
    def body(state: Any) -> Any:
        key, i = state
        return jax.random.split(key)[0], i + 1

    def bit(state: Any) -> Any:
        return (jax.random.bits(state[0]) % np.uint32(4) != 0) & (state[1] < 9)

    key, times = jax.lax.while_loop(bit, body, (key, 0))
    return key, times, jax.lax.scan(lambda key, _: (jax.random.split(key)[1], jax.random.uniform(key)), key, None, 3)


def in_branches(key: Any) -> Any:
    one, other = jax.random.uniform, lambda key: jax.random.normal(key)
    return jax.lax.cond(jax.random.bernoulli(key), one, other, key), jax.lax.switch(1, [one, other, one], key)


def in_calls(key: Any) -> Any:
    return jax.jit(jax.random.uniform)(key), jax.checkpoint(lambda key: jax.random.bits(key, (2,)))(key)


def in_custom_derivatives(key: Any) -> Any:
    forward = jax.custom_jvp(lambda x, key: x * jax.random.uniform(key))
    forward.defjvp(lambda primals, tangents: (forward(*primals), tangents[0]))
    reverse = jax.custom_vjp(lambda x, key: x * jax.random.uniform(key))
    reverse.defvjp(lambda x, key: (reverse(x, key), None), lambda _, g: (g, None))
    return forward(jnp.float32(2), key), reverse(jnp.float32(3), key)


def in_a_derivative(key: Any) -> Any:
    return jax.grad(lambda x: jnp.sin(x * jax.random.uniform(key)))(jnp.float32(2))


class TestPlaces:
    @pytest.mark.parametrize("fn", [in_loops, in_branches, in_calls, in_custom_derivatives, in_a_derivative])
    def test_inside(self, fn: Callable[..., Any]) -> None:
        closed = jax.make_jaxpr(fn)(keys(1)[0])
        changed = unrolled(closed)
        assert primitives(closed.jaxpr) & ROLLED
        assert not primitives(changed.jaxpr) & ROLLED
        one = keys(LANES)
        same(jax.jit(jax.vmap(jex.jaxpr_as_fun(changed)))(one), jax.jit(jax.vmap(jex.jaxpr_as_fun(closed)))(one))

    def test_tangents_pass_by(self) -> None:
        def fn(x: Any, words: Any) -> Any:
            return x * jax.random.uniform(jax.random.wrap_key_data(words))

        words = jax.random.key_data(keys(1)[0])
        run = jex.jaxpr_as_fun(unrolled(jax.make_jaxpr(fn)(1.5, words)))
        (found,), (tangent,) = jax.jvp(lambda x: run(x, words), (1.5,), (1.0,))
        expected = jax.jvp(lambda x: fn(x, words), (1.5,), (1.0,))
        assert (float(found), float(tangent)) == tuple(map(float, expected))

    def test_equations_keep_their_place(self) -> None:
        closed = jax.make_jaxpr(lambda key: jax.random.bits(jax.random.split(key)[1]))(keys(1)[0])
        places = [eqn.source_info for eqn in closed.eqns]
        assert [eqn.source_info for eqn in unrolled(closed).eqns] == places

    def test_shared_jaxprs_stay_shared(self) -> None:
        closed = jax.make_jaxpr(lambda key: (jax.random.uniform(key), jax.random.uniform(key)))(keys(1)[0])
        first, second = (eqn.params["jaxpr"] for eqn in unrolled(closed).eqns)
        assert first.jaxpr is second.jaxpr

    def test_the_setting_is_that_of_the_line(self) -> None:
        def both(key: Any) -> Any:
            with jax.threefry_partitionable(False):
                old = jax.random.bits(key, (3,))
            with jax.threefry_partitionable(True):
                return old, jax.random.bits(key, (3,))

        check(both, keys(LANES))


class TestLeftAlone:
    def test_what_draws_nothing(self) -> None:
        closed = jax.make_jaxpr(lambda x: jax.lax.fori_loop(0, 3, lambda _, x: jnp.sin(x), x))(1.0)
        assert unrolled(closed) is closed

    def test_a_seed(self) -> None:
        closed = jax.make_jaxpr(jax.random.key)(3)
        assert unrolled(closed) is closed

    @pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg", "own"])
    def test_keys_of_other_kinds(self, impl: str) -> None:
        key = jax.random.key(3, impl=OWN_KEYS if impl == "own" else impl)
        closed = jax.make_jaxpr(lambda key: (jax.random.bits(key, (3,)), jax.random.fold_in(key, 3)))(key)
        assert unrolled(closed) is closed

    def test_without_jit(self) -> None:
        with jax.disable_jit():
            closed = jax.make_jaxpr(jax.random.bits)(keys(1)[0])
            assert primitives(unrolled(closed).jaxpr) & ROLLED


# A kind of key that is named, sized and made like JAX's, and is another all the same.
OWN_KEYS: Any = jex_random.define_prng_impl(
    key_shape=(2,),
    seed=lambda seed: jnp.full(2, seed, np.uint32),
    split=lambda key, shape: jnp.broadcast_to(key, (*shape, 2)),
    random_bits=lambda key, width, shape: jnp.full(shape, width, f"uint{width}"),
    fold_in=lambda key, data: key + jnp.uint32(data),
    name="threefry2x32",
    tag="fry",
)


class TestTrust:
    @pytest.mark.parametrize("setting", [True, False])
    def test_this_jax_agrees(self, setting: bool) -> None:
        assert agrees(setting)

    @pytest.mark.parametrize(
        "settings",
        [(jax.disable_jit,), (jax.debug_nans, True), (jax.transfer_guard, "disallow"), (jax.enable_x64, True)],
        ids=lambda settings: settings[0].__name__,
    )
    def test_under_settings_of_the_user(self, settings: tuple[Any, ...]) -> None:
        with settings[0](*settings[1:]):
            assert agrees.__wrapped__(True)

    def test_while_somebody_traces(self) -> None:
        found = []
        jax.jit(lambda x: (found.append(agrees.__wrapped__(True)), x)[1])(1.0)
        assert found == [True]

    @pytest.mark.parametrize("name", ["threefry2x32", "random_bits", "random_split", "random_fold_in"])
    @pytest.mark.parametrize("how", ["other bits", "error"])
    def test_a_jax_that_differs(self, monkeypatch: pytest.MonkeyPatch, name: str, how: str) -> None:
        ours = unroll_threefry.DRAWS[name]

        def differs(*args: Any, **static: Any) -> Any:
            if how == "error":
                raise AttributeError("threefry_prng_impl")
            made = ours(*args, **static)
            match name:
                case "random_split":
                    return made[::-1]
                case "random_fold_in":
                    return args[0]
                case _:
                    return jax.tree.map(lambda x: x ^ np.uint32(1), made)

        monkeypatch.setitem(unroll_threefry.DRAWS, name, jax.jit(differs, static_argnames=STATIC.get(name)))
        assert not agrees.__wrapped__(True)

    def test_then_programs_stay_as_they_are(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(unroll_threefry, "agrees", lambda setting: False)
        closed = jax.make_jaxpr(lambda key: jax.random.split(key))(keys(1)[0])
        assert unrolled(closed) is closed


STATIC = {"random_bits": ("bit_width", "shape"), "random_split": ("shape",)}


# Whole programs.


@pcbatch.batch
def walk(key, limit):
    """Steps of a random walk until it leaves the interval."""
    at = 0.0
    steps = 0
    while abs(at) < limit:
        key, now = jax.random.split(key)
        if jax.random.bernoulli(now):
            at = at + jax.random.uniform(jax.random.fold_in(now, steps))
        else:
            at = at - 0.3 * jnp.abs(jax.random.normal(now, (3,))).sum()
        steps += 1
    return at, steps


@pcbatch.batch
def galton(key, depth):
    """Leaves of a random tree."""
    if depth == 0:
        return 1
    left, right, grow = jax.random.split(key, 3)
    if jax.random.uniform(grow) < 0.4:
        return 1
    return galton(left, depth - 1) + galton(right, depth - 1)


class TestPrograms:
    @pytest.mark.share(4)
    @pytest.mark.parametrize("strategy", ["pc", "local"])
    @pytest.mark.parametrize("raw", [False, True])
    def test_lanes_draw_what_the_plain_function_draws(self, strategy: str, raw: bool) -> None:
        made, limits = keys(LANES), jnp.linspace(0.5, 2.5, LANES, dtype=np.float32)
        made = jax.random.key_data(made) if raw else made
        for fn, second in ((walk, limits), (galton, jnp.arange(LANES, dtype=np.int32))):
            found = fn.with_options(strategy=strategy)(made, second)
            expected = [fn.plain(made[k], second[k]) for k in range(LANES)]
            for x, y in zip(leaves(found), zip(*map(leaves, map(as_arrays, expected)), strict=True), strict=True):
                np.testing.assert_allclose(x, np.stack(y), rtol=1e-6)

    @pytest.mark.full_only
    def test_a_setting_that_changes_between_calls(self) -> None:
        made, depth = keys(LANES), jnp.full(LANES, 5, np.int32)
        for partitionable in (True, False, True):
            with jax.threefry_partitionable(partitionable):
                expected = [int(galton.plain(made[k], depth[k])) for k in range(LANES)]
                assert galton(made, depth).tolist() == expected

    @pytest.mark.parametrize(("fn", "dtype"), [(walk, np.float32), (galton, np.int32)])
    def test_only_the_last_program_is_unrolled(self, fn: Any, dtype: Any) -> None:
        made = fn.lower(keys(LANES), jnp.ones(LANES, dtype)).stages
        assert primitives_of(made.stack) & ROLLED
        assert not primitives_of(made.opt) & ROLLED

    def test_xla_has_no_loop_for_a_draw(self) -> None:
        closed = jax.make_jaxpr(lambda key: (jax.random.split(key), jax.random.normal(key, (100,))))(keys(1)[0])
        text = [
            jax.jit(jax.vmap(jex.jaxpr_as_fun(c))).lower(keys(LANES)).compile().as_text()
            for c in (closed, unrolled(closed))
        ]
        assert [" while(" in t for t in text] == [True, False]


def primitives_of(program: StackProgram) -> set[str]:
    fns = [op.expr.fn for block in program.blocks for op in block.ops if isinstance(op, Prim)]
    return set().union(*(primitives(fn.closed.jaxpr) for fn in fns if isinstance(fn, JaxprFn)))


def as_arrays(values: Any) -> Any:
    return jax.tree.map(jnp.asarray, values)


class TestCosts:
    def test_a_draw_costs_about_what_it_did(self) -> None:
        closed = jax.make_jaxpr(lambda key: jax.random.uniform(key, (10,)))(keys(1)[0])
        before, after = most_expensive_kernel(closed.jaxpr), most_expensive_kernel(unrolled(closed).jaxpr)
        assert before <= after <= 2 * before

    def test_junk_is_no_matter(self) -> None:
        assert not may_not_end(unrolled(jax.make_jaxpr(jax.random.split)(keys(1)[0])).jaxpr)


def test_bits_are_hashed_once() -> None:
    """One hash has 20 rotations; XLA would compute it anew in each of the two kernels that use the number."""

    def turned(key: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        angle = jax.random.uniform(key)
        return x * jnp.cos(angle), jnp.sum(x) + angle

    xs = jnp.ones((512, 10))
    closed = unrolled(jax.make_jaxpr(turned)(keys(1)[0], xs[0]))
    text = jax.jit(jax.vmap(jex.jaxpr_as_fun(closed))).lower(keys(512), xs).compile().as_text()
    assert text.count(" shift-left(") <= 20
