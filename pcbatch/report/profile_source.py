"""The user's lines in a profile: the share of each block that they hold, and their text."""

from __future__ import annotations

import ast
import linecache
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.ir.stack import Pop, Push, StackBlock, StackOp, StackProgram
from pcbatch.lowering.analysis.cost import op_cost

Lines = tuple[int, int]  # the first line and the last


@dataclass(frozen=True, slots=True)
class Spot:
    """A line that holds a part of a block, with its estimated share of the block's work, from 0 to 1."""

    file: str
    line: int
    share: float


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Consecutive lines of a file, from line `first`."""

    file: str
    first: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SourceLines:
    """The lines of each block in order of the program, and the text of the functions around them."""

    spots: tuple[tuple[Spot, ...], ...]
    excerpts: tuple[Excerpt, ...]


def source_lines(*programs: StackProgram) -> SourceLines:
    """The lines of optimised programs, one after the other. Files come in the order in which the blocks name them."""
    types = [{v: var.type for v, var in program.vars.items()} for program in programs]
    spots = tuple(
        tuple(_spots(block, of_program))
        for program, of_program in zip(programs, types, strict=True)
        for block in program.blocks
    )
    files: dict[str, set[int]] = {}
    for spot in (spot for of_block in spots for spot in of_block):
        files.setdefault(spot.file, set()).add(spot.line)
    return SourceLines(spots, tuple(part for file, lines in files.items() for part in _excerpts(file, lines)))


def _spots(block: StackBlock, types: Mapping[str, object]) -> Iterator[Spot]:
    costs: dict[tuple[str, int], float] = {}

    def add(loc: Loc | None, cost: float) -> None:
        if loc is not None:
            costs[loc.file, loc.line] = costs.get((loc.file, loc.line), 0.0) + cost

    for op in block.ops:
        add(op.loc, _cost(op, types))
    add(getattr(block.terminator, "loc", None), 0.0)
    total = sum(costs.values())
    for (file, line), cost in sorted(costs.items()):
        yield Spot(file, line, cost / total if total else 1 / len(costs))


def _cost(op: StackOp, types: Mapping[str, object]) -> float:
    cost = 0.0 if isinstance(op, Push | Pop) else op_cost(op, types)
    return 0.0 if math.isinf(cost) else cost


def _excerpts(file: str, wanted: set[int]) -> Iterator[Excerpt]:
    """The functions around the wanted lines, as few as hold them all."""
    text = [line.rstrip("\r\n") for line in linecache.getlines(file)]
    functions, statements = _spans("\n".join(text))
    around = (_shortest(line, functions) or _shortest(line, statements) or (line, line) for line in wanted)
    for first, last in _joined(around, text):
        yield Excerpt(file, first, tuple((text + [""] * last)[first - 1 : last]))


def _spans(text: str) -> tuple[list[Lines], list[Lines]]:
    """Line ranges of all functions, with their decorators, and of all statements."""
    try:
        tree = ast.parse(text)
    except SyntaxError:  # a notebook's cell may hold more than Python
        return [], []
    functions, statements = [], []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            functions.append((first, node.end_lineno or first))
        elif isinstance(node, ast.stmt):
            statements.append((node.lineno, node.end_lineno or node.lineno))
    return functions, statements


def _shortest(line: int, spans: Iterable[Lines]) -> Lines | None:
    around = (span for span in spans if span[0] <= line <= span[1])
    return min(around, key=lambda span: span[1] - span[0], default=None)


def _joined(spans: Iterable[Lines], text: Sequence[str]) -> list[Lines]:
    """Merge spans that overlap, or have only blank lines between them; in order."""
    merged: list[Lines] = []
    for first, last in sorted(spans):
        if merged and not any(line.strip() for line in text[merged[-1][1] : first - 1]):
            merged[-1] = merged[-1][0], max(merged[-1][1], last)
        else:
            merged.append((first, last))
    return merged
