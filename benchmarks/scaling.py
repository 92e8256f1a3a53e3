"""How cost grows: with the depth of stacks, with idle state, with lanes. `python -m benchmarks.scaling [--only depth]`

`fib`, `depth` and `state` are about a trip of the machine (`benchmarks.trips`), `gaussian` and `logistic` about NUTS by
strategy (`benchmarks.lanes`): figures 7 and 6 of the paper, in kind.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence

from benchmarks import lanes, trips
from benchmarks.common import Curve, Row, report

PARTS = ("fib", "depth", "state", "gaussian", "logistic")


def measure(part: str, repeats: int, sizes: Sequence[int] | None) -> tuple[list[Row], list[Curve]]:
    """One part; those about lanes take the numbers of chains, or their own."""
    given: dict[str, Sequence[int]] = {} if sizes is None else {"sizes": sizes}
    parts: dict[str, Callable[[], tuple[list[Row], list[Curve]]]] = {
        "fib": lambda: trips.lanes(repeats),
        "depth": lambda: trips.depth(repeats),
        "state": lambda: trips.state(repeats),
        "gaussian": lambda: lanes.on_gaussian(repeats, **given),
        "logistic": lambda: lanes.on_logistic(repeats, **given),
    }
    return parts[part]()


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS, action="append", help="one part; may be given again")
    parser.add_argument("--chains", type=int, nargs="+", help="the sizes of the parts about lanes")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", metavar="OUT")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    chosen = parse(arguments)
    os.environ.setdefault("NPROC", "1")  # read by XLA at its first computation
    rows, curves = [], []
    for part in chosen.only or PARTS:
        more_rows, more_curves = measure(part, chosen.repeats, chosen.chains)
        rows += more_rows
        curves += more_curves
    report(f"scaling: {', '.join(chosen.only or PARTS)}", rows, chosen.json, curves)


if __name__ == "__main__":
    main()
