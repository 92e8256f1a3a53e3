"""The loss of CTC and its gradient by the logits, inside `jit`, against Optax's vectorised one.

    NPROC=1 python -m benchmarks.ctc [--lanes 256]

`double loop` is the textbook: frames, and states of a frame from the last to the first, one number at a time.
`vectors` is a loop over frames that computes all states of one, whose emissions are looked up before the loop.
Sequences have 20 to 32 frames and 4 to 8 labels; tapes are as long as `f.tape` says. Values and gradients are compared
before anything is timed. CPU seconds of one thread, in turn, the median of the ratios of pairs: times Optax's.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import pcbatch
from benchmarks.common import paired_cpu

FRAMES, LABELS, CLASSES = 32, 8, 16
NEVER = -1e5  # the logarithm of no probability, as in Optax
GOAL = 3.0  # times as long as Optax, value and gradient


def double_loop(logits, labels, frames, length):
    """Minus the log probability of the labels, with blanks between them: states are 2 * length + 1."""
    log_p = jax.nn.log_softmax(logits)
    states = 2 * length + 1
    alpha = jnp.full(2 * LABELS + 1, NEVER).at[0].set(0.0)
    t = 0
    while t < frames:
        s = states - 1
        while s >= 0:  # from the last, so that the states before it still have their old values
            label = jnp.where(s % 2 == 0, 0, labels[s // 2])
            ways = jnp.logaddexp(alpha[s], jnp.where(s >= 1, alpha[s - 1], NEVER))
            if s % 2 == 1 and s >= 2 and label != labels[s // 2 - 1]:
                ways = jnp.logaddexp(ways, alpha[s - 2])
            if t == 0:
                ways = jnp.where(s < 2, 0.0, NEVER)
            alpha = alpha.at[s].set(ways + log_p[t, label])
            s = s - 1
        t = t + 1
    return -jnp.logaddexp(alpha[states - 1], alpha[states - 2])


def vectors(logits, labels, frames, length):
    """The same, all states of a frame at once."""
    state = jnp.arange(2 * LABELS + 1)
    label = jnp.where(state % 2 == 0, 0, labels[state // 2])
    skips = (state % 2 == 1) & (state >= 2) & (label != label[state - 2])
    emitted = jax.nn.log_softmax(logits)[:, label]
    nothing = jnp.full(2, NEVER)  # two states before the first
    alpha = jnp.concatenate([nothing, jnp.where(state < 2, emitted[0], NEVER)])
    t = 1
    while t < frames:
        ways = jnp.logaddexp(alpha[2:], alpha[1:-1])
        ways = jnp.logaddexp(ways, jnp.where(skips, alpha[:-2], NEVER))
        alpha = jnp.concatenate([nothing, ways + emitted[t]])
        t = t + 1
    return -jnp.logaddexp(alpha[2 * length + 2], alpha[2 * length + 1])


def optax_loss(logits: jax.Array, labels: jax.Array, frames: jax.Array, length: jax.Array) -> jax.Array:
    """Return the sum of Optax's losses."""
    no_frame = (jnp.arange(FRAMES)[None] >= frames[:, None]).astype(jnp.float32)
    no_label = (jnp.arange(LABELS)[None] >= length[:, None]).astype(jnp.float32)
    return jnp.sum(optax.ctc_loss(logits, no_frame, labels, no_label))


def sequences(lanes: int) -> tuple[jax.Array, ...]:
    """Return logits, labels, and how many frames and labels each sequence has."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(lanes, FRAMES, CLASSES)).astype(np.float32)
    labels = rng.integers(1, CLASSES, (lanes, LABELS)).astype(np.int32)
    frames, length = rng.integers(20, FRAMES + 1, lanes), rng.integers(4, LABELS + 1, lanes)
    found: tuple[jax.Array, ...] = jax.device_put((logits, labels, frames.astype(np.int32), length.astype(np.int32)))
    return found


def measured(title: str, loss: Callable[..., Any], lanes: int, repeats: int) -> str:
    """Compare the value and the gradient of one function with Optax's, and return a line of the table."""
    inputs = sequences(lanes)
    batched = pcbatch.batch(loss)
    batched = batched.with_options(max_tape=batched.tape(*inputs).max_tape)
    ours = jax.jit(jax.value_and_grad(lambda *args: jnp.sum(batched(*args))))
    forward, peer = jax.jit(batched), jax.jit(jax.value_and_grad(optax_loss))
    (value, slope), (wanted, wanted_slope) = ours(*inputs), peer(*inputs)
    np.testing.assert_allclose(value, wanted, rtol=1e-4)
    np.testing.assert_allclose(slope, wanted_slope, atol=1e-3)
    mine, theirs, ratio = paired_cpu(lambda: ours(*inputs), lambda: peer(*inputs), repeats)
    run = paired_cpu(lambda: peer(*inputs), lambda: forward(*inputs), repeats)[1]
    met = f"{GOAL:g} {'met' if ratio <= GOAL else 'MISSED'}"
    return f"| {title} | {lanes} | {1e3 * run:.1f} | {1e3 * mine:.1f} | {1e3 * theirs:.1f} | {ratio:.2f} | {met} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lanes", type=int, nargs="*", default=[256])
    parser.add_argument("--repeats", type=int, default=11)
    options = parser.parse_args(arguments)
    print("| loss | lanes | value, ms | with gradient, ms | Optax with gradient, ms | ratio | goal, at most |")
    print("|---|---|---|---|---|---|---|")
    for title, loss in (("double loop", double_loop), ("vectors", vectors)):
        for lanes in options.lanes:
            print(measured(title, loss, lanes, options.repeats), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("NPROC", "1")
    main()
