"""Gradients of calls side by side: those of the plain function, whatever the widths and the order of visits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.runtime.tasks import TaskExecutable, TaskOptions
from pcbatch.transforms.tasks.backward_run import TaskBackward
from tests.oracles.plans import planned

pytestmark = [pytest.mark.share(12), pytest.mark.promotion("standard"), pytest.mark.timeout(300)]


@pytest.fixture
def undone(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A note of each gradient that is computed by tasks, and of each part of one that lanes compute again."""
    notes: list[str] = []
    for name, note in (("_by_tasks", "tasks"), ("_again", "lanes"), ("_lanes", "lanes inside a trace")):
        was = getattr(TaskBackward, name)

        def noted(self: Any, *args: Any, was: Any = was, note: str = note) -> Any:
            notes.append(note)
            return was(self, *args)

        monkeypatch.setattr(TaskBackward, name, noted)
    return notes


def total(result: Any) -> Any:
    """A number that depends on each floating number of a result in another way."""
    leaves = [x for x in jax.tree.leaves(result) if jnp.issubdtype(jnp.result_type(x), jnp.floating)]
    return sum(jnp.sum(jnp.cos(x + 0.3 * k)) for k, x in enumerate(leaves))


def plain_gradient(fn: Callable[..., Any], args: Sequence[Any], shared: Sequence[int], by: Sequence[int]) -> Any:
    """The gradient of the plain function, which takes one example after another."""
    count = next(len(x) for k, x in enumerate(args) if k not in shared)
    given = [x if k in shared else np.asarray(x) for k, x in enumerate(args)]

    def loss(*moved: Any) -> Any:
        now = dict(zip(by, moved, strict=True))

        def argument(k: int, i: int) -> Any:
            if k in shared:
                return now.get(k, given[k])
            return now[k][i] if k in now else given[k][i].item()

        results = [fn(*(argument(k, i) for k in range(len(given)))) for i in range(count)]
        return total(jax.tree.map(lambda *xs: jnp.stack([jnp.asarray(x, float) for x in xs]), *results))

    return jax.grad(loss, tuple(range(len(by))))(*(jnp.asarray(args[k]) for k in by))


def gradient(fn: Any, args: Sequence[Any], shared: Sequence[int], by: Sequence[int], **options: Any) -> Any:
    """The gradient of the batched function."""
    axes = tuple(None if k in shared else 0 for k in range(len(args)))
    batched = pcbatch.batch(fn, **planned(fork="always", in_axes=axes, **options))
    return jax.grad(lambda *xs: total(batched(*xs)), tuple(by))(*args)


def close(found: Any, wanted: Any) -> None:
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=1e-5)


# Programs


def fib(x, n):
    """Numbers that depend on the argument, with base cases of two kinds."""
    if n <= 0:
        return x
    if n == 1:
        return jnp.sin(x) * 0.5
    return fib(x, n - 1) * x + fib(x * 0.9, n - 2)


def even(w, x, n):
    """Two functions that call each other, and one weight for all examples."""
    if n <= 0:
        return x * w[0]
    return odd(w, x * 0.5, n - 1) - odd(w, x + w[1], n - 2)


def odd(w, x, n):
    if n <= 1:
        return jnp.tanh(x) + w[2]
    return even(w, x, n - 1) * even(w, x - 0.1, n - 2)


def looping(x, n):
    """A loop in each call, and values that live across the calls."""
    scale = 1.0
    for k in range(n):
        scale = scale * 0.5 + x * 0.1 * k
    if n <= 1:
        return scale
    one, other = looping(x * 0.7, n - 1), looping(x + 0.1, n - 2)
    return scale * one + other * x


def several(x, n):
    """Calls one after the other and side by side: a frame that is opened again; a tuple of results, one unused."""
    if n <= 0:
        return x, x * 2.0
    a, _ = several(x * 0.5, n - 1)
    b, c = several(x + 0.2, n - 2)
    d, e = several(a * b, n - 3)
    f, _ = several(a - b, n - 3)
    return d + f * c, e * a


def spread(xs, n):
    """A constant of each example, of which calls read a part."""
    return part(xs, 0, n)


def part(xs, first, n):
    if n <= 1:
        return xs[first] * xs[first]
    half = n // 2
    return part(xs, first, half) * 0.7 + jnp.sin(part(xs, first + half, n - half))


def safe_root(x, n):
    """Numbers whose derivative is not finite where they are not used."""
    if n <= 0:
        return jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 0.0)), 0.0)
    return safe_root(x - 1.0, n - 1) + safe_root(x * 0.5, n - 2)


X, N = jnp.array([0.5, 0.7, -0.4, 1.1, 0.3]), jnp.array([4, 0, 1, 6, 3], jnp.int32)
W = jnp.array([0.3, -0.2, 0.9])
CASES: dict[str, tuple[Any, tuple[Any, ...], tuple[int, ...], tuple[int, ...]]] = {
    "fib": (fib, (X, N), (), (0,)),
    "even and odd": (even, (W, X, N), (0,), (0, 1)),
    "loops": (looping, (X, N), (), (0,)),
    "frames again": (several, (X, N), (), (0,)),
    "parts of a constant": (spread, (jnp.linspace(-1.0, 1.0, 40).reshape(5, 8), N + 1), (), (0,)),
    "not finite elsewhere": (safe_root, (jnp.array([2.0, 0.0, -1.0, 3.0, 1.0]), N), (), (0,)),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_plain_python(name: str, undone: list[str]) -> None:
    fn, args, shared, by = CASES[name]
    found = gradient(fn, args, shared, by)
    if name == "not finite elsewhere":
        close(found, jax.grad(lambda x: total(pcbatch.batch(fn, plan=pcbatch.Plan(fork="never"))(x, N)))(args[0]))
    else:
        close(found, plain_gradient(fn, args, shared, by))
    assert undone == ["tasks"]


@pytest.mark.full_only
@pytest.mark.parametrize("name", ["even and odd", "frames again"])
@pytest.mark.parametrize(("width", "frames", "reserve"), [(1, 12, 11), (2, 20, 12), (3, 40, 12), (4, 400, 12)])
def test_widths_and_pools_make_no_difference(
    name: str, width: int, frames: int, reserve: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Visits of few records, and pools with hardly a frame."""
    options = TaskOptions(width=width, frames=frames, reserve=reserve)
    monkeypatch.setattr("pcbatch.compiler.program.TaskExecutable", partial(TaskExecutable, options=options))
    fn, args, shared, by = CASES[name]
    close(gradient(fn, args, shared, by), plain_gradient(fn, args, shared, by))


def picky(w, x, n):
    """Some lanes raise, one call deep or at once."""
    if n < 0:
        raise ValueError("bad")
    if n == 0:
        return x * w
    return picky(w, x * 0.5, n - 2) * 0.5 + picky(w, x, n - 1)


@pytest.mark.share(2)
@pytest.mark.parametrize("of_all", [False, True], ids=["of good ones", "of all"])
@pytest.mark.parametrize("jit", [False, True], ids=["", "jit"])
def test_examples_that_fail_have_the_gradient_of_lanes(jit: bool, of_all: bool, undone: list[str]) -> None:
    """NaN for them alone; and the others have that of the plain function."""
    x, n = jnp.array([1.0, 2.0, 0.5, 0.7]), jnp.array([0, 2, 1, 0], jnp.int32)
    good = jnp.array([True, False, False, True])

    def loss(w: Any, x: Any, fork: str) -> Any:
        values = pcbatch.batch(picky, in_axes=(None, 0, 0), plan=pcbatch.Plan(fork=fork)).run(w, x, n).value
        return jnp.sum(values if of_all else jnp.where(good, values, 0.0))

    slopes = (jax.grad(partial(loss, fork=f), (0, 1)) for f in ("always", "never"))
    found, wanted = ((jax.jit(slope) if jit else slope)(2.0, x) for slope in slopes)
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-6)
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-6)
    assert ({"lanes inside a trace"} if jit else {"tasks", "lanes"}) <= set(undone)


def test_a_full_tape_inside_jit_leaves_the_gradient_to_lanes(
    undone: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pcbatch.transforms.tasks.recorded_run.USUAL_ROWS", 12)
    monkeypatch.setattr("pcbatch.transforms.tasks.recorded_run.TRACED_BYTES", 1)
    batched = pcbatch.batch(fib, plan=pcbatch.Plan(fork="always"))
    found = jax.jit(jax.grad(lambda x: total(batched(x, jnp.full(5, 5, jnp.int32)))))(X)
    close(found, plain_gradient(fib, (X, jnp.full(5, 5)), (), (0,))[0])
    assert "lanes inside a trace" in undone


def test_a_tape_of_a_given_length_inside_jit(undone: list[str]) -> None:
    """It is trusted: no lanes besides, and a gradient of NaN and a warning where it is too short."""
    batched, n = pcbatch.batch(fib, plan=pcbatch.Plan(fork="always")), jnp.full(5, 5, jnp.int32)
    use = batched.tape(X, n)
    assert {"fib"} == {block.function for block in use.blocks}

    def slope(rows: int) -> Any:
        return jax.jit(jax.grad(lambda x: total(batched.with_options(max_tape=rows, on_failure="warn")(x, n))))(X)

    close(slope(use.max_tape), plain_gradient(fib, (X, n), (), (0,))[0])
    with pytest.warns(UserWarning, match="PCB423"):
        assert np.isnan(slope(use.max_tape - 1)).all()
    assert "lanes inside a trace" not in undone


def test_a_tape_that_is_too_short_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pcbatch.transforms.tasks.recorded_run.LEAST_ROWS", 4)
    monkeypatch.setattr("pcbatch.transforms.tasks.recorded_run.FIRST_ROWS", 1)
    close(gradient(fib, (X, N), (), (0,)), plain_gradient(fib, (X, N), (), (0,)))


class Node(NamedTuple):
    left: Any
    right: Any
    value: float


def encode(weight, node):
    """Over objects, with a number in each node."""
    if node.left is None:
        return jnp.tanh(weight[0] * node.value)
    return jnp.sin(encode(weight, node.left) @ weight + encode(weight, node.right)) * node.value


def test_numbers_in_objects() -> None:
    leaves = [Node(None, None, 0.5 + k) for k in range(3)]
    inner = Node(leaves[0], leaves[1], 1.5)
    packed = pcbatch.pack([leaves[2], inner, Node(inner, Node(leaves[2], inner, -0.5), 2.0)])
    weight = jnp.array([[0.3, -0.2], [0.1, 0.9]])

    def loss(weight: Any, packed: Any, fork: str) -> Any:
        return jnp.sum(pcbatch.batch(encode, in_axes=(None, 0), plan=pcbatch.Plan(fork=fork))(weight, packed))

    by_both = [jax.grad(partial(loss, fork=f), (0, 1), allow_int=True) for f in ("always", "never")]
    found, wanted = (slope(weight, packed) for slope in by_both)
    close(found[0], wanted[0])
    close(found[1].columns[2], wanted[1].columns[2])


@pytest.mark.full_only
def test_other_transformations(undone: list[str]) -> None:
    """Elements of a `vmap`, each with a gradient of its own; Jacobians; derivatives of gradients, which lanes make."""
    n = jnp.array([3, 0], jnp.int32)
    x = jnp.array([[0.5, 0.7], [1.0, -0.3], [0.1, 0.2]])
    w = jnp.array([0.9, 1.1, 0.4])

    def scaled(w, x, n):
        return fib(x * w, n) * w

    def loss(w: Any, x: Any, fork: str) -> Any:
        return total(pcbatch.batch(scaled, in_axes=(None, 0, 0), plan=pcbatch.Plan(fork=fork))(w, x, n))

    transformed = {
        "of mapped arguments": lambda f: jax.vmap(jax.grad(f, 1), (None, 0))(w[0], x),
        "of a shared argument": lambda f: jax.vmap(jax.grad(f), (0, 0))(w, x),
        "one example": lambda f: jax.grad(lambda x: f(w[0], x))(x[0]),
        "twice": lambda f: jax.grad(lambda x: jnp.sum(jax.grad(f, 1)(w[0], x) ** 2))(x[1]),
    }
    for name, transform in transformed.items():
        undone.clear()
        found = transform(partial(loss, fork="always"))
        assert "tasks" in undone or name == "twice", name
        close(found, transform(partial(loss, fork="never")))
    jacobian = jax.jacrev(lambda x: pcbatch.batch(fib, plan=pcbatch.Plan(fork="always"))(x, n))(x[0])
    close(jacobian, jax.jacrev(lambda x: pcbatch.batch(fib, plan=pcbatch.Plan(fork="never"))(x, n))(x[0]))


def test_snapshots_are_for_lanes(undone: list[str]) -> None:
    close(gradient(fib, (X, N), (), (0,), checkpoints=4), plain_gradient(fib, (X, N), (), (0,)))
    assert undone == []


@pytest.mark.full_only
def test_trees() -> None:
    """The loss of a TreeLSTM by its weights: products, leaves that are undone together, floating records."""
    from examples.treelstm.data import generate
    from examples.treelstm.model import initial_weights, loss

    weights, trees = initial_weights(4, 0), generate(3, 1, 8)
    slopes = [
        jax.grad(lambda w, fork=f: jnp.mean(loss.with_options(plan=pcbatch.Plan(fork=fork))(w, trees)))
        for f in ("always", "never")
    ]
    found, wanted = (slope(weights) for slope in slopes)
    close(found, wanted)
