"""Cases that need four CPU devices run in a process of their own (the tests' has two), which prints a line for each."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

import jax

import pcbatch

ROOT = Path(__file__).parents[1]
Case = Callable[[], None]


def python(*command: str, **more: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT), **more}
    return subprocess.run([sys.executable, "-W", "error", *command], cwd=ROOT, env=env, capture_output=True, text=True)


def name_of(case: Case) -> str:
    return case.__name__.strip("_")


def main(cases: Sequence[Case]) -> None:
    """Run one case in so many (its argument; else all), in that process."""
    assert pcbatch.use_cpu_devices(4) == len(jax.devices()) == 4
    for case in cases[:: int(sys.argv[1]) if sys.argv[1:] else 1]:
        try:
            case()
            verdict = "ok"
        except Exception:
            verdict = repr(traceback.format_exc())
        print(f"{name_of(case)}: {verdict}", flush=True)


def report(module: str, every: int) -> dict[str, str]:
    """What `main` said in a process that runs one in so many cases of this module."""
    done = python("-m", module, str(every), JAX_NUM_CPU_DEVICES="4")
    assert done.returncode == 0, done.stderr
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


def collectives(text: str) -> list[str]:
    """Those of a program of HLO."""
    return re.findall(r"= \S+ ((?:all|collective|reduce-scatter)[a-z-]*)\(", text)
