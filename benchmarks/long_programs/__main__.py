"""Programs of a hundred lines against plain CPython in a loop over the same examples, with what is refused and why.

    NPROC=1 python -m benchmarks.long_programs [--only kruskal] [--lanes 256] [--seconds 300]

Each program runs in a process of its own, with 64-bit types, and is given up after `--seconds`. Results of all lanes
are compared with plain Python's; then both sides are timed in turn, in CPU seconds, and the medians stand in the table.
The first call is CPU seconds, compiling included.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("NPROC", "1")

NAMES = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("__"))
HEAD = "| program | CPython ms | pcbatch ms | times as fast | first call s |\n|---|---:|---:|---:|---:|"


def row(name: str, lanes: int, repeats: int = 5) -> str:
    """Return the line of the table of one program, which this process runs."""
    import jax

    jax.config.update("jax_enable_x64", True)
    import pcbatch
    from benchmarks.common import interleaved_cpu_medians
    from tests.strangers.rows import alike, argument, as_plain, lane_of

    module = importlib.import_module(f"benchmarks.long_programs.{name}")
    examples = module.examples(lanes)
    want = [as_plain(module.solve(*one)) for one in examples]
    batched = pcbatch.batch(module.solve)
    start = time.process_time()
    try:
        columns = [argument(values) for values in zip(*examples, strict=True)]
        found = jax.block_until_ready(batched(*columns))
    except pcbatch.PcbatchError as error:
        spent = time.process_time() - start
        return f"| {name} | {str(error).strip().splitlines()[0]} | | | {spent:.1f} |"
    first = time.process_time() - start
    wrong = sum(not alike(as_plain(lane_of(found, k)), one, 1e-9) for k, one in enumerate(want))
    if wrong:
        return f"| {name} | {wrong} of {lanes} lanes differ | | | {first:.1f} |"
    medians = interleaved_cpu_medians(
        {"plain": lambda: [module.solve(*one) for one in examples], "lanes": lambda: batched(*columns)}, repeats
    )
    plain, ours = medians["plain"] * 1e3, medians["lanes"] * 1e3
    return f"| {name} | {plain:.2f} | {ours:.2f} | {plain / ours:.2f} | {first:.1f} |"


def main() -> None:
    """Print the table, a process for each program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="the programs with this in their name")
    parser.add_argument("--lanes", type=int, default=256, help="how many examples (default 256)")
    parser.add_argument("--seconds", type=float, default=300, help="after how long a program is given up (default 300)")
    parser.add_argument("--row", choices=NAMES, help="run one program in this process, and print its line only")
    given = parser.parse_args()
    if given.row:
        print(row(given.row, given.lanes))
        return
    print(HEAD)
    for name in (name for name in NAMES if given.only in name):
        command = [sys.executable, "-m", "benchmarks.long_programs", "--row", name, "--lanes", str(given.lanes)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=given.seconds, check=False)
            line = (done.stdout or done.stderr).strip().splitlines()[-1]
        except subprocess.TimeoutExpired:
            line = f"| {name} | given up after {given.seconds:.0f} s | | | |"
        print(line, flush=True)


if __name__ == "__main__":
    main()
