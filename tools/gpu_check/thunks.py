"""Thunk sequences: the launches of a compiled program, read from the text that XLA dumps.

XLA executes a program on a GPU as a sequence of *thunks*: kernels, copies, calls of libraries, loops, conditionals and
command buffers (CUDA graphs). Its dump has a line for each, further to the right inside of another:

    000: kCommandBuffer [source | sink]
        001: kCopy         [source       | next=002 (1)] kCopy
        002: kWhile        [prev=001 (1) | sink        ]
    condition:
            No thunks.          body:
            003: kCustomKernel [source | sink] loop_add_fusion grid: [8, 1, 1] threads: [128, 1, 1]

Numbers repeat. The label of a condition stands in the first column whatever it belongs to, and where there is nothing
in front of a label or behind a `kSequential`, the line goes on. So the text is read as a list of tokens, each with the
spaces in front of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

CONDITION: Final = "condition"
BODY: Final = "body"
TOKEN: Final = re.compile(
    r"(?P<space>\ *)(?:(?P<number>\d{3,}):\ (?P<kind>k[A-Z]\w*)(?P<rest>.*)|(?P<label>condition|body|branch_\d+):)"
)
NEXT_ON_LINE: Final = re.compile(r"\ +\d{3,}:\ k[A-Z]")
DETAILS: Final = re.compile(r"\s*(?:\[[^\]]*\])?\s*(?P<name>[^\s]*)")


class DumpError(ValueError):
    """A dump that is not of the form above: another release of XLA may print another one."""


@dataclass(frozen=True, slots=True)
class Section:
    """The thunks of one part of a thunk.

    Attributes:
        label: `CONDITION` and `BODY` of a loop, "branch_0" and so on of a conditional, "" of any other thunk.
        thunks: in order.
    """

    label: str
    thunks: tuple[Thunk, ...]


@dataclass(frozen=True, slots=True)
class Thunk:
    """A thunk of a sequence.

    Attributes:
        kind: the kind, as XLA names it: "kWhile".
        name: the name of the kernel, or whatever else XLA says first.
        sections: the parts; those without a thunk too, if the dump shows their label.
    """

    kind: str
    name: str
    sections: tuple[Section, ...] = ()

    @property
    def inside(self) -> tuple[Thunk, ...]:
        """The thunks of all sections."""
        return tuple(thunk for section in self.sections for thunk in section.thunks)

    def section(self, label: str) -> tuple[Thunk, ...]:
        """Return the thunks of a section; none if there is no such section."""
        return tuple(thunk for section in self.sections if section.label == label for thunk in section.thunks)


def parse(text: str) -> tuple[Thunk, ...]:
    """Read a dump of a thunk sequence.

    Args:
        text: the content of a file `*.thunk_sequence*.txt`.

    Returns:
        The thunks of the outermost sequence.

    Raises:
        DumpError: The text is of another form.

    Example:
        >>> [thunk.kind for thunk in parse("001: kCopy [source | sink] kCopy")]
        ['kCopy']
    """
    root = _Open(-1, "", "", [("", [])])
    stack = [root]
    for column, label, kind, name in _tokens(text):
        if label:
            _label(stack, column, label)
            continue
        while column <= stack[-1].column:
            stack.pop()
        made = _Open(column, kind, name)
        stack[-1].add(made)
        stack.append(made)
    return root.closed().inside


def walk(thunks: Sequence[Thunk]) -> Iterator[Thunk]:
    """Give all thunks of a sequence, those inside of others too."""
    for thunk in thunks:
        yield thunk
        yield from walk(thunk.inside)


@dataclass(slots=True)
class _Open:
    """A thunk of which more lines may follow."""

    column: int
    kind: str
    name: str
    sections: list[tuple[str, list[_Open]]] = field(default_factory=list)

    def add(self, thunk: _Open) -> None:
        if not self.sections:
            if self.kind in ("kWhile", "kConditional"):
                raise DumpError(f"a thunk `{thunk.kind}` in a `{self.kind}` before any label")
            self.sections.append(("", []))
        self.sections[-1][1].append(thunk)

    def closed(self) -> Thunk:
        sections = (Section(label, tuple(thunk.closed() for thunk in thunks)) for label, thunks in self.sections)
        return Thunk(self.kind, self.name, tuple(sections))


def _label(stack: list[_Open], column: int, label: str) -> None:
    """Begin a section of the thunk that a label belongs to."""
    if label == CONDITION:  # its column says nothing: it follows the line of its loop
        if stack[-1].kind != "kWhile" or stack[-1].sections:
            raise DumpError(f"a condition behind a `{stack[-1].kind}`")
    else:
        of = "kWhile" if label == BODY else "kConditional"
        while len(stack) > 1 and not (stack[-1].kind == of and stack[-1].column < column):
            stack.pop()
        if stack[-1].kind != of:
            raise DumpError(f"the label `{label}` belongs to no `{of}`")
    stack[-1].sections.append((label, []))


def _tokens(text: str) -> Iterator[tuple[int, str, str, str]]:
    """Give column, label, kind and name of each label and each thunk."""
    for line in text.splitlines():
        at = 0
        found = TOKEN.search(line)
        if found is None and line.strip() not in ("", "No thunks."):
            raise DumpError(f"a line that is no thunk: {line.strip()!r}")
        while found is not None:
            column = len(found["space"])
            if found["label"]:
                yield column, found["label"], "", ""
                at = found.end()
            else:
                following = NEXT_ON_LINE.search(line, found.start("rest"))
                at = len(line) if following is None else following.start()
                details = DETAILS.match(line[found.start("rest") : at])
                yield column, "", found["kind"], details["name"] if details else ""
            found = TOKEN.search(line, at)
