"""The search for the syntax tree of a function that already exists.

The whole file is parsed, not a dedented excerpt: then columns, multi-line strings, continuation lines and
tabs are right by construction, and the tree can be searched for the function whose first line and name its
code object gives. Files come from `linecache`, which also serves notebooks, zip files and code made by `exec`
whose text was registered there. A text that is not what the function was compiled from is refused.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import linecache
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

import gast

from pcbatch.diagnostics.diagnostic import Diagnostic, Label, Loc
from pcbatch.errors import CompileError
from pcbatch.frontend.source.same_code import compiled_from
from pcbatch.frontend.source.tree import FUNCTIONS, Node

Item = tuple[Node, bool]
"""A function's tree, and whether it stands in a class."""

WRITTEN = "pcbatch_written"
"""The attribute of a function that the compiler has made of a tree: the tree."""
DEEP = 50_000  # levels of recursion for the parser
DEFINITION = re.compile(r"(async\s+)?def\s+\w+")


@dataclass(frozen=True, slots=True)
class Source:
    """The file of a function: its name as in the code object and its lines."""

    file: str
    lines: tuple[str, ...]

    def loc(self, node: Node) -> Loc:
        """The span of a node, with columns counted in characters (the parser counts bytes)."""
        return Loc(
            self.file,
            node.lineno,
            self._column(node.lineno, node.col_offset),
            node.end_lineno,
            self._column(node.end_lineno, node.end_col_offset),
        )

    def header(self, node: Node) -> Loc:
        """The span of `def name`, or of a whole lambda."""
        whole = self.loc(node)
        if isinstance(node, gast.Lambda):
            return whole
        # Read from the text, since Python normalises the name in the tree, and any space may stand before it.
        written = DEFINITION.match(self.lines[whole.line - 1], whole.col)
        end = written.end() if written is not None else whole.col + len("def")
        return Loc(self.file, whole.line, whole.col, whole.line, end)

    def _column(self, line: int, offset: int) -> int:
        if not 0 < line <= len(self.lines):
            return offset
        return len(self.lines[line - 1].encode()[:offset].decode(errors="replace"))


@dataclass(frozen=True, slots=True)
class Located:
    """A function's tree, its file, and whether it was written inside a class body."""

    source: Source
    node: Node
    in_class: bool


def locate(fn: FunctionType) -> Located:
    """Find the tree of `fn`; raises CompileError (PCB001, PCB002) where it cannot be found for certain."""
    written: Located | None = vars(fn).get(WRITTEN)
    if written is not None:
        return written
    located = _locate(fn)
    if not compiled_from(fn.__code__, "\n".join(located.source.lines)):
        raise _edited(fn, f"{_position(fn.__code__)} is not what `{fn.__name__}` was compiled from")
    return located


def _locate(fn: FunctionType) -> Located:
    code = fn.__code__
    text = _file_text(fn)
    if text is None:
        raise _no_source(fn, f"the text of {code.co_filename!r} is not available")
    by_line = _functions(text)
    if by_line is None:
        raise _edited(fn, f"{code.co_filename!r} does not parse")
    source = Source(code.co_filename, tuple(text.split("\n")))
    candidates = by_line.get(code.co_firstlineno, ())
    if code.co_name == "<lambda>":
        return _locate_lambda(fn, source, candidates)
    matches = [item for item in candidates if isinstance(item[0], FUNCTIONS) and item[0].name == code.co_name]
    if len(matches) != 1 or not _same_parameters(matches[0][0], code):
        raise _edited(fn, f"{_position(code)} does not define `{code.co_name}`")
    return Located(source, *matches[0])


def _locate_lambda(fn: FunctionType, source: Source, candidates: Sequence[Item]) -> Located:
    code = fn.__code__
    matches = [item for item in candidates if isinstance(item[0], gast.Lambda) and _same_parameters(item[0], code)]
    if len(matches) > 1:
        exact = [item for item in matches if body_matches(item[0].body, code)]
        around = [item for item in matches if _holds(item[0].body, code)]  # Python leaves out what is never evaluated
        matches = exact or around[-1:]  # the innermost
    if len(matches) == 1:
        return Located(source, *matches[0])
    line = source.lines[code.co_firstlineno - 1] if code.co_firstlineno <= len(source.lines) else ""
    start = max(0, line.find("lambda"))
    loc = Loc(source.file, code.co_firstlineno, start, code.co_firstlineno, start + len("lambda"))
    what = "several lambdas stand" if matches else "no lambda was found"
    raise CompileError(
        Diagnostic(
            "PCB002",
            "cannot tell which lambda this is" if matches else "cannot find this lambda in its source",
            Label(loc, f"{what} on this line"),
            helps=("write it as a `def`, or on a line of its own",),
        )
    ) from None


def _spans(code: CodeType) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """The places in the source of the instructions of `code`: the start and the end of each, as line and column."""
    found: Any = [p for p in code.co_positions() if None not in p and p[2:] != (0, 0)]
    return [((p[0], p[2]), (p[1], p[3])) for p in found]


def _holds(body: Node, code: CodeType) -> bool:
    """Whether all instructions of `code` come from inside a body."""
    start, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    spans = _spans(code)
    return bool(spans) and all(start <= first and last <= end for first, last in spans)


def body_matches(body: Node, code: CodeType) -> bool:
    """Whether the span of a body equals the span that the instructions of `code` come from."""
    spans = _spans(code)
    starts = min((start for start, _ in spans), default=None)
    ends = max((end for _, end in spans), default=None)
    return starts == (body.lineno, body.col_offset) and ends == (body.end_lineno, body.end_col_offset)


@functools.lru_cache(maxsize=64)
def _functions(text: str) -> Mapping[int, Sequence[Item]] | None:
    """All functions and lambdas of a file by their first line, in order; None if the file does not parse."""
    tree = _parse(text)
    if tree is None:
        return None
    by_line: dict[int, list[Item]] = {}
    for node, in_class in _walk(tree, False):
        by_line.setdefault(_first_line(node), []).append((node, in_class))
    return by_line


def _walk(node: Node, in_class: bool) -> Iterator[Item]:
    if isinstance(node, (*FUNCTIONS, gast.Lambda)):
        yield node, in_class
    in_class = in_class or isinstance(node, gast.ClassDef)
    for child in gast.iter_child_nodes(node):
        yield from _walk(child, in_class)


def _first_line(node: Node) -> int:
    lines: list[int] = [node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))]
    return min(lines)


def _same_parameters(node: Node, code: CodeType) -> bool:
    args = node.args
    names = tuple(a.id for a in (*args.posonlyargs, *args.args, *args.kwonlyargs))
    written = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    # Inside a class Python prefixes names such as `__x` with the class; the ends still agree.
    return len(names) == len(written) and all(w.endswith(n) for w, n in zip(written, names, strict=True))


def _file_text(fn: FunctionType) -> str | None:
    file = fn.__code__.co_filename
    linecache.checkcache(file)
    lines = linecache.getlines(file, fn.__globals__)
    if not lines:
        try:
            lines = inspect.findsource(fn)[0]
        except (OSError, TypeError, IndexError):
            return None
    return "".join(lines).replace("\r\n", "\n").replace("\r", "\n") if lines else None


@contextlib.contextmanager
def deep_trees() -> Iterator[None]:
    """Raise Python's recursion limit: visitors of trees recurse several times per level of an expression."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, DEEP))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def _parse(text: str) -> Node | None:
    try:
        with deep_trees(), warnings.catch_warnings():  # Python has shown its warnings when the file was loaded
            warnings.simplefilter("ignore")
            return gast.parse(text)
    except (SyntaxError, ValueError):
        return None


REGISTER = (
    "define the function in a file or a notebook cell of its own (`%%time` hides the text of a cell); "
    "for text given to `exec`, register it first:\n"
    "linecache.cache[name] = (len(text), None, text.splitlines(True), name)"
)
CHANGED = "load it again: `importlib.reload(module)`, or restart the program (the cell, the session)"


def _position(code: CodeType) -> str:
    return f"line {code.co_firstlineno} of {code.co_filename!r}"


def _edited(fn: FunctionType, what: str) -> CompileError:
    return _no_source(fn, f"{what}: the file has changed since it was loaded", CHANGED)


def _no_source(fn: FunctionType, why: str, help: str = REGISTER) -> CompileError:
    return CompileError(
        Diagnostic(
            "PCB001",
            f"cannot find the source of `{fn.__qualname__}`",
            notes=(why, "the compiler reads the Python source of a function, not its byte code"),
            helps=(help,),
        )
    )
