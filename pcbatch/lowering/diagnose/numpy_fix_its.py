"""What to write for a call of NumPy that is given a value of a lane: the user's own call, as `jnp` has it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.lowering.diagnose.resolve_names import MISSING, Names, held, meaning, of_lane, spelled

WHY = "NumPy cannot compute with values of lanes"
SHAPE = "make it a constant: pass it as one of `static_argnames`, or use the largest size and a mask"
GENERAL = "use functions of `jnp` in place of that of NumPy, for example `jnp.sqrt(x)`"
UNLIKE = dict.fromkeys(("histogram", "histogram2d", "histogramdd"), ", whose counts are floats")
LENGTHS = {"bincount": "length", "repeat": "total_repeat_length"}
SIZED = frozenset(
    "where nonzero argwhere flatnonzero unique unique_values unique_counts unique_inverse unique_all union1d "
    "intersect1d setdiff1d setxor1d extract compress bincount repeat".split()
)
SHAPES = {  # the parameters that are a size
    **dict.fromkeys(("zeros", "ones", "empty", "full"), ("shape",)),
    **dict.fromkeys(("arange",), ("start_or_stop", "start", "stop", "step")),
    **dict.fromkeys(("eye", "tri"), ("N", "M", "k")),
    "linspace": ("num",),
    "identity": ("n",),
}
OTHERS = {
    **dict.fromkeys(("asanyarray", "ascontiguousarray", "asfortranarray", "asarray_chkfinite"), "asarray"),
    "row_stack": "vstack",
    "fix": "trunc",
    "float64": "asarray",
    "float128": "asarray",
    "longdouble": "asarray",
    "int64": "asarray",
    "complex128": "asarray",
}
KINDS = {"int64": "int", "complex128": "complex"}
RENAMED = {("clip", "a"): "arr", ("clip", "a_min"): "min", ("clip", "a_max"): "max"}
WITHOUT = frozenset({"out", "order", "subok", "kind", "casting", "copy", "like", "signature"})  # change no value
FIELDS = frozenset({("order", "sort"), ("order", "argsort")})  # of structured arrays
JOINED = frozenset("concatenate concat stack hstack vstack dstack column_stack".split())
SEQUENCES = frozenset(
    "array asarray concatenate concat stack hstack vstack dstack column_stack block broadcast_arrays meshgrid "
    "einsum choose select piecewise".split()
)
WIDE = {np.float64: "float", np.int64: "int", np.complex128: "complex"}


def numpy_name(func: ast.expr, names: Names) -> str | None:
    """The path of a function of NumPy below `np`, such as `linalg.norm`; None for what is none."""
    path: list[str] = []
    base = func
    while isinstance(base, ast.Attribute):
        path.insert(0, base.attr)
        base = base.value
    if not isinstance(base, ast.Name):
        return None
    root = names.get(base.id, MISSING)
    if root is MISSING:
        return ".".join(path) if not names and path and base.id in ("np", "numpy") else None
    if isinstance(root, ModuleType):
        package, _, below = root.__name__.partition(".")
        return ".".join([*([below] if below else []), *path]) if package == "numpy" and path else None
    found = meaning(func, names)
    name = getattr(found, "__name__", "")
    for module in ("", "linalg", "fft"):
        if name and not path and found is getattr(getattr(np, module) if module else np, name, MISSING):
            return f"{module}.{name}" if module else name
    return None


def is_sized(name: str, call: ast.Call) -> bool:
    """Is the result of this function as long as the values in it make it?"""
    return name in SIZED and not (name == "where" and len(call.args) == 3)


def numpy_helps(path: str, call: ast.Call, names: Names) -> tuple[str, ...]:
    """The helps for a call of the function of NumPy at this path."""
    name = OTHERS.get(path, path)
    size = SHAPES.get(path)
    if size is not None and any(of_lane(arg, names) for key, arg in _bound(path, call) if key in size):
        return (SHAPE,)
    if path == "vectorize" or _found(jnp, name) is MISSING:
        return (GENERAL,)
    arguments, left = _arguments(path, name, call, names)
    if left:
        also = ", ".join(f"`{key}`" for key in left)
        return (f"use functions of `jnp` in place of that of NumPy; `jnp.{name}` has no {also}",)
    if is_sized(name, call) and _by_values(path, call, names):
        return sized_helps(f"jnp.{name}", arguments)
    return (spelled(f"write `jnp.{name}({', '.join(arguments)})`{UNLIKE.get(name, '')}: {WHY}", names),)


def sized_helps(func: str, arguments: list[str]) -> tuple[str, ...]:
    """The helps for a call whose result is as long as the values in it make it."""
    option = LENGTHS.get(func.rpartition(".")[2], "size")
    call = f"{func}({', '.join([*arguments, f'{option}=N'])})"
    return (f"say how long the result is: `{call}`, with `N` known while compiling, the same for all lanes",)


def own_arguments(call: ast.Call) -> list[str]:
    """The arguments of a call as they stand in it."""
    return [*map(ast.unparse, call.args), *map(ast.unparse, call.keywords)]


def _by_values(path: str, call: ast.Call, names: Names) -> bool:
    """Do values of a lane decide how long the result is?"""
    counted = {"repeat": "repeats"}.get(path)
    return any(of_lane(arg, names) for key, arg in _bound(path, call) if counted in (None, key))


def _found(module: Any, path: str) -> Any:
    for part in path.split("."):
        module = getattr(module, part, MISSING)
    return module


def _parameters(fn: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(fn).parameters
    except (TypeError, ValueError):
        return {}


def _bound(path: str, call: ast.Call) -> list[tuple[str, ast.expr]]:
    """The arguments by the names that NumPy gives them; those that have none by their number."""
    found = _parameters(_found(np, path)).values()
    order = [p.name for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    named = [(order[k] if k < len(order) else str(k), arg) for k, arg in enumerate(call.args)]
    return [*named, *((keyword.arg or "**", keyword.value) for keyword in call.keywords)]


def _arguments(path: str, name: str, call: ast.Call, names: Names) -> tuple[list[str], list[str]]:
    """The arguments for the function of `jnp`, and the names of those that it does not have."""
    if path in OTHERS and name == "asarray" and path not in KINDS and not path.startswith("as"):
        return [*map(ast.unparse, call.args), "float"], []
    if path in KINDS:
        return [*map(ast.unparse, call.args), KINDS[path]], []
    theirs = _parameters(_found(jnp, name))
    if not theirs:
        return own_arguments(call), []
    places = [p for p in theirs.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = any(p.kind is p.VAR_POSITIONAL for p in theirs.values())
    texts: list[str] = []
    left: list[str] = []
    by_place = True
    for k, (key, node) in enumerate(_bound(path, call)):
        text = _text(name, key, node, names)
        positional = k < len(call.args)
        other = RENAMED.get((name, key), key)
        same = k < len(places) and (k < 2 or places[k].name == other)
        if positional and by_place and (same or rest):
            texts.append(text)
            continue
        by_place = by_place and not positional
        if key == "**":
            texts.append(f"**{text}")
        elif key in WITHOUT and not (_given(node) and (key == "out" or (key, name) in FIELDS)):
            continue
        elif _by_name(theirs.get(other)) and not (isinstance(_found(jnp, name), jnp.ufunc) and key == "where"):
            texts.append(f"{other}={text}")
        else:
            left.append(key)
    return texts, left


def _by_name(parameter: inspect.Parameter | None) -> bool:
    return parameter is not None and parameter.kind is not parameter.POSITIONAL_ONLY and parameter.name != "out"


def _given(node: ast.expr) -> bool:
    return not (isinstance(node, ast.Constant) and node.value is None)


def _text(name: str, key: str, node: ast.expr, names: Names) -> str:
    if key == "dtype" and jax.dtypes.canonicalize_dtype(np.float64) != np.float64:
        wide = next((text for kind, text in WIDE.items() if meaning(node, names) is kind), None)
        return wide or ast.unparse(node)
    if name in JOINED and isinstance(node, ast.List | ast.Tuple):
        parts = [_text("", "", part, names) for part in node.elts]
        return f"[{', '.join(parts)}]"
    if name in SEQUENCES or key in ("axis", "axes", "shape", "dtype", "reps", "pad_width", "newshape", "shift", "size"):
        return ast.unparse(node)
    if isinstance(node, ast.Starred | ast.Constant):
        return ast.unparse(node)
    if isinstance(node, ast.GeneratorExp):
        node = ast.ListComp(elt=node.elt, generators=node.generators)
    listed = isinstance(node, ast.List | ast.Tuple | ast.ListComp) or isinstance(held(node, names), list | tuple)
    return f"jnp.asarray({ast.unparse(node)})" if listed else ast.unparse(node)
