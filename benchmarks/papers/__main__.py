"""Figures and tables of five papers, measured here: `python -m benchmarks.papers [--only nuts-utilisation] [--quick]`

Each figure is measured in turn and goes to a file in JSON, in which those that are not measured again stay as they are.
`--page` measures nothing: it writes `docs/users/papers.md` and its pictures from that file. DyNet and TensorFlow
Probability have environments of their own (`make dynet`, `make tfp`); PyTorch, BlackJAX and greenlet belong to the one
that runs this. What is not installed is left out, and the rows say so.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.common import machine, versions
from benchmarks.papers import acrobat, cocktailer, ed_batch, jit_batching, nuts, page
from benchmarks.papers.figure import Figure, in_one_line, table

PAPERS = (nuts.PAPER, ed_batch.PAPER, acrobat.PAPER, jit_batching.PAPER, cocktailer.PAPER)
FIGURES: Mapping[str, Figure] = {figure.name: figure for paper in PAPERS for figure in paper.figures}
JSON = Path("build/papers/papers.json")


def run(figure: Figure, quick: bool) -> dict[str, Any]:
    """What the figure has become, or the error that it ended with, ready for JSON."""
    start = time.process_time()
    found: dict[str, Any]
    try:
        measured = figure.measure(quick)
    except Exception as error:  # the other figures are measured all the same
        traceback.print_exc()
        found = {"error": in_one_line(error)}
    else:
        print(f"\n{table(figure.quantity, measured.rows)}", flush=True)
        found = {
            "rows": [asdict(row) for row in measured.rows],
            "curves": [asdict(curve) for curve in measured.curves],
        }
    return found | {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "quick": quick,
        "cpu seconds": round(time.process_time() - start, 1),
        "machine": machine(),
        "versions": versions(),
    }


def stored(file: Path) -> dict[str, Any]:
    """What was measured before."""
    found: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.exists() else {}
    return found


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", choices=FIGURES, nargs="+", default=list(FIGURES), metavar="NAME", help=", ".join(FIGURES)
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, few repeats")
    parser.add_argument("--json", type=Path, default=JSON, metavar="FILE", help="default: %(default)s")
    parser.add_argument("--page", action="store_true", help="write the page from the file, and measure nothing")
    parser.add_argument("--to", type=Path, default=page.PAGE, metavar="PAGE", help="default: %(default)s")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, or write the page; returns the exit status."""
    chosen = parse(arguments)
    os.environ.setdefault("NPROC", "1")  # read by XLA at its first computation
    found = stored(chosen.json)
    if chosen.page:
        print("written:", ", ".join(str(path) for path in page.write(PAPERS, found, chosen.to)))
        return 0
    chosen.json.parent.mkdir(parents=True, exist_ok=True)
    for name in chosen.only:
        figure = FIGURES[name]
        print(f"\n{name}: {figure.number}, {figure.title}", flush=True)
        found[name] = run(figure, chosen.quick)
        print(f"{name}: {found[name]['cpu seconds']} CPU seconds", flush=True)
        chosen.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    failed = [name for name in chosen.only if "error" in found[name]]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
