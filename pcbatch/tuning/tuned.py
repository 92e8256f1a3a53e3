"""`Tuned`: options that were chosen by measurement, as a mapping, a table and a file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from types import FunctionType
from typing import Any

from pcbatch.call.usage import usage
from pcbatch.compiler.schedules import source_of
from pcbatch.diagnostics.short_repr import short
from pcbatch.options import Dense, Few, Mode, Strips
from pcbatch.tuning.race import Row, winner

VERSION = 1
MODES: dict[str, type[Mode]] = {kind.__name__: kind for kind in (Dense, Few, Strips)}


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
    """Options that `f.tune` has found to be the fastest: a mapping, for `f.with_options(**tuned)`.

    It is empty where those of the function are. `print(tuned)` shows what was measured.

    Attributes:
        options: the options, by name.
        lanes: of the machine of `f.map(..., lanes=tuned.lanes)` if that was faster than a call; None: a call is best.
        function: the name of the function.
        fingerprint: of its text; `load` refuses a file with another.
        rows: the table.
        note: what should be known of the measurement, as that the budget was too short; it stands below the table.
    """

    options: Mapping[str, Any]
    lanes: int | None
    function: str
    fingerprint: str
    rows: tuple[Measured, ...]
    note: str = ""

    def __getitem__(self, name: str) -> Any:
        return self.options[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.options)

    def __len__(self) -> int:
        return len(self.options)

    def __str__(self) -> str:
        wide = max([24, *(len(row.name) + 2 for row in self.rows)])
        lines = [f"{'candidate':<{wide}}{'first run':>12}{'median':>12}{'runs':>6}"]
        lines += [
            f"{row.name:<{wide}}{_seconds(row.first):>12}{_seconds(row.seconds):>12}{row.runs:>6}  {row.note}".rstrip()
            for row in self.rows
        ]
        notes = [f"note: {line}" for line in self.note.splitlines()]
        return "\n".join([*lines, *notes, f"fastest: {self._advice()}"])

    def _advice(self) -> str:
        """The code that runs the function so."""
        changes = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        function = f"{self.function}.with_options({changes})" if changes else self.function
        if self.lanes is not None:
            return f"{function}.map(..., lanes={self.lanes})"
        return function if changes else f"{function} as it is"

    def save(self, path: str | PathLike[str]) -> None:
        """Write the options and the table to a file, as JSON.

        Args:
            path: of the file.
        """
        values = {
            "version": VERSION,
            "function": self.function,
            "fingerprint": self.fingerprint,
            "options": {name: _as_json(value) for name, value in self.options.items()},
            "lanes": self.lanes,
            "rows": [asdict(row) for row in self.rows],
            "note": self.note,
        }
        Path(path).write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")

    @staticmethod
    def load(path: str | PathLike[str], f: Any, /) -> Tuned:
        """Read what `save` has written, for the function that it was measured with.

        Args:
            path: of the file.
            f: the batched function.

        Raises:
            UsageError: The file holds no tuned options, or those of another function: a change of the text of `f` makes
                it another one. (PCB427)
        """
        fn = getattr(getattr(f, "batched", f), "fn", None)
        if not isinstance(fn, FunctionType):
            title = f"tuned options are those of a batched function, and {short(f)} is none"
            raise usage("PCB427", title, help="give the batched function: `pcbatch.Tuned.load(path, f)`")
        tuned = _read(Path(path))
        if tuned.fingerprint != source_of(fn):
            raise usage(
                "PCB427",
                f"the options were tuned for another function than `{fn.__name__}`",
                f"`{tuned.function}` was measured; a change of the source makes another function",
                help="measure again: `tuned = f.tune(*args)`, then `tuned.save(path)`",
            )
        return tuned


def _read(path: Path) -> Tuned:
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        if read.pop("version") != VERSION:
            raise ValueError
        rows = tuple(Measured(**row) for row in read.pop("rows"))
        options = {name: _of_json(value) for name, value in read.pop("options").items()}
        return Tuned(**read, options=options, rows=rows)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        help = "give the path of a file that `tuned.save(path)` has written, with this version of pcbatch"
        raise usage("PCB427", f"{path.name} holds no tuned options", help=help) from error


def _as_json(value: Any) -> Any:
    """A mode as its class and fields, a dict of modes by texts as one of these; names of other options are texts."""
    if isinstance(value, Mapping):
        return {"of blocks": {text: _as_json(mode) for text, mode in value.items()}}
    return {type(value).__name__: asdict(value)} if isinstance(value, Mode) else value


def _of_json(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, fields),) = value.items()
    if kind == "of blocks":
        return {text: _of_json(mode) for text, mode in fields.items()}
    return MODES[kind](**fields)


def chosen(rows: Sequence[Row], function: str, fingerprint: str, note: str = "") -> Tuned:
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
    best = winner(rows).candidate
    return Tuned(dict(best.options), best.lanes, function, fingerprint, table, note)


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.4g} s"
