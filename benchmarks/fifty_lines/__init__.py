"""Twenty-one programs of about fifty lines, as people write them who know nothing of pcbatch, with arguments.

Each is plain Python for one example, helpers counted along. `PROGRAMS` has them by name.
"""

from __future__ import annotations

from benchmarks.fifty_lines import filters, finance, games, geometry, physics, probability, tables, texts
from benchmarks.fifty_lines.program import Program

PROGRAMS: dict[str, Program] = {
    program.name: program
    for group in (physics, finance, filters, geometry, probability, games, tables, texts)
    for program in group.PROGRAMS
}
