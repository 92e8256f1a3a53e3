"""Batched functions on meshes of four CPU devices, for `test_meshes.py`; a line for each case is printed.

JAX_NUM_CPU_DEVICES=4 python -m tests.devices.four_meshes
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding

import pcbatch
from tests.devices import four
from tests.devices.four import main
from tests.oracles.plans import replanned
from tests.programs.batched import collatz, countdown, deep, fib, fragile, same, walk, walks
from tests.programs.compare import assert_same_bits

AUTO, EXPLICIT = AxisType.Auto, AxisType.Explicit
NUMBERS = np.random.default_rng(4).integers(1, 13, 24).astype(np.int32)
WALK = walk.with_options(in_axes=(0, None, 0))


def mesh(kind: AxisType = AUTO, **axes: int) -> Mesh:
    axes = axes or {"x": 4}
    return jax.make_mesh(tuple(axes.values()), tuple(axes), axis_types=(kind,) * len(axes))


def square(kind: AxisType = AUTO) -> Mesh:
    return mesh(kind, a=2, b=2)


def on(made: Mesh, *spec: Any) -> NamedSharding:
    return NamedSharding(made, jax.P(*spec))


def walking(lanes: int) -> tuple[Any, ...]:
    pair, matrix, starts = walks(lanes)
    return pair, matrix, starts.T


def ways(f: Any) -> Iterator[Callable[..., Any]]:
    """A call, `run` and `map`, for their values."""
    yield f
    yield lambda *args: f.run(*args).value
    yield lambda *args: f.map(*args, lanes=2).value


def collectives(f: Any, *args: Any) -> list[str]:
    return four.collectives(jax.jit(f).lower(*args).compile().as_text())


def shard_map() -> None:
    spec, expected = jax.P("x"), WALK(*walking(8))
    for vma in (True, False):
        for f in ways(fib) if vma else (fib,):
            inside = jax.shard_map(f, mesh=mesh(), in_specs=spec, out_specs=spec, check_vma=vma)
            assert_same_bits(jax.jit(inside)(NUMBERS), fib(NUMBERS))
        for g in (WALK,) if vma else (lambda *args: WALK.map(*args, lanes=2).value,):
            specs = (spec, jax.P(), spec)
            walked = jax.shard_map(g, mesh=mesh(), in_specs=specs, out_specs=spec, check_vma=vma)
            assert_same_bits(jax.jit(walked)(*walking(8)), expected)


def partly_manual() -> None:
    for kind in (AUTO, EXPLICIT):
        ns = jax.device_put(NUMBERS, on(square(kind), "a"))
        for vma in (True, False):
            for f in (fib,) if vma else ways(collatz):
                inside = jax.shard_map(
                    f, mesh=square(kind), in_specs=jax.P("a"), out_specs=jax.P("a"), axis_names={"a"}, check_vma=vma
                )
                assert_same_bits(jax.jit(inside)(ns), (fib if f is fib else collatz)(NUMBERS))


def nested() -> None:
    """The rest of the mesh is taken inside; or, if its axes are explicit, by the types of what is inside."""
    for kind in (AUTO, EXPLICIT):
        for vma in (True, False):

            def body(ns: jax.Array, kind: AxisType = kind, vma: bool = vma) -> jax.Array:
                ns = jax.reshard(ns, jax.P("b")) if kind == EXPLICIT else ns
                here = jax.sharding.get_abstract_mesh()
                inner = jax.shard_map(
                    collatz, mesh=here, in_specs=jax.P("b"), out_specs=jax.P("b"), axis_names={"b"}, check_vma=vma
                )
                return inner(ns) if kind == AUTO else inner(ns) * 0 + collatz(ns)

            outer = jax.shard_map(
                body, mesh=square(kind), in_specs=jax.P("a"), out_specs=jax.P("a"), axis_names={"a"}, check_vma=vma
            )
            found = jax.jit(outer)(jax.device_put(NUMBERS, on(square(kind), "a")))
            assert_same_bits(np.asarray(found), np.asarray(collatz(NUMBERS)))


def around() -> None:
    """Loops, branches, maps and collectives of the user's in the same `shard_map`."""

    def body(ns: jax.Array) -> tuple[jax.Array, jax.Array]:
        longest = jax.lax.pmax(collatz(ns).max(), "x")
        stepped = jax.lax.fori_loop(0, 2, lambda _, c: collatz(c) + 1, ns)
        chosen = jax.lax.cond(ns[0] > 3, fib, lambda x: fib(x + 1), ns % 8)
        both = jax.vmap(lambda x: collatz(x))(jnp.stack([ns, ns + 1]))
        return stepped + chosen + both.sum(0), longest

    def alone(ns: np.ndarray) -> list[Any]:
        parts = np.split(ns, 4)
        return [
            collatz(collatz(p) + 1) + 1 + fib((p % 8) + (0 if p[0] > 3 else 1)) + collatz(p) + collatz(p + 1)
            for p in parts
        ]

    inside = jax.shard_map(body, mesh=mesh(), in_specs=jax.P("x"), out_specs=(jax.P("x"), jax.P()))
    found, longest = jax.jit(inside)(NUMBERS)
    assert found.tolist() == np.concatenate(alone(NUMBERS)).tolist()
    assert int(longest) == int(collatz(NUMBERS).max())


def jit() -> None:
    """Sharded inputs of several shapes; results stay, and no device asks another."""
    for made, *specs in (
        (mesh(), ("x",)),
        (square(), ("a",), (("a", "b"),), (("b", "a"),), (None,)),
    ):
        for spec in specs:
            ns = jax.device_put(NUMBERS, on(made, *spec))
            for f in ways(fib) if len(made.shape) == 1 else (collatz,):
                assert_same_bits(jax.jit(f)(ns), (collatz if f is collatz else fib)(NUMBERS))
                assert collectives(f, ns) == []
            assert jax.jit(collatz)(ns).sharding.is_equivalent_to(ns.sharding, 1)
    asked = jax.jit(collatz, in_shardings=on(mesh(), "x"))
    assert_same_bits(asked(NUMBERS), collatz(NUMBERS))
    assert asked(NUMBERS).sharding.is_equivalent_to(on(mesh(), "x"), 1)
    pair, matrix, starts = walking(8)
    args = (jax.device_put(pair, on(square(), "a")), matrix, jax.device_put(starts, on(square(), "b")))
    assert_same_bits(jax.jit(WALK)(*args), WALK(*walking(8)))
    mixed = (jax.device_put(pair, on(mesh(), "x")), jax.device_put(matrix, on(mesh())), starts)
    assert_same_bits(jax.jit(WALK)(*mixed), WALK(*walking(8)))
    larger = jax.jit(lambda ns: jnp.sum(collatz(ns * 2 // 2)))
    assert int(larger(jax.device_put(NUMBERS, on(mesh(), "x")))) == int(collatz(NUMBERS).sum())


@pcbatch.batch
def halved(x):
    while jnp.abs(x) > 1.0:
        x = x * 0.5
    return jnp.sin(x)


def transformed() -> None:
    """Under `vmap` and `jvp` in `jit` on sharded arrays, and in a `shard_map`."""
    xs = np.linspace(-9, 9, 16, dtype=np.float32)
    placed = jax.device_put(xs, on(mesh(), "x"))
    push = lambda x: jax.jvp(halved, (x,), (jnp.ones_like(x),))
    rows = lambda x: jax.vmap(halved)(x.reshape(4, 4))
    for f in (push, rows):
        expected = f(jnp.asarray(xs))
        for found in (jax.jit(f)(placed), jax.jit(f)(xs), f(placed)):
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), found, expected)
    for vma in (True, False):
        inside = jax.shard_map(push, mesh=mesh(), in_specs=jax.P("x"), out_specs=jax.P("x"), check_vma=vma)
        np.testing.assert_allclose(jax.jit(inside)(xs)[1], push(jnp.asarray(xs))[1], rtol=1e-6)


def explicit() -> None:
    """Meshes whose axes are in types: what `jax.make_mesh` makes."""
    assert square(EXPLICIT).axis_types == jax.make_mesh((2, 2), ("a", "b")).axis_types
    for spec in (("a",), ("b",), (("a", "b"),), (None,), ()):
        ns = jax.device_put(NUMBERS, on(square(EXPLICIT), *spec))
        for f in ways(fib) if spec == ("a",) else (collatz,):
            expected = collatz(NUMBERS) if f is collatz else fib(NUMBERS)
            for found in (f(ns), jax.jit(lambda ns, f=f: f(ns + 1 - 1))(ns)):
                assert_same_bits(np.asarray(found), np.asarray(expected))
                assert found.sharding.is_equivalent_to(ns.sharding, 1), (spec, found.sharding)
        assert collectives(collatz, ns) == []
    made = square(EXPLICIT)
    pair, matrix, starts = walking(8)
    args = (
        jax.device_put(pair, on(made, "a")),
        jnp.eye(4, dtype=np.float32)[:3, :3] * matrix,
        jax.device_put(starts, on(made, "a")),
    )
    for found in (WALK(*args), jax.jit(WALK)(*args)):
        assert_same_bits(found, WALK(*walking(8)))


@pcbatch.batch(in_axes=(0, None))
def powers(x, w):
    while jnp.sum(x * x) < 100.0:
        x = jnp.abs(x @ w) + 1.0
    return x


@pcbatch.batch(in_axes=(0, None))
def grown(x, w):
    y = x
    while y < 3.0:
        y = y * w["a"] + jnp.sin(x) * w["b"] + 0.3
    return y * y


def loss(f: Any) -> Callable[..., Any]:
    return jax.grad(lambda *args: f(*args).sum(), (0, 1))


def derivatives() -> None:
    """Of arguments of lanes, and of weights that devices share."""
    xs, w = jnp.linspace(0.3, 2.5, 8), {"a": jnp.float32(1.3), "b": jnp.float32(0.7)}
    expected = loss(grown)(xs, w)
    for kind in (AUTO, EXPLICIT):
        made = mesh(kind)
        sharded = jax.device_put(xs, on(made, "x"))
        found = [jax.jit(loss(grown))(sharded, w), jax.jit(loss(lambda *args: grown(*args, mesh=made)))(xs, w)]
        specs = (jax.P("x"), jax.P())
        for vma in (True, False):
            around = jax.shard_map(grown, mesh=made, in_specs=specs, out_specs=specs[0], check_vma=vma)
            found.append(jax.jit(loss(around))(sharded, w))
        within = jax.shard_map(loss(grown), mesh=made, in_specs=specs, out_specs=specs)
        found.append(jax.jit(within)(sharded, w))
        for each in found:
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5), each, expected)


TABLE = jnp.asarray([0.5, 0.25, 0.125, 1.0], jnp.float32)


@pcbatch.batch
def looked_up(x, k):
    while x < 9.0:
        x = x + TABLE[k]
    return x


def constants() -> None:
    """What a program holds goes to every device."""
    xs, ks = jnp.arange(8.0), jnp.arange(8) % 4
    args = jax.device_put((xs, ks), on(mesh(), "x"))
    assert_same_bits(jax.jit(looked_up)(*args), looked_up(xs, ks))
    assert not collectives(looked_up, *args)


def explicit_types() -> None:
    """Arguments sharded along other axes than the lanes, and weights, are brought together before the loop."""
    xs, w = np.ones((8, 4), np.float32) * np.arange(8, dtype=np.float32)[:, None], np.eye(4, dtype=np.float32)
    for kind in (AUTO, EXPLICIT):
        made = square(kind)
        for left, right in ((("a", "b"), ("b", None)), ((None, "b"), (None, "a"))):
            args = jax.device_put(xs, on(made, *left)), jax.device_put(w, on(made, *right))
            for found in (powers(*args), jax.jit(powers)(*args)):
                assert_same_bits(np.asarray(found), np.asarray(powers(xs, w)))
            assert not [name for name in collectives(powers, *args) if name != "all-gather"]


def contexts() -> None:
    """Under `jax.set_mesh`, whatever the arguments are."""
    one, few = collatz.run(NUMBERS), {"lanes": 2}
    for kind in (AUTO, EXPLICIT):
        with jax.set_mesh(square(kind)):
            for ns in (NUMBERS, jnp.asarray(NUMBERS), jax.device_put(NUMBERS, jax.P("a"))):
                same(collatz.run(ns), one)
                same(jax.jit(collatz.run)(ns), one)
            same(collatz.map(ns, **few), one)
            specs = jax.P("a"), jax.P(("a", "b"))
            for how in ({"mesh": square(kind)}, {"devices": 4}, *({"devices": spec} for spec in specs)):
                found = collatz.run(NUMBERS, **how)
                same(found, one)
                assert (found.value + 1).shape == found.status.shape, "it is where JAX can go on"
                if how.get("devices") != 4:
                    same(jax.jit(lambda ns, how=how: collatz.run(ns, **how))(NUMBERS), one)
            same(collatz.map(NUMBERS, devices=jax.P("b"), **few), one)


def lying() -> None:
    """Outside `jit`: one machine on each device that lanes lie on."""
    for made, spec in ((mesh(), "x"), (square(), "a"), (square(), ("b", "a")), (square(EXPLICIT), "b")):
        where = on(made, spec)
        ns = jax.device_put(NUMBERS, where)
        result = collatz.run(ns)
        same(result, collatz.run(NUMBERS))
        same(collatz.map(ns, lanes=3), collatz.run(NUMBERS))
        assert result.value.sharding.is_equivalent_to(where, 1)
        assert result.status.sharding.is_equivalent_to(where, 1)
        devices = 4 if isinstance(spec, tuple) or made.size == made.shape[spec] else 2
        trips = [int(collatz.run(part).stats.trips) for part in np.split(NUMBERS, devices)]
        assert int(result.stats.trips) == sum(trips)
        np.testing.assert_array_equal(NUMBERS, np.asarray(ns))
    same(collatz.map(NUMBERS, lanes=3, devices=on(square(EXPLICIT), "b"), chunk=7), collatz.run(NUMBERS))
    rows = jax.device_put(np.stack([NUMBERS, NUMBERS + 1]), on(mesh(), None, "x"))
    several = pcbatch.batch(in_axes=1)(total)
    assert several(rows).sharding.is_equivalent_to(on(mesh(), "x"), 1)
    assert_same_bits(several(rows), several(np.asarray(rows)))


def total(pair):
    left, right = pair[0], pair[1]
    while left > 3:
        left, right = left - 1, right + 2
    return left + right


def growing() -> None:
    ns = np.array([3, 200, 0, 1, 70, 130, 5, 9], np.int32)
    for kind in (AUTO, EXPLICIT):
        for f in list(ways(deep.with_options()))[:: 2 if kind == AUTO else 3]:
            assert_same_bits(np.asarray(f(jax.device_put(ns, on(mesh(kind), "x")))), np.asarray(deep(ns)))


def asked_inside_jit() -> None:
    """Devices that a call in `jit` asks for: blocks, so that nothing needs to be dealt or collected."""
    for how in ({"devices": 4}, {"mesh": square()}, {"mesh": square(EXPLICIT)}, {"devices": on(square(), "a")}):
        for call in (lambda ns, how=how: collatz(ns, **how), lambda ns, how=how: collatz.map(ns, lanes=2, **how).value):
            assert_same_bits(jax.jit(call)(NUMBERS), collatz(NUMBERS))
            assert collectives(call, NUMBERS) == []
            if "devices" not in how or how["devices"] != 4:
                placed = jax.device_put(NUMBERS, on(square(), ("a", "b")))
                assert_same_bits(jax.jit(call)(placed), collatz(NUMBERS))


def uneven() -> None:
    for inputs, how in ((3, {"mesh": square()}), (23, {"devices": on(mesh(EXPLICIT), "x")})):
        ns = NUMBERS[:inputs]
        for call in (lambda ns, how=how: collatz.run(ns, **how), lambda ns, how=how: collatz.map(ns, lanes=2, **how)):
            same(call(ns), collatz.run(ns))
            assert_same_bits(jax.jit(lambda ns, call=call: call(ns).value)(ns), collatz(ns))


def failing() -> None:
    ns = np.array([1, 5, 3, -2, 12, 5, 13, 2], np.int32)
    one = fragile.run(ns)
    texts = []
    for given in (ns, jax.device_put(ns, on(mesh(), "x")), jax.device_put(ns, on(mesh(EXPLICIT), "x"))):
        for f in (fragile.run, jax.jit(fragile.run), lambda ns: fragile.map(ns, lanes=1)):
            same(f(given), one)
        try:
            fragile(given)
        except pcbatch.BatchRuntimeError as error:
            texts.append([line for line in str(error).splitlines() if "trip" not in line])
    assert len(texts) == 3 and texts[0] == texts[1] == texts[2]
    sharded = fragile.run(jax.device_put(ns, on(mesh(), "x"))).stats
    assert [b.active for b in sharded.blocks] == [b.active for b in one.stats.blocks]
    counted = jax.jit(lambda ns: fragile.run(ns).stats.utilisation("count"))(jax.device_put(ns, on(mesh(), "x")))
    np.testing.assert_allclose(counted, sharded.utilisation("count"), rtol=1e-6)


def printing() -> None:
    """Lines carry the numbers of lanes among all, wherever they run."""
    ns = np.array([2, 0, 3, 1, 1, 4, 0, 1], np.int32)
    expected = sorted(f"[lane {k}] {n} left" for k, top in enumerate(ns) for n in range(1, top + 1))
    where = on(mesh(), "x")
    for call in (
        lambda: countdown(jax.device_put(ns, where)),
        lambda: countdown.map(jax.device_put(ns, where), lanes=1),
        lambda: countdown(jax.device_put(ns, on(mesh(EXPLICIT), "x"))),
        lambda: jax.jit(countdown)(jax.device_put(ns, on(mesh(EXPLICIT), "x"))),
        lambda: jax.jit(countdown)(jax.device_put(ns, where)),
    ):
        with contextlib.redirect_stdout(io.StringIO()) as written:
            jax.block_until_ready(call())
            jax.effects_barrier()
        assert sorted(written.getvalue().splitlines()) == expected, written.getvalue()


def lowered() -> None:
    for kind in (AUTO, EXPLICIT):
        where = on(mesh(kind), "x")
        for given in (jax.device_put(NUMBERS, where), jax.ShapeDtypeStruct((24,), np.int32, sharding=where)):
            compiled = fib.lower(given).compile()
            assert_same_bits(np.asarray(compiled(NUMBERS)), np.asarray(fib(NUMBERS)))
            assert_same_bits(np.asarray(compiled(jax.device_put(NUMBERS, where))), np.asarray(fib(NUMBERS)))
            assert "shard_map" in fib.lower(given).as_text("jaxpr")


def local() -> None:
    """The other strategy knows no meshes, and runs where it is."""
    f = collatz.with_options(strategy="local")
    for vma in (True, False):
        inside = jax.shard_map(f, mesh=mesh(), in_specs=jax.P("x"), out_specs=jax.P("x"), check_vma=vma)
        assert_same_bits(jax.jit(inside)(NUMBERS), collatz(NUMBERS))
    ns = jax.device_put(NUMBERS, on(mesh(), "x"))
    for g in (f, jax.jit(f)):
        assert_same_bits(g(ns), collatz(NUMBERS))


def policies() -> None:
    """Every way to run blocks."""
    ns = jax.device_put(NUMBERS, on(mesh(), "x"))
    for how in (
        {"emitter": "port", "schedule": "largest"},
        {"emitter": "guard", "schedule": "earliest"},
        {"modes": pcbatch.Strips(2), "stats": True, "max_steps": 10_000},
    ):
        f = replanned(fib, **how, max_depth=16)
        inside = jax.shard_map(f, mesh=mesh(), in_specs=jax.P("x"), out_specs=jax.P("x"))
        for g in (jax.jit(f), jax.jit(inside)):
            assert_same_bits(g(ns), fib(NUMBERS))


CASES = (
    shard_map, partly_manual, nested, around, jit, transformed, explicit, explicit_types, contexts, lying, growing,
    asked_inside_jit, uneven, failing, printing, lowered, local, policies, derivatives, constants,
)  # fmt: skip


if __name__ == "__main__":
    main(CASES)
