"""Programs as people write them for one example, with random examples, for `benchmarks.cpython`.

Nothing in a program is there for pcbatch. Examples are plain Python values, which both sides get. `PROGRAMS` has those
of all kinds.
"""

from __future__ import annotations

from benchmarks.cpython_programs import (
    classics,
    games,
    geometry,
    nested,
    numeric,
    searches,
    simulations,
    sorting,
    tables,
    texts,
)
from benchmarks.cpython_programs.program import Program

PROGRAMS: list[Program] = [
    program
    for group in (classics, games, simulations, searches, numeric, geometry, tables, texts, sorting, nested)
    for program in group.PROGRAMS
]
