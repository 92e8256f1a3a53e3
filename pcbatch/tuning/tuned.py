"""`Tuned`: options that were chosen by measurement, as a mapping, a table and a file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.errors import UsageError
from pcbatch.tuning.race import Row, winner

VERSION = 1


@dataclass(frozen=True, slots=True)
class Measured:
    """A line of the table: seconds of the first run and the median of later ones, None where there was none."""

    name: str
    first: float | None
    seconds: float | None
    runs: int
    note: str


@dataclass(frozen=True, slots=True)
class Tuned(Mapping[str, Any]):
    """Options that won a race, by name, for `f.with_options(**tuned)`; empty where the defaults won.

    `function` and `fingerprint` say whose text they were measured with; `rows` is the table.
    """

    options: Mapping[str, Any]
    function: str
    fingerprint: str
    rows: tuple[Measured, ...]

    def __getitem__(self, name: str) -> Any:
        return self.options[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.options)

    def __len__(self) -> int:
        return len(self.options)

    def __str__(self) -> str:
        lines = [f"{'candidate':<24}{'first run':>12}{'median':>12}{'runs':>6}"]
        lines += [
            f"{row.name:<24}{_seconds(row.first):>12}{_seconds(row.seconds):>12}{row.runs:>6}  {row.note}".rstrip()
            for row in self.rows
        ]
        return "\n".join(lines)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the options and the table as JSON."""
        Path(path).write_text(json.dumps({"version": VERSION, **asdict(self)}, indent=1) + "\n")

    @staticmethod
    def load(path: str | PathLike[str]) -> Tuned:
        """Read what `save` has written.

        Raises:
            UsageError: The file holds no tuned options, or those of another version. (PCB401)
        """
        try:
            read = json.loads(Path(path).read_text())
            if read.pop("version") != VERSION:
                raise ValueError
            return Tuned(**(read | {"rows": tuple(Measured(**row) for row in read["rows"])}))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            help = "give the path of a file that `tuned.save(path)` has written, with this version of pcbatch"
            raise UsageError(Diagnostic("PCB401", f"{path} holds no tuned options", helps=(help,))) from error


def chosen(rows: Sequence[Row], function: str, fingerprint: str) -> Tuned:
    """Return the options of the row that won."""
    table = tuple(
        Measured(
            row.candidate.name,
            row.first,
            None if math.isinf(row.seconds) else row.seconds,
            len(row.times),
            row.note,
        )
        for row in rows
    )
    return Tuned(dict(winner(rows).candidate.options), function, fingerprint, table)


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.4g} s"
