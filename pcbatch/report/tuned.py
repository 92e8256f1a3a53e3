"""`Tuned`: the plan that was chosen by measurement, with the measurements, as a table and a file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from types import FunctionType
from typing import Any

from pcbatch.call.usage import usage
from pcbatch.compiler.schedules import source_of
from pcbatch.diagnostics.deprecated import warn_of_old
from pcbatch.diagnostics.short_repr import short
from pcbatch.plan import Plan, as_json, plan_of_json

VERSION = 2


@dataclass(frozen=True, slots=True)
class Measured:
    """A line of the table: seconds of the first run and the median of later ones, None where there was none."""

    name: str
    first: float | None
    seconds: float | None
    runs: int
    note: str


@dataclass(frozen=True, slots=True)
class Tuned:
    """The report of `f.tune`: the plan that it has found to be the fastest, and what was measured, as a table.

    Attributes:
        plan: for `f.with_options(plan=tuned.plan)`, or `pcbatch.batch(fn, plan=tuned.plan)`.
        changes: the names of its fields that differ from the plan that the function had.
        lanes: of the machine of `f.map(..., lanes=tuned.lanes)` if that was faster than a call; None: a call is best.
        function: the name of the function.
        fingerprint: of its text; `load` refuses a file with another.
        rows: the table.
        note: what should be known of the measurement, as that the budget was too short; it stands below the table.
    """

    plan: Plan
    changes: tuple[str, ...]
    lanes: int | None
    function: str
    fingerprint: str
    rows: tuple[Measured, ...]
    note: str = ""

    def keys(self) -> Iterable[str]:
        """Let `f.with_options(**tuned)` be written as in the earlier release."""
        return ("plan",)

    def __getitem__(self, name: str) -> Any:
        warn_of_old("what `f.tune` has found is a plan now", help="write `f.with_options(plan=tuned.plan)`")
        return self.plan if name == "plan" else getattr(self.plan, name)

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
        function = self.function
        function += f".with_options(plan={self.plan})" if self.changes else ""
        if self.lanes is not None:
            return f"{function}.map(..., lanes={self.lanes})"
        return function if self.changes else f"{function} as it is"

    def save(self, path: str | PathLike[str]) -> None:
        """Write the plan and the table to a file, as JSON; `pcbatch.Plan.load` reads the plan of it.

        Args:
            path: of the file.
        """
        values = {
            "version": VERSION,
            "function": self.function,
            "fingerprint": self.fingerprint,
            "plan": as_json(self.plan),
            "changes": self.changes,
            "lanes": self.lanes,
            "rows": [asdict(row) for row in self.rows],
            "note": self.note,
        }
        Path(path).write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")

    @staticmethod
    def load(path: str | PathLike[str], f: Any, /) -> Tuned:
        """Read what `save` has written, for the function that was measured.

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
            raise usage("PCB427", title, help="give the batched function: `Tuned.load(path, f)`")
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
        plan, changes = plan_of_json(read.pop("plan")), tuple(read.pop("changes"))
        return Tuned(plan, changes, **read, rows=rows)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        help = "give the path of a file that `tuned.save(path)` has written, with this version of pcbatch"
        raise usage("PCB427", f"{path.name} holds no tuned options", help=help) from error


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.4g} s"
