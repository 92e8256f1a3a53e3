"""What a gradient costs: forward and backward together, as a multiple of the plain forward run.

    python -m benchmarks.gradients [--lanes 64 256] [--repeats 15]
    python -m benchmarks.gradients --second

A recursive TreeLSTM (hidden 64, trees of 2 to 50 leaves) and a fixed-point iteration with an inner branch, a loop of
tiny blocks. All are jitted by the caller, run in turn, and medians of ratios are shown. Gradients are checked against
plain recursion on a few lanes first. `--second`: the product of the Hessian and a vector instead, by forward over
reverse and by reverse over reverse, as multiples of the gradient; CPU seconds of the process.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from benchmarks.common import interleaved_cpu_medians, paired


class Problem(NamedTuple):
    """A batched function, and its arguments; `loss` of them all."""

    name: str
    batched: Any
    args: tuple[Any, ...]
    moved: tuple[int, ...]
    weights: Any  # of the loss: one number for each element of the result

    def forward(self, *moved: Any) -> Any:
        args = list(self.args)
        for k, x in zip(self.moved, moved, strict=True):
            args[k] = x
        return jnp.sum(self.batched(*args) * self.weights)


@pcbatch.batch(in_axes=(0, 0, 0, 0, None))
def tree(node: Any, left: Any, right: Any, word: Any, w: Any) -> Any:
    """The memory and output of a node of a binary TreeLSTM."""
    if left[node] < 0:
        gates = w["leaf"] @ w["embedding"][word[node]]
        i, o, u = jnp.split(gates, 3)
        c = jax.nn.sigmoid(i) * jnp.tanh(u)
        return c, jax.nn.sigmoid(o) * jnp.tanh(c)
    c1, h1 = tree(left[node], left, right, word, w)
    c2, h2 = tree(right[node], left, right, word, w)
    gates = w["node"] @ jnp.concatenate([h1, h2]) + w["bias"]
    i, f1, f2, o, u = jnp.split(gates, 5)
    c = jax.nn.sigmoid(i) * jnp.tanh(u) + jax.nn.sigmoid(f1) * c1 + jax.nn.sigmoid(f2) * c2
    return c, jax.nn.sigmoid(o) * jnp.tanh(c)


@pcbatch.batch(in_axes=(0, 0, 0, 0, None), max_tape=20)
def tree_output(root: Any, left: Any, right: Any, word: Any, w: Any) -> Any:
    """The output of the root."""
    return tree(root, left, right, word, w)[1]


@pcbatch.batch(in_axes=(0, 0, 0, None), max_tape=20)
def fixed_point(x: Any, scale: Any, a: Any, w: Any) -> Any:
    """x <- x + s (tanh(scale W x + a) - x), with half a step while the residual is large."""
    for _ in range(100):
        g = jnp.tanh(scale * (w["matrix"] @ x) + a) - x
        e = jnp.sqrt(jnp.sum(g * g))
        if e < 1e-4:
            break
        if e > 0.5:
            x = x + 0.5 * g
        else:
            x = x + w["omega"] * g
    return x


def trees(lanes: int, hidden: int = 64, most: int = 50, mean: int = 19, vocabulary: int = 2000) -> Problem:
    """Random binary trees, as many leaves as the sentences of the Stanford Sentiment Treebank have words."""
    rng = np.random.default_rng(0)
    size = 2 * most - 1
    left = np.full((lanes, size), -1, np.int32)
    right, word, root = left.copy(), np.zeros_like(left), np.zeros(lanes, np.int32)
    for lane in range(lanes):
        leaves = int(np.clip(rng.gamma(4.0, mean / 4.0), 2, most))
        words = rng.integers(0, vocabulary, leaves)
        word[lane, :leaves] = words
        open_, free = list(range(leaves)), leaves
        while len(open_) > 1:
            k = int(rng.integers(len(open_) - 1))
            left[lane, free], right[lane, free] = open_[k], open_[k + 1]
            open_[k : k + 2] = [free]
            free += 1
        root[lane] = open_[0]

    def normal(*shape: int) -> Any:
        return jnp.asarray(rng.normal(size=shape) / np.sqrt(shape[-1]), jnp.float32)

    w = {
        "embedding": normal(vocabulary, hidden),
        "leaf": normal(3 * hidden, hidden),
        "node": normal(5 * hidden, 2 * hidden),
        "bias": jnp.zeros(5 * hidden),
    }
    args = (*map(jnp.asarray, (root, left, right, word)), w)
    return Problem("tree", tree_output, args, (4,), normal(lanes, hidden))


def loop(lanes: int, size: int = 32) -> Problem:
    """Lanes that converge at very different rates."""
    rng = np.random.default_rng(0)
    q = np.linalg.qr(rng.normal(size=(size, size)))[0]
    a = jnp.asarray(rng.normal(size=(lanes, size)) * 0.3, jnp.float32)
    scale = jnp.asarray(rng.uniform(0.05, 0.95, lanes), jnp.float32)
    w = {"matrix": jnp.asarray(q, jnp.float32), "omega": jnp.float32(0.9)}
    weights = jnp.asarray(rng.normal(size=(lanes, size)), jnp.float32)
    return Problem("loop", fixed_point, (jnp.zeros((lanes, size)), scale, a, w), (1, 2, 3), weights)


def plain_gradient(problem: Problem, lanes: int) -> Any:
    """By plain Python, of the first lanes alone."""

    def loss(*moved: Any) -> Any:
        args = list(problem.args)
        for k, x in zip(problem.moved, moved, strict=True):
            args[k] = x
        axes = problem.batched.options.in_axes
        outs = [
            problem.batched.plain(*(x[lane] if axis == 0 else x for x, axis in zip(args, axes, strict=True)))
            for lane in range(lanes)
        ]
        return sum(jnp.sum(out * problem.weights[lane]) for lane, out in enumerate(outs))

    return jax.grad(loss, tuple(range(len(problem.moved))))(*(problem.args[k] for k in problem.moved))


def check(make: Callable[[int], Problem], lanes: int = 3) -> float:
    """The largest relative error of the gradient of an argument, by the norm of all its leaves. (At a fixed point the
    derivative by the step alone is next to nothing.)"""
    problem = make(lanes)
    problem = problem._replace(batched=problem.batched.with_options(max_tape=200))
    moved = tuple(problem.args[k] for k in problem.moved)
    found = jax.jit(jax.grad(problem.forward, tuple(range(len(moved)))))(*moved)
    wanted = plain_gradient(problem, lanes)
    flat = lambda tree: np.concatenate([np.ravel(x) for x in jax.tree.leaves(tree)])  # noqa: E731
    pairs = [(flat(x), flat(y)) for x, y in zip(found, wanted, strict=True)]
    return float(np.max([np.linalg.norm(x - y) / np.linalg.norm(y) for x, y in pairs]))


def measure(problem: Problem, repeats: int) -> tuple[float, float, float]:
    """Median seconds of the forward run and of value and gradient, and the median ratio."""
    moved = tuple(problem.args[k] for k in problem.moved)
    forward = jax.jit(problem.forward)
    both = jax.jit(jax.value_and_grad(problem.forward, tuple(range(len(moved)))))
    return paired(lambda: forward(*moved), lambda: both(*moved), repeats)


def measure_second(problem: Problem, repeats: int) -> tuple[dict[str, float], float]:
    """Median CPU seconds of a gradient and of the product of the Hessian and a vector in both modes, and the relative
    difference of the two products."""
    moved = tuple(problem.args[k] for k in problem.moved)
    direction = jax.tree.map(jnp.cos, moved)
    gradient = jax.grad(problem.forward, tuple(range(len(moved))))

    def along(*moved: Any) -> Any:
        parts = jax.tree.map(lambda g, v: jnp.sum(g * v), gradient(*moved), direction)
        return sum(jax.tree.leaves(parts))

    ways = {
        "gradient": jax.jit(gradient),
        "forward over reverse": jax.jit(lambda *moved: jax.jvp(gradient, moved, direction)[1]),
        "reverse over reverse": jax.jit(jax.grad(along, tuple(range(len(moved))))),
    }
    found = {name: jax.block_until_ready(way(*moved)) for name, way in ways.items()}
    forward, reverse = (np.concatenate([np.ravel(x) for x in jax.tree.leaves(found[name])]) for name in list(ways)[1:])
    medians = interleaved_cpu_medians({name: lambda way=way: way(*moved) for name, way in ways.items()}, repeats)
    difference = float(np.linalg.norm(forward - reverse) / np.linalg.norm(forward))
    return medians, difference


def show_second(name: str, lanes: int, problem: Problem, repeats: int) -> None:
    """Print what second derivatives cost."""
    times, difference = measure_second(problem, repeats)
    first = times["gradient"]
    shown = ", ".join(f"{way} {t * 1e3:.2f} ms ({t / first:.2f})" for way, t in times.items())
    print(f"{name} {lanes:4d} lanes: {shown}; the two differ by {difference:.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lanes", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--only", choices=("tree", "loop"))
    parser.add_argument("--second", action="store_true", help="second derivatives instead")
    options = parser.parse_args()
    makers = {"tree": trees, "loop": loop}
    for name, make in makers.items():
        if options.only not in (None, name):
            continue
        if options.second:
            for lanes in options.lanes:
                show_second(name, lanes, make(lanes), options.repeats)
        else:
            print(f"{name}: relative error of the gradient {check(make):.1e}")
            for lanes in options.lanes:
                a, b, ratio = measure(make(lanes), options.repeats)
                shown = f"forward {a * 1e3:7.2f} ms, with gradient {b * 1e3:7.2f} ms, ratio {ratio:.2f}"
                print(f"{name} {lanes:4d} lanes: {shown}")


if __name__ == "__main__":
    main()
