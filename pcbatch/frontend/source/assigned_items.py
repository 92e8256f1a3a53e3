"""The tree of a function for readers outside of the front end: as text, and the parameters whose items it assigns."""

from __future__ import annotations

from types import FunctionType

import astunparse
import gast

from pcbatch.errors import CompileError
from pcbatch.frontend.source.locate import locate
from pcbatch.frontend.source.scope import parameters
from pcbatch.frontend.source.tree import Node


def assigned_items(fn: FunctionType) -> frozenset[str]:
    """Return the parameters `p` that stand in assignments such as `p[i] = v`, `p[i][j] += v` or `p.field[i] = v`.

    An array of JAX does not allow that in plain Python. There are none in a function without source.
    """
    try:
        node = locate(fn).node
    except CompileError:
        return frozenset()
    roots = {_root(part) for part in gast.walk(node) if isinstance(part, gast.Subscript) and _is_changed(part)}
    return frozenset(roots & set(parameters(node.args)))


def _is_changed(node: Node) -> bool:
    return isinstance(node.ctx, gast.Store | gast.Del)


def _root(node: Node) -> str:
    while isinstance(node, gast.Subscript | gast.Attribute):
        node = node.value
    return node.id if isinstance(node, gast.Name) else ""


def ast_text(fn: FunctionType) -> str:
    """The gast tree of a function as text; raises CompileError if the source is not found."""
    text: str = astunparse.dump(locate(fn).node)
    return text.strip() + "\n"
