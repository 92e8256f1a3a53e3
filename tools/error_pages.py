"""Write docs/errors.md from the pages in pcbatch/codes: `python -m tools.error_pages`."""

from __future__ import annotations

from pathlib import Path

from pcbatch.codes import GROUPS, PAGES, Page

OUTPUT = Path(__file__).parents[1] / "docs" / "errors.md"
HEAD = """\
# Error codes

<!-- Written by `python -m tools.error_pages` from pcbatch/codes; do not edit. -->

Every message of pcbatch has a code. `pcbatch explain PCB301` prints the page of one code, `pcbatch explain` lists
them all. Each first program below gives the code when it is run; the second is the same program, changed as the help
of the message says. The tests run both.
"""


def document() -> str:
    """All pages, by group."""
    parts = [HEAD]
    for digit, title in GROUPS.items():
        pages = [page for page in PAGES.values() if page.code[3] == digit]
        listed = "\n".join(f"- [{page.code}](#{_anchor(page)}): {page.title}" for page in pages)
        parts += [f"## {title}\n\n{listed}\n", *(page.markdown() for page in pages)]
    return "\n".join(parts)


def _anchor(page: Page) -> str:
    """The address that renderers of Markdown give a heading."""
    text = f"{page.code}: {page.title}".lower()
    return "".join(c for c in text if c.isalnum() or c in " -_").replace(" ", "-")


if __name__ == "__main__":
    OUTPUT.write_text(document(), encoding="utf-8")
