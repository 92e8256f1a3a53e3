"""Tables of text, and numbers as text, for users."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

BARS = " ▁▂▃▄▅▆▇█"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[str] = ()) -> str:
    """Return a table as text with aligned columns; those named in `right` are aligned to the right."""
    lines = [tuple(head), *map(tuple, rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
    sides = [str.rjust if name in set(right) else str.ljust for name in head]
    cells = [[side(cell, w) for side, cell, w in zip(sides, line, widths, strict=True)] for line in lines]
    return "\n".join("  ".join(line).rstrip() for line in cells)


def number(value: float | None) -> str:
    """Return a number in at most three digits: 0.04, 1.5, 320, 42k, 1.3M; `-` for None."""
    if value is None:
        return "-"
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            scaled = value / (1e3 if unit == "k" else size)
            return f"{scaled:.0f}{unit}" if scaled >= 9.95 else f"{scaled:.1f}{unit}"
    return f"{value:.0f}" if abs(value) >= 9.95 or value == int(value) else f"{value:.2g}"


def time(nanoseconds: float) -> str:
    """Return a time, given in nanoseconds, with its unit."""
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if nanoseconds >= size:
            return f"{number(nanoseconds / size)} {unit}"
    return f"{number(nanoseconds)} ns"


def ranges(lines: Sequence[int]) -> str:
    """Return sorted numbers as ranges: 3, 4, 5, 9 as `3-5, 9`."""
    runs: list[list[int]] = []
    for line in lines:
        if runs and line == runs[-1][1] + 1:
            runs[-1][1] = line
        else:
            runs.append([line, line])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)


def shortened(text: str, width: int) -> str:
    """Return a text on one line of at most `width` characters."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 3] + "..."


def bars(shares: Sequence[float]) -> str:
    """Return a bar chart: one character for each number from 0 to 1."""
    return "".join(BARS[min(8, max(0, round(8 * share)))] for share in shares)
