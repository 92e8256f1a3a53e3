"""SkipNet (Wang et al., ECCV 2018): before each residual block a recurrent gate decides whether it runs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from examples.networks import data
from examples.networks.residual import block, layer, layer_weights, shrink

BLOCKS, GATE = (1, 2, 3, 1), 10  # blocks of each stage, numbers of the gate's state
PAPER = {"hidden": 2048, "most": 224, "blocks": (3, 4, 23, 3)}


def decide(w, seen, h, c):
    """A number that is positive if the block runs, and the state of the gate."""
    i, f, o, u = jnp.split(jnp.concatenate([seen, h]) @ w["weight"] + w["bias"], 4)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(u)
    h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return h @ w["head"] + w["head_bias"], h, c


@pcbatch.batch(in_axes=(None, 0))
def predict(w, image):
    """A number for each class, and how many blocks ran."""
    x = jax.nn.relu(layer(w["first"], image, 2))
    h = c = jnp.zeros(GATE)
    ran = 0
    for depth, stage in enumerate(w["stages"]):
        for number, each in enumerate(stage["blocks"]):
            runs, h, c = decide(w["gate"], jnp.mean(x, (0, 1)) @ stage["see"][number], h, c)
            stride = 2 if number == 0 and depth > 0 else 1
            short = shrink(x, each[-1]["shift"].size, stride)
            if runs > 0:
                x = jax.nn.relu(short + block(each, x, stride))
                ran += 1
            else:
                x = short
    return jnp.mean(x, (0, 1)) @ w["head"] + w["head_bias"], ran


@pcbatch.batch(in_axes=(None, 0, 0))
def loss(w, image, label):
    """The cross entropy; that of the decisions is none, as they are hard."""
    scores, _ = predict(w, image)
    return -jax.nn.log_softmax(scores)[label]


def weights(rng, hidden, blocks=BLOCKS):
    """Random ones, with as many channels in the last stage as `hidden`; inside a block it is a quarter of those."""
    first = max(1, hidden // 32)
    sizes = [max(1, hidden // k) for k in (8, 4, 2, 1)]

    def part(before, after):
        inner = max(1, after // 4)
        return [
            layer_weights(rng, 1, before, inner),
            layer_weights(rng, 3, inner, inner),
            layer_weights(rng, 1, inner, after, 0.5),
        ]

    def stage(before, after, count):
        befores = [before] + [after] * (count - 1)
        return {
            "see": [data.dense(rng, size, GATE, scale=3.0) for size in befores],
            "blocks": [part(size, after) for size in befores],
        }

    return {
        "first": layer_weights(rng, 3, 3, first),
        "stages": [stage(*sizes_of) for sizes_of in zip([first, *sizes], sizes, blocks, strict=False)],
        "gate": {
            "weight": data.dense(rng, 2 * GATE, 4 * GATE, scale=2.0),
            "bias": data.bias(rng, 4 * GATE),
            "head": data.dense(rng, GATE, 1, scale=3.0)[:, 0],
            "head_bias": jnp.zeros(()),
        },
        "head": data.dense(rng, sizes[-1], data.CLASSES),
        "head_bias": data.bias(rng, data.CLASSES),
    }


def examples(rng, count, most=32):
    """Random images of so many rows and columns, brighter or darker."""
    scale = lambda: np.exp(rng.normal())  # noqa: E731
    return data.classified(rng, [(scale() * rng.normal(size=(most, most, 3))).astype("float32") for _ in range(count)])


gather, gather_labels = data.arrays, data.arrays
