"""Write errors.md, all pages about codes as one document: `python -m tools.error_pages FOLDER`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from pcbatch.diagnostics.error_pages import GROUPS, Page, pages

HEAD = """\
# Error codes

<!-- Written by `python -m tools.error_pages` from pcbatch/diagnostics/pages; do not edit. -->

Every message of pcbatch has a code. `pcbatch explain PCB301` prints the page of one code, `pcbatch explain` lists
them all. Each first program below gives the code when it is run; the second is the same program, changed as the help
of the message says. The tests run both.
"""
LINK = re.compile(r"\([./\w]*/pages/(PCB\d{3})\.md\)")


def write(folder: Path) -> None:
    """Write errors.md into this folder."""
    (folder / "errors.md").write_text(document(), encoding="utf-8")


def document() -> str:
    """All pages, by group."""
    parts = [HEAD]
    for digit, title in GROUPS.items():
        group = [page for page in pages().values() if page.code[3] == digit]
        listed = "\n".join(f"- [{page.code}](#{_anchor(page)}): {page.title}" for page in group)
        parts += [f"## {title}\n\n{listed}\n", *map(_section, group)]
    return "\n".join(parts)


def linked(text: str) -> str:
    """A document whose links to the files of pages lead to errors.md, beside it, instead."""
    return LINK.sub(lambda found: f"(errors.md#{_anchor(pages()[found[1]])})", text)


def _section(page: Page) -> str:
    programs = ((f"{page.head}:", page.bad), ("This works:", page.good))
    shown = "\n\n".join(f"{head}\n\n```python\n{program}\n```" for head, program in programs)
    return f"### {page.code}: {page.title}\n\n{page.text}\n\n{shown}\n"


def _anchor(page: Page) -> str:
    """The address that renderers of Markdown give a heading."""
    text = f"{page.code}: {page.title}".lower()
    return "".join(c for c in text if c.isalnum() or c in " -_").replace(" ", "-")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
