"""Amounts of memory as users write and read them: `8GB`, `512 MiB`."""

from __future__ import annotations

import re

_UNITS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
_UNITS |= {f"{unit}i": 1024**power for power, unit in enumerate("kmgt", 1)}
_WRITTEN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]i?)?b?\s*", re.IGNORECASE)


def bytes_of(text: str) -> int | None:
    """Convert an amount of memory such as `8GB` to bytes; None if the text is no amount."""
    match = _WRITTEN.fullmatch(text)
    return None if match is None else int(float(match[1]) * _UNITS[(match[2] or "").lower()])


def amount(size: float) -> str:
    """Convert a number of bytes to text such as `1.5 GB`."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.0f} {unit}" if unit == "bytes" or size >= 9.95 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"
