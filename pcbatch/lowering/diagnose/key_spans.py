"""The key in an expression that a dict or set of the lane refuses.

A traceback names the whole expression that failed; at fault is the key in it.

    d[xs[i]]  ->  xs[i]        d.get(k, 0)  ->  k        k in d  ->  k        d[k] += 1  ->  k
"""

from __future__ import annotations

import ast

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.lowering.diagnose.fix_its import expression
from pcbatch.lowering.diagnose.traceback_spans import source

BY_KEY = frozenset({"add", "discard", "get", "move_to_end", "pop", "remove", "setdefault"})  # the first argument is it


def key_span(loc: Loc) -> Loc:
    """Return the span of the key that the source in a span looks up, stores or removes; the whole span if it has none,
    or several."""
    node = expression(loc)
    key, before = (_key(node), 1) if node is not None else (_key(_changed(loc)), 0)
    return loc if key is None else _part(loc, key, before)


def _changed(loc: Loc) -> ast.expr | None:
    """Return the target of the statement `x += y` in a span; None for others."""
    try:
        match ast.parse(source(loc)).body:
            case [ast.AugAssign(target=target)]:
                return target
    except SyntaxError:
        return None
    return None


def _key(node: ast.expr | None) -> ast.expr | None:
    match node:
        case ast.Subscript(slice=key):
            return key
        case ast.Call(func=ast.Attribute(attr=name), args=[key, *_]) if name in BY_KEY:
            return key
        case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()]) | ast.Dict(keys=[ast.expr() as key]):
            return key
    return None


def _part(loc: Loc, node: ast.expr, before: int) -> Loc:
    """Return the span of a node of the source in a span, which was parsed with so many characters before it."""
    assert node.end_lineno is not None and node.end_col_offset is not None
    start, end = (
        _place(loc, line, column, before)
        for line, column in ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))
    )
    return Loc(loc.file, *start, *end)


def _place(loc: Loc, line: int, column: int, before: int) -> tuple[int, int]:
    """Return the line of the file and the character in it, for a line of the span and a column in bytes."""
    column -= before if line == 1 else 0
    text = source(loc).split("\n")[line - 1]
    characters = len(text.encode()[:column].decode(errors="replace"))
    return loc.line + line - 1, characters + (loc.col if line == 1 else 0)
