"""Two cores against one: `python -m benchmarks.cores [--lanes 2048] [--cores 2] [--only sudoku]`

The programs of `benchmarks/cpython_programs`, whose calls deal lanes to the cores. A process with `NPROC=1` and one
with more cores take turns, program by program; times are those of the clock on the wall, the medians of several calls,
so it needs an idle machine. The goal is 1.7 times as fast on two cores, in the geometric mean.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import subprocess
import sys
import time
from typing import Any

GOAL = 1.7


def main() -> None:
    """Print a line for each program, and the geometric mean of the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lanes", type=int, default=2048)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", default="", help="the programs with this in their name")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        _answer(options.lanes, options.repeats)
        return
    one, more = (_child(cores, options) for cores in (1, options.cores))
    print(f"| program | 1 core, ms | {options.cores} cores, ms | times as fast |\n|---|---:|---:|---:|")
    ratios = []
    for name in _names(options.only):
        times = [_ask(child, name) for child in (one, more)]
        ratios.append(times[0] / times[1])
        print(f"| {name} | {times[0] * 1e3:.2f} | {times[1] * 1e3:.2f} | {ratios[-1]:.2f} |", flush=True)
    for child in (one, more):
        child.stdin.close()
        child.wait()
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"| geometric mean of {len(ratios)} | | | {mean:.2f} (goal {GOAL}), least {min(ratios):.2f} |")


def _names(only: str) -> list[str]:
    from benchmarks.cpython_programs import PROGRAMS

    return [program.name for program in PROGRAMS if only.lower() in program.name.lower()]


def _child(cores: int, options: argparse.Namespace) -> Any:
    command = [sys.executable, "-m", "benchmarks.cores", "--child", "--lanes", str(options.lanes)]
    command += ["--repeats", str(options.repeats)]
    environment = {**os.environ, "NPROC": str(cores)}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True)


def _ask(child: Any, name: str) -> float:
    child.stdin.write(name + "\n")
    child.stdin.flush()
    return float(json.loads(child.stdout.readline()))


def _answer(lanes: int, repeats: int) -> None:
    """Read names of programs, and write the seconds of a call of each."""
    import jax

    import pcbatch
    from benchmarks.common import median_seconds
    from benchmarks.cpython_programs import PROGRAMS
    from tests.strangers.rows import argument

    programs = {program.name: program for program in PROGRAMS}
    for line in sys.stdin:
        program = programs[line.strip()]
        columns = [argument(values) for values in zip(*program.examples(random.Random(0), lanes), strict=True)]
        f = pcbatch.batch(program.function)
        f(*columns)
        time.sleep(0.05)
        print(json.dumps(median_seconds(lambda: f(*columns), repeats)), flush=True)  # noqa: B023
        jax.clear_caches()


if __name__ == "__main__":
    main()
