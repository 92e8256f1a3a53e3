"""The record of what programs took, with which each new compilation is compared: nothing may grow."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.gpu_check.measure import Measured, Refused

RECORDED: Final = Path(__file__).with_name("recorded.json")
REFUSED: Final = "refused"


@dataclass(frozen=True, slots=True)
class Record:
    """Recorded numbers.

    Attributes:
        jax: The release of JAX that compiled the programs; others fuse otherwise, and are not compared.
        cases: Numbers by name, by case; of what does not compile the reason, under `REFUSED`.
    """

    jax: str
    cases: Mapping[str, Mapping[str, int | str]]

    @staticmethod
    def load(path: Path = RECORDED) -> Record:
        """Read a record; an empty one if there is no file."""
        if not path.exists():
            return Record("", {})
        content = json.loads(path.read_text(encoding="utf-8"))
        return Record(content["jax"], content["cases"])

    def save(self, path: Path = RECORDED) -> None:
        """Write the record: a line for each case, such that changes can be read."""
        lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(self.cases[name])}" for name in sorted(self.cases))
        path.write_text(f'{{\n "jax": {json.dumps(self.jax)},\n "cases": {{\n{lines}\n }}\n}}\n', encoding="utf-8")

    def with_cases(self, jax: str, cases: Mapping[str, Mapping[str, int | str]]) -> Record:
        """Return a record with new numbers of some cases; of another release of JAX nothing is kept."""
        return Record(jax, {**(self.cases if jax == self.jax else {}), **cases})


def entry(outcome: Measured | Refused) -> Mapping[str, int | str]:
    """Return what is recorded of a case."""
    return {REFUSED: outcome.why} if isinstance(outcome, Refused) else outcome.numbers()


def worse(old: Mapping[str, int | str] | None, new: Mapping[str, int | str]) -> Iterator[str]:
    """Give a sentence for each number that grew, and for a program that compiled and does not any more."""
    if old is None:
        yield "not recorded; record it with --write"
    elif REFUSED in new and REFUSED not in old:
        yield f"does not compile any more: {new[REFUSED]}"
    elif REFUSED not in new:
        for name, value in new.items():
            before = old.get(name, 0)
            if REFUSED not in old and isinstance(value, int) and isinstance(before, int) and value > before:
                yield f"{name} grew from {before} to {value}"


def better(old: Mapping[str, int | str] | None, new: Mapping[str, int | str]) -> Iterator[str]:
    """Give a sentence for each number that shrank, and for a program that compiles now."""
    if old is None or REFUSED in new:
        return
    if REFUSED in old:
        yield "compiles now"
        return
    for name, before in old.items():
        value = new.get(name, 0)
        if isinstance(value, int) and isinstance(before, int) and value < before:
            yield f"{name} shrank from {before} to {value}"
