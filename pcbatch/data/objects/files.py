"""Packed objects in files: arrays in NumPy's format `.npz`, and the schema as JSON. Nothing is pickled."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import jax.numpy as jnp
import numpy as np

from pcbatch.data.objects import schema
from pcbatch.data.objects.schema import Fixed, Kind, Maybe, Member, Nothing, Number, Pointer, Record, Schema
from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.errors import UsageError

if TYPE_CHECKING:
    from pcbatch.data.objects.packed import Packed

VERSION = 1
PYTHON = {"bool": bool, "int": int, "float": float, "complex": complex}


def save(packed: Packed, path: str | PathLike[str]) -> None:
    """Write packed objects to a file."""
    arrays = {f"column{k}": _as_bytes(np.asarray(column)) for k, column in enumerate(packed.columns)}
    text = json.dumps({"version": VERSION, "schema": _schema_to_json(packed)})
    with open(path, "wb") as file:
        np.savez(file, schema=np.frombuffer(text.encode(), np.uint8), ids=np.asarray(packed.ids), **arrays)


def read(path: str | PathLike[str], classes: Sequence[type]) -> tuple[Any, tuple[Any, ...], Schema, Pointer]:
    """Return the numbers of the roots, the columns, the schema, and what the roots lead to, from a file."""
    known = {_name(cls): cls for cls in classes}
    try:
        with np.load(path, allow_pickle=False) as file:
            written = json.loads(bytes(file["schema"]).decode())
            if written["version"] != VERSION:
                raise _refused(path, f"it is of version {written['version']}", "write it anew, by `packed.save`")
            schema_ = _schema_from_json(written["schema"], known, path)
            roots = _from_json(written["schema"]["roots"], known, path)
            assert isinstance(roots, Pointer)
            dtypes = [_dtype(kind) for record in schema_.classes for _, kind in record.fields]
            columns = [
                _from_bytes(file[f"column{k}"], dtype) for k, dtype in enumerate(d for part in dtypes for d in part)
            ]
            return jnp.asarray(file["ids"]), tuple(map(jnp.asarray, columns)), schema_, roots
    except (OSError, ValueError, KeyError, TypeError, BadZipFile) as error:
        if isinstance(error, UsageError):
            raise
        raise _refused(path, _cause(error), "read a file that `packed.save` has written") from None


def _cause(error: Exception) -> str:
    """The cause of an error as text, which no release of NumPy changes."""
    return "there is no such file" if isinstance(error, FileNotFoundError) else "it holds no packed objects"


def _as_bytes(array: Any) -> Any:
    """An array of a dtype that NumPy itself has: those of other packages are written as bits."""
    return array if array.dtype.kind in "biufc" else array.view(f"u{array.dtype.itemsize}")


def _from_bytes(array: Any, dtype: str) -> Any:
    wanted = jnp.dtype(dtype)
    return array if array.dtype == wanted or wanted.kind in "biufc" else array.view(wanted)


def _dtype(kind: Kind) -> list[str]:
    match kind:
        case Number(dtype=dtype):
            return [dtype]
        case schema.Sequence(element=element):
            return ["int32", "int32", *_dtype(element)]
        case Maybe(element=element):
            return ["bool", *_dtype(element)]
        case Fixed(items=items):
            return [dtype for item in items for dtype in _dtype(item)]
        case Nothing():
            return []
        case _:
            return ["int32"]


def _name(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _schema_to_json(packed: Packed) -> Any:
    return {
        "roots": _to_json(packed.roots),
        "classes": [
            {"name": _name(r.cls), "rows": r.rows, "fields": [[name, _to_json(kind)] for name, kind in r.fields]}
            for r in packed.schema.classes
        ],
    }


def _to_json(kind: Kind) -> Any:
    match kind:
        case Nothing():
            return ["nothing"]
        case Number(dtype=dtype, shape=shape, python=python):
            return ["number", dtype, list(shape), None if python is None else python.__name__]
        case Member(enum=enum):
            return ["member", _name(enum), [member.name for member in enum]]
        case Maybe(element=element):
            return ["maybe", _to_json(element)]
        case Pointer(classes=classes, optional=optional):
            return ["pointer", list(classes), optional]
        case Fixed(items=items):
            return ["fixed", [_to_json(item) for item in items]]
        case schema.Sequence(element=element, room=room, type=type_, optional=optional):
            return ["sequence", _to_json(element), room, type_.__name__, optional]


def _schema_from_json(value: Any, known: dict[str, type], path: Any) -> Schema:
    records = []
    for written in value["classes"]:
        fields = tuple((name, _from_json(kind, known, path)) for name, kind in written["fields"])
        records.append(Record(_find(written["name"], known, path), fields, written["rows"]))
    return Schema(tuple(records))


def _from_json(value: Any, known: dict[str, type], path: Any) -> Kind:
    match value:
        case ["nothing"]:
            return Nothing()
        case ["number", dtype, shape, python]:
            return Number(dtype, tuple(shape), None if python is None else PYTHON[python])
        case ["member", name, members]:
            enum = _find(name, known, path)
            if [member.name for member in enum] != members:  # type: ignore[attr-defined]
                raise _refused(path, f"`{name}` has other members now", "pack the objects again")
            return Member(enum)
        case ["maybe", element]:
            inner = _from_json(element, known, path)
            assert isinstance(inner, Number | Member)
            return Maybe(inner)
        case ["pointer", classes, optional]:
            return Pointer(tuple(classes), optional)
        case ["fixed", items]:
            return Fixed(tuple(_from_json(item, known, path) for item in items))
        case ["sequence", element, room, type_, optional]:
            return schema.Sequence(_from_json(element, known, path), room, list if type_ == "list" else tuple, optional)
    raise ValueError(f"unknown kind {value}")


def _find(name: str, known: dict[str, type], path: Any) -> type:
    if name in known:
        return known[name]
    module, _, qualified = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in qualified.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, type):
        raise _refused(path, f"its class `{name}` is not found", "give it to `Packed.load(path, TheClass)`")
    return found


def _refused(path: Any, cause: str, help: str) -> UsageError:
    return UsageError(Diagnostic("PCB451", f"the file {path} cannot be read: {cause}", helps=(help,)))
