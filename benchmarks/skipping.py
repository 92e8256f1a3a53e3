"""Networks that skip blocks, many images at once: `python -m benchmarks.skipping [--batch 64] [--repeats 9]`

BlockDrop and SkipNet of `examples/networks`, with decisions of which a given share says that a block runs: what pcbatch
takes as it chooses itself and with each block for all lanes (`Dense()`), and the batch by hand, which computes all
blocks and masks (`benchmarks.networks_masked`). Scores are compared before anything is timed. CPU milliseconds of a
call (`NPROC=1`), medians of calls that take turns.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from benchmarks import networks_masked
from benchmarks.common import interleaved_cpu_medians
from examples.networks import blockdrop, skipnet

SHARES = (0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
HIDDEN = {"blockdrop": 32, "skipnet": 64}
ROUNDS = 12  # of the search for the bias of SkipNet's gate


def dropping(w: Any, images: Any, share: float) -> Any:
    """Return weights of BlockDrop with which each block runs for so large a share of the images."""
    free = w["policy"] | {"head_bias": jnp.zeros_like(w["policy"]["head_bias"])}
    asked = np.asarray(jax.vmap(lambda image: blockdrop.policy(free, image))(images))
    bias = -np.quantile(asked, 1 - share, axis=0) + (1e-6 if share > 0 else -1e-6)
    return w | {"policy": free | {"head_bias": jnp.asarray(bias, jnp.float32)}}


def skipping(w: Any, images: Any, share: float) -> Any:
    """Return weights of SkipNet with which so large a share of its blocks runs, nearly."""

    def biased(bias: float) -> Any:
        return w | {"gate": w["gate"] | {"head_bias": jnp.float32(bias)}}

    low, high, blocks = -100.0, 100.0, sum(skipnet.BLOCKS)
    if share in (0.0, 1.0):
        return biased(low if share == 0 else high)
    for _ in range(ROUNDS):
        bias = (low + high) / 2
        ran = float(np.mean(np.asarray(skipnet.predict(biased(bias), images)[1]))) / blocks
        low, high = (bias, high) if ran < share else (low, bias)
    return biased(high)


NETWORKS: dict[str, tuple[Any, Callable[..., Any], Callable[..., Any], int]] = {
    "blockdrop": (blockdrop, dropping, networks_masked.blockdrop_scores, 3 * blockdrop.BLOCKS),
    "skipnet": (skipnet, skipping, networks_masked.skipnet_scores, sum(skipnet.BLOCKS)),
}


def measure(name: str, batch: int, repeats: int) -> None:
    """Print a row of a network for each share of the blocks that run."""
    network, decided, scores, blocks = NETWORKS[name]
    rng = np.random.default_rng(0)
    weights = network.weights(rng, HIDDEN[name])
    images = jnp.asarray(np.stack([image for image, _ in network.examples(rng, batch)]))
    whole = pcbatch.batch(network.predict.__wrapped__, in_axes=(None, 0), plan=pcbatch.Plan(modes=pcbatch.Dense()))
    by_hand = jax.jit(jax.vmap(scores, in_axes=(None, 0)))
    print(f"{name}: {batch} images, {blocks} blocks\n{'run':>6} {'pcbatch':>8} {'dense':>8} {'by hand':>8} {'over':>6}")
    for share in SHARES:
        w = decided(weights, images, share)
        found, ran = network.predict(w, images)
        np.testing.assert_allclose(np.asarray(found), np.asarray(by_hand(w, images)), rtol=2e-3, atol=2e-3)
        calls = {
            "pcbatch": lambda w=w: jax.block_until_ready(network.predict(w, images)),
            "dense": lambda w=w: jax.block_until_ready(whole(w, images)),
            "by hand": lambda w=w: jax.block_until_ready(by_hand(w, images)),
        }
        ours, dense, hand = (1e3 * s for s in interleaved_cpu_medians(calls, repeats).values())
        mean = float(np.mean(np.asarray(ran)))
        print(f"{mean:6.2f} {ours:8.2f} {dense:8.2f} {hand:8.2f} {hand / ours:6.2f}", flush=True)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.skipping", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--batch", type=int, default=64, help="images of a call (default 64)")
    parser.add_argument("--repeats", type=int, default=9, help="rounds of calls (default 9)")
    options = parser.parse_args()
    for name in NETWORKS:
        measure(name, options.batch, options.repeats)


if __name__ == "__main__":
    main()
