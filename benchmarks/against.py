"""This checkout against an older commit: `python -m benchmarks.against COMMIT [--only nuts ode]`

Each checkout is a process of its own, which compiles its programs once; then the two run the same programs in turn, as
often as asked for, so that a busy moment of the machine meets both. CPU seconds of the processes, medians, and the
median of the ratios of pairs, this checkout over the other: below 1 it has become faster. The programs are those of
this checkout's benchmarks in both processes; pcbatch alone differs. COMMIT is anything that git knows, checked out into
a folder that is removed at the end, or a folder. A short form for a change that should cost nothing, not a record.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOW, HIGH = 0.97, 1.03
QUEUES = ("ode", "ssa", "march", "fit")
PROGRAMS = ("nuts", *QUEUES, "fib")
CHAINS, DRAWS = 100, 20


def call(name: str) -> Callable[[], Any]:
    """A program that is ready to run; in the process of one checkout."""
    import importlib

    import jax
    import jax.numpy as jnp

    import pcbatch

    if name == "nuts":
        from benchmarks import samplers

        sampler = samplers.pcbatch_sampler(samplers.correlated(), CHAINS, DRAWS)
        return lambda: sampler.run(*sampler.arguments)
    if name == "fib":
        from benchmarks.recursions import fib

        n, batched = jnp.arange(1024) % 16, pcbatch.batch(fib)
        return lambda: batched(n)
    problem = importlib.import_module(f"benchmarks.queues.{name}").PROBLEM
    inputs = jax.device_put(problem.inputs(problem.size))
    batched = pcbatch.batch(problem.solve)
    return lambda: batched.map(*inputs).value


def serve() -> None:
    """Answer each name that comes by a line with the CPU seconds of a run of that program."""
    from benchmarks.common import calls_to_time, cpu_seconds

    calls: dict[str, tuple[Callable[[], Any], int]] = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in calls:
            program = call(name)
            calls[name] = program, calls_to_time(program)
        print(json.dumps(cpu_seconds(*calls[name])), flush=True)


class Checkout:
    """A process that runs programs with the package of one checkout."""

    def __init__(self, folder: Path) -> None:
        # The benchmarks are this checkout's, the package that of the folder.
        start = f"import sys; sys.path.insert(0, {str(folder)!r}); import pcbatch; sys.path[0] = {str(ROOT)!r}; "
        start += "from benchmarks import against; against.serve()"
        pipe = subprocess.PIPE
        command = [sys.executable, "-P", "-c", start]
        environment = {**os.environ, "NPROC": os.environ.get("NPROC", "1"), "PYTHONPATH": ""}
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)

    def seconds(self, name: str) -> float:
        """Run a program once, and return its CPU seconds."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{name}: the process has ended")
        return float(json.loads(answer))

    def end(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


@contextlib.contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """A folder with that commit; or the folder itself, if it is one."""
    if Path(commit, "pcbatch").is_dir():
        yield Path(commit).resolve()
        return
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "checkout"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(folder), commit], check=True)
        try:
            yield folder
        finally:
            subprocess.run([*git, "remove", "--force", str(folder)], check=True)


def compared(new: Checkout, old: Checkout, name: str, repeats: int) -> tuple[float, float, float]:
    """Median seconds of both, and the median ratio of pairs; which of them is first changes."""
    pairs = []
    for k in range(-1, repeats):  # the first warms up
        order = (new, old) if k % 2 else (old, new)
        times = {one: one.seconds(name) for one in order}
        if k >= 0:
            pairs.append((times[new], times[old]))
    median = statistics.median
    return median(a for a, _ in pairs), median(b for _, b in pairs), median(a / b for a, b in pairs)


def row(name: str, found: tuple[float, float, float]) -> str:
    """A line of the table."""
    new, old, ratio = found
    verdict = "" if LOW <= ratio <= HIGH else " faster" if ratio < LOW else " SLOWER"
    return f"| {name} | {1e3 * new:.2f} | {1e3 * old:.2f} | {ratio:.3f}{verdict} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit")
    parser.add_argument("--only", nargs="*", choices=PROGRAMS, default=list(PROGRAMS))
    parser.add_argument("--repeats", type=int, default=31)
    options = parser.parse_args(arguments)
    with checked_out(options.commit) as folder:
        new, old = Checkout(ROOT), Checkout(folder)
        print(f"CPU milliseconds; as before: {LOW} to {HIGH}\n")
        print(f"| | now | {options.commit[:12]} | ratio |\n|---|---|---|---|", flush=True)
        for name in options.only:
            print(row(name, compared(new, old, name, options.repeats)), flush=True)
        new.end()
        old.end()


if __name__ == "__main__":
    main()
