"""The texts of expressions: the variables that one reads, and its form between braces.

Printer, parser and interpreters share these rules, so that `{ n - 2 }` means the same to all of them.

Default reading: the text is a Python expression; every maximal chain of names and attributes in it, in reading
order, reads its longest prefix that is a declared variable. `state.q + 1` reads `state.q` if there is such a
variable, else `state`; `x.shape` reads `x`. Names bound by a lambda, a comprehension or `:=` in the text are not
variables. A text that is not one expression has no default reading.

Between braces a text stands as it is (`{ n - 2 }`) when the scanner below finds its end again, and else as a JSON
string (`{"..."}`).
"""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from pcbatch.ir.ops import Prim

_CLOSES = {")": "(", "]": "[", "}": "{"}


def default_reads(text: str, declared: Collection[str]) -> tuple[str, ...] | None:
    """The variables that a text reads, each once, in reading order; None if it is not a Python expression."""
    tree = parsed(text)
    if tree is None:
        return None
    return tuple(dict.fromkeys(name for _, name in Reads(declared).run(tree)))


def braced(text: str) -> str:
    """Put a text in braces: `{ text }`, or `{"text"}` where the plain form could not be read back."""
    plain = f"{{ {text} }}"
    return plain if _is_plain(text, plain) else f"{{{json.dumps(text)}}}"


def parsed(text: str) -> ast.Expression | None:
    """The tree of a text; None if it is not a Python expression."""
    try:
        with warnings.catch_warnings():  # the user's own source has warned about a doubtful escape already
            warnings.simplefilter("ignore")
            return ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError):
        return None


def _is_plain(text: str, plain: str) -> bool:
    if not text or text != text.strip() or len(text.splitlines()) != 1:
        return False
    return matching(plain, 0) == len(plain) - 1


def matching(line: str, start: int) -> int | None:
    """The position of the bracket that closes the one at `start`, strings skipped."""
    opened: list[str] = []
    i = start
    while i < len(line):
        char = line[i]
        if char in "\"'":
            end = _string_end(line, i)
            if end is None:
                return None
            i = end
            continue
        if char in "([{":
            opened.append(char)
        elif char in _CLOSES:
            if opened.pop() != _CLOSES[char]:
                return None
            if not opened:
                return i
        i += 1
    return None


def _string_end(line: str, start: int) -> int | None:
    quote = line[start : start + 3]
    if quote not in ('"""', "'''"):
        quote = line[start]
    i = start + len(quote)
    while i < len(line):
        if line[i] == "\\":
            i += 2
        elif line.startswith(quote, i):
            return i + len(quote)
        else:
            i += 1
    return None


class Reads(ast.NodeVisitor):
    """Collects (node, variable) for every read of a declared variable, in reading order."""

    def __init__(self, declared: Collection[str]) -> None:
        self._declared = declared
        self._bound: frozenset[str] = frozenset()
        self._reads: list[tuple[ast.expr, str]] = []

    def run(self, tree: ast.AST) -> list[tuple[ast.expr, str]]:
        """Return all reads of declared variables in a tree."""
        self._bound = frozenset(
            n.target.id for n in ast.walk(tree) if isinstance(n, ast.NamedExpr) and isinstance(n.target, ast.Name)
        )
        self.visit(tree)
        return self._reads

    @contextmanager
    def _binding(self, names: Collection[str]) -> Iterator[None]:
        outer, self._bound = self._bound, self._bound.union(names)
        yield
        self._bound = outer

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._chain(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if not self._chain(node):
            self.generic_visit(node)

    def _chain(self, node: ast.expr) -> bool:
        """Record the variable that a chain reads, if any; return False if the chain does not start at a name."""
        prefixes: list[ast.expr] = [node]
        while isinstance(node, ast.Attribute):
            node = node.value
            prefixes.append(node)
        if not isinstance(node, ast.Name):
            return False
        if node.id not in self._bound:
            spelt = ((prefix, ast.unparse(prefix)) for prefix in prefixes)
            read = next((item for item in spelt if item[1] in self._declared), None)
            self._reads.extend([read] if read else [])
        return True

    def visit_IfExp(self, node: ast.IfExp) -> None:
        for part in (node.body, node.test, node.orelse):
            self.visit(part)

    def visit_Dict(self, node: ast.Dict) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None:
                self.visit(key)
            self.visit(value)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        with self._binding([n.arg for n in ast.walk(node.args) if isinstance(n, ast.arg)]):
            self.visit(node.body)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        targets = (t for g in node.generators for t in ast.walk(g.target))
        bound = [t.id for t in targets if isinstance(t, ast.Name)]
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        with self._binding(bound):
            for part in parts:
                self.visit(part)
        for i, generator in enumerate(node.generators):
            # Python evaluates the first iterable outside the comprehension's scope.
            with self._binding(bound if i else []):
                self.visit(generator.iter)
            with self._binding(bound):
                for test in generator.ifs:
                    self.visit(test)

    visit_ListComp = _comprehension
    visit_SetComp = _comprehension
    visit_DictComp = _comprehension
    visit_GeneratorExp = _comprehension


def part_text(op: Prim, leaves: list[str], whole: bool, text: str) -> str:
    """Return the text for some leaves of a primitive: one element of a tuple display when that is exact."""
    if whole or len(leaves) != 1:
        return text
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:
        return text
    if len(op.dsts) == 1:
        path = leaves[0].removeprefix(op.dsts[0]).strip(".").split(".")
        index = path[0].removeprefix("_") if len(path) == 1 else ""
    else:
        index = str(op.dsts.index(leaves[0])) if leaves[0] in op.dsts else ""
    if isinstance(tree, ast.Tuple | ast.List) and index.isdigit() and int(index) < len(tree.elts):
        return ast.unparse(tree.elts[int(index)])
    return text
