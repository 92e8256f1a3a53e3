"""A network on random examples: run, checked, timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from examples.networks import check
from examples.networks.visits import visits


@dataclass(frozen=True)
class Settings:
    """The sizes of a run."""

    hidden: int = 64
    batch: int = 64
    most: int | None = None
    fork: str | None = None
    seed: int = 0
    repeats: int = 5
    more: Mapping[str, Any] = field(default_factory=dict)  # sizes of the weights that only this network has


def paper(name: str, settings: Settings) -> Settings | None:
    """The settings with the sizes that Cocktailer (Zhang et al., OSDI 2023) runs a network with, if it does."""
    sizes = dict(getattr(import_module(f"examples.networks.{name}"), "PAPER", {}))
    if not sizes:
        return None
    return replace(settings, hidden=sizes.pop("hidden"), most=sizes.pop("most"), more=sizes)


class Task:
    """A network with weights and examples, ready to be called."""

    def __init__(self, name: str, settings: Settings) -> None:
        self.name, self.network = name, import_module(f"examples.networks.{name}")
        rng = np.random.default_rng(settings.seed)
        self.weights = self.network.weights(rng, settings.hidden, **settings.more)
        most = {} if settings.most is None else {"most": settings.most}
        self.examples = self.network.examples(rng, settings.batch, **most)
        self.inputs = self.network.gather([example.x for example in self.examples])
        self.labels = self.network.gather_labels([example.label for example in self.examples])
        options = {} if settings.fork is None else {"plan": pcbatch.Plan(fork=settings.fork)}
        self.batched = self.network.predict.with_options(**options)
        self.losses = self.network.loss.with_options(**options)

    def predict(self) -> Any:
        """What the network says of all examples."""
        return self.batched(self.weights, self.inputs)

    def gradient(self) -> Any:
        """The mean loss, and its gradient."""
        mean = lambda w: jnp.mean(self.losses(w, self.inputs, self.labels))  # noqa: E731
        return jax.value_and_grad(mean)(self.weights)

    def check_predictions(self) -> str:
        """Compare with each example by itself; returns with what."""
        return check.predictions(self.name, self.network, self.weights, self.examples, self.predict())

    def check_gradient(self) -> str:
        """Compare with each example by itself; returns with what."""
        return check.gradient(self.name, self.network, self.weights, self.examples, self.gradient())


def timed(call: Callable[[], Any], repeats: int) -> float:
    """The median of CPU seconds, after a call that compiles."""
    jax.block_until_ready(call())
    found = []
    for _ in range(repeats):
        start = time.process_time()
        jax.block_until_ready(call())
        found.append(time.process_time() - start)
    return float(np.median(found))


def report(name: str, settings: Settings, train: bool) -> None:
    """Run, check and time a network; print a few lines."""
    task = Task(name, settings)
    count = len(task.examples)
    print(f"{name}: {count} examples, hidden {settings.hidden}, fork {settings.fork or 'as the default'}", flush=True)
    what = task.check_predictions()
    seconds = timed(task.predict, settings.repeats)
    print(f"  predictions as in {what}; {1e3 * seconds:.2f} ms, {count / seconds:,.0f} examples a second", flush=True)
    print(f"  {visits(task.batched, task.weights, task.inputs)}", flush=True)
    if train:
        what = task.check_gradient()
        seconds = timed(task.gradient, settings.repeats)
        print(f"  gradients as in {what}; {1e3 * seconds:.2f} ms, {count / seconds:,.0f} examples a second", flush=True)
