"""What `python -m benchmarks` runs: one process for each job, because devices and threads are chosen at the start."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LONGEST = 900  # seconds; a job that hangs must not keep the others from running
ONE_THREAD = {"NPROC": "1"}
TRIPS = "--only fib --only depth --only state"
DEFAULTS: Mapping[str, str] = {}


@dataclass(frozen=True)
class Job:
    """A module, its arguments in full and in quick runs, and the environment that suits everybody it compares."""

    name: str
    module: str
    full: str = ""
    quick: str = "--repeats 3"
    env: Mapping[str, str] = field(default_factory=lambda: ONE_THREAD)

    def arguments(self, quick: bool) -> list[str]:
        """For the command line."""
        return shlex.split(self.quick if quick else self.full)

    def is_called(self, name: str) -> bool:
        """`nuts` calls `nuts-gaussian` as well as itself."""
        return self.name == name or self.name.startswith(f"{name}-")


JOBS = (
    Job("fib", "benchmarks.fib", env=DEFAULTS),
    Job("programs", "benchmarks.programs", env=DEFAULTS),
    Job("queues", "benchmarks.queues", "--repeats 7", "--inputs 1024 --repeats 3"),
    Job("recursion-one", "benchmarks.recursion", "--repeats 7"),
    Job("recursion-four", "benchmarks.recursion", "--devices 4 --repeats 7", "--devices 4 --repeats 3"),
    Job("nuts-gaussian", "benchmarks.nuts", "--repeats 3", "--chains 100 --draws 10 --repeats 3"),
    Job("nuts-four", "benchmarks.nuts", "--devices 4 --repeats 5", "--devices 4 --chains 100 --draws 10 --repeats 3"),
    Job(
        "nuts-logistic", "benchmarks.nuts", "--target logistic --repeats 11", "--target logistic --draws 5 --repeats 3"
    ),
    Job("trees", "benchmarks.trees", "--repeats 7", "--lanes 64 --repeats 3"),
    Job("long-runs", "benchmarks.long_runs", "--repeats 11", "--quick --repeats 3"),
    Job("scaling-trips", "benchmarks.scaling", f"{TRIPS} --repeats 15", f"{TRIPS} --repeats 3"),
    Job(
        "scaling-gaussian",
        "benchmarks.scaling",
        "--only gaussian --repeats 3",
        "--only gaussian --chains 30 --repeats 1",
    ),
    Job(
        "scaling-logistic",
        "benchmarks.scaling",
        "--only logistic --repeats 3",
        "--only logistic --chains 10 --repeats 1",
    ),
)


def run(job: Job, quick: bool) -> dict[str, Any]:
    """What the job measured, or the end of its output where it failed."""
    command = ["-m", job.module, *job.arguments(quick)]
    env = {**job.env, **os.environ}  # the user's own choice wins
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "part.json"
        try:
            done = subprocess.run(
                [sys.executable, *command, "--json", str(file)],
                cwd=ROOT,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=LONGEST,
                check=False,
            )
            output, failed = done.stdout, done.returncode != 0
        except subprocess.TimeoutExpired:
            output, failed = f"still running after {LONGEST} s", True
        print(output, flush=True)
        found = {"error": output[-2000:]} if failed else json.loads(file.read_text(encoding="utf-8"))
    took = {"command": shlex.join(["python", *command]), "seconds": round(time.perf_counter() - began, 1)}
    return {"name": job.name, **took, **found}
