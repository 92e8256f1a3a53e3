"""The picture of a profile. The only user of matplotlib, which comes with the extra `viz`."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from pcbatch.diagnostics.tables import shortened

if TYPE_CHECKING:
    from pcbatch.report.profile import Profile

LIVE, ALL, BLOCKS = "#9aa5b1", "#1f4e79", ("#c8553d", "#588157", "#8e6c8a", "#e0a030")
ROW = 0.28  # inches for a block
LABEL = 30  # characters


def plot(profile: Profile, path: str | PathLike[str]) -> None:
    """Draw a profile into a file, of the format that its name ends in (`.png`, `.pdf`, `.svg`)."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("a profile is drawn with matplotlib: `pip install 'pcbatch[viz]'`") from None
    heights = (2.6, max(1.0, ROW * len(profile.blocks)))
    figure = Figure(figsize=(9.0, sum(heights) + 1.4), layout="constrained")
    over_time, by_block = figure.subplots(2, 1, height_ratios=heights)
    plan = profile.schedule
    figure.suptitle(f"{plan.function}: {plan.lanes} lanes, {plan.inputs} inputs, policy {plan.policy}")
    _over_time(over_time, profile)
    _by_block(by_block, profile)
    figure.savefig(path, dpi=120)


def _over_time(axes: Any, profile: Profile) -> None:
    line = profile.timeline
    edges = np.concatenate([[0], np.cumsum(line.trips)])
    weights = [block.plan.lane_ns for block in profile.blocks]

    def draw(values: Any, **style: Any) -> None:
        if len(values):
            axes.step(edges, np.append(values, values[-1]), where="post", **style)

    alive = np.append(line.alive, line.alive[-1:] if len(line.alive) else [0.0])
    axes.fill_between(edges, alive, step="post", color=LIVE, alpha=0.35, lw=0, label="live lanes")
    for block, colour in zip(profile.expensive, BLOCKS, strict=False):
        only = [float(b is block) for b in profile.blocks]
        draw(line.utilisation(only), color=colour, lw=1.2, label=_label(block))
    draw(line.utilisation(weights), color=ALL, lw=1.6, label="all blocks, by cost")
    axes.set(xlabel="trips of the machine", ylabel="share of lanes", ylim=(0, 1.03), xlim=(0, max(1, profile.trips)))
    axes.grid(alpha=0.3)
    axes.legend(loc="lower left", fontsize="small", framealpha=0.9)


def _by_block(axes: Any, profile: Profile) -> None:
    rows = np.arange(len(profile.blocks))
    colours = dict(zip((b.label for b in profile.expensive), BLOCKS, strict=False))
    axes.barh(rows, [b.utilisation for b in profile.blocks], color=[colours.get(b.label, ALL) for b in profile.blocks])
    for row, block in zip(rows, profile.blocks, strict=True):
        text = f" {100 * block.utilisation:.0f} % of {block.visits} visits, {100 * block.work:.0f} % of the work"
        inside = block.utilisation > 0.6
        axes.text(
            block.utilisation,
            row,
            text + " " * inside,
            va="center",
            ha="right" if inside else "left",
            color="white" if inside else "black",
            fontsize="small",
        )
    axes.set(yticks=rows, yticklabels=[_label(b) for b in profile.blocks], xlim=(0, 1), xlabel="utilisation by block")
    axes.tick_params(axis="y", labelsize="small")
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)


def _label(block: Any) -> str:
    text = shortened(block.plan.text, LABEL)
    return f"{block.label}  {text}".rstrip().replace("$", r"\$")
