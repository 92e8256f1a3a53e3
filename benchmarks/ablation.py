"""The gain of each pass for models with dynamic control flow: `python -m benchmarks.ablation [--batch 8 64]`

Models as in figure 5 of ACRoBat (Fegade, Chen, Gibbons, Mowry, MLSys 2024): a TreeLSTM and an MV-RNN on parse trees, a
BiRNN and a StackRNN on sentences, and a stack of equal layers with an early exit. Also a TreeLSTM of whose states trees
grow, recurrences that read the same inputs, and networks of `examples/networks`: a DRNN, a NestedRNN and a lattice
LSTM. Each is compiled with all passes, and then with one of them left out (`pcbatch.lowering.left_out`), in lanes and,
where it has calls side by side, by tasks. Numbers are CPU seconds of the process, medians, all ways in turn, as
multiples of the time with all passes: 1.30 means that without the pass a call takes 1.3 times as long. The column
"again", the same program once more, shows how far the numbers can be trusted. Results are compared before anything is
timed. XLA gets one thread unless NPROC says otherwise.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from benchmarks.common import interleaved_cpu_seconds
from examples.networks import drnn, lattice_lstm, nested_rnn
from examples.treelstm.data import WORDS, generate
from pcbatch.lowering.left_out import without

LONGEST, LAYERS = 24, 8  # words of a sentence; equal layers
LEFT_OUT = {
    "all passes": (),
    "again": (),
    "no sharing": ("hoist_uniform", "shared_values", "clone_shared", "fuse_products", "split_loops"),
    "no copies": ("clone_shared",),
    "no fused products": ("fuse_products",),
    "no merged blocks": ("superblocks",),
    "whole loops": ("split_loops",),
    "no phases": ("phases",),
}


class Gates(NamedTuple):
    """Weights of the gates of a cell: of its input and of its state."""

    wi: Any
    wo: Any
    wu: Any
    ui: Any
    uo: Any
    uu: Any
    uf: Any


def leaf(w, table, word):
    """The state of a word."""
    x = table[word]
    c = jax.nn.sigmoid(w.wi @ x) * jnp.tanh(w.wu @ x)
    return jax.nn.sigmoid(w.wo @ x) * jnp.tanh(c), c


def tree_lstm(w, table, tree, node):
    """A child-sum TreeLSTM, a matrix for each gate."""
    if tree.left[node] < 0:
        return leaf(w, table, tree.word[node])
    (h, c), (g, d) = tree_lstm(w, table, tree, tree.left[node]), tree_lstm(w, table, tree, tree.right[node])
    both = h + g
    i, o, u = jax.nn.sigmoid(w.ui @ both), jax.nn.sigmoid(w.uo @ both), jnp.tanh(w.uu @ both)
    c = i * u + jax.nn.sigmoid(w.uf @ h) * c + jax.nn.sigmoid(w.uf @ g) * d
    return o * jnp.tanh(c), c


def mv_rnn(w, v, table, matrices, tree, node):
    """A vector and a matrix for each node."""
    if tree.left[node] < 0:
        word = tree.word[node]
        return table[word], matrices[word % matrices.shape[0]]
    a, p = mv_rnn(w, v, table, matrices, tree, tree.left[node])
    b, q = mv_rnn(w, v, table, matrices, tree, tree.right[node])
    return jnp.tanh(w @ jnp.concatenate([q @ a, p @ b])), jnp.tanh(v @ jnp.concatenate([p, q]))


@pcbatch.batch
def rnn(w, u, xs, n, step):
    """One direction."""
    h = jnp.zeros(xs.shape[1])
    t = 0 if step > 0 else n - 1
    for _ in range(n):
        h = jnp.tanh(w @ xs[t] + u @ h)
        t = t + step
    return h


def bi_rnn(w, u, v, z, xs, n):
    """One network forth, another one back."""
    return jnp.concatenate([rnn(w, u, xs, n, 1), rnn(v, z, xs, n, -1)])


def one_sequence(w, u, xs, h, n):
    """A recurrence of each example's own over inputs that all examples have."""
    for t in range(n):
        h = jnp.tanh(w @ xs[t] + u @ h)
    return h


def stack_rnn(w, u, v, xs, shifts, n):
    """A parser: it shifts a word, or reduces the two topmost states to one."""
    stack = jnp.zeros((xs.shape[0] + 2, xs.shape[1]))
    top, at = 1, 0
    for t in range(n):
        if shifts[t] or top < 3:
            stack = stack.at[top + 1].set(jnp.tanh(w @ xs[at] + u @ stack[top]))
            top, at = top + 1, at + 1
        else:
            stack = stack.at[top - 1].set(jnp.tanh(v @ stack[top] + u @ stack[top - 1]))
            top = top - 1
    return stack[top]


def grow(w, q, levels):
    """What the nodes of a tree say that grows from a vector."""
    h = jnp.tanh(w.ui @ q)
    if levels == 0 or h[0] > 0.8:
        return h
    return grow(w, jnp.tanh(w.uo @ h), levels - 1) + grow(w, jnp.tanh(w.uf @ h), levels - 1)


def tree_to_tree(w, table, tree, node):
    """A tree is read, and then another one grows."""
    h, _ = tree_lstm(w, table, tree, node)
    return grow(w, h, 3)


def early_exit(q, k, v, w, head, xs):
    """Equal layers of attention over few tokens, until the first token is sure of its class."""
    for _ in range(LAYERS):
        scores = jax.nn.softmax((xs @ q) @ (xs @ k).T * xs.shape[1] ** -0.5)
        xs = xs + jnp.tanh(scores @ (xs @ v) @ w)
        if abs(head @ xs[0]) > 1:
            break
    return xs[0]


class Model(NamedTuple):
    """A function of one example, the axes of its arguments, them, and whether its calls may run side by side.

    A function that is batched already has its axes.
    """

    fn: Callable[..., Any]
    axes: tuple[int | None, ...]
    args: tuple[Any, ...]
    forks: bool


def models(hidden: int, batch: int) -> dict[str, Model]:
    """Random weights and sentences."""
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return jnp.asarray(rng.normal(size=shape) * shape[-1] ** -0.5, jnp.float32)

    square = partial(normal, hidden, hidden)
    trees, zero = jax.device_put(generate(batch, 1)), jnp.zeros(batch, jnp.int32)
    lengths = jnp.asarray(rng.integers(2, LONGEST + 1, batch), jnp.int32)
    words, table = normal(batch, LONGEST, hidden), normal(WORDS, hidden)
    shifts = jnp.asarray(rng.random((batch, LONGEST)) < 0.6)
    small = hidden // 2  # matrices are the states of MV-RNN
    mv = normal(small, 2 * small), normal(small, 2 * small), normal(WORDS, small), normal(64, small, small)
    gates = Gates(*(square() for _ in Gates._fields))
    exits = square(), square(), square(), square(), normal(hidden) * 8, normal(batch, 8, hidden)
    return {
        "TreeLSTM": Model(tree_lstm, (None, None, 0, 0), (gates, table, trees, zero), True),
        "MV-RNN": Model(mv_rnn, (None,) * 4 + (0, 0), (*mv, trees, zero), True),
        "BiRNN": Model(bi_rnn, (None,) * 4 + (0, 0), (*(square() for _ in range(4)), words, lengths), False),
        "StackRNN": Model(
            stack_rnn, (None,) * 3 + (0, 0, 0), (square(), square(), square(), words, shifts, lengths), False
        ),
        "early exit": Model(early_exit, (None,) * 5 + (0,), exits, False),
        "one sequence": Model(
            one_sequence, (None,) * 3 + (0, 0), (square(), square(), words[0], normal(batch, hidden), lengths), False
        ),
        "tree to tree": Model(tree_to_tree, (None, None, 0, 0), (gates, table, trees, zero), True),
        "DRNN": network(drnn, hidden, batch, True),
        "NestedRNN": network(nested_rnn, hidden, batch, False),
        "lattice LSTM": network(lattice_lstm, hidden, batch, False),
    }


def network(module: Any, hidden: int, batch: int, forks: bool) -> Model:
    """A network of `examples/networks`, on its random examples."""
    rng = np.random.default_rng(0)
    weights = module.weights(rng, hidden)
    return Model(module.predict, (), (weights, module.gather([e.x for e in module.examples(rng, batch)])), forks)


def compiled(model: Model, fork: str, left_out: Sequence[str]) -> Callable[[], Any]:
    """A call of a model that is compiled without some passes."""
    if isinstance(model.fn, pcbatch.Batched):
        f = model.fn.with_options(plan=pcbatch.Plan(fork=fork))
    else:
        f = pcbatch.batch(model.fn, in_axes=model.axes, plan=pcbatch.Plan(fork=fork))
    with without(*left_out):
        jax.block_until_ready(f(*model.args))
    return lambda: f(*model.args)


def row(name: str, model: Model, fork: str, repeats: int, columns: Sequence[str] = tuple(LEFT_OUT)) -> str:
    """The times of one model in one form; the first column is that of all passes."""
    calls = {title: compiled(model, fork, LEFT_OUT[title]) for title in columns}
    want = jax.tree.leaves(calls["all passes"]())
    for title, call in calls.items():
        for one, other in zip(want, jax.tree.leaves(call()), strict=True):
            if not np.allclose(one, other, rtol=2e-3, atol=1e-4):
                raise SystemExit(f"{name}, {title}: wrong results, nothing to measure")
    times = interleaved_cpu_seconds(calls, repeats)
    base = times.pop("all passes")
    ratios = [statistics.median(t / b for t, b in zip(found, base, strict=True)) for found in times.values()]
    rest = " | ".join(f"{ratio:.2f}" for ratio in ratios)
    return f"| {name} | {1e3 * statistics.median(base):.2f} ms | {rest} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, nargs="+", default=[8, 64])
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--only", nargs="+", metavar="MODEL", help="some of the models")
    parser.add_argument("--columns", nargs="+", choices=[*LEFT_OUT][1:], default=[*LEFT_OUT][1:])
    parser.add_argument("--repeats", type=int, default=15)
    chosen = parser.parse_args(arguments)
    os.environ.setdefault("NPROC", "1")  # read by XLA at its first computation
    columns = ["all passes", *chosen.columns]
    print("| model | " + " | ".join(columns) + " |\n|---|" + "---|" * len(columns))
    for batch in chosen.batch:
        for name, model in models(chosen.hidden, batch).items():
            if chosen.only and name not in chosen.only:
                continue
            for fork in ("never", "always") if model.forks else ("never",):
                form = "tasks" if fork == "always" else "lanes"
                print(row(f"{name}, {batch} examples, {form}", model, fork, chosen.repeats, columns), flush=True)


if __name__ == "__main__":
    main()
