"""Derivatives where JAX asks for something unusual: no elements, lanes left open, transposes, steps without rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import pcbatch
from pcbatch import CompileError, UsageError
from tests.gradients.test_gradients_jax import NUMBERS, SUBJECTS, Subject, close, every_subject, gradient, pushed, total
from tests.oracles.derivatives import Call, assert_all_close, check_reverse, random_like

pytestmark = [pytest.mark.share(3), pytest.mark.promotion("standard")]

Function = Callable[[Any, Any], Any]
SCALARS = ("loop", "recursion")
X = jnp.array([0.5, 0.7, 1.0, 1.5])


# No elements

OF_NOTHING: dict[str, Callable[[Function], Function]] = {
    "value": lambda f: f,
    "grad": gradient,
    "jvp": pushed,
    "jacfwd": lambda f: jax.jacfwd(f, (0, 1)),
    "jacrev": lambda f: jax.jacrev(f, (0, 1)),
    "hessian": lambda f: jax.hessian(total(f)),
}


@pytest.mark.share(12)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["", "jit"])
@pytest.mark.parametrize("name", OF_NOTHING)
def test_vmap_over_no_elements(name: str, wrap: Any) -> None:
    subject = SUBJECTS["recursion"]
    function = OF_NOTHING[name]
    one = jax.eval_shape(function(subject), subject.x, subject.w)
    found = wrap(jax.vmap(function(subject), (0, None)))(jnp.zeros((0, *subject.x.shape)), subject.w)
    of_w = wrap(jax.vmap(function(subject), (None, 0)))(subject.x, jnp.zeros(0))
    for leaves in (jax.tree.leaves(found), jax.tree.leaves(of_w)):
        assert [(x.shape, x.dtype) for x in leaves] == [((0, *x.shape), x.dtype) for x in jax.tree.leaves(one)]


def test_vmap_over_no_elements_of_keys_runs_and_maps() -> None:
    @pcbatch.batch
    def drawn(key: Any) -> Any:
        while jax.random.uniform(key) > 0.5:
            key = jax.random.split(key)[0]
        return key

    keys = jax.vmap(lambda k: jax.random.split(k, 3))(jax.random.split(jax.random.key(0), 2))[:0]
    for function in (drawn, lambda k: drawn.run(k).value, lambda k: drawn.map(k, lanes=2).value):
        found = jax.vmap(function)(keys)
        assert found.shape == (0, 3) and found.dtype == keys.dtype
    assert jax.vmap(jax.vmap(drawn))(keys.reshape(4, 0, 3)).shape == (4, 0, 3)


# Any number of lanes


@pytest.mark.full_only
@pytest.mark.parametrize("checkpoints", [None, 4])
@pytest.mark.parametrize("name", SCALARS)
def test_export_for_any_number_of_lanes(name: str, checkpoints: int | None) -> None:
    batched = SUBJECTS[name].batched.with_options(checkpoints=checkpoints, max_depth=16)

    def derivative(x: Any, n: Any, w: Any) -> Any:
        first = jax.grad(lambda x, w: jnp.sum(jnp.sin(batched(x, n, w))), (0, 1))
        return jax.jvp(first, (x, w), (x, w))

    (lanes,) = export.symbolic_shape("lanes")
    types = [jax.ShapeDtypeStruct((lanes,), dtype) for dtype in (jnp.float32, jnp.int32)]
    call = export.export(jax.jit(derivative))(*types, jax.ShapeDtypeStruct((), jnp.float32)).call
    subject = SUBJECTS[name]
    close(call(subject.x, NUMBERS, subject.w), derivative(subject.x, NUMBERS, subject.w))
    close(call(subject.x[:1], NUMBERS[:1], subject.w), derivative(subject.x[:1], NUMBERS[:1], subject.w))


@pytest.mark.full_only
@pytest.mark.parametrize("name", ["tree", "stores"])
def test_export_with_a_matrix_that_lanes_share(name: str) -> None:
    subject = SUBJECTS[name]
    batched = subject.batched.with_options(max_depth=16)
    derivative = jax.grad(lambda x, n, w: jnp.sum(jnp.sin(batched(x, n, w))), (0, 2))
    (lanes,) = export.symbolic_shape("lanes")
    types = jax.ShapeDtypeStruct((lanes, 6), jnp.float32), jax.ShapeDtypeStruct((lanes,), jnp.int32), subject.w
    call = export.export(jax.jit(derivative))(*types).call
    for k in (4, 1):
        close(call(subject.x[:k], NUMBERS[:k], subject.w), derivative(subject.x[:k], NUMBERS[:k], subject.w))


# Elements that take different ways


@pcbatch.batch(in_axes=(0, 0, None))
def held(x: Any, n: Any, w: Any) -> Any:
    total, y = jnp.zeros(6), x
    while n > 0:
        total = total + jnp.tanh(w @ x) * y  # `x` stays what it is: it is not recorded
        y, n = y * x, n - 1
    return total


HELD = Subject(held, SUBJECTS["tree"].x, SUBJECTS["tree"].w)


def chosen(f: Function, same: bool) -> Any:
    """`f` for elements with `i` 0; for the others itself of something else, or a step without a batch."""

    def others(x: Any, w: Any) -> Any:
        return f(x * 0.4, w) if same else jnp.sin(x) * jnp.sum(w)

    def loss(x: Any, w: Any, i: Any) -> Any:
        return jnp.sum(jnp.cos(jax.lax.cond(i == 0, lambda x, w: f(x, w) * x, others, x, w)))

    return jax.grad(loss, (0, 1))


@pytest.mark.full_only
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["", "jit"])
@pytest.mark.parametrize("same", [False, True], ids=["", "same"])
@pytest.mark.parametrize("name", [*SCALARS, "held"])
def test_elements_on_different_ways(name: str, same: bool, wrap: Any) -> None:
    """JAX computes both ways for all of them, with zeros or another's tape in place of what was not recorded."""
    subject, ways = {**SUBJECTS, "held": HELD}[name], jnp.array([0, 1, 0])
    x = jnp.stack([subject.x, subject.x * 0.5, subject.x * 0.8])
    found = wrap(jax.vmap(chosen(subject, same), (0, None, 0)))(x, subject.w, ways)
    want = [chosen(subject, same)(x[k], subject.w, ways[k]) for k in range(3)]
    close(found, jax.tree.map(lambda *xs: jnp.stack(xs), *want))


@pytest.mark.full_only
def test_elements_that_share_a_matrix() -> None:
    """They are recorded together, and undone one after another."""
    x = jnp.stack([HELD.x, HELD.x * 0.5, HELD.x * 0.8])
    found = jax.vmap(gradient(HELD), (0, None))(x, HELD.w)
    close(found, jax.tree.map(lambda *xs: jnp.stack(xs), *(gradient(HELD.plain)(one, HELD.w) for one in x)))


# Options that are about calls


def test_tangents_of_donated_arguments() -> None:
    f = pcbatch.batch(lambda x, n: x * x if n > 1 else x, donate_argnames="x")
    x = jnp.array([1.0, 2.0, 3.0, 4.0])
    value, tangent = jax.jvp(lambda x: f(x, NUMBERS), (x,), (x,))
    assert value.tolist() == [1, 2, 3, 16] and tangent.tolist() == [2, 2, 3, 32]
    assert jax.vmap(lambda x: f(x, NUMBERS))(x[None]).tolist() == [[1, 2, 3, 16]] and x.sum() == 10


def test_elements_of_what_comes_without_lanes() -> None:
    f = pcbatch.batch(lambda x, w: (x * w, 2 * w), in_axes=(0, None), out_axes=(0, None))
    ws = jnp.array([1.0, 3.0])
    product, twice = jax.vmap(f, (None, 0))(X, ws)
    assert product.shape == (2, 4) and twice.tolist() == [2, 6]
    assert jax.vmap(jax.grad(lambda w: f(X, w)[1]))(ws).tolist() == [2, 2]
    with pytest.raises(UsageError):
        jax.vmap(pcbatch.batch(lambda x, w: x * w, in_axes=(0, None), out_axes=None), (None, 0))(X, ws)
    with pytest.raises(UsageError):  # the program of elements is not that of a call of these lanes
        f.with_options(in_axes=0)(ws, ws)


# Transposes


@pytest.mark.full_only
@every_subject
def test_what_is_linear_is_its_own_derivative(subject: Subject) -> None:
    """In tangents and cotangents, derivatives are linear: these go through both modes, in any order."""
    x, w = subject.x, subject.w
    y = subject(x, w)

    def pull(f: Function) -> Any:
        return jax.vjp(f, x, w)[1]

    def push(f: Function) -> Any:
        return jax.linearize(f, x, w)[1]

    back = (jnp.cos(x), jnp.cos(w))
    close(jax.linear_transpose(pull(subject), y)(back), jax.linear_transpose(pull(subject.plain), y)(back))
    for of_ct in (lambda f: jax.jacrev(pull(f))(y), lambda f: jax.grad(lambda ct: jnp.sum(pull(f)(ct)[1] ** 2))(y)):
        close(of_ct(subject), of_ct(subject.plain))
    close(jax.jit(jax.jacrev(push(subject), (0, 1)))(x, w), jax.jacrev(push(subject.plain), (0, 1))(x, w))


def test_a_run_is_not_transposed() -> None:
    subject = SUBJECTS["loop"]
    x, w = subject.x, subject.w
    for function in (lambda x: subject(x, w), lambda x: jax.jvp(lambda x: subject(x, w), (x,), (x,))[0]):
        with pytest.raises(UsageError) as info:
            jax.linear_transpose(function, x)(x)
        assert info.value.diagnostics[0].code == "PCB425" and "jax.vjp(f, x)[1]" in info.value.diagnostics[0].helps[0]
    linear = pcbatch.batch(lambda x, n: 2 * x if n > 1 else -x)
    assert jax.vjp(lambda x: linear(x, NUMBERS), x)[1](jnp.ones(4))[0].tolist() == [2, -1, -1, 2]


# Steps that JAX does not differentiate


@jax.custom_vjp
def only_reverse(x: Any) -> Any:
    return jnp.sin(x)


only_reverse.defvjp(lambda x: (only_reverse(x), x), lambda x, ct: (ct * jnp.cos(x),))


def only_forward(x: Any) -> Any:
    return jax.lax.while_loop(lambda x: x < 2.0, lambda x: 1.5 * x, x)


@pcbatch.batch
def steps(x: Any, n: Any) -> Any:
    while n > 0:
        x, n = only_reverse(x) + 0.5, n - 1
    return x


@pcbatch.batch
def spun(x: Any, n: Any) -> Any:
    while n > 0:
        x, n = only_forward(x) * 0.4, n - 1
    return x


@pcbatch.batch(in_axes=(0, None))
def spun_for_all(x: Any, w: Any) -> Any:
    scale = only_forward(w)
    while x < 5.0:
        x = x * scale
    return x


REFUSED: dict[str, tuple[str, Callable[[], Any]]] = {
    "jvp": ("only_reverse(x)", lambda: jax.jvp(lambda x: steps(x, NUMBERS), (X,), (X,))),
    "jvp in jit": ("only_reverse(x)", lambda: jax.jit(lambda x: jax.jvp(lambda x: steps(x, NUMBERS), (x,), (x,)))(X)),
    "linearize": ("only_reverse(x)", lambda: jax.linearize(lambda x: steps(x, NUMBERS), X)[1](X)),
    "hessian": ("only_reverse(x)", lambda: jax.hessian(lambda x: jnp.sum(steps(x, NUMBERS)))(X)),
    "grad": ("only_forward(x)", lambda: jax.grad(lambda x: jnp.sum(spun(x, NUMBERS)))(X)),
    "grad in jit": ("only_forward(x)", lambda: jax.jit(jax.grad(lambda x: jnp.sum(spun(x, NUMBERS))))(X)),
    "grad of what is shared": ("only_forward(w)", lambda: jax.grad(lambda w: jnp.sum(spun_for_all(X, w)))(1.1)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_jax_does_not_differentiate_has_a_line(name: str) -> None:
    where, ask = REFUSED[name]
    with pytest.raises(CompileError) as info:
        ask()
    (found,) = info.value.diagnostics
    assert found.code == "PCB424" and where in str(info.value) and "jax.custom_jvp" in found.helps[-1]
    assert len(found.helps) == (2 if "only_forward" in where else 1)


@pytest.mark.full_only
def test_the_mode_that_there_is_works() -> None:
    check_reverse(Call(steps, (X, NUMBERS), (0, 0), 4))
    assert np.isfinite(jax.jvp(lambda x: spun(x, NUMBERS), (X,), (X,))[1]).all()
    call = Call(pcbatch.batch(lambda x, n: only_reverse(x) * n if n > 1 else x), (X, NUMBERS), (0, 0), 4)
    ct = random_like(X)
    assert_all_close([jax.vjp(call.function(), X)[1]([ct])[0]], [ct * jnp.where(NUMBERS > 1, jnp.cos(X) * NUMBERS, 1)])


@pytest.mark.promotion("standard")
def test_an_array_of_numpy_that_a_loop_changes() -> None:
    """It is a constant of the block before the loop, and a result of it."""

    @pcbatch.batch
    def f(x, n):
        y = np.zeros(4)
        while n > 0:
            y[0] = x * n
            n -= 1
        return y[0]

    np.testing.assert_allclose(jax.grad(lambda x: jnp.sum(f(x, jnp.array([1, 2]))))(jnp.ones(2)), [1.0, 1.0])
