"""What every code PCBnnn means: a page with an explanation, a program that gives it, and the same program repaired.

`pcbatch explain PCB301` prints a page, `docs/errors.md` holds them all, and the tests run both programs of each.
"""

from __future__ import annotations

import difflib
from types import MappingProxyType

from pcbatch.codes import (
    assignments,
    axes,
    calls,
    derivatives,
    expressions,
    impure,
    longruns,
    loops,
    many,
    names,
    programs,
    results,
    returns,
    runtime,
    source,
    statements,
    types,
    use,
)
from pcbatch.codes.page import Page as Page

_MODULES = (
    source,
    statements,
    returns,
    assignments,
    expressions,
    impure,
    names,
    calls,
    types,
    results,
    loops,
    many,
    use,
    derivatives,
    axes,
    longruns,
    programs,
    runtime,
)

_ALL: list[Page] = [page for module in _MODULES for page in module.PAGES]
PAGES = MappingProxyType({page.code: page for page in sorted(_ALL, key=Page.key)})
GROUPS = MappingProxyType(
    {
        "0": "Source",
        "1": "Syntax",
        "2": "Names and calls",
        "3": "Types",
        "4": "Use of the API",
        "9": "Run time",
    }
)


def find(text: str) -> Page | None:
    """The page of a code, however it is written: `PCB301`, `pcb301`, `301`."""
    return PAGES.get(_normal(text))


def near(text: str) -> tuple[str, ...]:
    """Codes that look like this text, or whose titles speak of it."""
    close = difflib.get_close_matches(_normal(text), PAGES, 3, 0.8)
    about = [code for code, page in PAGES.items() if text.strip("`").lower() in page.title.lower()] if text else []
    return tuple(dict.fromkeys([*close, *about]))[:5]


def _normal(text: str) -> str:
    digits = text.strip().upper().removeprefix("PCB").replace("O", "0")
    return f"PCB{digits}" if digits.isdigit() else text.strip()
