"""Timing by medians, tables for people, JSON for machines."""

from __future__ import annotations

import datetime
import json
import math
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax
import numpy as np

import pcbatch

CLOCK_SECONDS = 0.05  # the least that is measured with the clock of the process
PACKAGES = ("jax", "jaxlib", "numpy", "blackjax", "numpyro", "diffrax", "optimistix", "torch")


@dataclass(frozen=True, slots=True)
class Row:
    """One measured quantity. `goal` is the most (or, with `at_least`, the least) that we want.

    `baseline` says what it is compared with, and `against` what that was, in its own unit where the row is a ratio.
    """

    name: str
    value: float
    unit: str
    goal: float | None = None
    at_least: bool = False
    baseline: str | None = None
    against: float | None = None

    @property
    def met(self) -> bool | None:
        """Is the goal met? None when there is none."""
        if self.goal is None:
            return None
        return self.value >= self.goal if self.at_least else self.value <= self.goal


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a plot: `plot` is a name in `benchmarks.plots.PLOTS`."""

    plot: str
    label: str
    x: Sequence[float | str]
    y: Sequence[float]


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Wall time of one call, with its results on the device and done; and the results."""
    start = time.perf_counter()
    found = jax.block_until_ready(call())
    return time.perf_counter() - start, found


def seconds(call: Callable[[], Any]) -> float:
    """Wall time of one call."""
    return timed(call)[0]


def median_seconds(call: Callable[[], Any], repeats: int = 7, warm_up: int = 1) -> float:
    """The median of several calls after some that do not count."""
    for _ in range(warm_up):
        seconds(call)
    return statistics.median(seconds(call) for _ in range(repeats))


def interleaved_medians(
    calls: Mapping[str, Callable[[], Any]], repeats: int = 7, warm_up: bool = True
) -> dict[str, float]:
    """Medians of things to be compared, taken in turns so that a busy moment of the machine meets them all."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values() if warm_up else ():
        seconds(call)
    for _ in range(repeats):
        for name, call in calls.items():
            times[name].append(seconds(call))
    return {name: statistics.median(values) for name, values in times.items()}


def paired(first: Callable[[], Any], second: Callable[[], Any], repeats: int) -> tuple[float, float, float]:
    """Median seconds of two things, and the median ratio of the second to the first in a pair of runs, one right after
    the other and each of them first in turn: a machine that gets slower for a while slows down both."""
    pairs: list[tuple[float, float]] = []
    for k in range(-2, repeats):  # the first two warm up
        order = (first, second) if k % 2 else (second, first)
        times = [seconds(call) for call in order]
        if k >= 0:
            pairs.append((times[0], times[1]) if k % 2 else (times[1], times[0]))
    median = statistics.median
    return median(a for a, _ in pairs), median(b for _, b in pairs), median(b / a for a, b in pairs)


Clock = Callable[[], float]


def cpu_seconds(call: Callable[[], Any], calls: int = 1, clock: Clock = time.process_time) -> float:
    """CPU seconds of the process for one call, the mean of so many: other programs of a busy machine do not count.
    Another clock, that on the wall, counts several threads once."""
    start = clock()
    for _ in range(calls):
        jax.block_until_ready(call())
    return (clock() - start) / calls


def calls_to_time(call: Callable[[], Any]) -> int:
    """Return how many calls in a row take `CLOCK_SECONDS` of the process, after one that warms up.

    The clock of a process hears late of what XLA's threads did, by up to some milliseconds: where two things take
    turns, a call of a tenth of a millisecond is charged to the other one. The clock on the wall would count too few
    calls where the machine has other work.
    """
    seconds(call)
    calls = 1
    while (spent := cpu_seconds(call, calls) * calls) < CLOCK_SECONDS:
        more = math.ceil(1.2 * calls * CLOCK_SECONDS / max(spent, 1e-9))
        calls = min(max(more, calls + 1), 10 * calls)
    return calls


def interleaved_cpu_seconds(
    calls: Mapping[str, Callable[[], Any]], repeats: int = 7, clock: Clock = time.process_time
) -> dict[str, list[float]]:
    """CPU seconds of one call of things that take turns, each in batches of calls, after some that do not count."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    counts = {name: calls_to_time(call) for name, call in calls.items()}
    for _ in range(repeats):
        for name, call in calls.items():
            times[name].append(cpu_seconds(call, counts[name], clock))
    return times


def interleaved_cpu_medians(
    calls: Mapping[str, Callable[[], Any]], repeats: int = 7, clock: Clock = time.process_time
) -> dict[str, float]:
    """Medians of CPU seconds of one call of things that take turns, each in batches of calls."""
    return {name: statistics.median(some) for name, some in interleaved_cpu_seconds(calls, repeats, clock).items()}


def check_lanes_agree(ours: Any, theirs: Any, least: float) -> None:
    """Check that so large a share of the lanes agree, and that the means over lanes do within five standard errors."""
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        one, other = np.asarray(a, float).reshape(len(a), -1), np.asarray(b, float).reshape(len(b), -1)
        same = np.isclose(one, other, rtol=1e-3, atol=1e-3).all(axis=1).mean()
        apart = np.where(one == other, 0.0, one - other)  # both may be infinite
        error = np.std(apart, axis=0) / np.sqrt(len(one))
        if same < least or np.any(np.abs(np.mean(apart, axis=0)) > 5 * error + 1e-4):
            raise SystemExit(f"only {same:.1%} of the lanes agree: nothing to measure")


def paired_cpu(first: Callable[[], Any], second: Callable[[], Any], repeats: int) -> tuple[float, float, float]:
    """Median CPU seconds of two things that take turns, and the median ratio of the first to the second in a pair."""
    one, other = interleaved_cpu_seconds({"first": first, "second": second}, repeats).values()
    median = statistics.median
    return median(one), median(other), median(a / b for a, b in zip(one, other, strict=True))


def machine() -> dict[str, Any]:
    """Where the numbers come from."""
    return {
        "device": str(jax.devices()[0].device_kind),
        "platform": jax.default_backend(),
        "devices": jax.device_count(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads of XLA": os.environ.get("NPROC", "all"),
        "python": platform.python_version(),
    }


def processor() -> str:
    """The name of the CPU, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def versions() -> dict[str, str]:
    """Of pcbatch and of what it is compared with, as far as they are installed."""
    found = {"pcbatch": pcbatch.__version__}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def table(title: str, rows: Sequence[Row]) -> str:
    """Aligned text with the goals."""
    lines = [title]
    width = max(len(row.name) for row in rows)
    for row in rows:
        line = f"  {row.name:<{width}}  {row.value:>10.4g} {row.unit:<9}"
        if row.goal is not None:
            sign = ">=" if row.at_least else "<="
            line += f" {'met' if row.met else 'MISSED'} ({sign} {row.goal:g})"
        if row.baseline is not None:
            line += f" against {row.baseline}"
        lines.append(line.rstrip())
    return "\n".join(lines)


def content(title: str, rows: Sequence[Row], curves: Sequence[Curve] = ()) -> dict[str, Any]:
    """All there is to know of one run, ready for JSON."""
    return {
        "title": title,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "rows": [{**asdict(row), "met": row.met} for row in rows],
        "curves": [asdict(curve) for curve in curves],
    }


def report(title: str, rows: Sequence[Row], out: str | None = None, curves: Sequence[Curve] = ()) -> None:
    """Print the table; write JSON too when a path is given."""
    found = content(title, rows, curves)
    print(table(title, rows))
    where = {**found["machine"], **found["versions"]}
    print("  " + ", ".join(f"{key} {value}" for key, value in where.items()), flush=True)
    if out is not None:
        Path(out).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
