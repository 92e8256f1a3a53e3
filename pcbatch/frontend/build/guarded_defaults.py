"""Default arguments of nested functions and lambdas, which a primitive makes anew: a change of them is refused there.

def visit(x, seen=[]): ...     ==>      @support.own_defaults
                                        def visit(x, seen=[]): ...
"""

from __future__ import annotations

import ast
from typing import TypeVar

from pcbatch.frontend.source.tree import SUPPORT

N = TypeVar("N", bound=ast.AST)
SIMPLE = (ast.Constant, ast.Name, ast.UnaryOp, ast.BinOp, ast.Tuple, ast.Attribute)  # no object that a call may change


def guarded_defaults(node: N) -> N:
    """Return the tree of a primitive with all such functions looked after (`support/defaults.py`)."""
    guarded: N = _Guard().visit(node)
    return guarded


class _Guard(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        if _makes_objects(node.args):
            node.decorator_list.append(_own_defaults(node))
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self.generic_visit(node)
        return ast.copy_location(ast.Call(_own_defaults(node), [node], []), node) if _makes_objects(node.args) else node


def _makes_objects(args: ast.arguments) -> bool:
    return any(
        default is not None and not isinstance(default, SIMPLE) for default in (*args.defaults, *args.kw_defaults)
    )


def _own_defaults(at: ast.AST) -> ast.expr:
    support = ast.copy_location(ast.Name(SUPPORT, ast.Load()), at)
    return ast.copy_location(ast.Attribute(support, "own_defaults", ast.Load()), at)
