"""Measure pcbatch on a GPU: `make gpu-bench`, or `python -m benchmarks.gpu [--only fib ode] [--seconds 500] [--resume]`

Each program is measured in a process of its own, for every emitter, with and without loops in CUDA graphs, beside
`vmap` of a loop written by hand, BlackJAX, NumPyro and PyTorch (of the interpreter `--torch`, if it has it). The rows
that decide come first, so a budget of seconds is well spent. Writes `rows.json`, `tables.md` and pictures; `--resume`
goes on from `rows.json`. `--dry-run` takes a few lanes, which a CPU can do.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jax

from benchmarks.common import versions
from benchmarks.gpu import tables
from benchmarks.gpu.cases import Case, cases
from benchmarks.gpu.programs import NAMES, program

PREFIX = "gpu-bench:"
NO_TORCH = "PyTorch is not installed"


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=list(NAMES), help="programs")
    parser.add_argument("--emitters", nargs="+", default=[], help="of pcbatch; all by default")
    parser.add_argument("--lanes", nargs="+", type=int, help="numbers of lanes")
    parser.add_argument("--seconds", type=float, help="stop asking for more cases after this time")
    parser.add_argument("--case-seconds", type=float, default=120, help="the most that one case may take")
    parser.add_argument("--out", type=Path, default=Path("build/gpu-bench"), help="the folder for results")
    parser.add_argument("--torch", default=sys.executable, help="a Python that has PyTorch, if this one has not")
    parser.add_argument("--resume", action="store_true", help="go on from the rows that are there")
    parser.add_argument("--profile", action="store_true", help="write a trace of JAX's profiler for each case")
    parser.add_argument("--dry-run", action="store_true", help="a few lanes: does everything run?")
    parser.add_argument("--stop-rule", action="store_true", help="only say what the rows that are there decide")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write what was found after each program."""
    o = parse(arguments)
    o.out.mkdir(parents=True, exist_ok=True)
    file = o.out / "rows.json"
    rows: list[dict[str, Any]] = json.loads(file.read_text())["rows"] if o.resume or o.stop_rule else []
    if o.stop_rule:
        print(tables.decision(rows))
        return
    rows = [row for row in rows if row.get("error") != NO_TORCH]
    done = {_key(row) for row in rows}
    left = [c for c in cases(o.only, o.lanes, o.dry_run, o.emitters) if _key(_row(c)) not in done]
    until = None if o.seconds is None else time.monotonic() + o.seconds
    print(f"{len(left)} cases, of {len(left) + len(done)}", flush=True)
    for group in _groups(left):
        if until is not None and time.monotonic() > until:
            print("the time is up; --resume goes on")
            break
        for row in measure(group, o, until):
            rows.append(row)
            print(_line(row), flush=True)
            file.write_text(json.dumps({"device": str(jax.devices()[0]), **versions(), "rows": rows}, indent=1))
    (o.out / "tables.md").write_text(tables.markdown(rows) + "\n" + tables.decision(rows) + "\n")
    tables.pictures(rows, o.out)
    print(tables.decision(rows))
    if wrong := tables.disagreements(rows):
        raise SystemExit("results differ:\n" + "\n".join(wrong))


def measure(group: Sequence[Case], o: argparse.Namespace, until: float | None) -> list[dict[str, Any]]:
    """Measure some cases of one program in processes of their own: a new one after each that dies."""
    rows: list[dict[str, Any]] = []
    left = list(group)
    if "torch" in left[0].what and not has_torch(o.torch):
        return [{**_row(case), "error": NO_TORCH} for case in left]
    while left and (until is None or time.monotonic() < until):
        found, why = _process(left, o, until)
        rows += found
        left = left[len(found) :]
        if why and left:
            rows.append({**_row(left.pop(0)), "error": why})
    return rows


@cache
def has_torch(python: str) -> bool:
    """Say whether an interpreter is there and finds PyTorch."""
    look = "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"
    return shutil.which(python) is not None and subprocess.run([python, "-c", look], check=False).returncode == 0


def _process(left: Sequence[Case], o: argparse.Namespace, until: float | None) -> tuple[list[dict[str, Any]], str]:
    """Run one process; return its rows, and why it ended before its time, if it did."""
    asked = [dict(case.what) for case in left]
    for case, what in zip(left, asked, strict=True):
        if o.profile:
            what["trace"] = str(o.out / "traces" / case.program / f"{case.name}-{case.what['lanes']}")
    command, environment = [sys.executable, "-m", "benchmarks.gpu.measure"], {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    if "torch" in left[0].what:  # JAX makes the inputs there, on the CPU
        command, environment = [o.torch, "-m", "benchmarks.gpu.measure_torch"], {"JAX_PLATFORMS": "cpu"}
    with subprocess.Popen(
        [*command, left[0].program],
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as child:
        assert child.stdin is not None and child.stdout is not None
        child.stdin.write(json.dumps(asked))
        child.stdin.close()
        rows: list[dict[str, Any]] = []
        with selectors.DefaultSelector() as ready:
            ready.register(child.stdout, selectors.EVENT_READ)
            while len(rows) < len(left):
                if not ready.select(o.case_seconds) or (until is not None and time.monotonic() > until):
                    child.kill()
                    return rows, f"no answer within {o.case_seconds:.0f} s"
                line = child.stdout.readline()
                if not line:
                    child.wait()
                    return rows, f"the process ended with status {child.returncode}"
                if line.startswith(PREFIX) and "ends" in (said := json.loads(line.removeprefix(PREFIX))):
                    said.pop("ends")
                    rows.append({**_row(left[len(rows)]), **said})
        child.wait()
    return rows, ""


def _groups(left: Sequence[Case]) -> list[list[Case]]:
    """Neighbours of one program and one environment, so that what decides still comes first."""
    out: list[list[Case]] = []
    for case in left:
        if out and (out[-1][0].program, "torch" in out[-1][0].what) == (case.program, "torch" in case.what):
            out[-1].append(case)
        else:
            out.append([case])
    return out


def _row(case: Case) -> dict[str, Any]:
    unit = program(case.program).unit
    peer = case.what.get("peer")
    compared = {"compared": True} if "torch" in case.what and case.program != "gillespie" else {}  # no random numbers
    shown = {"program": case.program, "way": case.name, "lanes": case.what["lanes"], "graphs": case.what["graphs"]}
    return {**shown, "unit": unit, **({"peer": peer} if peer else {}), **compared}


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["program"], row["way"], row["lanes"], row["graphs"]


def _line(row: dict[str, Any]) -> str:
    value = tables.rate(row)
    found = row.get("error") if value is None else f"{value:.3g} {row['unit']}s/s, first call {row['first_s']:.1f} s"
    graphs = "graphs" if row["graphs"] else ""
    return f"{row['program']:10s} {row['way']:18s} {row['lanes']:9,} lanes  {graphs:6s}  {found}"


if __name__ == "__main__":
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the memory is for the processes that measure
    main()
