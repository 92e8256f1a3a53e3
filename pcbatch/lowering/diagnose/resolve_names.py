"""Name resolution in the user's source, at a span where a primitive failed, for fix-its that fit its imports."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final

import jax
import jax.numpy as jnp

Names = Mapping[str, Any]  # the names that one frame can see, and the objects they are bound to

MISSING: Final = object()
IMPORTS = {
    "jnp": "import jax.numpy as jnp",
    "jax": "import jax",
    "pcbatch": "import pcbatch",
    "functools": "import functools",
}


def meaning(node: ast.expr, names: Names) -> Any:
    """Return the object that a name, or a dotted name in modules, stands for; MISSING for all else."""
    match node:
        case ast.Name(id=name):
            return names[name] if name in names else getattr(builtins, name, MISSING)
        case ast.Attribute(value=value, attr=attr):
            base = meaning(value, names)
            return getattr(base, attr, MISSING) if isinstance(base, ModuleType) else MISSING
    return MISSING


def held(node: ast.expr, names: Names) -> Any:
    """Return the value of a plain name; MISSING for other expressions, and for names that are not bound."""
    return names.get(node.id, MISSING) if isinstance(node, ast.Name) else MISSING


def of_lane(node: ast.AST, names: Names) -> bool:
    """Return whether an expression may read a value of a lane. Without names, every expression with a name may."""
    read = [part for part in ast.walk(node) if isinstance(part, ast.Name | ast.Attribute)]
    values = [names.get(part.id) if isinstance(part, ast.Name) else _field(part, names) for part in read]
    return any(map(_traced, values)) or (not names and bool(read))


def _field(node: ast.Attribute, names: Names) -> Any:
    """The attribute of an object that a name is bound to, such as `self.n`; None if it is no field of it."""
    return getattr(held(node.value, names), "__dict__", {}).get(node.attr)


def _traced(value: Any) -> bool:
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(value))


def is_float(node: ast.expr, names: Names) -> bool:
    """Return whether the value of an expression is certainly a floating-point number or an array of them."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, float)
        case ast.Name():
            value = held(node, names)
            return isinstance(value, float) or jnp.issubdtype(getattr(value, "dtype", int), jnp.floating)
        case ast.Subscript(value=ast.Name() as base) if hasattr(held(base, names), "dtype"):
            return is_float(base, names)
        case ast.BinOp(op=op, left=left, right=right):
            return isinstance(op, ast.Div) or is_float(left, names) or is_float(right, names)
        case ast.UnaryOp(op=op, operand=operand):
            return not isinstance(op, ast.Not) and is_float(operand, names)
    return False


def spelled(help: str, names: Names) -> str:
    """Return a help with the user's own name for `jax.numpy`, and with the imports that it still needs."""
    own = next((name for name, value in names.items() if value is jnp and name.isidentifier()), None)
    if own is not None and own != "jnp":
        help = re.sub(r"(?<![\w.])jnp(?=\.)", own, help)
    needed = [
        f"`{line}`"
        for name, line in IMPORTS.items()
        if names and name not in names and re.search(rf"(?<![\w.`]){name}\.|`{name}\.", help)
    ]
    return f"{help}, with {' and '.join(needed)}" if needed else help
