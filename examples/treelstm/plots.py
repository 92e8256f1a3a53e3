"""A picture: loss and accuracy against steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from examples.treelstm.train import Progress, Settings


def plot_training(settings: Settings, progress: Progress, numbers: dict[str, Any], directory: Path) -> None:
    """Write training.png into `directory`."""
    plt.switch_backend("Agg")  # files, whatever screen there is
    directory.mkdir(parents=True, exist_ok=True)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5))
    steps = np.arange(1, progress.step + 1)
    left.plot(steps, progress.losses, linewidth=0.5, color="grey", label="minibatch")
    epochs = progress.losses[: len(progress.scores) * settings.steps_per_epoch].reshape(-1, settings.steps_per_epoch)
    middle = progress.scores[:, 0] - settings.steps_per_epoch / 2
    left.plot(middle, epochs.mean(axis=1), marker="o", label="mean of an epoch")
    left.set(yscale="log", xlabel="step", ylabel="loss", title="training")
    left.legend()
    right.plot(progress.scores[:, 0], progress.scores[:, 1], marker="o", label="TreeLSTM")
    for name, style in {"bag_of_words": "--", "majority": ":"}.items():
        right.axhline(numbers[f"accuracy_{name}"], linestyle=style, color="grey", label=name.replace("_", " "))
    right.set(ylim=(0, 1), xlabel="step", ylabel="accuracy", title="held-out sentences")
    right.legend(loc="center right")
    figure.tight_layout()
    figure.savefig(directory / "training.png", dpi=150)
    plt.close(figure)
