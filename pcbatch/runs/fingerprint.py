"""What tells one program, one set of arguments and one structure of them from another, for runs that are kept.

A kept run is gone on with by the program that began it and no other: the same blocks in the same order, the same
primitives and constants in them, the same layout of the state, the same settings of JAX. Line numbers, names of files
and comments do not count.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

import jax
import numpy as np

from pcbatch.call.arguments import Arguments
from pcbatch.compiler.pipeline import show
from pcbatch.compiler.program import Program
from pcbatch.ir.ops import Prim
from pcbatch.ir.stack import StackProgram
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.abstract_values import Abstract, Known
from pcbatch.lowering.typing.pytree import flatten
from pcbatch.lowering.typing.trace import JaxprFn, is_key_array

ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def of_program(program: StackProgram) -> str:
    """A digest of all that decides what a lane computes, and how its state is laid out."""
    found = hashlib.sha256(show(program, "text").encode())
    for op in [*program.prologue, *(op for block in program.blocks for op in block.ops)]:
        if isinstance(op, Prim) and isinstance(op.expr.fn, JaxprFn):
            found.update(ADDRESS.sub("", str(op.expr.fn.closed.jaxpr)).encode())
            _add(found, op.expr.fn.closed.consts)
    return found.hexdigest()


def of_compiled(compiled: Program) -> str:
    """The identity of a program and of the layout of its state."""
    return f"{of_program(compiled.stages.opt)} {compiled.options.max_steps} {compiled.options.stats}"


def of_arguments(given: Arguments) -> str:
    """A digest of the values of a call."""
    found = hashlib.sha256(str(given.lanes).encode())
    for name in sorted(given.arrays):
        found.update(name.encode())
        _add(found, given.arrays[name])
    return found.hexdigest()


def of_shared(values: Mapping[str, Any]) -> str:
    """A digest of what all inputs share."""
    found = hashlib.sha256()
    for name in sorted(values):
        found.update(name.encode())
        _add(found, [values[name]])
    return found.hexdigest()


def _add(found: Any, values: Iterable[Any]) -> None:
    for value in values:
        if isinstance(value, jax.core.Tracer):
            continue
        array = np.asarray(jax.random.key_data(value) if is_key_array(value) else value)
        found.update(f"{getattr(value, 'dtype', array.dtype)} {array.shape}".encode())
        if array.dtype != object:
            found.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8))


# Types of arguments as JSON


def types_of(given: Arguments) -> dict[str, Any]:
    """The types of a call, by parameter; None for those that only Python objects can tell."""
    return {name: _encoded(type_) for name, type_ in given.types.items()}


def _encoded(type_: Abstract) -> Any:
    tree = _structure(jax.tree.unflatten(type_.tree, list(range(len(type_.leaves)))))
    leaves = [_leaf(leaf) for leaf in type_.leaves]
    return None if tree is None or None in leaves else {"tree": tree, "leaves": leaves}


def _structure(value: Any) -> Any:
    """A pytree of numbers in lists that say what they are; None if it has nodes of other classes."""
    if type(value) is int:
        return ["leaf"]
    if value is None:
        return ["none"]
    if type(value) in (list, tuple):
        parts = [_structure(part) for part in value]
        return None if None in parts else [type(value).__name__, parts]
    if type(value) is dict:
        parts, keys = [_structure(part) for part in value.values()], [_literal(key) for key in value]
        return None if None in parts or None in keys else ["dict", keys, parts]
    return None


def _literal(value: object) -> str | None:
    """A Python value as text that gives it back; None if there is no such text."""
    text = repr(value)
    try:
        again = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return text if Known(again) == Known(value) else None


def _leaf(leaf: ArrayType | Known) -> Any:
    if isinstance(leaf, ArrayType):
        return ["array", leaf.dtype, list(leaf.shape), leaf.weak]
    text = _literal(leaf.value)
    return None if text is None else ["known", text]


def decoded(found: Any) -> Abstract:
    """The inverse of what `types_of` gives for a parameter."""
    example = _rebuilt(found["tree"], iter(range(len(found["leaves"]))))
    leaves = tuple(
        Known(ast.literal_eval(leaf[1])) if leaf[0] == "known" else ArrayType(leaf[1], tuple(leaf[2]), leaf[3])
        for leaf in found["leaves"]
    )
    return Abstract(flatten(example)[1], leaves)


def _rebuilt(found: Any, numbers: Any) -> Any:
    match found:
        case ["leaf"]:
            return next(numbers)
        case ["none"]:
            return None
        case ["list", parts]:
            return [_rebuilt(part, numbers) for part in parts]
        case ["tuple", parts]:
            return tuple(_rebuilt(part, numbers) for part in parts)
        case ["dict", keys, parts]:
            # Leaves stand in JAX's order, of sorted keys; which is which does not matter for the structure.
            return {ast.literal_eval(key): _rebuilt(part, numbers) for key, part in zip(keys, parts, strict=True)}
        case _:
            raise ValueError(f"no structure: {found!r}")
