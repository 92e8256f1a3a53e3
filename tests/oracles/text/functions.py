"""The functions of expressions of which only the text is known, as those of a parsed program."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import CodeType
from typing import Any

from pcbatch.errors import InternalError
from pcbatch.ir.text.expr_text import Reads, parsed


def as_function(text: str, ins: tuple[str, ...], namespace: Mapping[str, Any]) -> Callable[..., Any]:
    """Compile `text` to a function of the values of `ins`; other names come from `namespace` and the builtins."""
    function: Callable[..., Any] = eval(_compiled(text, ins), dict(namespace))
    return function


@lru_cache(maxsize=4096)
def _compiled(text: str, ins: tuple[str, ...]) -> CodeType:
    tree = parsed(text)
    if tree is None:
        raise InternalError(f"cannot evaluate {text!r}: not a Python expression, and the operation has no function")
    names = {name: f"_pcir_{i}" for i, name in enumerate(ins)}
    reads = {id(node): names[name] for node, name in Reads(names).run(tree)}
    parameters = [ast.arg(f"_pcir_{i}") for i in range(len(ins))]
    arguments = ast.arguments(posonlyargs=[], args=parameters, kwonlyargs=[], kw_defaults=[], defaults=[])
    body = _Substitute(reads).visit(tree.body)
    function = ast.fix_missing_locations(ast.Expression(ast.Lambda(arguments, body)))
    return compile(function, "<pcir>", "eval")


class _Substitute(ast.NodeTransformer):
    """Replaces nodes, known by identity, by plain names."""

    def __init__(self, names: Mapping[int, str]) -> None:
        self._names = names

    def visit(self, node: ast.AST) -> Any:
        name = self._names.get(id(node))
        return self.generic_visit(node) if name is None else ast.Name(name, ast.Load())
