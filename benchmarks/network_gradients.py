"""Networks with control flow and their gradients, at few lanes, against `jax.vmap` of masked scans by hand.

    python -m benchmarks.network_gradients [--lanes 8 64 512] [--only exit-list ode] [--quick]

Each program is plain Python for one example, as people write it: a tree of dataclasses folded by recursion, twelve
layers in a list with an early exit, the same with stacked weights `w[i]`, a neural ODE with adaptive steps, a beam
search over hypotheses that are objects. A value is a plain call; a gradient is `jax.jit` of `jax.value_and_grad` of the
mean loss by all weights, which lanes share. By hand all is one `jax.lax.scan` with masks under `jax.vmap`, jitted.
64 bits. Results are compared before anything is timed. CPU seconds of one thread, in turn, medians of the ratios of
pairs, by hand over ours: above 1, ours is faster. First calls are CPU seconds of a process each, compiling included.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from benchmarks.common import paired_cpu

LANES = (8, 64, 512)
HIDDEN = 32
LAYERS, SURE, CLASSES = 12, 0.5, 10
WORDS, LEAVES = 200, (2, 16)
MOST_STEPS, TOLERANCE = 64, 1e-4
WIDTH, LENGTH, VOCABULARY, END = 4, 8, 12, 0
REPEATS = 7


def normal(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> jax.Array:
    """Weights of about unit gain."""
    return jnp.asarray(scale * rng.normal(size=shape) / np.sqrt(shape[-1]))


# Early exit


def exit_list(x, w):  # type: ignore[no-untyped-def]
    """The scores after the first layer that is sure enough."""
    for layer in w["layers"]:
        x = jnp.tanh(layer["w"] @ x + layer["b"])
        scores = w["head"] @ x
        if jnp.max(jax.nn.softmax(scores)) > SURE:
            break
    return scores


def exit_stacked(x, w):  # type: ignore[no-untyped-def]
    """The same, of weights with an axis of layers."""
    for i in range(LAYERS):
        x = jnp.tanh(w["w"][i] @ x + w["b"][i])
        scores = w["head"] @ x
        if jnp.max(jax.nn.softmax(scores)) > SURE:
            break
    return scores


def exit_by_hand(x: jax.Array, w: Any) -> jax.Array:
    """The scan over the layers."""

    def layer(state: Any, one: Any) -> Any:
        x, scores, done = state
        x = jnp.where(done, x, jnp.tanh(one["w"] @ x + one["b"]))
        scores = jnp.where(done, scores, w["head"] @ x)
        return (x, scores, done | (jnp.max(jax.nn.softmax(scores)) > SURE)), None

    start = (x, jnp.zeros(CLASSES), jnp.bool_(False))
    return jax.lax.scan(layer, start, {"w": w["w"], "b": w["b"]})[0][1]


def exit_list_by_hand(x: jax.Array, w: Any) -> jax.Array:
    """The scan over layers that are stacked first."""
    layers = jax.tree.map(lambda *leaves: jnp.stack(leaves), *w["layers"])
    return exit_by_hand(x, layers | {"head": w["head"]})


def exit_inputs(lanes: int, stacked: bool) -> tuple[Any, Any]:
    """Examples that leave after one to twelve layers."""
    rng = np.random.default_rng(0)
    layers = [{"w": normal(rng, HIDDEN, HIDDEN, scale=1.6), "b": normal(rng, HIDDEN)} for _ in range(LAYERS)]
    head = {"head": normal(rng, CLASSES, HIDDEN, scale=1.8)}
    x = jnp.asarray(rng.normal(size=(lanes, HIDDEN)))
    return x, head | (jax.tree.map(lambda *leaves: jnp.stack(leaves), *layers) if stacked else {"layers": layers})


# Neural ODE


def field(w, x):  # type: ignore[no-untyped-def]
    """The derivative of the state."""
    return w["out"] @ jnp.tanh(w["in"] @ x + w["b"])


def ode(x, w):  # type: ignore[no-untyped-def]
    """The state at time 1, by Heun's method with steps as the error asks for."""
    t, h, steps = 0.0, 0.1, 0
    while t < 1.0 and steps < MOST_STEPS:
        h = min(h, 1.0 - t)
        k1 = field(w, x)
        k2 = field(w, x + h * k1)
        error = jnp.sqrt(jnp.mean((0.5 * h * (k2 - k1)) ** 2)) + 1e-12
        if error < TOLERANCE:
            x = x + 0.5 * h * (k1 + k2)
            t = t + h
        h = h * jnp.clip(0.9 * jnp.sqrt(TOLERANCE / error), 0.2, 3.0)
        steps += 1
    return x


def ode_by_hand(x: jax.Array, w: Any) -> jax.Array:
    """The scan over as many steps as there may be."""

    def step(state: Any, _: None) -> Any:
        t, h, x = state
        goes_on = t < 1.0
        h = jnp.minimum(h, jnp.where(goes_on, 1.0 - t, 1.0))
        k1 = field(w, x)
        k2 = field(w, x + h * k1)
        error = jnp.sqrt(jnp.mean((0.5 * h * (k2 - k1)) ** 2)) + 1e-12
        taken = goes_on & (error < TOLERANCE)
        x = jnp.where(taken, x + 0.5 * h * (k1 + k2), x)
        t = jnp.where(taken, t + h, t)
        return (t, h * jnp.clip(0.9 * jnp.sqrt(TOLERANCE / error), 0.2, 3.0), x), None

    return jax.lax.scan(step, (0.0, 0.1, x), None, length=MOST_STEPS)[0][2]


def ode_inputs(lanes: int) -> tuple[Any, Any]:
    """Examples of unequal scale, so that the number of steps differs."""
    rng = np.random.default_rng(0)
    w = {
        "in": normal(rng, HIDDEN, HIDDEN, scale=2.0),
        "b": normal(rng, HIDDEN),
        "out": normal(rng, HIDDEN, HIDDEN, scale=0.5),
    }
    return jnp.asarray(rng.normal(size=(lanes, HIDDEN)) * rng.uniform(0.1, 2.0, (lanes, 1))), w


# Trees


@dataclass
class Node:
    """A word, or a phrase of two parts."""

    word: int
    left: Node | None = None
    right: Node | None = None


def encode(tree, w):  # type: ignore[no-untyped-def]
    """The code of a tree."""
    if tree.left is None:
        return jnp.tanh(w["embedding"][tree.word])
    return jnp.tanh(w["left"] @ encode(tree.left, w) + w["right"] @ encode(tree.right, w) + w["b"])


def tree_scores(tree, w):  # type: ignore[no-untyped-def]
    """The scores of the root."""
    return w["head"] @ encode(tree, w)


class Postorder(NamedTuple):
    """A tree as rows, parts before wholes: numbers of the parts, -1 for none, and the word."""

    left: jax.Array
    right: jax.Array
    word: jax.Array
    count: jax.Array


def tree_by_hand(tree: Postorder, w: Any) -> jax.Array:
    """The scan over nodes, which keeps the codes of all of them."""

    def node(codes: jax.Array, row: Any) -> Any:
        k, left, right, word = row
        leaf = jnp.tanh(w["embedding"][word])
        whole = jnp.tanh(w["left"] @ codes[left] + w["right"] @ codes[right] + w["b"])
        code = jnp.where(left < 0, leaf, whole)
        return jnp.where(k < tree.count, codes.at[k].set(code), codes), None

    most = 2 * LEAVES[1] - 1
    rows = (jnp.arange(most), tree.left, tree.right, tree.word)
    codes = jax.lax.scan(node, jnp.zeros((most, HIDDEN)), rows)[0]
    return w["head"] @ codes[tree.count - 1]


def grown(rng: np.random.Generator, leaves: int) -> Node:
    """A random tree."""
    if leaves == 1:
        return Node(int(rng.integers(WORDS)))
    left = int(rng.integers(1, leaves))
    return Node(0, grown(rng, left), grown(rng, leaves - left))


def postorder(trees: Sequence[Node]) -> Postorder:
    """Trees as rows."""
    shape = (len(trees), 2 * LEAVES[1] - 1)
    left, right, word = np.full(shape, -1), np.full(shape, -1), np.zeros(shape, int)
    count = np.zeros(len(trees), int)

    def add(k: int, tree: Node) -> int:
        parts = [-1 if part is None else add(k, part) for part in (tree.left, tree.right)]
        row = count[k]
        left[k, row], right[k, row], word[k, row] = *parts, tree.word
        count[k] += 1
        return int(row)

    for k, tree in enumerate(trees):
        add(k, tree)
    return Postorder(*map(jnp.asarray, (left, right, word, count)))


def tree_inputs(lanes: int) -> tuple[Any, Any, Any]:
    """Trees, the same as rows, and weights."""
    rng = np.random.default_rng(0)
    trees = [grown(rng, int(rng.integers(*LEAVES)) + 1) for _ in range(lanes)]
    w = {name: normal(rng, HIDDEN, HIDDEN) for name in ("left", "right")}
    w |= {"embedding": normal(rng, WORDS, HIDDEN), "b": normal(rng, HIDDEN), "head": normal(rng, CLASSES, HIDDEN)}
    return pcbatch.pack(trees), postorder(trees), w


# Beam search


@dataclass
class Hypothesis:
    """A sequence so far, its score, and the state of the decoder."""

    tokens: list
    score: float
    state: jax.Array
    done: bool


def beam(x, w):  # type: ignore[no-untyped-def]
    """The score and the tokens of the best sequence."""
    beams = [Hypothesis([], 0.0, jnp.tanh(w["encoder"] @ x), False)]
    for _ in range(LENGTH):
        candidates = []
        for h in beams:
            if h.done:
                candidates.append(h)
                continue
            last = h.tokens[-1] if h.tokens else END
            state = jnp.tanh(w["recurrent"] @ h.state + w["embedding"][last])
            scores = jax.nn.log_softmax(w["head"] @ state)
            for token in range(VOCABULARY):
                done = token == END
                candidates.append(Hypothesis([*h.tokens, token], h.score + scores[token], state, done))
        beams = sorted(candidates, key=lambda h: h.score, reverse=True)[:WIDTH]
        if all(h.done for h in beams):
            break
    return beams[0].score, beams[0].tokens


def beam_by_hand(x: jax.Array, w: Any) -> Any:
    """The scan over steps, with arrays of hypotheses and `top_k`."""

    def step(state: Any, k: jax.Array) -> Any:
        tokens, score, hidden, done, length = state
        finished = jnp.all(done | (score == -jnp.inf))
        last = jnp.where(k > 0, jnp.take(tokens, k - 1, axis=1), END)
        new = jnp.tanh(hidden @ w["recurrent"].T + w["embedding"][last])
        more = score[:, None] + jax.nn.log_softmax(new @ w["head"].T)
        kept = jnp.where(jnp.arange(VOCABULARY) == 0, score[:, None], -jnp.inf)
        best, where = jax.lax.top_k(jnp.where(done[:, None], kept, more).reshape(-1), WIDTH)
        parent, token = where // VOCABULARY, where % VOCABULARY
        was_done = done[parent]
        rows = jnp.where(was_done[:, None], tokens[parent], tokens[parent].at[:, k].set(token))
        following = (rows, best, new[parent], was_done | (token == END), length[parent] + ~was_done)
        following = jax.tree.map(lambda a, b: jnp.where(finished, a, b), state, following)
        return following, None

    start = (
        jnp.zeros((WIDTH, LENGTH), int),
        jnp.full(WIDTH, -jnp.inf).at[0].set(0.0),
        jnp.broadcast_to(jnp.tanh(w["encoder"] @ x), (WIDTH, HIDDEN)),
        jnp.zeros(WIDTH, bool),
        jnp.zeros(WIDTH, int),
    )
    tokens, score, _, _, length = jax.lax.scan(step, start, jnp.arange(LENGTH))[0]
    return score[0], tokens[0], length[0]


def beam_inputs(lanes: int) -> tuple[Any, Any]:
    """Vectors that are decoded."""
    rng = np.random.default_rng(0)
    w = {
        "encoder": normal(rng, HIDDEN, HIDDEN),
        "recurrent": normal(rng, HIDDEN, HIDDEN, scale=1.5),
        "embedding": normal(rng, VOCABULARY, HIDDEN, scale=3.0),
        "head": normal(rng, VOCABULARY, HIDDEN, scale=3.0),
    }
    return jnp.asarray(rng.normal(size=(lanes, HIDDEN))), w


# Both sides of each


@dataclass(frozen=True)
class Sides:
    """Functions of all examples and of weights, ours and by hand, with the arguments of each, and the mean loss."""

    ours: Callable[[Any, Any], Any]
    by_hand: Callable[[Any, Any], Any]
    mine: Any
    theirs: Any
    weights: Any
    loss: Callable[[Any], Any]


def square(found: Any) -> Any:
    """The mean loss of what lanes return."""
    return jnp.mean(jnp.sum(jnp.sin(found) ** 2, axis=-1))


def first_score(found: Any) -> Any:
    """The mean loss of a beam search."""
    return -jnp.mean(found[0])


def sides(name: str, lanes: int) -> Sides:
    """A program for so many lanes."""
    over_lanes = partial(pcbatch.batch, in_axes=(0, None))
    by_hand = partial(jax.vmap, in_axes=(0, None))
    match name:
        case "trees":
            mine, theirs, w = tree_inputs(lanes)
            return Sides(over_lanes(tree_scores), by_hand(tree_by_hand), mine, theirs, w, square)
        case "exit-list":
            x, w = exit_inputs(lanes, stacked=False)
            return Sides(over_lanes(exit_list), by_hand(exit_list_by_hand), x, x, w, square)
        case "exit-stacked":
            x, w = exit_inputs(lanes, stacked=True)
            return Sides(over_lanes(exit_stacked), by_hand(exit_by_hand), x, x, w, square)
        case "ode":
            x, w = ode_inputs(lanes)
            return Sides(over_lanes(ode), by_hand(ode_by_hand), x, x, w, square)
        case "beam":
            x, w = beam_inputs(lanes)
            return Sides(over_lanes(beam), by_hand(beam_by_hand), x, x, w, first_score)
    raise ValueError(name)


PROGRAMS = ("trees", "exit-list", "exit-stacked", "ode", "beam")
PARTS = ("value", "gradient")


def calls(both: Sides, part: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """A call of ours and of that by hand."""
    peer: Any
    if part == "value":
        peer = jax.jit(both.by_hand)
        return lambda: both.ours(both.mine, both.weights), lambda: peer(both.theirs, both.weights)
    mine, peer = (jax.jit(jax.value_and_grad(lambda w, x, f=f: both.loss(f(x, w)))) for f in (both.ours, both.by_hand))
    return lambda: mine(both.weights, both.mine), lambda: peer(both.weights, both.theirs)


def compare(name: str, part: str, ours: Any, theirs: Any) -> None:
    """Stop if the results differ."""
    if name == "beam" and part == "value":
        (score, tokens), (score_by_hand, rows, lengths) = ours, theirs
        np.testing.assert_allclose(score, score_by_hand, rtol=1e-9)
        for k, length in enumerate(np.asarray(lengths)):
            np.testing.assert_array_equal(tokens[k], rows[k, :length])
        return
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)


class Number(NamedTuple):
    """CPU milliseconds of both sides and their ratio, by hand over ours."""

    by_hand: float
    ours: float
    ratio: float


def measured(name: str, part: str, lanes: int, repeats: int) -> Number:
    """Compare results, then times."""
    ours, by_hand = calls(sides(name, lanes), part)
    compare(name, part, ours(), by_hand())
    theirs, mine, ratio = paired_cpu(by_hand, ours, repeats)
    return Number(1e3 * theirs, 1e3 * mine, ratio)


def first_call(name: str, part: str, lanes: int, side: int) -> float:
    """CPU seconds of the first call of ours (0) or that by hand (1), in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.network_gradients", "--first", name, part, str(lanes), str(side)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def print_first_call(name: str, part: str, lanes: int, side: int) -> None:
    """Make a first call, and print what it took."""
    call = calls(sides(name, lanes), part)[side]
    start = time.process_time()
    jax.block_until_ready(call())
    print(time.process_time() - start)


def row(name: str, part: str, options: Any, ratios: list[float]) -> str:
    """A line of the table."""
    numbers = [measured(name, part, lanes, options.repeats) for lanes in options.lanes]
    ratios += [number.ratio for number in numbers]
    cells = [f"{n.ratio:.2f} ({n.by_hand:.3g}, {n.ours:.3g})" for n in numbers]
    if options.first:
        mine, theirs = (first_call(name, part, options.lanes[0], side) for side in (0, 1))
        cells.append(f"{mine:.1f}, {theirs:.1f}")
    return f"| {name}, {part} | {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lanes", type=int, nargs="*", default=LANES)
    parser.add_argument("--only", nargs="*", choices=PROGRAMS, default=PROGRAMS)
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--quick", action="store_true", help="3 repeats, no first calls")
    parser.add_argument("--first", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    jax.config.update("jax_enable_x64", True)
    if options.first:
        name, part, lanes, side = options.first
        return print_first_call(name, part, int(lanes), int(side))
    options.first = not options.quick
    options.repeats = 3 if options.quick else options.repeats
    print(f"by hand over ours, CPU ms in brackets; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    titles = [f"{lanes} lanes" for lanes in options.lanes] + ["first call, s"] * options.first
    print(f"| | {' | '.join(titles)} |\n{'|---' * (len(titles) + 1)}|", flush=True)
    ratios: list[float] = []
    for name in options.only:
        for part in options.parts:
            if (name, part) != ("beam", "gradient"):
                print(row(name, part, options, ratios), flush=True)
    print(f"geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, least {min(ratios):.2f}")
    return None


if __name__ == "__main__":
    os.environ.setdefault("NPROC", "1")
    main()
