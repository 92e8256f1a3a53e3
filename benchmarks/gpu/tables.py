"""Tables, pictures and the decision about "auto", of the rows that were measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu.cases import FIRST

NEAR = {
    False: 1e-3,
    True: 1e-2,
}  # how far sums of results may be apart: among ours, and of a peer whose rounding differs
ENOUGH = 1.5  # times as fast: what `kernel` has to be to become the default
OF = 3  # programs of `FIRST` on which it has to be


def rate(row: Mapping[str, Any]) -> float | None:
    """Return the work per second of a row; None for one that failed."""
    return None if "error" in row else row["work"] / row["seconds"]


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a table for each program: work per second by way and number of lanes."""
    out = []
    for name in dict.fromkeys(row["program"] for row in rows):
        mine = [row for row in rows if row["program"] == name]
        widths = sorted({row["lanes"] for row in mine})
        out += [f"## {name}, {mine[0].get('unit', 'work')}s per second", ""]
        heads = ["", "loops in graphs", *(f"{w:,} lanes" for w in widths)]
        out += ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
        for way, graphs in dict.fromkeys((row["way"], row["graphs"]) for row in mine):
            cells = [_cell(mine, way, graphs, width) for width in widths]
            out.append(f"| {way} | {'yes' if graphs else 'no'} | " + " | ".join(cells) + " |")
        errors = [f"- {r['way']}, {r['lanes']:,} lanes: {r['error']}" for r in mine if "error" in r]
        out += ["", *dict.fromkeys(errors), ""]
    return "\n".join(out)


def _cell(rows: Sequence[Mapping[str, Any]], way: str, graphs: bool, lanes: int) -> str:
    found = next((r for r in rows if (r["way"], r["graphs"], r["lanes"]) == (way, graphs, lanes)), None)
    if found is None:
        return ""
    value = rate(found)
    return "failed" if value is None else f"{value:.3g}"


def best(rows: Sequence[Mapping[str, Any]], program: str, way: str) -> float | None:
    """Return the best rate of a way (its sizes included), with loops in graphs, at the lanes that decide."""
    mine = [r for r in rows if r["program"] == program and r["graphs"] and r["way"].split()[0] == way]
    middle = [r for r in mine if r["lanes"] in (16_384, 10_000)] or mine
    return max((value for r in middle if (value := rate(r)) is not None), default=None)


def decision(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return what "auto" should be on this device, and why.

    `kernel` if it is `ENOUGH` times as fast as `port` with loops in graphs on `OF` of the first five programs that
    decide; else `port`.
    """
    lines, wins, known = [], 0, 0
    for name in FIRST[:5]:
        kernel, port = best(rows, name, "kernel"), best(rows, name, "port")
        if kernel is None or port is None:
            lines.append(f"- {name}: not measured")
            continue
        known, wins = known + 1, wins + (kernel >= ENOUGH * port)
        lines.append(f"- {name}: kernel {kernel / port:.2f} times port")
    if known < OF:
        return "\n".join([f"undecided: {known} of {OF} programs that are needed were measured", *lines])
    choice = "kernel, where a program can be one" if wins >= OF else "port"
    return "\n".join([f'"auto" should be: {choice} ({wins} of {known} programs at {ENOUGH} times)', *lines])


def disagreements(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the ways whose results are not those of the first way of pcbatch with as many lanes.

    Peers count where their rows say that they are `compared`: those that draw random numbers of their own cannot be.
    """
    found, seen = [], {}
    right = [row for row in rows if "error" not in row]
    ours = [row for row in right if not row.get("peer")]
    for row in (*ours, *(row for row in right if row.get("compared"))):
        key = (row["program"], row["lanes"])
        if row.get("peer") and key not in seen:
            continue
        first = seen.setdefault(key, row)
        pairs = zip(row["check"], first["check"], strict=True)
        if any(abs(a - b) > NEAR["peer" in row] * (1 + abs(b)) for a, b in pairs):
            found.append(f"{row['program']}, {row['lanes']:,} lanes: {row['way']} and {first['way']} differ")
    return found


def pictures(rows: Sequence[Mapping[str, Any]], folder: Path) -> list[Path]:
    """Draw the work per second by lanes, a picture for each program."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    made = []
    for name in dict.fromkeys(row["program"] for row in rows):
        figure, axes = pyplot.subplots(figsize=(7, 4.5))
        mine = [row for row in rows if row["program"] == name and "error" not in row]
        for way, graphs in dict.fromkeys((row["way"], row["graphs"]) for row in mine):
            points = sorted((r["lanes"], rate(r)) for r in mine if (r["way"], r["graphs"]) == (way, graphs))
            style = "-o" if graphs else "--x"
            axes.plot(*zip(*points, strict=True), style, label=way + ("" if graphs else ", no loops in graphs"))
        axes.set(xscale="log", yscale="log", xlabel="lanes", ylabel="work per second", title=name)
        axes.legend(fontsize=7)
        axes.grid(alpha=0.3)
        made.append(folder / f"{name}.png")
        figure.savefig(made[-1], dpi=120, bbox_inches="tight")
        pyplot.close(figure)
    return made
