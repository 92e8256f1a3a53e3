"""The leaves of arguments: which are arrays, which are constants, and which are refused."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from pcbatch.call.plain_values import is_number, of_one
from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.errors import UsageError
from pcbatch.lowering.typing.abstract_values import is_array

TEXTS = "or pass one for each lane: texts by `pcbatch.texts`, bytes and lists of texts by `pcbatch.ragged`"
SAME = " if it is the same for all lanes"
LIKE_ARRAYS = ("__jax_array__", "__array__", "__array_interface__", "__dlpack__")


def is_static(leaf: object) -> bool:
    """Whether a leaf of a shared argument is a constant of the program, such as a function or a string.

    An array of another library is not: its elements would be constants too.
    """
    kind = type(leaf)
    arrays = isinstance(leaf, jax.ShapeDtypeStruct) or any(hasattr(kind, name) for name in LIKE_ARRAYS)
    return not (arrays or is_array(leaf) or is_number(leaf))


def has_hash(value: object) -> bool:
    """Whether a value is hashable; one that is not counts by its identity."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def check_leaf(name: str, leaf: Any, path: Any) -> None:
    """Raise UsageError for a leaf that is no array. `path`: the keys that lead to it in the argument `name`."""
    if isinstance(leaf, np.ma.MaskedArray):
        title, help = f"argument `{name}` is a masked array, which JAX does not have", "pass its data and its mask"
        raise _refused(title, f"{help}, or `{name}.filled(0)`")
    if is_array(leaf) or is_number(leaf):
        return
    help = f"name it in `static_argnames=('{name}',)`{SAME}"
    helps: tuple[str, ...] = ()
    if any(hasattr(type(leaf), method) for method in LIKE_ARRAYS):
        help = "pass an array of JAX or NumPy in its place, for example by `jnp.asarray`"
    elif isinstance(leaf, range):
        help = f"pass an array: `jnp.array({name})`; or {help}"
    elif path:
        help = f"put None in its place in `in_axes` of `{name}`; if lanes share all of it, `in_axes={{'{name}': None}}`"
        helps = (help, TEXTS) if isinstance(leaf, str | bytes) else ()
    elif isinstance(leaf, type):
        help = "write `@pcbatch.batch` above `@classmethod`, not below it"
    else:
        helps = of_one(name, leaf, help)
    raise _refused(f"argument `{name}` holds a {type(leaf).__name__}, which is not an array", *(helps or (help,)))


def _refused(title: str, *helps: str) -> UsageError:
    return UsageError(Diagnostic("PCB405", title, helps=helps))
