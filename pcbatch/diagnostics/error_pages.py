"""The pages about the codes PCBnnn: an explanation, a program that gives the code, and that program repaired.

Each is a Markdown file in `pages/`, read when it is first asked for. `pcbatch explain PCB301` prints one, the
documentation holds them all, and the tests run both programs of each.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType

GROUPS = MappingProxyType(
    {"0": "Source", "1": "Syntax", "2": "Names and calls", "3": "Types", "4": "Use of the API", "9": "Run time"}
)

_PAGE = re.compile(
    r"# (?P<code>PCB\d{3}): (?P<title>[^\n]+)\n\n(?P<text>.+?)\n\n"
    r"(?P<head>This is refused|This gives a warning):\n\n```python bad(?: (?P<since>\d+\.\d+))?\n(?P<bad>.+?)\n```\n\n"
    r"This works:\n\n```python good\n(?P<good>.+?)\n```\n",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Page:
    """The page about one error code.

    `bad` is a program that gives exactly this code when it is run, on Python `since` and newer; `good` is that program
    after the help of the message was followed.
    """

    code: str
    title: str
    text: str
    head: str
    bad: str
    good: str
    since: tuple[int, ...] = (3, 11)

    def show(self) -> str:
        """Return the page as plain text."""
        programs = ((f"{self.head}:", self.bad), ("This works:", self.good))
        shown = "\n\n".join(f"{head}\n\n{_indented(program)}" for head, program in programs)
        return f"{self.code}: {self.title}\n\n{self.text}\n\n{shown}\n"


@cache
def pages() -> Mapping[str, Page]:
    """Return all pages by code, in order of the codes."""
    paths = (file for file in (files(__package__) / "pages").iterdir() if file.name.endswith(".md"))
    in_order = (parsed(file.read_text(encoding="utf-8")) for file in sorted(paths, key=lambda file: file.name))
    return MappingProxyType({page.code: page for page in in_order})


def parsed(text: str) -> Page:
    """Parse the text of a file; raises ValueError if it is no page."""
    match = _PAGE.fullmatch(text)
    if match is None:
        raise ValueError(f"no page about a code: {text[:60]!r}...")
    parts = match.groupdict()
    since = parts.pop("since") or "3.11"
    return Page(**parts, since=tuple(map(int, since.split("."))))


def find(text: str) -> Page | None:
    """Return the page of a code in any spelling, `PCB301`, `pcb301` or `301`; None if there is none."""
    return pages().get(_normal(text))


def near(text: str) -> tuple[str, ...]:
    """Return up to five codes that are spelled like a text or have it in their titles."""
    close = difflib.get_close_matches(_normal(text), pages(), 3, 0.8)
    about = [code for code, page in pages().items() if text.strip("`").lower() in page.title.lower()] if text else []
    return tuple(dict.fromkeys([*close, *about]))[:5]


def _normal(text: str) -> str:
    digits = text.strip().upper().removeprefix("PCB").replace("O", "0")
    return f"PCB{digits}" if digits.isdigit() else text.strip()


def _indented(program: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in program.splitlines())
