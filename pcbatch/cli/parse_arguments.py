"""The arguments of the command line: a target `FILE.py:FUNC`, types such as `x=f32[3]`, and annotations.

Everything wrong here is bad usage (`BadUsage`, exit status 2). Nothing here imports the user's file or JAX.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping
from types import FunctionType
from typing import Any, TypeAlias

from pcbatch.ir.types import ArrayType, parse_type

# The type of one argument of one example: an array type, or tuples of them.
ArgType: TypeAlias = "ArrayType | tuple[ArgType, ...]"

_BRACKETS = {"(": 1, "[": 1, "<": 1, ")": -1, "]": -1, ">": -1}


class BadUsage(Exception):
    """The command was called wrongly; the text says how to call it."""


def split_target(target: str) -> tuple[str, str | None]:
    """Split `FILE.py:FUNC` or `FILE.py:Class.method` at the last colon, if a name follows: Windows paths have one."""
    if os.path.exists(target):
        return target, None
    path, colon, name = target.rpartition(":")
    dotted = all(part.isidentifier() for part in name.split("."))
    return (path, name) if colon and path and dotted else (target, None)


def parse_arg(spec: str) -> tuple[str, ArgType]:
    """Read `x=f32[3]` or `pair=(f32[],i32[3])`."""
    name, equals, text = spec.partition("=")
    name = name.strip()
    if not equals or not name.isidentifier():
        raise BadUsage(f"malformed --arg {spec!r}: write NAME=TYPE, for example --arg n=i32[]")
    try:
        return name, parse_arg_type(text)
    except ValueError as error:
        raise BadUsage(f"malformed --arg {spec!r}: {error}") from None


def parse_args(specs: Iterable[str]) -> dict[str, ArgType]:
    """Read all `--arg` options; a name must not come twice."""
    types: dict[str, ArgType] = {}
    for spec in specs:
        name, type_ = parse_arg(spec)
        if name in types:
            raise BadUsage(f"--arg {name}=... is given twice")
        types[name] = type_
    return types


def parse_arg_type(text: str) -> ArgType:
    """Read an array type, or a tuple of types in parentheses; raises ValueError."""
    text = text.strip()
    if not text.startswith("("):
        type_ = parse_type(text)
        if type_ is None:
            raise ValueError("the type must be known here (write i32[], f32[3,4], bool[])")
        return type_
    if not text.endswith(")"):
        raise ValueError(f"no closing parenthesis in {text!r}")
    parts = _split_commas(text[1:-1])
    if parts and not parts[-1].strip():
        parts.pop()
    return tuple(parse_arg_type(part) for part in parts)


def is_wide(type_: ArgType) -> bool:
    """Whether a type has a part that JAX only has in its 64-bit mode."""
    if isinstance(type_, tuple):
        return any(map(is_wide, type_))
    return type_.dtype in ("int64", "uint64", "float64", "complex128")


def _split_commas(text: str) -> list[str]:
    """Split at the commas that stand outside of all brackets."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        depth += _BRACKETS.get(char, 0)
        if depth < 0:
            raise ValueError(f"unbalanced brackets in ({text})")
        if char == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return parts


def annotated_types(fn: FunctionType, wide: bool = False) -> dict[str, ArgType]:
    """The types that annotations of the parameters spell, of one example.

    Numbers of Python (`int`, `float`, `bool`, `complex`) count, of 64 bits if `wide`; texts of types, `n: "i32[]"`,
    also in an `Annotated`; and arrays with sizes by jaxtyping, `Float[Array, "3 4"]`. Others are skipped.
    """
    try:
        annotations = inspect.get_annotations(fn)
    except Exception:  # They are evaluated late on new Pythons, and may use names that exist for type checkers only.
        return {}
    known = {name: _annotated(value, fn.__globals__, wide) for name, value in annotations.items() if name != "return"}
    return {name: type_ for name, type_ in known.items() if type_ is not None}


NUMBERS = {bool: "bool", int: "i32", float: "f32", complex: "c64"}
WIDE = {"i32": "i64", "f32": "f64", "c64": "c128", "u32": "u64"}
GENERIC = {"bool": "bool", "int": "i32", "uint": "u32", "float": "f32", "complex": "c64"}
"""Kinds of dtypes, as names in jaxtyping begin, with the dtype that JAX gives them."""


def _annotated(value: object, namespace: dict[str, object], wide: bool) -> ArgType | None:
    """The type that an annotation spells, in a text or by itself."""
    if isinstance(value, str) and _parsed(value) is None:
        try:  # under `from __future__ import annotations` it is source, of a string or of an `Annotated`
            value = eval(value, dict(namespace))
        except Exception:  # an annotation for type checkers only
            return None
    if isinstance(value, type) and value in NUMBERS:
        name = NUMBERS[value]
        return _parsed(f"{WIDE.get(name, name) if wide else name}[]")
    if isinstance(getattr(value, "dim_str", None), str):
        return _of_jaxtyping(value, wide)
    types = (_parsed(note) for note in (value, *getattr(value, "__metadata__", ())) if isinstance(note, str))
    return next((type_ for type_ in types if type_ is not None), None)


def _of_jaxtyping(value: Any, wide: bool) -> ArgType | None:
    """The type of an annotation such as `Float32[Array, "3"]`, if all its sizes are numbers."""
    dtypes, sizes = getattr(value, "dtypes", ()), value.dim_str.split()
    if not isinstance(dtypes, list | tuple) or not dtypes or not all(size.isdecimal() for size in sizes):
        return None
    name = str(dtypes[0])
    if len(dtypes) > 1:
        kinds = {kind for kind in GENERIC for dtype in dtypes if str(dtype).startswith(kind)}
        name = GENERIC[kinds.pop()] if len(kinds) == 1 else ""
        name = WIDE.get(name, name) if wide else name
    return _parsed(f"{name}[{','.join(sizes)}]")


def _parsed(text: str) -> ArgType | None:
    try:
        return parse_arg_type(text)
    except ValueError:
        return None


def types_of(
    fn: FunctionType, given: Mapping[str, ArgType], static: tuple[str, ...], needed: bool, wide: bool = False
) -> dict[str, ArgType] | None:
    """The types of the parameters of `fn`, or None when they are not known (which is fine unless `needed`).

    Types on the command line win over annotations. Naming some parameters and not the others is an error.
    """
    parameters = inspect.signature(fn, follow_wrapped=False).parameters
    for name in given:
        if name in parameters and name in static:
            raise BadUsage(f"--arg {name}=...: {name!r} is in static_argnames of {fn.__name__}, it has no array type")
    known = {n: t for n, t in {**annotated_types(fn, wide), **given}.items() if n in parameters and n not in static}
    missing = [n for n, p in parameters.items() if n not in known and p.default is inspect.Parameter.empty]
    if not missing:
        return known
    owner = object_of_method(fn)
    if owner in missing and not needed and owner not in given:
        return None
    if needed or any(name in parameters for name in given):
        raise BadUsage(_missing_text(fn.__name__, missing, static, needed))
    return None


def object_of_method(fn: FunctionType) -> str | None:
    """The first parameter of a function in a class, if it has the name that such a parameter has by custom."""
    code = fn.__code__
    first = code.co_varnames[0] if code.co_argcount else None
    return first if first in ("self", "cls") and "." in fn.__qualname__ else None


def _missing_text(function: str, missing: list[str], static: tuple[str, ...], needed: bool) -> str:
    if owner := next((name for name in missing if name in ("self", "cls")), None):
        return (
            f"{function} is a method, and its {owner!r} cannot be given on the command line; "
            "call .lower(...).as_text(stage) from Python"
        )
    if fixed := [name for name in missing if name in static]:
        return (
            f"{function} cannot be compiled from the command line: its static argument {fixed[0]!r} has no default; "
            "call .lower(...).as_text(stage) from Python"
        )
    names = ", ".join(missing)
    hint = " ".join(f"--arg {name}=i32[]" for name in missing)
    why = "this stage needs the type of every argument" if needed else "give the types of all arguments or of none"
    return f"{why}: {function} lacks {names} (for example {hint}, or an annotation)"
