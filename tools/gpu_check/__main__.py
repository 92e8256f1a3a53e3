"""Compile programs for an H100 without a GPU, and compare what the host will launch with the record.

    make gpu-check                                  all cases: minutes
    make gpu-check ARGS="--only fib --only ode"     those whose name holds a text
    make gpu-check ARGS=--write                     record what was found
    make gpu-check ARGS="--dump build/gpu/dumps"    keep what XLA dumps

Exit status 1 if a law is broken (`laws.py`) or a number is worse than the recorded one. Under another release of JAX
than that of the record only the laws are checked. Numbers are those of a run in which each loop makes one iteration,
and of one iteration of the machine's loop (`launches.py`).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import jax

from tools.gpu_check.cases import Case, cases
from tools.gpu_check.laws import broken
from tools.gpu_check.measure import measure
from tools.gpu_check.record import RECORDED, REFUSED, Record, better, entry, worse

COLUMNS: Final = (
    *("waits", "launches", "kernels", "copies"),
    *("waits per trip", "launches per trip", "kernels per trip", "copies per trip"),
    *("registers", "spilled"),
)


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tools.gpu_check", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", action="append", metavar="TEXT", help="cases whose name holds this; may be repeated")
    parser.add_argument("--write", action="store_true", help="record the numbers; laws must hold all the same")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="compilations at a time")
    parser.add_argument("--dump", type=Path, metavar="DIR", help="keep what XLA dumps in folders of DIR")
    parser.add_argument("--record", type=Path, metavar="FILE", default=RECORDED, help="another record than this tool's")
    options = parser.parse_args(argv)
    chosen = _chosen(options.only)
    if not chosen:
        parser.error(f"no case has {' or '.join(options.only)} in its name; there are: {', '.join(map(str, cases()))}")
    keep = None if options.dump is None else options.dump.absolute()
    return _check(chosen, options.jobs, keep, options.record, options.write)


def _chosen(texts: Sequence[str] | None) -> tuple[Case, ...]:
    return tuple(case for case in cases() if texts is None or any(text in str(case) for text in texts))


def _check(chosen: Sequence[Case], jobs: int, keep: Path | None, path: Path, write: bool) -> int:
    record = Record.load(path)
    comparable = record.jax == jax.__version__
    faults: list[str] = []
    gains: list[str] = []
    found: dict[str, Mapping[str, int | str]] = {}
    print(f"{'case':36} " + " ".join(f"{_short(name):>9}" for name in COLUMNS))
    for case, outcome in measure(chosen, jobs, keep):
        name, new = str(case), entry(outcome)
        old = record.cases.get(name)
        found[name] = new
        print(_row(name, new), flush=True)
        faults += [f"{name}: {fault}" for fault in broken(case, outcome)]
        if comparable and not write:
            faults += [f"{name}: {fault}" for fault in worse(old, new)]
            gains += [f"{name}: {gain}" for gain in better(old, new)]
    if write:
        record.with_cases(jax.__version__, found).save(path)
    elif not comparable:
        print(
            f"laws alone are checked: the record is that of jax {record.jax or '(none)'}, and this is {jax.__version__}"
        )
    for gain in gains:
        print(f"better  {gain}; record it with --write")
    for fault in faults:
        print(f"WORSE   {fault}")
    print(f"{len(chosen)} cases, {len(faults)} faults, {len(gains)} better, jax {jax.__version__}")
    return int(bool(faults))


def _short(name: str) -> str:
    """Return the name of a column that fits: numbers of a trip have a `/t`."""
    return name.replace(" per trip", "/t")


def _row(name: str, numbers: Mapping[str, int | str]) -> str:
    if REFUSED in numbers:
        return f"{name:36} does not compile: {numbers[REFUSED]}"
    return f"{name:36} " + " ".join(f"{numbers.get(column, '-'):>9}" for column in COLUMNS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
