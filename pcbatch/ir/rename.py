"""The renaming of variables in the texts of expressions, where that is possible."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache


@lru_cache(maxsize=4096)
def rename_text(text: str, changed: tuple[tuple[str, str], ...]) -> str:
    """Replace variables in the text of an expression, given as (old, new), where that is possible."""
    try:
        tree = ast.parse(text, mode="eval")
        nested = any(isinstance(n, ast.Lambda | ast.comprehension | ast.NamedExpr) for n in ast.walk(tree))
        if nested:  # inner scopes may bind the same names: the text stays, and the printer lists the inputs
            return text
        return ast.unparse(_Renamer(dict(changed)).visit(tree))
    except (SyntaxError, RecursionError):  # hundreds of terms are as deep a tree
        return text


class _Renamer(ast.NodeTransformer):
    def __init__(self, new: Mapping[str, str]) -> None:
        self._new = new

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        chain = ast.unparse(node)
        if chain in self._new:
            return ast.parse(self._new[chain], mode="eval").body
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.parse(self._new[node.id], mode="eval").body if node.id in self._new else node
