"""Some examples of a call, as Python's own values."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from pcbatch.call.arguments import Arguments
from pcbatch.data.host.host_forms import is_concrete
from pcbatch.data.host.ragged import python_values
from pcbatch.data.objects.tables import TABLES
from pcbatch.lowering.typing.abstract_values import Abstract, Known
from pcbatch.lowering.typing.trace import is_key_array

LARGEST = 2**24  # bytes of an array
PLAIN = (int, float, complex, bool, str, bytes, type(None))


def chosen(call: Arguments, most: int) -> list[int]:
    """Return the numbers of some lanes, at most so many: those with the largest numbers or the longest lists in them
    first, then others from the first to the last."""
    if call.lanes <= most:
        return [*range(call.lanes)]
    with_lanes = (zip(call.arrays[name], mapped, strict=True) for name, mapped in call.mapped.items())
    leaves = [leaf for pairs in with_lanes for leaf, has_lanes in pairs if has_lanes and leaf.nbytes <= LARGEST]
    flat = [np.asarray(leaf) for leaf in leaves if leaf.ndim == 1 and leaf.dtype.kind in "iuf"]
    extreme = [int(np.argmax(leaf)) for leaf in flat[: most // 2]]
    return [*dict.fromkeys([*extreme, *np.linspace(0, call.lanes - 1, most).astype(int).tolist()])][:most]


def examples(call: Arguments, lanes: list[int], large: int | None = None) -> list[dict[str, Any]] | None:
    """Return the arguments of lanes by name, a copy for each; None where they are not all known as Python's values.

    Integers that are `large` are taken modulo that: other examples, whose lines take less time.
    """
    if TABLES in call.types or not lanes:
        return None
    columns = {}
    for name, type_ in call.types.items():
        values = _values(type_, call.arrays[name], call.mapped.get(name, ()), lanes)
        if values is None:
            return None
        columns[name] = values
    rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    return [{name: _reduced(value, large) if large else value for name, value in row.items()} for row in rows]


def _reduced(value: Any, large: int) -> Any:
    if type(value) in (list, tuple):
        return type(value)(_reduced(part, large) for part in value)
    return value % large if type(value) is int and abs(value) >= large else value


def _values(type_: Abstract, leaves: tuple[Any, ...], mapped: tuple[bool, ...], lanes: list[int]) -> list[Any] | None:
    if type_.known:
        value = type_.value()
        return [copy.deepcopy(value) for _ in lanes] if _is_plain(value) else None
    if any(isinstance(leaf, Known) for leaf in type_.leaves):
        return None
    rows = []
    for k, leaf in enumerate(leaves):
        has_value = isinstance(leaf, np.ndarray) or is_concrete(leaf)
        if not has_value or is_key_array(leaf) or leaf.nbytes > LARGEST:
            return None
        one = np.asarray(leaf)
        rows.append(one[lanes] if mapped and mapped[k] else np.broadcast_to(one, (len(lanes), *one.shape)).copy())
    return python_values(type_.rebuild(rows), len(lanes), arrays=True)


def _is_plain(value: Any) -> bool:
    if type(value) in (list, tuple, set, frozenset):
        return all(map(_is_plain, value))
    if type(value) is dict:
        return all(map(_is_plain, (*value, *value.values())))
    return isinstance(value, PLAIN)
