"""Runs the tests, and says how much of the package they ran.

    python -m tools.suite [--measure | --enough] [PYTEST ARGUMENT...]

Lines are counted when asked for, and when all tests run on a Python where `sys.monitoring` makes that free (from 3.12
on; with the tracer that Python 3.11 needs tests take up to twice as long). Exit status: that of pytest, or 1 if fewer
than 95 % of the lines were run, with --enough or when all tests ran.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pcbatch.diagnostics.tables import ranges

WANTED = 95.0  # per cent, of the package and of every file that is not listed
MEASURE, ENOUGH = "--measure", "--enough"
MONITORED = sys.version_info >= (3, 12)


def main(argv: Sequence[str]) -> int:
    """Run pytest with these arguments."""
    arguments = [argument for argument in argv if argument not in (MEASURE, ENOUGH)]
    judged = ENOUGH in argv or (MONITORED and not arguments)
    measured = judged or MEASURE in argv
    options = ["--cov", "--cov-report="] if measured else []
    env = {**os.environ, "COVERAGE_CORE": "sysmon"} if MONITORED else None
    status = subprocess.run([sys.executable, "-m", "pytest", *options, *arguments], env=env, check=False).returncode
    if measured and status:
        print("coverage: not shown, tests failed")
    elif measured:
        enough = report()
        status = int(judged and not enough)
    return status


def report() -> bool:
    """Print the share of lines that were run, and the files that fall short. Is it enough?"""
    import coverage

    measured = coverage.Coverage()
    measured.load()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "coverage.json"
        measured.json_report(outfile=str(file))
        found = json.loads(file.read_text(encoding="utf-8"))
    print("\n".join(lines(found)))
    return bool(found["totals"]["percent_covered"] >= WANTED)


def lines(found: dict[str, Any]) -> list[str]:
    """The lines of the report, from coverage's JSON: the total last, where CI looks for it."""
    short = {name: file for name, file in found["files"].items() if file["summary"]["percent_covered"] < WANTED}
    out = [
        f"  {name}: {_percent(file['summary'])}, not run: {ranges(file['missing_lines'])}"
        for name, file in short.items()
    ]
    if out:
        out.insert(0, f"files below {WANTED:.0f} %:")
    totals = found["totals"]
    return [
        *out,
        f"coverage: {_percent(totals)} of {totals['num_statements']} statements in {len(found['files'])} files",
    ]


def _percent(summary: dict[str, Any]) -> str:
    return f"{summary['percent_covered']:.1f} %"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
