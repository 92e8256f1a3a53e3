"""All benchmarks, one process each: `python -m benchmarks [--only NAME] [--quick] [--out DIR]`

Writes DIR/benchmarks.json (every number with its baseline, goal, machine, versions and date), DIR/benchmarks.md and
pictures. Numbers of different machines compare as ratios only. A missed goal is no error; a job that fails is.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.jobs import JOBS, Job, run
from benchmarks.summary import revision, summary, write


def chosen_jobs(names: Sequence[str] | None) -> list[Job]:
    """Those that are called by these names, or all."""
    return [job for job in JOBS if names is None or any(job.is_called(name) for name in names)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = sorted({job.name for job in JOBS} | {job.name.partition("-")[0] for job in JOBS})
    parser.add_argument("--only", choices=known, action="append", metavar="NAME", help=f"one of {', '.join(known)}")
    parser.add_argument("--quick", action="store_true", help="fewer inputs, chains and repeats")
    parser.add_argument("--out", type=Path, default=Path("build/benchmarks"), metavar="DIR")
    chosen = parser.parse_args(arguments)
    commit = revision()  # of what is about to run
    found = summary([run(job, chosen.quick) for job in chosen_jobs(chosen.only)], chosen.quick, commit)
    goals, failed = found["goals"], [job["name"] for job in found["jobs"] if "error" in job]
    print("written:", ", ".join(str(path) for path in write(found, chosen.out)))
    print(f"{found['seconds']:.0f} s; goals: {goals['met']} met, {goals['missed']} missed")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
