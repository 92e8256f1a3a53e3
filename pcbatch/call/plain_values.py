"""Python's own values of all lanes, given where arrays are needed, with the function that makes an argument of them."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import jax
import numpy as np

from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.diagnostics.impure_calls import GENERATORS, key_helps
from pcbatch.errors import UsageError
from pcbatch.lowering.typing.abstract_values import is_array

NUMBERS = "pass numbers, for example the positions of the strings in a table"
TABLES = {dict, set, frozenset}
NOTE = "JAX takes each of them for an argument of its own"


def check_rows(name: str, value: Any, axes: list[int | None]) -> None:
    """Refuse a list with an element for each lane, as `value`, the argument `name`, whose leaves have these axes."""
    if type(value) not in (list, tuple) or not value or None in axes:
        return
    if is_text(value) or all(map(is_object, value)):
        raise _refused("PCB405", name, value)
    leaves = jax.tree.leaves(value)
    numbers = bool(leaves) and all(map(is_number, leaves))
    kinds = set(map(type, value))
    tables = kinds <= TABLES and any(isinstance(leaf, str | set | frozenset) for leaf in leaves)
    if numbers or tables or (kinds <= {list, tuple} and is_text(leaves)):
        raise _refused("PCB406", name, value, (NOTE,))


def of_elements(name: str, array: Any) -> tuple[str, ...]:
    """Return the helps for an array of NumPy that holds texts, lists or objects."""
    rows = array.tolist() if array.ndim == 1 else []
    kinds = set(map(type, rows))
    if rows and (is_text(rows) or all(map(is_object, rows)) or kinds <= {list, tuple} or kinds <= TABLES):
        return (*_helps(f"{name}.tolist()", rows), *((f"or {NUMBERS}",) if is_text(rows) else ()))
    return (NUMBERS,)


def of_one(name: str, value: Any, otherwise: str) -> tuple[str, ...]:
    """Return the helps for one value in place of one for each lane; `otherwise` says how lanes share it."""
    if isinstance(value, GENERATORS):
        return key_helps("")
    if isinstance(value, str):
        return (otherwise, f"or pass a text for each lane: `pcbatch.ragged([{name}, ...])`")
    if is_object(value):
        return (otherwise, f"or pass an object for each lane: `pcbatch.pack([{name}, ...])`")
    return (otherwise,)


def is_number(leaf: object) -> bool:
    """Return whether this is a number of Python."""
    return isinstance(leaf, bool | int | float | complex)


def is_text(values: Sequence[Any]) -> bool:
    """Return whether all of these are texts."""
    return all(isinstance(value, str) for value in values)


def is_object(value: Any) -> bool:
    """Return whether a value is an object of a user's class, which `pcbatch.pack` makes a record of."""
    if isinstance(value, ModuleType) or isinstance(value, GENERATORS) or callable(value) or is_array(value):
        return False
    kind = type(value)
    return kind.__module__ != "builtins" and (hasattr(kind, "__dict__") or isinstance(value, tuple))


def _refused(code: str, name: str, value: Any, notes: tuple[str, ...] = ()) -> UsageError:
    kind, what = type(value).__name__, "texts" if is_text(jax.tree.leaves(value)) else "numbers"
    if type(value[0]) in TABLES or is_object(value[0]):
        what = "objects" if is_object(value[0]) else f"{type(value[0]).__name__}s"
    title = f"argument `{name}` is a {kind} of {what}"
    return UsageError(Diagnostic(code, title, notes=notes, helps=_helps(name, value)))


def _helps(name: str, rows: Sequence[Any]) -> tuple[str, ...]:
    if is_text(rows):
        return (f"pass a text for each lane: `pcbatch.ragged({name})`",)
    if all(map(is_object, rows)):
        return (f"pass an object for each lane: `pcbatch.pack({name})`",)
    if all(type(row) in TABLES for row in rows):
        kind = type(rows[0]).__name__
        arrays = f"pass one dict, with an array for each key: `{{key: jnp.array([row[key] for row in {name}]), ...}}`"
        one = kind == "dict" and all(row.keys() == rows[0].keys() for row in rows)
        numbers = one and all(map(is_number, jax.tree.leaves(list(rows))))
        each = f"{'or ' * numbers}pass a {kind} for each lane: `pcbatch.ragged({name})`"
        return (arrays, each) if numbers else (each,)
    lists = f"pass lists: `pcbatch.ragged({name})`"
    try:
        even = np.array(rows).dtype.kind in "biufc"
    except ValueError:  # rows of several lengths
        even = False
    if not even:
        return (lists,)
    return (f"pass an array: `jnp.array({name})`", *((f"or {lists}",) if np.ndim(rows) > 1 else ()))
