"""Functions that strangers wrote: how many run as they are, and give for every lane what plain Python gives.

    python -m benchmarks.strangers [--group lists] [--refused]

The functions are those of `tests/strangers`: retyped after what public collections of algorithms hold, and written for
one example, without a thought of pcbatch. "Before" are those that ran when lanes had neither lists nor dicts of their
own, and every helper needed a decorator.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import jax

import pcbatch
from tests.strangers import ROWS
from tests.strangers.rows import Row


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one function: "equal", "refused" or "differs", and the words for it."""

    row: Row
    kind: str
    words: str


def outcome(row: Row) -> Outcome:
    """Run one function on its examples."""
    try:
        differences = row.differences()
    except pcbatch.PcbatchError as error:
        return Outcome(row, "refused", str(error).strip())
    return Outcome(row, "differs" if differences else "equal", "\n".join(differences))


def table(outcomes: Sequence[Outcome]) -> str:
    """Return a table with a line for each group, and one for all."""
    groups = list(dict.fromkeys(found.row.group for found in outcomes))
    lines = ["| group | functions | run as they are | | before |", "|---|---:|---:|---:|---:|"]
    lines += [_line(group, [found for found in outcomes if found.row.group == group]) for group in groups]
    return "\n".join([*lines, _line("all", outcomes)])


def _line(name: str, outcomes: Iterable[Outcome]) -> str:
    found = list(outcomes)
    equal = sum(one.kind == "equal" for one in found)
    before = sum(not one.row.new for one in found)
    return f"| {name.replace('_', ' ')} | {len(found)} | {equal} | {equal / len(found):.0%} | {before} |"


def main() -> None:
    """Run all functions, or those of a group."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--group", choices=sorted({row.group for row in ROWS}), help="the functions of one group")
    parser.add_argument("--refused", action="store_true", help="say why a function does not run")
    options = parser.parse_args()
    rows = [row for row in ROWS if options.group in (None, row.group)]
    start = time.perf_counter()
    with jax.numpy_dtype_promotion("standard"):
        outcomes = [outcome(row) for row in rows]
    print(table(outcomes))
    for found in outcomes:
        if found.kind == "differs" or (options.refused and found.kind == "refused"):
            print(f"\n{found.row.name} {found.kind}:\n{found.words}")
    print(f"\n{time.perf_counter() - start:.0f} s, pcbatch {pcbatch.__version__}, jax {jax.__version__}")


if __name__ == "__main__":
    main()
