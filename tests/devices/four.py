"""Cases that need four CPU devices run in a process of their own (the tests' has two), which prints a line for each."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import jax

import pcbatch

ROOT = Path(__file__).parents[2]
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


def check(module: ModuleType, full: bool) -> None:
    """Every case of this module ends well in a process of its own; if not `full`, one in ten is run. A test calls it
    once, so that one worker starts the process: cases share what they compile."""
    every = 1 if full else 10
    done = python("-m", module.__name__, str(every), JAX_NUM_CPU_DEVICES="4")
    assert done.returncode == 0, done.stderr
    verdicts = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert verdicts == dict.fromkeys(map(name_of, module.CASES[::every]), "ok")


def collectives(text: str) -> list[str]:
    """Those of a program of HLO."""
    return re.findall(r"= \S+ ((?:all|collective|reduce-scatter)[a-z-]*)\(", text)
