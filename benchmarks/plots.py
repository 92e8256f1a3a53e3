"""Pictures of the curves that the benchmarks give."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import Curve


class Plot(NamedTuple):
    """What stands around the curves of one plot; `bars` if they have names along the horizontal axis."""

    title: str
    across: str
    up: str
    x_scale: str = "log"
    y_scale: str = "log"
    bars: bool = False


CHAINS, RATE, SHARE = "chains", "useful gradients per second", "utilisation of batched gradients"
PLOTS = {
    "throughput gaussian": Plot("NUTS, correlated Gaussian: throughput", CHAINS, RATE),
    "throughput logistic": Plot("NUTS, logistic regression: throughput", CHAINS, RATE),
    "utilisation gaussian": Plot("NUTS, correlated Gaussian: utilisation", CHAINS, SHARE, y_scale="linear"),
    "utilisation logistic": Plot("NUTS, logistic regression: utilisation", CHAINS, SHARE, y_scale="linear"),
    "throughput fib": Plot("recursive Fibonacci: throughput", "lanes", "lanes per second"),
    "depth": Plot("a trip against the depth of the stacks", "max_depth", "microseconds", y_scale="linear"),
    "state": Plot(
        "a trip against state that nobody touches",
        "floats per lane beside the work",
        "microseconds",
        "linear",
        "linear",
    ),
    "papers nuts throughput": Plot("NUTS, logistic regression", CHAINS, "useful gradients per CPU second"),
    "papers nuts utilisation": Plot("NUTS, correlated Gaussian", CHAINS, SHARE, y_scale="linear"),
    "papers batches": Plot("batches by policy", "", "batches / lower bound", "linear", "linear", bars=True),
    "papers speed over DyNet": Plot("inference", "", "DyNet / pcbatch", "linear", "linear", bars=True),
    "papers gain of passes": Plot("a pass left out", "", "time without / with all", "linear", "linear", bars=True),
    "papers host": Plot("inference", "", "host control flow / pcbatch", "linear", bars=True),
    "papers overhead loops": Plot("loops, one example", "", "time / traced graph", "linear", bars=True),
    "papers overhead branches": Plot("branches, one example", "", "time / traced graph", "linear", bars=True),
    "papers overhead recursion": Plot("recursion, one example", "", "time / traced graph", "linear", bars=True),
    "papers skipped": Plot("blocks that run", "share of the blocks", "time / all blocks", "linear", "linear"),
    "queues": Plot("queues of inputs of unequal cost", "", "best peer / pcbatch", "linear", "linear", bars=True),
}


def draw(curves: Sequence[Curve], folder: Path, dpi: int = 150) -> list[Path]:
    """One file for each plot that has curves."""
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")  # files, whatever screen there is
    written = []
    for name, plot in PLOTS.items():
        lines = [curve for curve in curves if curve.plot == name]
        if lines:
            figure, axes = plt.subplots(figsize=(6, 4))
            (_bars if plot.bars else _lines)(axes, lines)
            axes.set(title=plot.title, xlabel=plot.across, ylabel=plot.up, yscale=plot.y_scale)
            if not plot.bars:
                axes.set_xscale(plot.x_scale)
            axes.set_ylim(bottom=None if plot.y_scale == "log" else 0)
            axes.legend()
            figure.tight_layout()
            written.append(folder / f"{name.replace(' ', '-')}.png")
            figure.savefig(written[-1], dpi=dpi)
            plt.close(figure)
    return written


def _lines(axes: Any, curves: Sequence[Curve]) -> None:
    for curve in curves:
        axes.plot(curve.x, curve.y, marker="o", label=curve.label)


def _bars(axes: Any, curves: Sequence[Curve]) -> None:
    """Curves of one label are parts of one: every problem gives its own bar."""
    labels = list(dict.fromkeys(curve.label for curve in curves))
    names = list(dict.fromkeys(str(x) for curve in curves for x in curve.x))
    width = 0.8 / len(labels)
    for k, label in enumerate(labels):
        heights = {str(x): y for c in curves if c.label == label for x, y in zip(c.x, c.y, strict=True)}
        at = np.arange(len(names)) + (k - (len(labels) - 1) / 2) * width
        axes.bar(at, [heights.get(name, 0.0) for name in names], width, label=label)
    slant = {"rotation": 25, "ha": "right"} if max(map(len, names)) * len(names) > 60 else {}
    axes.set_xticks(np.arange(len(names)), names, **slant)
    axes.axhline(1.0, linewidth=0.5, color="grey")
