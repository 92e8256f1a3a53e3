"""Minibatches, optimiser, checkpoints. A step depends on its number and the settings alone, so a training resumes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from examples.treelstm import by_hand, checkpoint
from examples.treelstm.data import MOST, Trees, generate
from examples.treelstm.model import initial_weights, loss, sentiment

LANES = 256  # trees that are evaluated at a time
WIDTH = 64  # of a row of the batches by hand
CLIP = 5.0  # most that the norm of a gradient counts
HELD_OUT_SEED = 1_000_003  # added to that of the training set


@dataclass(frozen=True)
class Settings:
    """What to train on what."""

    trees: int = 8000
    held_out: int = 2000
    most: int = MOST
    everywhere: bool = True
    hidden: int = 64
    batch: int = 64
    epochs: int = 12
    rate: float = 2e-3
    seed: int = 0

    @property
    def steps_per_epoch(self) -> int:
        """Minibatches; trees that do not fill one wait for another epoch."""
        return self.trees // self.batch

    def about(self) -> dict[str, Any]:
        """What a checkpoint belongs to: how long to train may change."""
        return {key: value for key, value in asdict(self).items() if key != "epochs"}


class Progress(NamedTuple):
    """All that a training needs to go on. `scores` holds the step and the accuracy at the end of every epoch."""

    weights: dict[str, jax.Array]
    optimiser: Any
    losses: np.ndarray
    scores: np.ndarray

    @property
    def step(self) -> int:
        """Steps made."""
        return len(self.losses)


class Data(NamedTuple):
    """What is learnt from, and what is asked."""

    train: Trees
    held_out: Trees


class Gradient(NamedTuple):
    """A way to batch trees: what the device is given of some trees; of weights and that, the mean loss and gradient."""

    prepare: Callable[[Trees], Any]
    value_and_grad: Callable[[Any, Any], tuple[jax.Array, Any]]


def recursive(depth: int) -> Gradient:
    """The recursion of one tree, batched by pcbatch. No tree is higher than `depth`."""

    def value_and_grad(weights: Any, batch: Trees) -> tuple[jax.Array, Any]:
        # No block is visited more often than there are nodes, so the tape is never full.
        model = loss.with_options(max_depth=depth + 1, max_tape=batch.left.shape[-1])
        return jax.value_and_grad(lambda w: jnp.mean(model(w, batch)))(weights)

    return Gradient(lambda trees: trees, value_and_grad)


def level_by_level(width: int = WIDTH, multiple: int = 8) -> Gradient:
    """By hand."""
    return Gradient(lambda trees: by_hand.plan(trees, width, multiple), jax.value_and_grad(by_hand.mean_loss))


def make_data(settings: Settings) -> Data:
    """Trees to learn from and other trees."""
    make = lambda count, seed: generate(count, seed, settings.most, settings.everywhere)  # noqa: E731
    return Data(make(settings.trees, settings.seed), make(settings.held_out, settings.seed + HELD_OUT_SEED))


def start(settings: Settings) -> Progress:
    """Before the first step."""
    weights = initial_weights(settings.hidden, settings.seed)
    return Progress(weights, _rule(settings.rate).init(weights), np.zeros(0, np.float32), np.zeros((0, 2), np.float32))


def resume(path: Path, settings: Settings) -> Progress:
    """Where a checkpoint stands."""
    return checkpoint.load(path, start(settings), settings.about())


def _rule(learning_rate: float) -> optax.GradientTransformation:
    return optax.chain(optax.clip_by_global_norm(CLIP), optax.adam(learning_rate))


def train(
    settings: Settings,
    data: Data,
    gradient: Gradient,
    progress: Progress | None = None,
    save: Callable[[Progress], Any] = lambda progress: None,
    tick: Callable[[float], Any] = lambda loss: None,
) -> Progress:
    """Steps until all epochs are done. `save` is called after every step, `tick` with its loss.

    The trees of a step follow from its number: an interrupted training that goes on from any step makes the same ones.
    """
    progress = start(settings) if progress is None else progress
    step = stepper(settings.rate, gradient)
    for number in range(progress.step, settings.epochs * settings.steps_per_epoch):
        epoch, place = divmod(number, settings.steps_per_epoch)
        rows = _order(settings, epoch)[place * settings.batch : (place + 1) * settings.batch]
        weights, optimiser, value = step(*progress[:2], gradient.prepare(data.train.pick(rows)))
        losses, scores = np.append(progress.losses, np.float32(value)), progress.scores
        if place + 1 == settings.steps_per_epoch:
            score = np.array([[number + 1, accuracy(weights, data.held_out)]], np.float32)
            scores = np.concatenate([scores, score])
        progress = Progress(weights, optimiser, losses, scores)
        save(progress)
        tick(float(value))
    return progress


@functools.cache
def stepper(learning_rate: float, gradient: Gradient) -> Callable[..., Any]:
    """One step: of weights, the optimiser's state and a prepared batch, the next ones and the loss."""
    rule = _rule(learning_rate)

    @jax.jit
    def step(weights: Any, optimiser: Any, batch: Any) -> tuple[Any, Any, jax.Array]:
        value, slope = gradient.value_and_grad(weights, batch)
        updates, optimiser = rule.update(slope, optimiser, weights)
        return optax.apply_updates(weights, updates), optimiser, value

    return step


def _order(settings: Settings, epoch: int) -> np.ndarray:
    """Of the trees in an epoch."""
    return np.random.default_rng((settings.seed, epoch)).permutation(settings.trees)


def accuracy(weights: Any, trees: Trees) -> float:
    """The part of the sentences whose class is found."""
    found = sentiment.map(weights, trees, lanes=min(LANES, len(trees.left))).value
    return float(np.mean(np.argmax(found, axis=1) == trees.label[:, 0]))


class Saver:
    """Writes a checkpoint after every so many steps, and after the last."""

    def __init__(self, path: Path, settings: Settings, every: int) -> None:
        self.path, self.settings, self.every = path, settings, every

    def __call__(self, progress: Progress) -> None:
        last = self.settings.epochs * self.settings.steps_per_epoch
        if progress.step % self.every == 0 or progress.step == last:
            checkpoint.save(self.path, progress, self.settings.about())
