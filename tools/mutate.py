"""Does the suite catch a broken compiler? Runs a few tests against deliberate defects, one at a time.

    python -m tools.mutate [-j JOBS] [NAME...]      the named mutants, or all; a name may be the start of several
    python -m tools.mutate --list                   what there is

A mutant (`tools/mutants/*.toml`) is caught when a test fails, also because the verifier that runs after every pass
objects, or when a test hangs. Exit status 1: some mutant survived. No file of the package is changed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.mutants import FOLDER, ROOT, Mutant, load
from tools.mutants.hook import NAME, REPORT

PATHS = os.pathsep.join([str(ROOT), str(FOLDER / "site")])
OPTIONS = ("-n", "0", "-x", "-q", "--no-header", "-p", "tools.mutants.hook", "-p", "no:cacheprovider")
HANG = 60  # seconds for one test
LIMIT = 300  # and for all tests of a mutant
NOT_RUN = 4  # pytest's exit status for tests that do not exist


def run(mutant: Mutant) -> tuple[str, float]:
    """Run the tests of one mutant in a process of its own: the verdict and how long it took."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        report.touch()
        env = {**os.environ, NAME: mutant.name, REPORT: str(report), "PYTHONPATH": PATHS}
        command = [sys.executable, "-m", "pytest", *OPTIONS, f"--timeout={HANG}", *mutant.tests]
        status, output = _finish(command, env)
        events = [tuple(json.loads(line)) for line in report.read_text(encoding="utf-8").splitlines()]
    return judge(events, status, output), time.monotonic() - start


def _finish(command: Sequence[str], env: Mapping[str, str]) -> tuple[int, str]:
    """Exit status (-1: stopped because it took too long) and output; no process that the tests started is left."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        tests = subprocess.Popen(
            command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        try:
            status = tests.wait(LIMIT)
        except subprocess.TimeoutExpired:
            status = -1
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(tests.pid, signal.SIGKILL)
            tests.wait()
        output.seek(0)
        return status, output.read()


def judge(events: Sequence[tuple[str, str]], status: int, output: str) -> str:
    """Who caught it: a test. SURVIVED, or BROKEN and why, where the run says nothing."""
    last = dict(events)
    if status == NOT_RUN or "uncollected" in last:
        return f"BROKEN: {last.get('uncollected', output)[-300:]}"
    if "applied" not in last:
        return "BROKEN: the module was never imported"
    if "failed" in last:
        return last["failed"]
    return "SURVIVED" if status == 0 else f"{last.get('start', '?')} does not end"


def chosen(names: Sequence[str]) -> tuple[Mutant, ...]:
    """The mutants of these names, or whose names start so; all if none is given."""
    mutants = [mutant for area in load().values() for mutant in area]
    for name in names:
        if not any(mutant.name.startswith(name) for mutant in mutants):
            raise SystemExit(f"no mutant is called {name!r}; see --list")
    return tuple(m for m in mutants if not names or m.name.startswith(tuple(names)))


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutate", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="a mutant, or the start of several names")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="how many to run at a time")
    parser.add_argument("--list", action="store_true", help="show the mutants and run nothing")
    options = parser.parse_args(argv)
    mutants = chosen(options.names)
    if options.list:
        print("\n".join(f"{m.name:32} {m.module:36} {m.why}" for m in mutants))
        return 0
    missed = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for mutant, (verdict, seconds) in zip(mutants, pool.map(run, mutants), strict=True):
            print(f"{mutant.name:32} {seconds:5.1f} s  {verdict}", flush=True)
            missed += verdict.startswith(("SURVIVED", "BROKEN"))
    print(f"{len(mutants) - missed} of {len(mutants)} caught")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
