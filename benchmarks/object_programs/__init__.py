"""Ten programs of about a hundred lines with classes, texts and exceptions, as people write them in plain Python.

`PROGRAMS` has the function of one example and the examples of eight lanes, by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.object_programs import (
    adventure,
    connect4,
    currency_exchange,
    event_simulation,
    lru_cache,
    minesweeper,
    polynomial,
    tennis,
    trie,
    union_find,
)

MODULES = (
    adventure,
    connect4,
    currency_exchange,
    event_simulation,
    lru_cache,
    minesweeper,
    polynomial,
    tennis,
    trie,
    union_find,
)
PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {
    module.__name__.rpartition(".")[2]: (module.ENTRY, module.EXAMPLES) for module in MODULES
}
