"""Pytrees in which not every leaf is an array: modules of Equinox, dicts with functions, states of optimisers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import pcbatch
from pcbatch.runs.fingerprint import of_compiled

X = jnp.array([[0.5, -1.0], [2.0, 0.25], [-0.5, 3.0]])


def mlp(seed: int = 0, **kwargs: Any) -> Any:
    return eqx.nn.MLP(2, 2, 3, 1, key=jax.random.key(seed), **kwargs)


@pcbatch.batch(in_axes={"net": None})
def walked(x: Any, net: Any) -> Any:
    n = 0
    while jnp.sum(jnp.abs(x)) < 4.0 and n < 3:
        x = x + net(x)
        n += 1
    return x


def plainly(net: Any, x: Any = X) -> Any:
    return jnp.stack([walked.plain(row, net) for row in x])


def total(net: Any) -> Any:
    return jnp.sum(walked(X, net))


class Tower(eqx.Module):
    """A method that calls itself, and arrays beside what is none."""

    weight: jax.Array
    activation: Callable[[Any], Any]
    label: str = "tower"
    nothing: None = None

    @pcbatch.batch
    def up(self, n: Any, x: Any) -> Any:
        if n <= 0:
            return x
        return Tower.up(self, n - 1, self.activation(self.weight * x))


class Compared:
    """Has an `__eq__`, and so no hash."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Compared)


@partial(jax.tree_util.register_dataclass, data_fields=["weight"], meta_fields=["names"])
@dataclass(frozen=True)
class Named:
    weight: Any
    names: tuple[str, ...]


def key(value: Any) -> Any:
    """What a program depends on that takes a value for all lanes."""
    return walked._programs.prepare((X, value), {}).key


class TestModules:
    def test_as_plain_and_compiled_once_for_an_architecture(self) -> None:
        f = walked.with_options()
        first, second = mlp(), mlp(1)
        np.testing.assert_allclose(f(X, first), plainly(first), rtol=1e-5)
        np.testing.assert_allclose(f(X, second), plainly(second), rtol=1e-5)
        assert len(f._programs.cache) == 1
        assert not np.allclose(f(X, first), f(X, second))

    def test_gradients(self) -> None:
        net = mlp()
        expected = eqx.filter_grad(lambda net: jnp.sum(plainly(net)))(net)
        for gradient in (eqx.filter_grad(total), eqx.filter_jit(eqx.filter_grad(total))):
            jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-4), gradient(net), expected)

    @pytest.mark.full_only
    def test_in_a_closure_of_a_loss(self) -> None:
        def loss(net: Any) -> Any:
            def one(x: Any) -> Any:
                return net(x) if x[0] > 0.0 else x

            return jnp.sum(pcbatch.batch(one)(X))

        def expected(net: Any) -> Any:
            return jnp.sum(jnp.where(X[:, :1] > 0.0, jax.vmap(net)(X), X))

        given, wanted = (eqx.filter_grad(f)(mlp()) for f in (loss, expected))
        jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-4), given, wanted)

    def test_methods(self) -> None:
        tower, ns, xs = Tower(jnp.float32(0.5), jnp.sin), jnp.array([0, 1, 3]), jnp.ones(3)
        expected = [float(tower.up.plain(n, x)) for n, x in zip(ns, xs, strict=True)]
        np.testing.assert_allclose(tower.up(ns, xs), expected, rtol=1e-6)
        np.testing.assert_allclose(eqx.filter_jit(lambda t: t.up(ns, xs))(tower), expected, rtol=1e-6)

    def test_lanes_with_nets_of_their_own(self) -> None:
        nets = eqx.filter_vmap(lambda k: eqx.nn.MLP(2, 2, 3, 1, key=k))(jax.random.split(jax.random.key(0), 3))
        axes = jax.tree.map(lambda leaf: 0 if eqx.is_array(leaf) else None, nets)
        each = pcbatch.batch(lambda x, net: net(x) if x[0] > 0.0 else x, in_axes=(0, axes))
        expected = jnp.where(X[:, :1] > 0.0, eqx.filter_vmap(lambda x, net: net(x))(X, nets), X)
        np.testing.assert_allclose(each(X, nets), expected, rtol=1e-5)


class TestWhatAProgramDependsOn:
    def test_the_values_of_arrays_are_not_part_of_it(self) -> None:
        assert key(mlp()) == key(mlp(1)) and hash(key(mlp())) == hash(key(mlp(1)))

    @pytest.mark.parametrize(
        "other",
        [{"activation": jnp.tanh}, {"final_activation": jnp.tanh}, {"use_bias": False}, {"dtype": jnp.bfloat16}],
        ids=lambda other: next(iter(other)),
    )
    def test_what_is_no_array_is(self, other: Any) -> None:
        assert key(mlp()) != key(mlp(**other))

    def test_leaves_of_any_kind(self) -> None:
        tree: dict[str, Any] = {"w": jnp.ones(2), "f": jnp.sin, "mode": "sum", "type": jnp.float32, "none": None}
        assert key(tree) == key({**tree, "w": jnp.zeros(2)})
        for name, other in {"f": jnp.cos, "mode": "max", "type": jnp.int32, "none": "some"}.items():
            assert key(tree) != key({**tree, name: other})
        (given,) = [walked._programs.prepare((X, tree), {}).arrays["net"]]
        assert [x.shape for x in given] == [(2,)]

    def test_what_has_no_hash_goes_by_identity(self) -> None:
        one, other = Compared(1.0), Compared(2.0)
        assert one == other
        assert key({"c": one}) == key({"c": one}) != key({"c": other})

    def test_states_of_optimisers_and_static_fields(self) -> None:
        optimiser = optax.adam(1e-3)
        state = optimiser.init(eqx.filter(mlp(), eqx.is_array))
        assert key(state) == key(jax.tree.map(lambda x: x + 1, state))
        assert key((optimiser, state)) == key((optimiser, state)) != key((optax.adam(1e-3), state))
        assert key(Named(1.0, ("a",))) == key(Named(2.0, ("a",))) != key(Named(1.0, ("b",)))

    def test_a_run_that_was_kept_is_of_one_program(self) -> None:
        def fingerprint(net: Any) -> str:
            return of_compiled(walked._compiled((X, net), {})[0])

        assert fingerprint(mlp()) == fingerprint(mlp(1)) != fingerprint(mlp(activation=jnp.tanh))

    def test_types_tell_of_arrays_alone(self) -> None:
        traced = walked.trace(X, mlp())
        assert len(traced.in_avals) == 1 + len(jax.tree.leaves(eqx.filter(mlp(), eqx.is_array)))


class TestRefused:
    def test_with_lanes(self) -> None:
        def one(p: Any, x: Any) -> Any:
            assert x > 0.0
            return p["f"](p["w"]) * x

        f, p, x = pcbatch.batch(one), {"w": jnp.arange(2.0), "f": jnp.sin}, jnp.array([1.0, -1.0])
        with pytest.raises(pcbatch.UsageError, match=r"PCB405(.|\n)*put None in its place in `in_axes` of `p`"):
            f(p, x)
        with pytest.raises(pcbatch.BatchRuntimeError, match=r"first lanes: 1 \(p.w=1.0, x=-1.0\)"):
            f.with_options(in_axes={"p": {"w": 0, "f": None}})(p, x)

    def test_what_another_library_takes_for_an_array(self) -> None:
        class Wrapped:
            def __jax_array__(self) -> Any:
                return jnp.ones(2)

        with pytest.raises(pcbatch.UsageError, match=r"PCB405(.|\n)*jnp.asarray"):
            walked._programs.prepare((X, {"w": Wrapped()}), {})

    def test_as_a_result(self) -> None:
        with pytest.raises(pcbatch.CompileError, match="PCB311"):
            pcbatch.batch(lambda x, net: net, in_axes=(0, None)).lower(X, mlp())
