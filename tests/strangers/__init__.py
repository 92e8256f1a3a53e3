"""Functions as strangers write them, which `pcbatch.batch` runs as they are: a module for each group of idioms."""

from __future__ import annotations

from tests.strangers import (
    backtracking,
    bits,
    choices,
    containers,
    digits,
    dynamic_programming,
    enumerations,
    errors,
    graphs,
    helpers,
    lists,
    loops,
    mappings,
    matrices,
    nested,
    numbers,
    optional,
    ordered,
    physics,
    searches,
    texts,
    yielding,
)
from tests.strangers.rows import Row

ROWS: tuple[Row, ...] = tuple(
    row
    for group in (
        numbers.ROWS,
        lists.ROWS,
        loops.ROWS,
        mappings.ROWS,
        digits.ROWS,
        helpers.ROWS,
        optional.ROWS,
        errors.ROWS,
        enumerations.ROWS,
        dynamic_programming.ROWS,
        matrices.ROWS,
        nested.ROWS,
        containers.ROWS,
        searches.ROWS,
        backtracking.ROWS,
        graphs.ROWS,
        bits.ROWS,
        choices.ROWS,
        physics.ROWS,
        ordered.ROWS,
        yielding.ROWS,
        texts.ROWS,
    )
    for row in group
)
