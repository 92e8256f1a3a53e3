"""Products of inputs before the loop, by hand: `python -m benchmarks.hoisting [--quick]`

A loop that computes `embedding[word] @ weights` in each round can have it computed before, in two ways: for each lane's
own words, or for every row of the table that all lanes share. The LSTM and the BiRNN of `examples/networks`, as they
are and so rewritten; CPU milliseconds (`NPROC=1`), the least of several calls that take turns.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from examples.networks import birnn, data, lstm

LONGEST = 30


@pcbatch.batch(in_axes=(None, 0, 0))
def padded(w: Any, words: Any, count: Any) -> Any:
    """Return the last states of both readers of the BiRNN, of words in an array."""
    f, b = w["forward"], w["backward"]
    h, g = jnp.zeros_like(f["bias"]), jnp.zeros_like(b["bias"])
    for k in range(count):
        x, y = w["embedding"][words[k]], w["embedding"][words[count - 1 - k]]
        h = jnp.tanh(x @ f["input"] + h @ f["state"] + f["bias"])
        g = jnp.tanh(y @ b["input"] + g @ b["state"] + b["bias"])
    return h, g


@pcbatch.batch(in_axes=(None, 0, 0))
def padded_ahead(w: Any, words: Any, count: Any) -> Any:
    """Do the same with the products of all words of a lane first."""
    f, b = w["forward"], w["backward"]
    h, g = jnp.zeros_like(f["bias"]), jnp.zeros_like(b["bias"])
    vectors = w["embedding"][words]
    xs, ys = vectors @ f["input"], vectors @ b["input"]
    for k in range(count):
        h = jnp.tanh(xs[k] + h @ f["state"] + f["bias"])
        g = jnp.tanh(ys[count - 1 - k] + g @ b["state"] + b["bias"])
    return h, g


def read_rows(cell: Any, table: Any, words: Any) -> Any:
    """Return the states of a reader of the BiRNN, with products in a table."""
    h, states = jnp.zeros_like(cell["bias"]), []
    for word in words:
        h = jnp.tanh(table[word] + h @ cell["state"] + cell["bias"])
        states.append(h)
    return states


@pcbatch.batch(in_axes=(None, 0))
def birnn_table(w: Any, words: Any) -> Any:
    """Return what `birnn.predict` does, with a table of products for each reader."""
    before = read_rows(w["forward"], w["embedding"] @ w["forward"]["input"], words)
    after = read_rows(w["backward"], w["embedding"] @ w["backward"]["input"], words[::-1])[::-1]
    return [jnp.concatenate([a, b]) @ w["head"] + w["head_bias"] for a, b in zip(before, after, strict=False)]


@pcbatch.batch(in_axes=(None, 0))
def lstm_table(w: Any, words: Any) -> Any:
    """Return what `lstm.predict` does, with a table of the products in the first layer."""
    first, *others = w["cells"]
    size = w["embedding"].shape[1]
    table, own = w["embedding"] @ first["weight"][:size], first["weight"][size:]
    x = jnp.zeros_like(w["embedding"][0])
    h0, c0, states = x, x, [(x, x) for _ in others]
    for word in words:
        i, f, o, u = jnp.split(table[word] + h0 @ own + first["bias"], 4)
        c0 = jax.nn.sigmoid(f) * c0 + jax.nn.sigmoid(i) * jnp.tanh(u)
        h0 = jax.nn.sigmoid(o) * jnp.tanh(c0)
        x = h0
        for layer, cell in enumerate(others):
            states[layer] = lstm.step(cell, x, *states[layer])
            x, _ = states[layer]
    return x @ w["head"] + w["head_bias"]


def compared(title: str, ways: Sequence[Callable[[], Any]], repeats: int) -> None:
    """Print a row of the table; all ways must give the same."""
    results = [jax.block_until_ready(jax.tree.leaves(way())) for way in ways]
    for x, y in zip(*results, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-4)
    times: list[list[float]] = [[], []]
    for _ in range(repeats):
        for way, found in zip(ways, times, strict=True):
            begun = time.process_time()
            jax.block_until_ready(jax.tree.leaves(way()))
            found.append(1e3 * (time.process_time() - begun))
    plain, rewritten = map(min, times)
    print(f"| {title} | {plain:.2f} | {rewritten:.2f} | {plain / rewritten:.2f} |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer lanes and repeats")
    quick = parser.parse_args().quick
    print("| network, hidden size, lanes | as it is, ms | products before the loop, ms | times as fast |")
    print("|---|---:|---:|---:|")
    rng = np.random.default_rng(0)
    repeats, all_lanes = (3, (8, 64)) if quick else (11, (8, 64, 512))
    for hidden in (64, 256):
        w, cells = birnn.weights(rng, hidden), lstm.weights(rng, hidden)
        for lanes in all_lanes:
            words = jnp.asarray(rng.integers(0, data.WORDS, (lanes, LONGEST)), jnp.int32)
            counts = jnp.asarray(rng.integers(2, LONGEST + 1, lanes), jnp.int32)
            own = [partial(f, w, words, counts) for f in (padded, padded_ahead)]
            compared(f"BiRNN, own words, {hidden}, {lanes}", own, repeats)
            sentences = data.lists([data.sentence(rng, LONGEST) for _ in range(lanes)])
            tables = [partial(f, w, sentences) for f in (birnn.predict, birnn_table)]
            compared(f"BiRNN, table of {data.WORDS} words, {hidden}, {lanes}", tables, repeats)
            layers = [partial(f, cells, sentences) for f in (lstm.predict, lstm_table)]
            compared(f"LSTM of 3 layers, table, {hidden}, {lanes}", layers, repeats)


if __name__ == "__main__":
    main()
