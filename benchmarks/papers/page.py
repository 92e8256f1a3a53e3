"""The page about the papers, made of what was measured."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import plots
from benchmarks.common import Curve
from benchmarks.papers.figure import Figure, Paper, Row, table

PAGE = Path("docs/users/papers.md")
DPI = 90
HEAD = """# Papers, and what is measured here

Five papers are about programs with control flow in batches. For each figure or table below stands what its paper
reports, and the same quantity measured here on one thread of a CPU. Most papers measured on a GPU, so ratios compare
and times do not. Data and weights are random: what counts is shapes. Times are CPU seconds of the process, medians of
calls that take turns; a baseline that has a process of its own says so. What networks give is compared before they
are timed.

`python -m benchmarks.papers` measures all of it, `--only NAME` one figure, `--quick` small sizes in ten minutes, and
`--page` writes this page from the numbers. Where the text of a paper gives no number for a plot, none stands here.
"""


def anchor(name: str) -> str:
    """The picture of a plot."""
    return name.replace(" ", "-") + ".png"


def wrapped(prose: str) -> str:
    """A paragraph in lines; none begins with a percent sign, which makes it a comment."""
    return textwrap.fill(prose.replace(" %", "\u00a0%"), 120, break_long_words=False, break_on_hyphens=False)


def measured(figure: Figure, found: Mapping[str, Any] | None) -> list[str]:
    """The table of a figure, and when it was measured; or why there is none."""
    if found is None:
        return ["Not measured."]
    if "error" in found:
        return [f"Not measured: `{found['error']}`."]
    kind = "Quick run" if found["quick"] else "Full run"
    when = f"{kind} of {found['date']}, {found['cpu seconds']:.0f} CPU seconds: `--only {figure.name}`."
    return [when, "", table(figure.quantity, [Row(**row) for row in found["rows"]])]


def section(figure: Figure, found: Mapping[str, Any] | None, pictures: str) -> list[str]:
    """One figure."""
    lines = [
        "",
        f"### {figure.number}: {figure.title}",
        "",
        wrapped(f"*The paper:* {figure.reported}"),
        "",
        wrapped(f"*Here:* {figure.here}"),
    ]
    lines += ["", *measured(figure, found)]
    names = dict.fromkeys(curve["plot"] for curve in (found or {}).get("curves", ()))
    for name in names:
        lines += ["", f"![{plots.PLOTS[name].title}]({pictures}/{anchor(name)})"]
    return lines


def places(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """On what machines, with what versions, by figure."""
    names: dict[str, list[str]] = {}
    for name, one in found.items():
        where = {**one["machine"], **one["versions"]}
        names.setdefault(", ".join(f"{key} {value}" for key, value in where.items()), []).append(name)
    lines = [wrapped(f"{', '.join(some)}: {where}.") for where, some in names.items()]
    return ["", "## Machine and versions", "", "\n\n".join(lines)]


def text(papers: Sequence[Paper], found: Mapping[str, Mapping[str, Any]], pictures: str) -> str:
    """The whole page."""
    lines = [HEAD.rstrip()]
    for paper in papers:
        lines += ["", f"## {paper.title}", "", f"{paper.source}."]
        for figure in paper.figures:
            lines += section(figure, found.get(figure.name), pictures)
    return "\n".join(lines + (places(found) if found else [])) + "\n"


def write(papers: Sequence[Paper], found: Mapping[str, Mapping[str, Any]], to: Path = PAGE) -> list[Path]:
    """Write the page and, in a folder of its name beside it, the pictures."""
    folder = to.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    to.write_text(text(papers, found, folder.name), encoding="utf-8")
    curves = [Curve(**curve) for one in found.values() for curve in one.get("curves", ())]
    return [to, *plots.draw(curves, folder, DPI)]
