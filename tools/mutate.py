"""Does the suite catch a broken compiler? Runs a few tests against deliberate defects, one at a time.

    python -m tools.mutate [-j JOBS] [NAME...]      the named mutants, or all; a name may be the start of several
    python -m tools.mutate --list                   what there is
    python -m tools.mutate --write [NAME...]        run, and put the rows into the table of docs/developers/testing.md

A mutant is caught when a test fails, when the verifier that runs after every pass objects, or when a test hangs. Exit
status 1: some mutant survived that is not known to be equivalent. No file of the package is changed.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.metadata
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tools.mutants import MUTANTS, Mutant
from tools.mutants.hook import NAME, REPORT

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "developers" / "testing.md"
PATHS = os.pathsep.join([str(ROOT), str(ROOT / "tools" / "mutants" / "site")])
BEGIN, END = "<!-- mutants: begin -->", "<!-- mutants: end -->"
HEAD = ("| mutant | in | what it breaks | caught by | s |", "|---|---|---|---|---|")
HANG = 60  # seconds for one test
LIMIT = 300  # and for all tests of a mutant
NOT_RUN = 4  # pytest's exit status for tests that do not exist


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a mutant. `by`: the test or rule that caught it; empty if it survived."""

    mutant: Mutant
    by: str
    seconds: float
    broken: str = ""  # why the run says nothing

    @property
    def survived(self) -> bool:
        """Did nobody notice, though somebody could?"""
        return not self.by and not self.broken and not self.mutant.equivalent

    @property
    def verdict(self) -> str:
        """One cell of the table."""
        if self.broken:
            return f"BROKEN: {self.broken}"
        if self.by or not self.mutant.equivalent:
            return self.by or "SURVIVED"
        return f"equivalent: {self.mutant.equivalent}"


def run(mutant: Mutant) -> Outcome:
    """Run the tests of one mutant in a process of its own."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        report.touch()
        env = {**os.environ, NAME: mutant.name, REPORT: str(report), "PYTHONPATH": PATHS}
        options = ["-n", "0", "-x", "-q", "--no-header", "-p", "tools.mutants.report", "-p", "no:cacheprovider"]
        command = [sys.executable, "-m", "pytest", *options, f"--timeout={HANG}", *mutant.tests]
        status, output = _finish(command, env)
        events = [tuple(json.loads(line)) for line in report.read_text(encoding="utf-8").splitlines()]
    by, broken = judge(events, status, output)
    return Outcome(mutant, by, time.monotonic() - start, broken)


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


def judge(events: Sequence[tuple[str, str]], status: int, output: str) -> tuple[str, str]:
    """Who caught it, and why the run says nothing if it does not."""
    last = dict(events)
    if status == NOT_RUN or "uncollected" in last:
        return "", last.get("uncollected", output)[-300:]
    if "applied" not in last:
        return "", "the module was never imported"
    if "failed" in last:
        return _caught(last["failed"], last.get("raised", "")), ""
    if status == 0:
        return "", ""
    return f"{_short(last.get('start', ''))} does not end", ""


def _caught(test: str, raised: str) -> str:
    stage = re.search(r"InternalError: after ([\w.]+):", raised)
    if stage is None:
        return _short(test)
    rule = re.search(r"\[(\w+)\]", raised)
    return f"verifier, rule {rule[1] if rule else '?'}, after {stage[1].removeprefix('pcbatch.lowering.')}"


def _short(test: str) -> str:
    return test.removeprefix("tests/").replace("test_default_options_on_every_lane_count", "...every_lane_count")


def row(outcome: Outcome) -> str:
    """An outcome as a row of the table."""
    mutant = outcome.mutant
    cells = (mutant.name, mutant.module, mutant.breaks, outcome.verdict, f"{outcome.seconds:.0f}")
    return "| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in cells) + " |"


def summary(rows: Iterable[str]) -> str:
    """Counts and versions in a sentence."""
    verdicts = [line.split(" | ")[3] for line in rows]
    survived = sum(verdict.startswith(("SURVIVED", "BROKEN")) for verdict in verdicts)
    equivalent = sum(verdict.startswith("equivalent") for verdict in verdicts)
    caught = len(verdicts) - survived - equivalent
    versions = f"Python {platform.python_version()}, jax {importlib.metadata.version('jax')}"
    day = datetime.date.today().isoformat()
    return f"{day}, {versions}: {caught} of {len(verdicts)} caught, {equivalent} equivalent, {survived} survived."


def write(new: Sequence[str]) -> None:
    """Put rows into the table in the document; those of other mutants stay."""
    text = DOCUMENT.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    old, _, after = rest.partition(END)
    rows = {line.split()[1]: line for line in (*old.splitlines(), *new) if line.startswith("| ")}
    kept = [rows[mutant.name] for mutant in MUTANTS if mutant.name in rows]
    lines = [BEGIN, summary(kept), "", *HEAD, *kept, END]
    DOCUMENT.write_text(before + "\n".join(lines) + after, encoding="utf-8")


def chosen(names: Sequence[str]) -> tuple[Mutant, ...]:
    """The mutants of these names, or whose names start so; all if none is given."""
    for name in names:
        if not any(mutant.name.startswith(name) for mutant in MUTANTS):
            raise SystemExit(f"no mutant is called {name!r}; see --list")
    return tuple(m for m in MUTANTS if not names or any(m.name.startswith(name) for name in names))


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutate", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="a mutant, or the start of several names")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="how many to run at a time")
    parser.add_argument("--list", action="store_true", help="show the table of mutants and run nothing")
    parser.add_argument("--write", action="store_true", help="put the table into docs/developers/testing.md")
    options = parser.parse_args(argv)
    mutants = chosen(options.names)
    if options.list:
        print("\n".join(f"{m.name:32} {m.module:28} {m.breaks}" for m in mutants))
        return 0
    outcomes = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(run, mutants):
            print(f"{outcome.mutant.name:32} {outcome.seconds:5.1f} s  {outcome.verdict}", flush=True)
            outcomes.append(outcome)
    rows = [row(outcome) for outcome in outcomes]
    print(summary(rows))
    if options.write:
        write(rows)
    return int(any(o.survived or o.broken for o in outcomes))


if __name__ == "__main__":
    sys.exit(main())
