"""One page about one code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Page:
    """`bad` is a program that gives exactly this code when it is run, on Python `since` and newer; `good` is that
    program, changed as the help of the message says."""

    code: str
    title: str
    text: str
    bad: str
    good: str
    since: tuple[int, int] = (3, 11)

    def key(self) -> str:
        """Pages are sorted by code."""
        return self.code

    def show(self) -> str:
        """The page as plain text."""
        programs = (("This is refused:", self.bad), ("This works:", self.good))
        shown = "\n\n".join(f"{head}\n\n{_indented(program)}" for head, program in programs)
        return f"{self.code}: {self.title}\n\n{self.text.strip()}\n\n{shown}\n"

    def markdown(self) -> str:
        """The page as a section of a document."""
        programs = (("This is refused:", self.bad), ("This works:", self.good))
        shown = "\n\n".join(f"{head}\n\n```python\n{program.strip()}\n```" for head, program in programs)
        return f"### {self.code}: {self.title}\n\n{self.text.strip()}\n\n{shown}\n"


def _indented(program: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in program.strip().splitlines())
