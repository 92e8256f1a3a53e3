"""The order of registers that are rows of one array: `python -m benchmarks.row_order [--lanes 64]`

On a CPU, scalar registers of one dtype that blocks write together are rows of one array
(`runtime/vm/register_groups.py`). A block that writes or reads several rows of a group, but not all, could do so by one
slice if they lie side by side; a PQ-tree finds an order in which as many of these sets as possible do. Groups have at
most eight rows, so here every order is tried. Counted over the test suite's programs: sets of rows of which order
matters, those that lie side by side now, and those that would in the best order.
"""

from __future__ import annotations

import argparse
import itertools
import os
from collections import Counter
from collections.abc import Iterable, Sequence

os.environ["PCBATCH_ON_FAILURE"] = "ignore"

from pcbatch.runtime.vm import layout as layouts
from pcbatch.runtime.vm.layout import reg
from tests.programs import REGISTRY


def side_by_side(order: Sequence[str], sets: Iterable[frozenset[str]]) -> int:
    """Return how many sets are contiguous in an order."""
    places = {row: k for k, row in enumerate(order)}
    spans = [(sorted(places[row] for row in rows), len(rows)) for rows in sets]
    return sum(found[-1] - found[0] + 1 == size for found, size in spans)


def count(lanes: int) -> Counter[str]:
    """Count over all programs of the suite that have groups."""
    total: Counter[str] = Counter()
    for program in REGISTRY.values():
        with program.mode():
            layout = program.batched().lower(*program.args(4)).program.executable.machine.layout
        total["programs"] += 1
        for group in layouts.register_groups(layout, lanes).groups:
            total["groups"] += 1
            total["rows"] += len(group.members)
            for kind in ("updates", "reads"):
                sets = [frozenset(map(reg, getattr(code, kind))) & set(group.members) for code in layout.codes]
                some = [rows for rows in sets if 1 < len(rows) < len(group.members)]
                best = max((side_by_side(order, some) for order in itertools.permutations(group.members)), default=0)
                total[f"{kind} of a group"] += sum(map(bool, sets))
                total[f"{kind} of some rows"] += len(some)
                total[f"{kind} of some rows, side by side now"] += side_by_side(group.members, some)
                total[f"{kind} of some rows, side by side at best"] += best
    return total


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lanes", type=int, default=64)
    for name, number in count(parser.parse_args().lanes).items():
        print(f"{number:6,}  {name}")


if __name__ == "__main__":
    main()
