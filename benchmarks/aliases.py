"""Programs in which one list, dict or set has several names, against CPython in a loop over the same examples.

    NPROC=1 python -m benchmarks.aliases [--lanes 256] [--boxes]

With `--boxes` no two names are kept equal by updates (links), so that every such object is a box. CPU seconds of one
core, the median of five calls; the peer is the best of three.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import pcbatch
from pcbatch.decisions import Decisions


def groups(n):
    table = {}
    for i in range(60):
        k = (i * 7 + n) % 9
        group = table.get(k)
        if group is None:
            group = []
            table[k] = group
        group.append(i)
    total = 0
    for k, group in table.items():
        total += k * len(group) + group[0]
    return total


def bins(n):
    rows = [[] for _ in range(8)]
    for i in range(60):
        least = min(rows, key=sum)
        least.append((i * i + n) % 17)
    return max(sum(row) for row in rows)


def rolling(n):
    before, now = [0] * 20, [0] * 20
    for i in range(20):
        for j in range(1, 20):
            now[j] = max(before[j], now[j - 1]) + ((i * j + n) % 7 == 0)
        before, now = now, before
    return before[19]


def accounts(n):
    people = [{"id": i, "balance": 100, "log": []} for i in range(6)]
    for k in range(40):
        giver = people[(k * 5 + n) % 6]
        taker = people[(k * 3 + 1) % 6]
        if giver["balance"] >= k:
            giver["balance"] -= k
            taker["balance"] += k
            giver["log"].append(k)
    return sum(one["balance"] * one["id"] + len(one["log"]) for one in people)


def matrix(n):
    m = [[(i * j + n) % 10 for j in range(8)] for i in range(8)]
    for r in range(8):
        row = m[r]
        for c in range(8):
            row[c] = row[c] * 2 + m[c][r]
    return sum(sum(row) for row in m)


def sorted_rows(n):
    m = [[(i * j * 7 + n) % 10 for j in range(8)] for i in range(8)]
    for row in m:
        row.sort()
        row.append(n)
    return sum(row[0] for row in m)


def two_rows(n):
    table = [[0] * 20 for _ in range(20)]
    for i in range(1, 20):
        before, now = table[i - 1], table[i]
        for j in range(1, 20):
            now[j] = max(before[j], now[j - 1]) + ((i * j + n) % 7 == 0)
    return table[19][19]


PROGRAMS: tuple[Callable[[int], Any], ...] = (groups, bins, rolling, accounts, matrix, sorted_rows, two_rows)


def seconds(run: Callable[[], Any], times: int) -> list[float]:
    """Return the CPU seconds of some calls, sorted."""
    found = []
    for _ in range(times):
        start = time.process_time()
        run()
        found.append(time.process_time() - start)
    return sorted(found)


def _row(program: Callable[[int], Any], inputs: Any) -> str:
    batched = pcbatch.batch(program)
    first = seconds(lambda: np.asarray(batched(inputs)), 1)[0]
    assert np.asarray(batched(inputs)).tolist() == [program(int(n)) for n in inputs]
    mine = seconds(lambda: np.asarray(batched(inputs)), 5)[2] * 1e3
    theirs = seconds(lambda: [program(int(n)) for n in inputs], 3)[0] * 1e3
    return f"| {program.__name__} | {first:.1f} | {mine:.2f} | {theirs:.2f} | {theirs / mine:.1f} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lanes", type=int, default=256)
    parser.add_argument("--boxes", action="store_true", help="box all objects with several names")
    options = parser.parse_args()
    if options.boxes:
        united = Decisions.__or__
        Decisions.__or__ = lambda one, more: replace(  # type: ignore[method-assign]
            united(one, more), linked=frozenset(), in_place=frozenset()
        )
    print("| program | first call, s | a call, ms | CPython, ms | times as fast |\n|---|---|---|---|---|")
    for program in PROGRAMS:
        print(_row(program, np.arange(options.lanes)), flush=True)


if __name__ == "__main__":
    main()
