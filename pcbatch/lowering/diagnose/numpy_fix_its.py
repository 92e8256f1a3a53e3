"""Fix-its for calls of NumPy with values of a lane: the user's own call, written with `jnp`.

Arguments keep their order and spelling. Those that `jnp` names differently are renamed, those that change no value left
out, and lists become arrays. The suite follows every help and compares the results with those of NumPy.
"""

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
FILLED = {"zeros": "0.0", "ones": "1.0", "empty": "0.0"}
_PLACES = "[k for k in range(len({0})) if ({0})[k]]"
LISTS = {"unique": "sorted(set({}))", "flatnonzero": _PLACES, "nonzero": f"({_PLACES},)", "where": f"({_PLACES},)"}
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
OTHERS = {  # functions of NumPy that `jnp` has under another name
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
    """Return the path below `np` of a function of NumPy, such as `linalg.norm`; None for other functions."""
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
    function = meaning(func, names)
    name = getattr(function, "__name__", "")
    for module in ("", "linalg", "fft"):
        if name and not path and function is getattr(getattr(np, module) if module else np, name, MISSING):
            return f"{module}.{name}" if module else name
    return None


def _filled(number: str, shape: ast.expr) -> str:
    """The expression that makes a list of one number, or lists of lists for a shape that is written out."""
    *outer, last = shape.elts if isinstance(shape, ast.Tuple | ast.List) and shape.elts else [shape]
    made = f"[{number}] * ({ast.unparse(last)})"
    for size in reversed(outer):
        made = f"[{made} for _ in range({ast.unparse(size)})]"
    return made


def is_sized(name: str, call: ast.Call) -> bool:
    """Return whether the length of the result depends on the values of the arguments."""
    return name in SIZED and not (name == "where" and len(call.args) == 3)


def numpy_helps(path: str, call: ast.Call, names: Names) -> tuple[str, ...]:
    """Return the helps for a call of the function of NumPy at this path, as `numpy_name` gives it."""
    name = OTHERS.get(path, path)
    size = SHAPES.get(path)
    if size is not None and any(of_lane(arg, names) for key, arg in _bound(path, call) if key in size):
        return (
            SHAPE,
            *([f"or make a list: `{_filled(FILLED[path], call.args[0])}`"] if path in FILLED and call.args else ()),
        )
    if path == "vectorize" or _attribute(jnp, name) is MISSING:
        return (GENERAL,)
    arguments, unknown = _arguments(path, name, call, names)
    bounds = {RENAMED.get((path, key), key): ast.unparse(arg) for key, arg in _bound(path, call)}
    if path == "clip" and {"arr", "min", "max"} <= {*bounds} and _has_complex(call, names):  # `jnp.clip` refuses them
        arguments, name = [f"jnp.maximum({bounds['arr']}, {bounds['min']})", bounds["max"]], "minimum"
    if unknown:
        also = ", ".join(f"`{key}`" for key in unknown)
        return (f"use functions of `jnp` in place of that of NumPy; `jnp.{name}` has no {also}",)
    if is_sized(name, call) and _by_values(path, call, names):
        found = LISTS.get(path if len(call.args) == 1 else "")
        lists = (f"or make a list: `{found.format(ast.unparse(call.args[0]))}`",) if found else ()
        return sized_helps(f"jnp.{name}", arguments) + lists
    return (spelled(f"write `jnp.{name}({', '.join(arguments)})`{UNLIKE.get(name, '')}: {WHY}", names),)


def sized_helps(func: str, arguments: list[str]) -> tuple[str, ...]:
    """Return the help for a call whose result has a length that depends on values: a constant length must be given.

    `func` and `arguments` are source text.
    """
    option = LENGTHS.get(func.rpartition(".")[2], "size")
    call = f"{func}({', '.join([*arguments, f'{option}=N'])})"
    return (f"say how long the result is: `{call}`, with `N` known while compiling, the same for all lanes",)


def own_arguments(call: ast.Call) -> list[str]:
    """Return the source text of the arguments of a call."""
    return [*map(ast.unparse, call.args), *map(ast.unparse, call.keywords)]


def _has_complex(call: ast.Call, names: Names) -> bool:
    """Whether a complex number, or a name of one, stands in a call."""
    parts = [part.value if isinstance(part, ast.Constant) else held(part, names) for part in ast.walk(call)]  # type: ignore[arg-type]
    return any(jnp.issubdtype(getattr(part, "dtype", type(part)), jnp.complexfloating) for part in parts)


def _by_values(path: str, call: ast.Call, names: Names) -> bool:
    """Whether the length of the result depends on values of a lane: for `repeat` the counts, else any argument."""
    counted = {"repeat": "repeats"}.get(path)
    return any(of_lane(arg, names) for key, arg in _bound(path, call) if counted in (None, key))


def _attribute(module: Any, path: str) -> Any:
    for part in path.split("."):
        module = getattr(module, part, MISSING)
    return module


def _parameters(fn: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(fn).parameters
    except (TypeError, ValueError):
        return {}


def _bound(path: str, call: ast.Call) -> list[tuple[str, ast.expr]]:
    """The arguments by the names of NumPy's parameters; those that have none by their number."""
    parameters = _parameters(_attribute(np, path)).values()
    order = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    named = [(order[k] if k < len(order) else str(k), arg) for k, arg in enumerate(call.args)]
    return [*named, *((keyword.arg or "**", keyword.value) for keyword in call.keywords)]


def _arguments(path: str, name: str, call: ast.Call, names: Names) -> tuple[list[str], list[str]]:
    """The arguments as text for the function `name` of `jnp`, and the names of those that it does not take."""
    if path in OTHERS and name == "asarray" and path not in KINDS and not path.startswith("as"):
        return [*map(ast.unparse, call.args), "float"], []
    if path in KINDS:
        return [*map(ast.unparse, call.args), KINDS[path]], []
    parameters = _parameters(_attribute(jnp, name))
    if not parameters:
        return own_arguments(call), []
    by_position = [p for p in parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters.values())
    texts: list[str] = []
    unknown: list[str] = []
    all_positional = True  # so far; after a keyword no positional argument may follow
    for k, (key, node) in enumerate(_bound(path, call)):
        text = _text(name, key, node, names)
        positional = k < len(call.args)
        other = RENAMED.get((name, key), key)
        # The first two operands may have other names (`x1` and `x`), later ones must be the same parameter.
        same = k < len(by_position) and (k < 2 or by_position[k].name == other)
        if positional and all_positional and (same or variadic):
            texts.append(text)
            continue
        all_positional = all_positional and not positional
        if key == "**":
            texts.append(f"**{text}")
        elif key in WITHOUT and not (_is_not_none(node) and (key == "out" or (key, name) in FIELDS)):
            continue
        elif _accepts_keyword(parameters.get(other)) and not (
            isinstance(_attribute(jnp, name), jnp.ufunc) and key == "where"
        ):
            texts.append(f"{other}={text}")
        else:
            unknown.append(key)
    return texts, unknown


def _accepts_keyword(parameter: inspect.Parameter | None) -> bool:
    return parameter is not None and parameter.kind is not parameter.POSITIONAL_ONLY and parameter.name != "out"


def _is_not_none(node: ast.expr) -> bool:
    return not (isinstance(node, ast.Constant) and node.value is None)


def _text(name: str, key: str, node: ast.expr, names: Names) -> str:
    """The argument `node` for the parameter `key` of a function of `jnp`, an array where NumPy takes a list."""
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
