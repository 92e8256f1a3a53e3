"""`pcbatch explain`: the page of a code, or all codes with their titles."""

from __future__ import annotations

from pcbatch.cli.parse_arguments import BadUsage
from pcbatch.diagnostics.error_pages import GROUPS, find, near, pages


def explain(code: str | None) -> str:
    """The page of one code; without a code, the list of all."""
    if code is None:
        return "\n".join(_group(digit, title) for digit, title in GROUPS.items())
    page = find(code)
    if page is not None:
        return page.show()
    similar = ", ".join(near(code))
    raise BadUsage(
        f"no code {code!r}" + (f": did you mean {similar}?" if similar else ": `pcbatch explain` lists them")
    )


def _group(digit: str, title: str) -> str:
    lines = [f"  {page.code}  {page.title}" for page in pages().values() if page.code[3] == digit]
    return "\n".join([title, *lines, ""])
