"""Layers of residual networks for one image, [rows, columns, channels]."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from examples.networks import data


def convolve(x, kernel, stride=1):
    """The convolution with a kernel [rows, columns, channels before, channels after], as large as the image."""
    return jax.lax.conv_general_dilated(
        x[None], kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )[0]


def layer(w, x, stride=1):
    """A convolution, and what is left of a normalisation by batches when it no longer learns: scale and shift."""
    return convolve(x, w["kernel"], stride) * w["scale"] + w["shift"]


def shrink(x, channels, stride):
    """Each second row and column, if that is the stride, and zeros in new channels."""
    return jnp.pad(x[::stride, ::stride], ((0, 0), (0, 0), (0, channels - x.shape[-1])))


def block(w, x, stride=1):
    """The part of a residual block that is added: all its layers, the first of them with the stride."""
    *before, last = w
    for each in before:
        x = jax.nn.relu(layer(each, x, stride))
        stride = 1
    return layer(last, x)


def layer_weights(rng, size, before, after, scale=1.0):
    """Random ones of a layer."""
    kernel = data.dense(rng, size * size * before, after).reshape(size, size, before, after)
    return {"kernel": kernel, "scale": scale + data.bias(rng, after), "shift": data.bias(rng, after)}
