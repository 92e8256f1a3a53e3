"""Digests of programs and of arguments, and types of arguments as JSON, for the headers of checkpoints.

A checkpoint is continued by the program that began the run and no other: the same blocks in the same order, the same
primitives and constants in them, the same layout of the state, the same settings of JAX. Line numbers, names of files
and comments do not count.
"""

from __future__ import annotations

import ast
import hashlib
import re
import types
from collections.abc import Iterable, Mapping
from typing import Any

import jax
import jax.extend.core as jex
import numpy as np

from pcbatch.call.arguments import Arguments
from pcbatch.compiler.program import Program
from pcbatch.data.object_parts import is_user_code
from pcbatch.ir.ops import Prim
from pcbatch.ir.stack import StackProgram
from pcbatch.ir.tasks import TaskProgram
from pcbatch.ir.text.printer import print_program
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.abstract_values import Abstract, Known
from pcbatch.lowering.typing.outer_state import ATOMS, contents_of, has_state
from pcbatch.lowering.typing.pytree import flatten
from pcbatch.lowering.typing.trace import JaxprFn, is_key_array
from pcbatch.transforms.primitive.operation import Operation

ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def of_program(program: StackProgram | TaskProgram) -> str:
    """Return a digest of all that decides what a lane computes, and how its state is laid out."""
    digest = hashlib.sha256(print_program(program).encode())
    for op in [*program.prologue, *(op for block in program.blocks for op in block.ops)]:
        if isinstance(op, Prim) and isinstance(op.expr.fn, JaxprFn):
            digest.update(ADDRESS.sub("", str(op.expr.fn.closed.jaxpr)).encode())
            add_jaxpr(digest, op.expr.fn.closed)
    return digest.hexdigest()


def add_jaxpr(digest: Any, value: Any) -> None:
    """Add the constants of a jaxpr and of those in its equations, the programs of runs in them, and the functions that
    these call on the host."""
    if isinstance(value, Operation) and value.steps is not None:
        return _add_text(digest, of_program(value.steps))
    if isinstance(value, list | tuple):
        for part in value:
            add_jaxpr(digest, part)
        return
    if isinstance(value, jex.ClosedJaxpr):
        _add(digest, value.consts)
    jaxpr = value.jaxpr if isinstance(value, jex.ClosedJaxpr) else value
    for eqn in jaxpr.eqns if isinstance(jaxpr, jex.Jaxpr) else ():
        for name, part in eqn.params.items():
            if eqn.primitive.name == "pure_callback" and callable(part):
                _add_object(digest, part, {})
            elif "callback" in eqn.primitive.name and callable(part):  # it may keep a log, which grows
                _add_text(digest, name)
            else:
                add_jaxpr(digest, part)


def _add_text(digest: Any, *parts: object) -> None:
    digest.update(" ".join(map(str, parts)).encode() + b"\0")


def _add_object(digest: Any, value: Any, seen: dict[int, tuple[int, Any]]) -> None:
    """Add a function of the user with all that it can reach by names, or another object with its parts."""
    value = getattr(value, "__wrapped__", value) if not isinstance(value, types.FunctionType) else value
    if type(value) in ATOMS or isinstance(value, types.ModuleType):
        return _add_text(digest, type(value).__name__, getattr(value, "__name__", repr(value)))
    if id(value) in seen:
        return _add_text(digest, "again", seen[id(value)][0])
    seen[id(value)] = len(seen), value
    if isinstance(value, jax.Array | np.ndarray):
        return _add(digest, [value])
    if isinstance(value, set | frozenset):
        return _add_text(digest, "set", *sorted(_digest_of(part, seen) for part in value))
    _add_text(digest, type(value).__qualname__, getattr(value, "__qualname__", ""))
    if isinstance(value, types.FunctionType) and is_user_code(value.__code__):
        _add_code(digest, value.__code__)
    parts = (
        contents_of(value) if has_state(value) or not callable(value) or type(value).__module__ != "builtins" else []
    )
    if isinstance(value, type):  # of a class what its methods do, and no caches
        parts = [
            (name, part) for name, part in parts if isinstance(part, types.FunctionType) and is_user_code(part.__code__)
        ]
    for name, part in parts if isinstance(value, list | tuple) else sorted(parts, key=lambda item: item[0]):
        _add_text(digest, name)
        _add_object(digest, part, seen)


def _digest_of(value: Any, seen: dict[int, tuple[int, Any]]) -> str:
    digest = hashlib.sha256()
    _add_object(digest, value, dict(seen))
    return digest.hexdigest()


def _add_code(digest: Any, code: types.CodeType) -> None:
    """Add what code does: not where it stands, nor its documentation."""
    digest.update(code.co_code + repr((code.co_names, code.co_varnames, code.co_freevars)).encode())
    for k, const in enumerate(code.co_consts):
        if isinstance(const, types.CodeType):
            _add_code(digest, const)
        elif k > 0 or not isinstance(const, str):
            digest.update(repr(sorted(map(repr, const)) if isinstance(const, frozenset) else const).encode())


def of_compiled(compiled: Program) -> str:
    """Return what identifies a program and the layout of its state."""
    return f"{of_program(compiled.stages.opt)} {compiled.options.max_steps} {compiled.options.stats}"


def of_tasks(compiled: Program) -> str | None:
    """Return what identifies the program of tasks, and the layout of its state; None if there is none."""
    tasks = compiled.tasks
    return None if tasks is None else f"{of_program(tasks.program)} {tasks.options.stats}"


def of_arguments(given: Arguments) -> str:
    """Return a digest of the values of a call's arguments."""
    digest = hashlib.sha256(str(given.lanes).encode())
    for name in sorted(given.arrays):
        digest.update(name.encode())
        _add(digest, given.arrays[name])
    return digest.hexdigest()


def of_shared(values: Mapping[str, Any]) -> str:
    """Return a digest of the arguments that all inputs share."""
    digest = hashlib.sha256()
    for name in sorted(values):
        digest.update(name.encode())
        _add(digest, [values[name]])
    return digest.hexdigest()


def _add(digest: Any, values: Iterable[Any]) -> None:
    for value in values:
        if isinstance(value, jax.core.Tracer):
            continue
        array = np.asarray(jax.random.key_data(value) if is_key_array(value) else value)
        digest.update(f"{getattr(value, 'dtype', array.dtype)} {array.shape}".encode())
        if array.dtype != object:
            digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8))


# Types of arguments as JSON


def types_of(given: Arguments) -> dict[str, Any]:
    """Return the types of a call by parameter, ready for JSON; None for pytrees of the user's own classes."""
    return {name: _encoded(type_) for name, type_ in given.types.items()}


def _encoded(type_: Abstract) -> Any:
    tree = _structure(jax.tree.unflatten(type_.tree, list(range(len(type_.leaves)))))
    leaves = [_leaf(leaf) for leaf in type_.leaves]
    return None if tree is None or None in leaves else {"tree": tree, "leaves": leaves}


def _structure(value: Any) -> Any:
    """Encode a pytree of numbers as lists that name the class of each node; None if it has nodes of other classes."""
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
    """Return a Python value as text that evaluates to it; None if there is no such text."""
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


def decoded(encoded: Any) -> Abstract:
    """Return the type of a parameter that `types_of` has encoded."""
    example = _rebuilt(encoded["tree"], iter(range(len(encoded["leaves"]))))
    leaves = tuple(
        Known(ast.literal_eval(leaf[1])) if leaf[0] == "known" else ArrayType(leaf[1], tuple(leaf[2]), leaf[3])
        for leaf in encoded["leaves"]
    )
    return Abstract(flatten(example)[1], leaves)


def _rebuilt(encoded: Any, numbers: Any) -> Any:
    match encoded:
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
            raise ValueError(f"no structure: {encoded!r}")
