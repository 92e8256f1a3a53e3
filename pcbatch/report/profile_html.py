"""The page of a profile: one file of HTML that loads nothing else.

`profile.html` is the page without its contents: `<!--name-->` stands for a part that is made here. Its script only
points out what belongs together, and shows the counts of a stretch of the run; without it the page can be read too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from pcbatch.diagnostics.tables import number, ranges
from pcbatch.report.profile_source import Excerpt, Spot

if TYPE_CHECKING:
    from pcbatch.report.profile import BlockProfile, Profile

WIDTH, HEIGHT = 1000, 100  # of all drawings, in their own units
SPARKS = 64  # steps of the small drawing of a block
Numbers = np.ndarray[Any, np.dtype[Any]]


def page(profile: Profile) -> str:
    """Fill the page of a profile: HTML as text."""
    template = (files(__name__.rpartition(".")[0]) / "profile.html").read_text(encoding="utf-8")
    view = _View(profile)
    parts = {
        "title": escape(profile.title),
        "facts": view.facts(),
        "chart": view.chart(),
        "trips": str(profile.trips),
        "blocks": "\n".join(view.block(k) for k, block in enumerate(profile.blocks) if not block.is_unused_exit),
        "source": "\n".join(view.source()),
        "data": json.dumps(view.data(), separators=(",", ":")).replace("<", "\\u003c"),
    }
    return re.sub(r"<!--(\w+)-->", lambda found: parts[found[1]], template)


class _View:
    """The parts of the page of one profile."""

    def __init__(self, profile: Profile) -> None:
        self.profile, self.line = profile, profile.timeline
        self.files = {file: k for k, file in enumerate(dict.fromkeys(e.file for e in profile.source.excerpts))}
        self.names = dict(zip(self.files, _short(tuple(self.files)), strict=True))
        self.edges = np.concatenate([[0], np.cumsum(self.line.trips)]) * (WIDTH / max(1, profile.trips))
        self.blocks_of: dict[str, list[tuple[int, float]]] = {}  # by the id of a line: blocks and the share of each
        for k, spots in enumerate(profile.source.spots):
            for spot in spots:
                self.blocks_of.setdefault(self.id_of(spot), []).append((k, spot.share))
        work = (self.work_of(line_id) for line_id in self.blocks_of)
        self.most = max(work, default=0.0), max((block.work for block in profile.blocks), default=0.0)

    def id_of(self, spot: Spot) -> str:
        return f"l{self.files[spot.file]}-{spot.line}"

    def work_of(self, line_id: str) -> float:
        return sum(self.profile.blocks[k].work * share for k, share in self.blocks_of[line_id])

    def facts(self) -> str:
        profile, plan = self.profile, self.profile.schedule
        facts = [("utilisation", f"{100 * profile.utilisation:.0f} % of all work")]
        facts += [(f"of {b.label}", f"{100 * b.utilisation:.0f} %, waited for") for b in profile.expensive]
        facts += [("policy", f"{plan.policy}: {plan.reason}")]
        return "\n".join(f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>" for name, text in facts)

    def chart(self) -> str:
        """Draw live lanes and utilisation over time; that of each block is shown when its row is pointed at."""
        weights = [block.plan.lane_ns for block in self.profile.blocks]
        of_blocks = "".join(
            f'<path class="one" data-block="{k}" d="{_steps(self.line.utilisation(only), self.edges)}"/>'
            for k, only in enumerate(np.eye(len(weights)).tolist())
        )
        live = f'<path class="live" d="{_area(self.line.alive, self.edges)}"/>'
        return f'{live}<path class="all" d="{_steps(self.line.utilisation(weights), self.edges)}"/>{of_blocks}'

    def block(self, k: int) -> str:
        """Make the table row of one block."""
        block = self.profile.blocks[k]
        plan, spots = block.plan, self.profile.source.spots[k]
        label = escape(block.label) + (
            ' <abbr title="lanes wait for each other here">*</abbr>' if plan.expensive else ""
        )
        name = f'<a href="#{self.id_of(spots[0])}">{label}</a>' if spots else label
        code = f"<code>{escape(plan.text)}</code>" if plan.text else ""
        function = escape(plan.function.rpartition("<locals>.")[2])
        return (
            f'<tr id="b{k}" data-block="{k}" style="--heat:{_heat(block.work, self.most[1])}">'
            f'<th scope="row">{name}<small>{function}</small></th>'
            f'<td class="holds">{code}<small>{", ".join(self.places(spots))}</small></td>'
            f"{_cells(block.work, (block,))}<td>{self.spark(k)}</td></tr>"
        )

    def places(self, spots: Sequence[Spot]) -> Iterator[str]:
        """Make links to the lines of a block, with the name of the file where there are several."""
        for file in dict.fromkeys(spot.file for spot in spots):
            lines = [spot.line for spot in spots if spot.file == file]
            name = f"{escape(self.names[file])} " if len(self.files) > 1 else ""
            yield f'<a href="#l{self.files[file]}-{lines[0]}">{name}{ranges(lines)}</a>'

    def spark(self, k: int) -> str:
        """Draw the lanes that a block had room for, and those that took part, over time."""
        count = len(self.line.trips)
        groups = np.array_split(np.arange(count), min(SPARKS, count)) if count else []
        edges = self.edges[[0, *(group[-1] + 1 for group in groups)]]
        # Several visits in a trip may have room for more lanes than there are.
        rooms = [max(1, self.line.lanes[group].sum(), self.line.offered[group, k].sum()) for group in groups]

        def path(name: str, counts: Numbers) -> str:
            shares = np.array([counts[group].sum() / room for group, room in zip(groups, rooms, strict=True)])
            return f'<path class="{name}" d="{_area(shares, edges)}"/>'

        paths = path("offered", self.line.offered[:, k]) + path("active", self.line.active[:, k])
        return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" aria-hidden="true">{paths}</svg>'

    def source(self) -> Iterator[str]:
        """Make a table of source lines for each file."""
        for file in self.files:
            excerpts = [excerpt for excerpt in self.profile.source.excerpts if excerpt.file == file]
            gap = '<tr class="gap"><td colspan="6">&#8943;</td></tr>\n'
            rows = gap.join("".join(self.lines(excerpt)) for excerpt in excerpts)
            head = f"<h3>{escape(self.names[file])}</h3>\n<div class=scroll><table class=source>"
            yield f"{head}{_HEAD}<tbody>{rows}</tbody></table></div>"

    def lines(self, excerpt: Excerpt) -> Iterator[str]:
        for line, text in enumerate(excerpt.lines, excerpt.first):
            line_id = f"l{self.files[excerpt.file]}-{line}"
            code = f"<td class=code><code>{escape(text)}</code></td></tr>\n"
            if line_id in self.blocks_of:
                blocks = [self.profile.blocks[k] for k, _ in self.blocks_of[line_id]]
                work = self.work_of(line_id)
                start = f'<tr id="{line_id}" data-line style="--heat:{_heat(work, self.most[0])}">'
                labels = escape(", ".join(block.label for block in blocks))
                number_ = f'<th scope="row"><a href="#{line_id}" aria-label="line {line}, in {labels}">{line}</a></th>'
                yield f"{start}{number_}{_cells(work, blocks)}{code}"
            else:
                yield f'<tr id="{line_id}"><th scope="row">{line}</th>{"<td></td>" * 4}{code}'

    def data(self) -> dict[str, Any]:
        """The data of the script: the counts of each stretch, and the blocks of each line."""
        counts = {name: getattr(self.line, name).tolist() for name in ("trips", "live", "lanes")}
        counts |= {name: getattr(self.line, name).T.tolist() for name in ("visits", "active", "offered")}
        blocks = [{"label": b.label, "cost": b.plan.lane_ns} for b in self.profile.blocks]
        held = {line: [(k, round(share, 4)) for k, share in shares] for line, shares in self.blocks_of.items()}
        return {**counts, "blocks": blocks, "held": held}


def _steps(shares: Numbers, edges: Numbers, close: str = "") -> str:
    """The path of a line with a step at each edge between stretches, and gaps where a share is NaN."""

    def drawn() -> Iterator[str]:
        for first, last in _runs(~np.isnan(shares)):
            start, end = _coordinate(edges[first]), _coordinate(edges[last])
            heights = [_coordinate(HEIGHT * (1.0 - share)) for share in shares[first:last]]
            yield f"M{start} {heights[0]}"
            for k in range(1, len(heights)):
                if heights[k] != heights[k - 1]:
                    yield f"H{_coordinate(edges[first + k])}V{heights[k]}"
            yield f"H{end}" + close.format(start=start)

    return "".join(drawn())


def _area(shares: Numbers, edges: Numbers) -> str:
    """The path of the area below the line of `_steps`."""
    return _steps(shares, edges, f"V{HEIGHT}H{{start}}Z")


_HEAD = (
    '<thead><tr><th scope="col">line</th><th scope="col">work</th><th scope="col">visits</th>'
    '<th scope="col">lanes</th><th scope="col">utilisation</th><th scope="col" class="code">code</th></tr></thead>\n'
)


def _cells(work: float, blocks: Iterable[BlockProfile]) -> str:
    """The cells for work, visits, lanes of a visit and utilisation."""
    counts = [(block.visits, block.active, block.offered) for block in blocks]
    visits, active, offered = (sum(column) for column in zip(*counts, strict=True))
    shown = [
        _percent(work),
        number(visits),
        number(active / max(1, visits)),
        _percent(active / offered) if offered else "-",
    ]
    return "".join(f"<td class=number>{text}</td>" for text in shown)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _heat(work: float, most: float) -> str:
    return f"{work / most if most else 0.0:.2f}"


def _coordinate(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _runs(mask: Numbers) -> Iterator[tuple[int, int]]:
    """The first position and the end of each run of True values."""
    ends = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(int)))
    yield from zip(ends[::2].tolist(), ends[1::2].tolist(), strict=True)


def _short(paths: Sequence[str]) -> list[str]:
    """Names of files, with the fewest folders in front that make them different."""
    parts = [re.split(r"[\\/]", path) for path in paths]

    def tail(k: int, size: int) -> str:
        return "/".join(parts[k][-size:])

    def name(k: int) -> str:
        sizes = range(1, len(parts[k]) + 1)
        alone = (tail(k, n) for n in sizes if all(tail(k, n) != tail(j, n) for j in range(len(parts)) if j != k))
        return next(alone, paths[k])

    return [name(k) for k in range(len(parts))]
