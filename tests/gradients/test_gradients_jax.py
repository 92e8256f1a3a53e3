"""Derivatives inside JAX's transformations: each equals the same transformation of the plain function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import pcbatch

pytestmark = [pytest.mark.share(3), pytest.mark.long, pytest.mark.promotion("standard")]

MATRIX = jnp.asarray(np.random.default_rng(3).normal(size=(6, 6)), jnp.float32) / 3
ROWS = jnp.asarray(np.random.default_rng(4).uniform(-1, 1, (4, 6)), jnp.float32)
NUMBERS = jnp.array([3, 1, 0, 4])


@pcbatch.batch(in_axes=(0, 0, None))
def loop(x, n, w):
    while n > 0:
        if x > 0.7:
            x = x * w
        else:
            x = jnp.sin(x) + w
        if x > 3:
            break
        n = n - 1
    return x


@pcbatch.batch(in_axes=(0, 0, None))
def recursion(x, n, w):
    if n <= 0:
        return w * x
    if x > 1:
        return jnp.sin(x)
    return recursion(x * 0.8, n - 1, w) * recursion(x + 0.1, n - 2, w) + w


@pcbatch.batch(in_axes=(0, 0, None))
def tree(x, n, w):
    if n <= 0:
        return jnp.sin(x)
    a = tree(w @ x, n - 1, w)
    b = tree(x * 0.5, n - 2, w)
    return jnp.tanh(w @ (a * b) + x)


@pcbatch.batch(in_axes=(0, 0, None))
def stores(x, n, w):
    xs = jnp.zeros(20).at[:6].set(x)
    while n > 0:
        xs = xs.at[n + 2].set(w[n, 1] * xs[n])
        xs = xs.at[2 * n].add(xs[n + 1] * xs[0])
        n = n - 1
    return xs[:8]


@dataclass(frozen=True, eq=False)
class Subject:
    """A function of a value per lane and one that lanes share, batched and plain."""

    batched: Any
    x: Any
    w: Any

    def __call__(self, x: Any, w: Any) -> Any:
        return self.batched(x, NUMBERS, w)

    def plain(self, x: Any, w: Any) -> Any:
        """The same in plain Python."""
        return jnp.stack([self.batched.plain(x[k], int(n), w) for k, n in enumerate(NUMBERS)])

    @cached_property
    def args(self) -> tuple[Any, Any]:
        """What both are called with."""
        return self.x, self.w


NUMBER = jnp.array([0.1, 0.5, 1.0, 2.0])
SUBJECTS = {
    "loop": Subject(loop, NUMBER, jnp.float32(0.61)),
    "recursion": Subject(recursion, NUMBER, jnp.float32(0.61)),
    "tree": Subject(tree, ROWS, MATRIX),
    "stores": Subject(stores, ROWS, MATRIX),
}
every_subject = pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS)
Function = Callable[[Any, Any], Any]


def close(found: Any, want: Any) -> None:
    """Equal trees of arrays, to rounding."""
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-6)


def total(f: Function) -> Function:
    """A number of which no part is missing."""
    return lambda x, w: jnp.sum(jnp.sin(f(x, w)))


def gradient(f: Function) -> Function:
    return jax.grad(total(f), (0, 1))


def pushed(f: Function) -> Function:
    return lambda x, w: jax.jvp(f, (x, w), (jnp.cos(x), jnp.cos(w)))


DERIVATIVES: dict[str, Callable[[Function], Function]] = {
    "value_and_grad": lambda f: jax.value_and_grad(total(f), (0, 1)),
    "jvp": pushed,
    "jacrev": lambda f: jax.jacrev(f, (0, 1)),
    "jacfwd": lambda f: jax.jacfwd(f, (0, 1)),
    "linearize": lambda f: lambda x, w: jax.linearize(f, x, w)[1](x, w),
    "transpose": lambda f: lambda x, w: jax.linear_transpose(jax.linearize(f, x, w)[1], x, w)(jnp.cos(f(x, w))),
    "stop_gradient": lambda f: gradient(lambda x, w: f(x, jax.lax.stop_gradient(w)) * f(jax.lax.stop_gradient(x), w)),
    "twice": lambda f: gradient(lambda x, w: f(x, w) * f(x * 0.5, w)),
    "hessian": lambda f: jax.hessian(total(f), (0, 1)),
    "jvp of value_and_grad": lambda f: pushed(jax.value_and_grad(total(f), (0, 1))),
    "jacfwd of jacfwd": lambda f: jax.jacfwd(jax.jacfwd(total(f), (0, 1)), (0, 1)),
}


@pytest.mark.share(120)
@pytest.mark.parametrize("jit", [False, True], ids=["", "jit"])
@pytest.mark.parametrize("name", DERIVATIVES)
@every_subject
def test_derivatives(subject: Subject, name: str, jit: bool) -> None:
    derivative = DERIVATIVES[name]
    want = derivative(subject.plain)(*subject.args)
    close((jax.jit(derivative(subject)) if jit else derivative(subject))(*subject.args), want)


def scanned(f: Function) -> Function:
    def step(w: Any, x: Any) -> Any:
        y = f(x, w)
        return w * 0.9 + jnp.sum(y) * 1e-3, y

    return lambda x, w: jax.lax.scan(step, w, jnp.stack([x, x * 0.5]))[1]


def unrolled(f: Function) -> Function:
    def one_after_another(x: Any, w: Any) -> Any:
        first = f(x, w)
        return jnp.stack([first, f(x * 0.5, w * 0.9 + jnp.sum(first) * 1e-3)])

    return one_after_another


def branched(f: Function) -> Function:
    return lambda x, w: jax.lax.cond(jnp.sum(x) > -99, f, lambda x, w: f(x, w) * 2, x, w)


def doubled(f: Function) -> Function:
    """Its reverse mode is twice what it should be."""
    found = jax.custom_vjp(f)
    found.defvjp(lambda *args: jax.vjp(f, *args), lambda pull, ct: jax.tree.map(lambda x: 2 * x, pull(ct)))
    return found


def two_of(f: Function) -> Function:
    return lambda x, w: 2 * f(x, w) - jax.lax.stop_gradient(f(x, w))


POLICIES = jax.checkpoint_policies
AROUND: dict[str, tuple[Callable[[Function], Function], Callable[[Function], Function]]] = {
    "scan": (scanned, unrolled),
    "cond": (branched, lambda f: f),
    "checkpoint": (jax.checkpoint, lambda f: f),
    "checkpoint, all": (lambda f: jax.checkpoint(f, policy=POLICIES.everything_saveable), lambda f: f),
    "checkpoint, products": (lambda f: jax.checkpoint(f, policy=POLICIES.dots_saveable), lambda f: f),
    "custom_vjp": (doubled, two_of),
}


@pytest.mark.share(120)
@pytest.mark.parametrize("jit", [False, True], ids=["", "jit"])
@pytest.mark.parametrize("name", AROUND)
@every_subject
def test_gradients_of_what_holds_a_batch(subject: Subject, name: str, jit: bool) -> None:
    around, plain = AROUND[name]
    derivative = gradient(around(subject))
    want = gradient(plain(subject.plain))(*subject.args)
    close((jax.jit(derivative) if jit else derivative)(*subject.args), want)


ELEMENTS: dict[str, Callable[[Function], Function]] = {
    "grad": gradient,
    "jvp": pushed,
    "jacrev": lambda f: jax.jacrev(f, (0, 1)),
    "jacfwd": lambda f: jax.jacfwd(f, (0, 1)),
    "hessian": lambda f: jax.hessian(total(f), (0, 1)),
}


@pytest.mark.share(60)
@pytest.mark.parametrize("axes", [(0, None), (0, 0), (None, 0)], ids=["x", "x and w", "w"])
@pytest.mark.parametrize("name", ELEMENTS)
@every_subject
def test_vmap_of_derivatives(subject: Subject, name: str, axes: tuple[Any, Any]) -> None:
    derivative = ELEMENTS[name]
    args = [v if axis is None else jnp.stack([v, v * 0.5]) for v, axis in zip(subject.args, axes, strict=True)]

    def element(k: int) -> Any:
        return derivative(subject.plain)(*(v if axis is None else v[k] for v, axis in zip(args, axes, strict=True)))

    want = jax.tree.map(lambda *parts: jnp.stack(parts), element(0), element(1))
    close(jax.jit(jax.vmap(derivative(subject), axes))(*args), want)


@pytest.mark.full_only
@pytest.mark.parametrize("axes", [(0, None), (0, 0), (None, 0)], ids=["x", "x and w", "w"])
@every_subject
def test_gradients_of_vmap(subject: Subject, axes: tuple[Any, Any]) -> None:
    args = [v if axis is None else jnp.stack([v, v * 0.5]) for v, axis in zip(subject.args, axes, strict=True)]

    def plain(x: Any, w: Any) -> Any:
        return jnp.stack([subject.plain(*(v if a is None else v[k] for v, a in zip((x, w), axes))) for k in range(2)])

    close(gradient(jax.vmap(subject, axes))(*args), gradient(plain)(*args))
    close(pushed(jax.vmap(subject, axes))(*args), pushed(plain)(*args))


@pytest.mark.full_only
@every_subject
def test_vmap_of_vmap(subject: Subject) -> None:
    x = jnp.stack([jnp.stack([subject.x * (i + 1) * 0.3, subject.x * (j + 1) * 0.2]) for i, j in ((0, 1), (2, 0))])
    derivative = jax.grad(total(subject))
    found = jax.vmap(jax.vmap(lambda x: derivative(x, subject.w)))(x)
    want = jax.grad(total(subject.plain))
    close(found, jnp.stack([jnp.stack([want(x[i, j], subject.w) for j in range(2)]) for i in range(2)]))


@pytest.mark.share(4)
@every_subject
def test_numerically(subject: Subject) -> None:
    x = subject.x + 0.03  # no branch is near
    with jax.enable_x64(True):
        args = jnp.asarray(np.asarray(x, np.float64)), jnp.asarray(np.asarray(subject.w, np.float64))
        check_grads(subject, args, order=1, modes=("fwd", "rev"), rtol=1e-6, atol=1e-6)
        check_grads(subject, args, order=2, modes=("fwd",), rtol=1e-5, atol=1e-5)


def test_integers_have_derivatives_of_no_bits() -> None:
    float0 = jax.dtypes.float0
    f = pcbatch.batch(lambda x, n: (x * n if n > 1 else x, n + 1, x > 0))
    _, pull = jax.vjp(f, NUMBER, NUMBERS)
    zero = np.zeros(4, float0)
    of_x, of_n = pull((jnp.ones(4), zero, zero))
    assert of_x.tolist() == [3, 1, 1, 4] and of_n.dtype == float0 and of_n.shape == (4,)
    _, tangents = jax.jvp(f, (NUMBER, NUMBERS), (NUMBER, zero))
    assert [t.dtype for t in tangents] == [np.float32, float0, float0]
    found = jax.grad(lambda x, n: f(x, n)[0].sum(), (0, 1), allow_int=True)(NUMBER, NUMBERS)
    assert found[0].tolist() == [3, 1, 1, 4] and found[1].dtype == float0


@pytest.mark.full_only
def test_results_of_run_and_map() -> None:
    subject = SUBJECTS["loop"]

    def run(x: Any, w: Any) -> Any:
        result = loop.run(x, NUMBERS, w)
        return result.value.sum(), result.status

    (value, status), found = jax.value_and_grad(run, (0, 1), has_aux=True)(*subject.args)
    want = jax.value_and_grad(lambda x, w: subject.plain(x, w).sum(), (0, 1))(*subject.args)
    close((value, found), want)
    assert status.tolist() == [0] * 4

    def through_two(x: Any, w: Any) -> Any:
        return loop.map(x, NUMBERS, w, lanes=2).value

    close(gradient(through_two)(*subject.args), gradient(subject.plain)(*subject.args))
    close(jax.jit(gradient(through_two))(*subject.args), gradient(subject.plain)(*subject.args))
    close(pushed(through_two)(*subject.args), pushed(subject.plain)(*subject.args))


def test_weak_types_and_python_numbers() -> None:
    f = pcbatch.batch(lambda x, w: x * w if x > 0.7 else x, in_axes=(0, None))
    for derivative in (jax.grad(lambda w: f(NUMBER, w).sum()), jax.jit(jax.grad(lambda w: f(NUMBER, w).sum()))):
        assert float(derivative(2.0)) == 3.0
    assert jax.jvp(lambda w: f(NUMBER, w), (2.0,), (1.0,))[1].tolist() == [0, 0, 1, 2]


@pytest.mark.promotion("strict")
def test_strict_promotion() -> None:
    f = pcbatch.batch(lambda x: x * x if x > 0.7 else jnp.sin(x))
    square = jax.hessian(lambda x: f(x).sum())(NUMBER)
    close(jnp.diag(square), jnp.array([-np.sin(0.1), -np.sin(0.5), 2, 2], jnp.float32))


@pytest.mark.full_only
def test_without_jit_and_with_debug_nans() -> None:
    f = pcbatch.batch(lambda x: x * x if x > 0.7 else jnp.log(x))
    want = jnp.array([10.0, 2, 2, 4])
    with jax.disable_jit():
        close(jax.grad(lambda x: f(x).sum())(NUMBER), want)
    with jax.debug_nans(True):
        close(jax.grad(lambda x: f(x).sum())(NUMBER), want)


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)])
def test_functions_without_a_step(axes: tuple[Any, Any]) -> None:
    f = pcbatch.batch(lambda x, n, w: (x, n), in_axes=(0, 0, None))
    args = [v if axis is None else jnp.stack([v, v]) for v, axis in zip((NUMBER, jnp.float32(2)), axes, strict=True)]
    derivative = jax.grad(lambda x, w: f(x, NUMBERS, w)[0].sum(), (0, 1))
    of_x, of_w = jax.vmap(derivative, axes)(*args)
    assert of_x.tolist() == [[1.0] * 4] * 2 and of_w.tolist() == [0.0] * 2
