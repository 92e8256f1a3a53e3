"""BlockDrop (Wu et al., CVPR 2018): a small network sees an image and says which blocks of a large one run for it."""

from __future__ import annotations

import jax
import jax.numpy as jnp

import pcbatch
from examples.networks import data
from examples.networks.residual import block, layer, layer_weights, shrink

BLOCKS = 2  # in each of the three stages
PAPER = {"hidden": 64, "most": 32, "blocks": 5}


def stage(blocks, keep, x):
    """The blocks of one stage; those that are dropped leave the image as it is."""
    channels = blocks[0][-1]["shift"].size
    for number, w in enumerate(blocks):
        stride = 1 if x.shape[-1] == channels else 2
        short = shrink(x, channels, stride)
        x = jax.nn.relu(short + block(w, x, stride)) if keep[number] > 0 else jax.nn.relu(short)
    return x


def policy(w, image):
    """A number for each block, which runs if it is positive."""
    x = jax.nn.relu(layer(w["first"], image))
    for each in w["layers"]:
        x = jax.nn.relu(layer(each, x, 2))
    return jnp.mean(x, (0, 1)) @ w["head"] + w["head_bias"]


@pcbatch.batch(in_axes=(None, 0))
def predict(w, image):
    """A number for each class, and how many blocks ran."""
    keep = policy(w["policy"], image)
    x = jax.nn.relu(layer(w["first"], image))
    start = 0
    for blocks in w["stages"]:
        x = stage(blocks, keep[start : start + len(blocks)], x)
        start += len(blocks)
    return jnp.mean(x, (0, 1)) @ w["head"] + w["head_bias"], jnp.sum(keep > 0)


@pcbatch.batch(in_axes=(None, 0, 0))
def loss(w, image, label):
    """The cross entropy; that of the decisions is none, as they are hard."""
    scores, _ = predict(w, image)
    return -jax.nn.log_softmax(scores)[label]


def weights(rng, hidden, blocks=BLOCKS):
    """Random ones, with as many channels in the last stage as `hidden`."""
    one, two, three = (max(1, hidden // k) for k in (4, 2, 1))

    def part(before, after):
        return [layer_weights(rng, 3, before, after), layer_weights(rng, 3, after, after, 0.5)]

    def stage_weights(before, after):
        return [part(before if k == 0 else after, after) for k in range(blocks)]

    return {
        "policy": {
            "first": layer_weights(rng, 3, 3, one),
            "layers": [layer_weights(rng, 3, one, two), layer_weights(rng, 3, two, three)],
            "head": data.dense(rng, three, 3 * blocks, scale=2.0),
            "head_bias": data.bias(rng, 3 * blocks),
        },
        "first": layer_weights(rng, 3, 3, one),
        "stages": [stage_weights(one, one), stage_weights(one, two), stage_weights(two, three)],
        "head": data.dense(rng, three, data.CLASSES),
        "head_bias": data.bias(rng, data.CLASSES),
    }


def examples(rng, count, most=16):
    """Random images of so many rows and columns."""
    return data.classified(rng, [rng.normal(size=(most, most, 3)).astype("float32") for _ in range(count)])


gather, gather_labels = data.arrays, data.arrays
