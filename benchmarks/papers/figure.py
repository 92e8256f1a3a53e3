"""A figure or table of a paper: what the paper reports of it, and the same quantity measured here."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.common import Curve

Number = float | int | None


@dataclass(frozen=True, slots=True)
class Row:
    """One line: the quantity of the figure for one thing.

    Attributes:
        of: what it is measured of.
        paper: what the paper reports for that, as text; empty if it gives no number.
        here: the number measured here; None if it cannot be had.
        more: what stands beside it, by column.
        why: the reason that something cannot be had.
    """

    of: str
    paper: str = ""
    here: Number = None
    more: Mapping[str, Number] = field(default_factory=dict)
    why: str = ""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a figure has become here."""

    rows: Sequence[Row]
    curves: Sequence[Curve] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure or table of a paper.

    Attributes:
        name: its name on the command line.
        number: its number in the paper.
        title: what it is about.
        reported: what the paper reports, with its sections.
        here: how it is measured here, and in what that differs.
        quantity: what the columns `paper` and `here` hold.
        measure: measures it; a quick run is given True.
    """

    name: str
    number: str
    title: str
    reported: str
    here: str
    quantity: str
    measure: Callable[[bool], Measured]


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper and its figures."""

    title: str
    source: str
    figures: Sequence[Figure]


def attempted(of: str, measure: Callable[[], Row]) -> Row:
    """The row that is measured; one that says why if that fails, so that the others are measured all the same."""
    try:
        row = measure()
    except Exception as error:
        traceback.print_exc()
        row = Row(of, why=in_one_line(error))
    print(f"  {row.of}: {number(row.here)}", flush=True)
    return row


def in_one_line(error: Exception) -> str:
    """The kind of an error and the first line of its message."""
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {first}".replace("|", "/")


def number(value: Number) -> str:
    """A number as tables show it: three digits, or all before the point; a dash for none."""
    if value is None:
        return "-"
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{round(value):,}"
    return f"{value:.3g}"


def columns(rows: Sequence[Row]) -> list[str]:
    """The names of all further columns, in the order in which they appear."""
    return list(dict.fromkeys(name for row in rows for name in row.more))


def table(quantity: str, rows: Sequence[Row]) -> str:
    """The rows in Markdown."""
    names = columns(rows)
    head = [quantity, "paper", "here", *names]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for row in rows:
        here = f"not measured: {row.why}" if row.here is None and row.why else number(row.here)
        cells = [row.of, row.paper or "-", here, *(number(row.more.get(name)) for name in names)]
        lines.append("| " + " | ".join(cells) + " |")
    missing = [f"{row.of}: {row.why}." for row in rows if row.why and row.here is not None]
    return "\n".join(lines + ([""] + missing if missing else []))
