"""Derivatives of derivatives, the outer one in reverse mode too: each equals that of the plain function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import pcbatch
from pcbatch import UsageError
from tests.gradients.test_gradients_jax import NUMBERS, SUBJECTS, Subject, close, every_subject, gradient, pushed, total
from tests.records.test_gradients import WEIGHT, encode, objects

pytestmark = [pytest.mark.share(3), pytest.mark.long, pytest.mark.promotion("standard")]

Function = Callable[[Any, Any], Any]


def of_squares(f: Function, inner: Any, outer: Any) -> Function:
    """The gradient of the squared gradient."""
    return jax.grad(lambda x, w: jnp.sum(jax.grad(total(f), inner)(x, w) ** 2), outer)


def of_sines(f: Function) -> Function:
    return jax.grad(lambda x, w: sum(jnp.sum(jnp.sin(g)) for g in gradient(f)(x, w)), (0, 1))


DERIVATIVES: dict[str, Callable[[Function], Function]] = {
    "jacrev of jacrev": lambda f: jax.jacrev(jax.jacrev(f, (0, 1)), (0, 1)),
    "jacrev of jacfwd": lambda f: jax.jacrev(jax.jacfwd(f, (0, 1)), (0, 1)),
    "grad of grad": of_sines,
    "by x, then by w": lambda f: of_squares(f, 0, 1),
    "by w, then by x": lambda f: of_squares(f, 1, 0),
    "grad of jvp": lambda f: jax.grad(lambda x, w: sum(map(jnp.sum, pushed(f)(x, w))), (0, 1)),
    "grad of a step along the gradient": lambda f: jax.grad(
        lambda x, w: total(f)(x - 0.1 * jax.grad(total(f))(x, w), w), (0, 1)
    ),
}
HIGHER: dict[str, Callable[[Function], Function]] = {
    "grad of grad of grad": lambda f: jax.grad(lambda x, w: sum(map(jnp.sum, of_sines(f)(x, w))), (0, 1)),
    "jvp of grad of grad": lambda f: pushed(of_sines(f)),
    "grad of jvp of grad": lambda f: jax.grad(
        lambda x, w: sum(map(jnp.sum, jax.tree.leaves(pushed(gradient(f))(x, w)))), (0, 1)
    ),
    "by w, of jvp by x of grad": lambda f: jax.grad(
        lambda x, w: jnp.sum(jax.jvp(lambda x: jax.grad(total(f))(x, w), (x,), (jnp.cos(x),))[1]), 1
    ),
    "grad of jvp of jvp": lambda f: jax.grad(lambda x, w: pushed(lambda *v: pushed(total(f))(*v)[1])(x, w)[1], (0, 1)),
}


@pytest.mark.share(56, 0, 21)
@pytest.mark.parametrize("jit", [False, True], ids=["", "jit"])
@pytest.mark.parametrize("name", DERIVATIVES)
@every_subject
def test_derivatives_of_derivatives(subject: Subject, name: str, jit: bool) -> None:
    derivative = {**DERIVATIVES, **HIGHER}[name]
    want = derivative(subject.plain)(*subject.args)
    close((jax.jit(derivative(subject)) if jit else derivative(subject))(*subject.args), want)


@pytest.mark.full_only
@pytest.mark.share(12)
@pytest.mark.parametrize("jit", [False, True], ids=["", "jit"])
@pytest.mark.parametrize("name", HIGHER)
@pytest.mark.parametrize("subject", ["loop", "recursion"])
def test_derivatives_of_higher_order(subject: str, name: str, jit: bool) -> None:
    test_derivatives_of_derivatives(SUBJECTS[subject], name, jit)


@pytest.mark.full_only
@pytest.mark.share(12)
@every_subject
def test_with_snapshots(subject: Subject) -> None:
    batched = subject.batched.with_options(checkpoints=4)
    close(of_sines(lambda x, w: batched(x, NUMBERS, w))(*subject.args), of_sines(subject.plain)(*subject.args))


@pytest.mark.share(4)
@every_subject
def test_numerically(subject: Subject) -> None:
    with jax.enable_x64(True):  # no branch is near
        args = tuple(jnp.asarray(np.asarray(v, np.float64)) for v in (subject.x + 0.03, subject.w))
        for modes in (("rev",), ("fwd", "rev")):
            check_grads(subject, args, order=2, modes=modes, rtol=1e-5, atol=1e-5)


# Elements


@pytest.mark.share(36)
@pytest.mark.parametrize("axes", [(0, None), (0, 0), (None, 0)], ids=["x", "x and w", "w"])
@pytest.mark.parametrize("where", ["outside", "between", "inside"])
@every_subject
def test_with_vmap(subject: Subject, where: str, axes: tuple[Any, Any]) -> None:
    """Around both gradients, around the inner one, around the function."""
    args = [v if axis is None else jnp.stack([v, v * 0.5]) for v, axis in zip(subject.args, axes, strict=True)]

    def each(f: Function) -> Function:
        """A `vmap` in plain Python."""
        elements = lambda k, values: (v if a is None else v[k] for v, a in zip(values, axes, strict=True))
        return lambda *values: jax.tree.map(lambda *xs: jnp.stack(xs), *(f(*elements(k, values)) for k in range(2)))

    def derivative(f: Function, mapped: Any) -> Function:
        if where == "outside":
            return mapped(of_sines(f))
        inner = mapped(gradient(f)) if where == "between" else gradient(mapped(f))
        return jax.grad(lambda x, w: sum(jnp.sum(jnp.sin(g)) for g in inner(x, w)), (0, 1))

    found = jax.jit(derivative(subject, lambda f: jax.vmap(f, axes)))(*args)
    close(found, derivative(subject.plain, each)(*args))


def test_elements_with_directions_of_what_lanes_share() -> None:
    """Elements are recorded together, and have tangents of what is the same for all of them."""
    subject = SUBJECTS["loop"]
    x, directions = jnp.stack([subject.x, subject.x * 0.5]), jnp.array([1.0, -2.0])

    def along(f: Function) -> Any:
        return lambda x, v: jax.jvp(lambda w: jax.grad(total(f))(x, w), (subject.w,), (v,))[1]

    found = jax.vmap(along(subject))(x, directions)
    close(found, jnp.stack([along(subject.plain)(x[k], directions[k]) for k in range(2)]))


# Programs


@pcbatch.batch(in_axes=(0, 0, None))
def appended(x: Any, n: Any, w: Any) -> Any:
    xs = [x]
    while len(xs) <= n:
        xs.append(jnp.sin(xs[-1]) * w + xs[0])
    product = xs.pop()
    for y in xs:
        product = product * (y + 1.0)
    return product


@pcbatch.batch(in_axes=(0, 0, None))
def descent(x: Any, n: Any, w: Any) -> Any:
    """Steps along a gradient inside the lane."""
    while n > 0:
        x = x - 0.1 * jax.grad(lambda x: jnp.sin(x * w) * x)(x)
        n = n - 1
    return x * x


PROGRAMS = {"appended": appended, "descent": descent}


@pytest.mark.share(6)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("derivative", ["grad of grad", "jacrev of jacrev", "jacfwd of jacrev"])
def test_programs(derivative: str, name: str) -> None:
    subject = Subject(PROGRAMS[name], SUBJECTS["loop"].x, SUBJECTS["loop"].w)
    args = subject.args
    if derivative == "grad of grad":
        close(jax.jit(of_sines(subject))(*args), of_sines(subject.plain)(*args))
        return
    outer = jax.jacrev if derivative == "jacrev of jacrev" else jax.jacfwd
    hessian = jax.hessian(total(subject.plain), (0, 1))(*args)
    close(outer(jax.jacrev(total(subject), (0, 1)), (0, 1))(*args), hessian)


@pytest.mark.full_only
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_numerically(name: str) -> None:
    subject = Subject(PROGRAMS[name], SUBJECTS["loop"].x, SUBJECTS["loop"].w)
    args = subject.args
    with jax.enable_x64(True):
        exact = tuple(jnp.asarray(np.asarray(v, np.float64)) for v in args)
        check_grads(lambda x, w: subject.batched(x, NUMBERS, w), exact, order=2, rtol=1e-5, atol=1e-5)


@pytest.mark.full_only
def test_packed_records() -> None:
    """The columns of packed objects hold integers and floating numbers."""
    packed = pcbatch.pack(objects())

    def loss(weight: Any, rows: Any) -> Any:
        moved = jax.tree.unflatten(tree, [rows if k == at else x for k, x in enumerate(leaves)])
        return jnp.sum(encode(weight, moved))

    leaves, tree = jax.tree.flatten(packed)
    at = next(k for k, x in enumerate(leaves) if x is packed.columns[3])
    with jax.enable_x64(True):
        weight, rows = (jnp.asarray(np.asarray(x, np.float64)) for x in (WEIGHT, packed.columns[3]))
        check_grads(loss, (weight, rows), order=2, modes=("fwd", "rev"), rtol=1e-5, atol=1e-5)


def test_integers_beside() -> None:
    @pcbatch.batch
    def f(x: Any, n: Any) -> Any:
        count = 0
        while count < n:
            x, count = x * x, count + 1
        return x, count

    x, n = jnp.array([0.5, 0.9, 1.1]), jnp.array([2, 0, 1])

    def squared(x: Any, n: Any) -> Any:
        of_x, of_n = jax.grad(lambda x, n: f(x, n)[0].sum(), (0, 1), allow_int=True)(x, n)
        assert of_n.dtype == jax.dtypes.float0
        return jnp.sum(of_x**2)

    found, of_n = jax.grad(squared, (0, 1), allow_int=True)(x, n)
    close(found, jnp.array([2 * (4 * 0.5**3) * (12 * 0.5**2), 0, 2 * 2.2 * 2]))
    assert of_n.dtype == jax.dtypes.float0


# What second derivatives are for


@pytest.mark.full_only
def test_gradient_penalty() -> None:
    """Of a norm of the gradient by inputs, by weights that lanes share."""
    subject = SUBJECTS["tree"]

    def penalty(f: Function) -> Any:
        def loss(w: Any, x: Any) -> Any:
            norms = jnp.linalg.norm(jax.grad(lambda x: jnp.sum(f(x, w)))(x), axis=1)
            return jnp.sum((norms - 1.0) ** 2)

        return jax.value_and_grad(loss)(subject.w, subject.x)

    close(penalty(subject), penalty(subject.plain))


@pytest.mark.full_only
def test_learning_to_learn() -> None:
    """The gradient of a loss after steps along its gradient, by where they begin and by their length."""
    subject = SUBJECTS["recursion"]

    def outer(f: Function) -> Any:
        def loss(w: Any, rate: Any) -> Any:
            for _ in range(2):
                w = w - rate * jax.grad(lambda w: jnp.mean(f(subject.x, w) ** 2))(w)
            return jnp.mean(f(subject.x, w) ** 2)

        return jax.grad(loss, (0, 1))(subject.w, 0.01)

    close(outer(subject), outer(subject.plain))


# Cotangents that happen to be zero


@pcbatch.batch(in_axes=(0, 0, None))
def cubed(x: Any, n: Any, w: Any) -> Any:
    y = x
    while n > 0:
        y = y * x
        n = n - 1
    return y * w


@pcbatch.batch(in_axes=(0, 0, None))
def prepared(x: Any, n: Any, w: Any) -> Any:
    scale = jnp.sin(w) * jnp.cos(w)  # before the first trip
    while n > 0:
        x = x * scale
        n = n - 1
    return x


@pcbatch.batch(in_axes=(0, 0, None))
def in_chunks(x: Any, n: Any, w: Any) -> Any:
    """The matrix is large, so that its cotangents are deferred."""
    y = w @ x
    while n > 0:
        y = jnp.sqrt(1.0 + (w @ y) ** 2) * x
        n = n - 1
    return y


ZEROS = {
    **SUBJECTS,
    "cubed": Subject(cubed, jnp.array([0.5, 1.0, 2.0, 0.3]), jnp.float32(0)),
    "prepared": Subject(prepared, jnp.array([1.0, 1.0, 2.0, -2.0]), jnp.float32(0.5)),
    "in_chunks": Subject(in_chunks, SUBJECTS["tree"].x, SUBJECTS["tree"].w),
}


@pytest.mark.share(7)
@pytest.mark.parametrize("name", ZEROS)
def test_cotangents_of_zero_have_tangents(name: str) -> None:
    """At the least of a sum of squares all cotangents are zero, and the Hessian is a product of Jacobians."""
    subject = ZEROS[name]

    def squares(f: Function) -> Function:
        return lambda x, w: jnp.sum((f(x, w) - jax.lax.stop_gradient(f(x, w))) ** 2)

    want = jax.hessian(squares(subject.plain), (0, 1))(*subject.args)
    close(jax.jit(jax.hessian(squares(subject), (0, 1)))(*subject.args), want)
    close(jax.jit(jax.jacrev(jax.jacrev(squares(subject), (0, 1)), (0, 1)))(*subject.args), want)


@pytest.mark.full_only
def test_a_factor_of_zero() -> None:
    args = ZEROS["cubed"].args
    want = jax.hessian(total(ZEROS["cubed"].plain), (0, 1))(*args)
    assert jnp.any(want[0][1] != 0), "the derivative by the factor depends on the other"
    close(jax.hessian(total(ZEROS["cubed"]), (0, 1))(*args), want)
    close(jax.jacrev(jax.jacrev(total(ZEROS["cubed"]), (0, 1)), (0, 1))(*args), want)


@pytest.mark.full_only
def test_what_is_not_looked_at_stays_out() -> None:
    """Of lanes without cotangents and tangents, and of the arm that was not taken, nothing is infinite."""

    @pcbatch.batch(in_axes=(0, None))
    def f(x: Any, w: Any) -> Any:
        y = x * w
        if x > 0:
            y = jnp.sqrt(x) * jnp.log(x) * w
        return y + jnp.where(x > 0, x, 0.0)

    def plain(x: Any, w: Any) -> Any:
        return jnp.stack([f.plain(v, w) for v in x])

    x, w = jnp.array([0.5, -1.0, 2.0, 0.0]), jnp.float32(0.7)
    close(of_sines(f)(x, w), of_sines(plain)(x, w))
    close(jax.hessian(total(f), (0, 1))(x, w), jax.hessian(total(plain), (0, 1))(x, w))


# Failures


@pcbatch.batch(in_axes=(0, None))
def picky(x: Any, w: Any) -> Any:
    while x < 5.0:
        assert x > 0
        x = x * x * w
    return x


@pytest.mark.parametrize("jit", [False, True], ids=["", "jit"])
def test_a_lane_that_fails_has_no_second_derivative(jit: bool) -> None:
    x, w = jnp.array([2.0, -1.0, 1.8]), jnp.float32(1.1)

    def squared(x: Any, w: Any, counts: Any) -> Any:
        return jnp.sum(jax.grad(lambda x: jnp.sum(jnp.where(counts, picky.run(x, w).value, 0.0)))(x) ** 2)

    derivative = jax.grad(squared, (0, 1))
    of_x, of_w = (jax.jit(derivative) if jit else derivative)(x, w, jnp.array([True, True, True]))
    plain = jax.grad(lambda x: jax.grad(lambda x: picky.plain(x, w))(x) ** 2)
    close(of_x[jnp.array([0, 2])], jnp.array([plain(x[0]), plain(x[2])]))
    assert np.isnan(of_x[1]) and np.isnan(of_w)
    # Who leaves it out is not disturbed.
    of_x, of_w = (jax.jit(derivative) if jit else derivative)(x, w, jnp.array([True, False, True]))
    close(of_x, jnp.array([plain(x[0]), 0.0, plain(x[2])]))
    assert np.isfinite(of_w)


def test_tangents_of_a_lane_that_fails() -> None:
    """Its cotangent is zero, the tangent of that is not."""
    x, w = jnp.array([2.0, -1.0, 1.8]), jnp.float32(1.1)
    pulled = lambda x, ct: jax.vjp(lambda x: picky.run(x, w).value, x)[1](ct)[0]
    for of_ct, fails in ((jnp.zeros(3), False), (jnp.ones(3), True)):
        found = jax.jvp(pulled, (x, jnp.array([1.0, 0.0, 1.0])), (jnp.ones(3), of_ct))[1]
        assert np.isnan(found).tolist() == [False, fails, False]


@pytest.mark.full_only
def test_a_full_tape_gives_nan_and_says_so() -> None:
    @pcbatch.batch(max_tape=5, on_failure="warn")
    def sines(x: Any, n: Any) -> Any:
        while n > 0:
            x, n = jnp.sin(x), n - 1
        return x

    second = jax.jit(jax.grad(lambda x, n: jnp.sum(jax.grad(lambda x: jnp.sum(sines(x, n)))(x) ** 2)))
    x = jnp.array([0.5, 0.7])
    with pytest.warns(UserWarning, match="PCB423"):
        assert np.isnan(second(x, jnp.array([40, 1]))).all()
        jax.effects_barrier()
    assert np.isfinite(second(x, jnp.array([5, 1]))).all()


def test_lanes_print_once(capfd: pytest.CaptureFixture[str]) -> None:
    @pcbatch.batch
    def talking(x: Any, n: Any) -> Any:
        while n > 0:
            print("at", n)
            x, n = jnp.sin(x), n - 1
        return x

    n = jnp.array([1, 3])
    x, n = jnp.array([0.5, 0.7]), jnp.array([1, 3])

    def loss(x: Any) -> Any:
        return jnp.sum(talking(x, n) ** 2)

    firsts = (jax.grad(loss), lambda x: jax.jvp(loss, (x,), (jnp.ones(2),))[1])
    for first in firsts:
        jax.grad(lambda x, first=first: jnp.sum(jnp.sin(first(x))))(x)
        jax.effects_barrier()
        assert len(capfd.readouterr().out.splitlines()) == 4


def test_what_is_not_linear_is_not_transposed() -> None:
    subject = SUBJECTS["loop"]
    x, w = subject.args
    for function in (
        lambda x: jax.jvp(subject, (x, w), (w * 0 + x * 0 + 1, w))[1],
        lambda x: jax.grad(total(subject))(x, w),
    ):
        with pytest.raises(UsageError) as info:
            jax.linear_transpose(function, x)(x)
        assert info.value.diagnostics[0].code == "PCB425"
