"""What a training says: of its data, of itself, and of what can be had without trees."""

from __future__ import annotations

import platform
from dataclasses import asdict
from typing import Any

import jax
import numpy as np
import optax

import pcbatch
from examples.treelstm import baselines
from examples.treelstm.data import CLASSES, heights
from examples.treelstm.train import Data, Progress, Settings


def describe(data: Data) -> str:
    """The trees, in two lines."""
    leaves = (data.train.nodes() + 1) // 2
    tallest = heights(data.train).max(axis=1)
    shares = np.bincount(data.train.label[:, 0], minlength=len(CLASSES)) / len(leaves)
    classes = ", ".join(f"{name} {share:.0%}" for name, share in zip(CLASSES, shares, strict=True))
    return (
        f"{len(leaves)} trees of {leaves.min()} to {leaves.max()} leaves, {leaves.mean():.1f} on average, "
        f"{tallest.mean():.1f} high, at most {tallest.max()}; {len(data.held_out.left)} held out\n"
        f"sentences: {classes}"
    )


def metrics(settings: Settings, data: Data, progress: Progress, steps: int, seconds: float) -> dict[str, Any]:
    """The numbers of a training that a program may want to read."""
    epoch = settings.steps_per_epoch
    return {
        **asdict(settings),
        "steps": progress.step,
        "loss_first": float(progress.losses[0]),
        "loss_first_epoch": float(progress.losses[:epoch].mean()),
        "loss_last_epoch": float(progress.losses[-epoch:].mean()),
        "accuracy": float(progress.scores[-1, 1]),
        "accuracy_majority": baselines.majority(*data),
        "accuracy_bag_of_words": baselines.bag_of_words(*data),
        "run_steps": steps,
        "run_seconds": seconds,
        "device": jax.devices()[0].device_kind,
        "platform": jax.devices()[0].platform,
        "versions": {
            "python": platform.python_version(),
            "jax": jax.__version__,
            "optax": optax.__version__,
            "pcbatch": pcbatch.__version__,
            "numpy": np.__version__,
        },
    }


def summary(numbers: dict[str, Any]) -> str:
    """A few lines."""
    n = numbers
    rate = n["run_steps"] * n["batch"] / n["run_seconds"]
    return "\n".join(
        (
            f"{n['steps']} steps of {n['batch']} trees, hidden {n['hidden']}: loss {n['loss_first']:.3f} at first, "
            f"{n['loss_first_epoch']:.3f} over the first epoch, {n['loss_last_epoch']:.4f} over the last",
            f"{n['run_steps']} of them now, in {n['run_seconds']:.1f} s with compilation and evaluation: "
            f"{rate:,.0f} trees/s",
            f"accuracy on held-out sentences: {n['accuracy']:.1%}; the commonest class {n['accuracy_majority']:.1%}, "
            f"a bag of words {n['accuracy_bag_of_words']:.1%}",
        )
    )
