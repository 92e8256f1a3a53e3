"""Values of one type made values of a wider one, while a primitive is traced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.data.checks import collecting
from pcbatch.data.columns import Unset
from pcbatch.data.container import lane_value
from pcbatch.data.elements import prepare
from pcbatch.data.mappings.entries import Entries
from pcbatch.data.mappings.ordered_keys import keeping_order
from pcbatch.data.mappings.stored_table import StoredTable, covered
from pcbatch.data.members import MemberValue, of_member
from pcbatch.data.objects.reference import Ref
from pcbatch.data.objects.schema import NONE
from pcbatch.data.optional import Optional
from pcbatch.data.origins import Origin, note, noting
from pcbatch.data.rows import Rows
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.sequences.lane_tuple import LaneTuple
from pcbatch.data.stored import UnlikeError
from pcbatch.data.texts.text_parts import TextParts
from pcbatch.errors import Refusal
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.abstract_values import Abstract, JoinError, Leaf, array_type, is_array, with_origins
from pcbatch.lowering.typing.jax_types import from_aval, from_storage, storage_type, to_aval
from pcbatch.lowering.typing.pytree import children_of, flatten


def convert(value: Any, want: Abstract) -> Any:
    """Return a value as one of a wider type, while a primitive is traced.

    Args:
        value: an object whose type `join` has widened to `want`.
        want: the type, of which known leaves are those of the value.
    """
    restructured = _restructured(value, objects_of(want))
    leaves, _ = flatten(restructured)
    fitted = [
        _fitted(leaf, type_) if isinstance(type_, ArrayType) else leaf
        for leaf, type_ in zip(leaves, want.leaves, strict=True)
    ]
    return jax.tree.unflatten(want.tree, fitted)


def _restructured(value: Any, want: Any) -> Any:
    if isinstance(value, Unset) and not isinstance(want, Unset):
        return _zeros(want)  # an element of a list in which nothing was stored: no lane gets here
    match value, want:
        case _, Optional():
            if value is None:
                return Optional(_zeros(want.value), jnp.asarray(False))
            if isinstance(value, Optional):
                return Optional(_restructured(value.value, want.value), value.present)
            return Optional(_restructured(value, want.value), jnp.asarray(True))
        case _, Entries():
            return _entries(value, want)
        case None, Ref():
            return Ref(jnp.int32(NONE), want.pcbatch_type)
        case Ref(), Ref():
            return Ref(value.pcbatch_id, want.pcbatch_type)
        case list(), Rows() if isinstance(want.columns, StoredTable) and any(type(one) is dict for one in value):
            return _restructured(prepare(list(map(lane_value, value))), want)
        case list() | str() | bytes(), Rows():
            return _restructured(prepare(value), want)
        case tuple(), LaneTuple():
            return _restructured(LaneTuple.from_list(list(value)), want)
        case TextParts(), TextParts():
            return value
        case Rows(), Rows():
            return _columns(value, want)
        case _, Rows() if is_array(value):
            return _columns(LaneList.from_array(value), want)
        case Enum(), MemberValue():
            return of_member(value, True)
        case _, Cell():
            return value
    children, tree = children_of(value)
    wanted, _ = children_of(want)
    return jax.tree.unflatten(tree, [_restructured(a, b) for a, b in zip(children, wanted, strict=True)])


def _columns(columns: Any, want: Any) -> Any:
    """Columns of one list with the structure of another's; what nothing was stored in is zero."""
    nothing = isinstance(columns, Unset) or (type(columns) is tuple and not columns and isinstance(want, LaneTuple))
    if nothing and not isinstance(want, Unset):
        return _zeros(want)
    if isinstance(want, Ref):
        ids = jnp.full(want.pcbatch_id.array.shape, NONE, jnp.int32) if columns is None else columns.pcbatch_id
        return Ref(ids, want.pcbatch_type)
    if isinstance(want, Optional) and not isinstance(columns, Optional):
        rows = want.present.array.shape
        if columns is None:
            return Optional(_zeros(want.value), jnp.zeros(rows, bool))
        return Optional(_columns(columns, want.value), jnp.ones(rows, bool))
    if isinstance(columns, Entries):
        return _entries(columns, want)
    if type(columns) is tuple and isinstance(want, LaneTuple):
        lead = jax.tree.leaves(columns)[0].shape[: len(want.state.array.shape)]
        columns = want.beside(columns, lead)
    if isinstance(columns, Rows):
        columns = columns.straight()
        inner = _columns(columns.columns, want.columns)
        return type(columns).tree_unflatten(want.origins, (inner, columns.state))
    if isinstance(want, Cell):
        return columns
    children, tree = children_of(columns)
    wanted, _ = children_of(want)
    return jax.tree.unflatten(tree, [_columns(a, b) for a, b in zip(children, wanted, strict=True)])


def _entries(value: Any, want: Any) -> StoredTable:
    zeros = _zeros(want)
    return covered(value, zeros).with_keys_of(zeros)


def _zeros(want: Any) -> Any:
    return keeping_order(lambda cell: zeros(cell.array) if isinstance(cell.leaf, ArrayType) else cell.leaf.value, want)


def zeros(type_: ArrayType) -> Any:
    """Return an array of zeros of a type, or of keys made of zeros."""
    stored = storage_type(type_)
    return from_storage(jnp.zeros(stored.shape, stored.dtype), type_)


def _fitted(leaf: Any, type_: ArrayType) -> Any:
    """An array with the dtype of a type, padded by zeros to its shape."""
    array = jnp.asarray(leaf)
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        return array
    array = array.astype(type_.dtype)
    if array.shape == type_.shape:
        return array
    assert array.ndim == len(type_.shape), (array.shape, type_)
    return jnp.pad(array, [(0, want - have) for have, want in zip(array.shape, type_.shape, strict=True)])


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """One leaf of a type that is put together as an object."""

    leaf: Leaf
    origin: Origin

    @property
    def array(self) -> ArrayType:
        """The array type of the leaf."""
        return array_type(self.leaf)


def objects_of(value: Abstract) -> Any:
    """Return a type put together as an object whose leaves are cells."""
    cells = [Cell(leaf, value.origin(k)) for k, leaf in enumerate(value.leaves)]
    return jax.tree.unflatten(value.tree, cells)


def of_objects(value: Any) -> Abstract:
    """Return the type of an object whose leaves are cells: the inverse of `objects_of`."""
    cells, tree = flatten(value)
    return with_origins(tree, tuple(cell.leaf for cell in cells), [cell.origin for cell in cells])


def made_of(fn: Callable[..., Any], *values: Any) -> Any:
    """The type of what a function makes of objects whose leaves are cells."""
    flat = [flatten(value) for value in values]
    trees: list[Any] = []

    def run(*leaves: list[Any]) -> Any:
        with noting(), collecting():
            made = fn(*(_put_together(tree, cells, part) for (cells, tree), part in zip(flat, leaves, strict=True)))
        outs, tree = flatten(made)
        trees.append(tree)
        return outs

    try:
        avals: Any = jax.eval_shape(run, *([_aval(cell) for cell in cells] for cells, _ in flat))
    except UnlikeError:
        raise JoinError("they hold values of different types", "structure") from None
    except (Refusal, TypeError) as cause:
        raise JoinError(str(cause), "structure") from None
    return jax.tree.unflatten(trees[-1], [Cell(from_aval(aval), Origin.ARRAY) for aval in avals])


def _aval(cell: Cell) -> Any:
    return to_aval(cell.leaf) if isinstance(cell.leaf, ArrayType) else None


def _put_together(tree: Any, cells: list[Cell], leaves: list[Any]) -> Any:
    """The object whose leaves are tracers with the origins of cells, or known values."""
    values = [
        note(leaf, cell.origin) if isinstance(cell.leaf, ArrayType) else cell.leaf.value
        for cell, leaf in zip(cells, leaves, strict=True)
    ]
    return jax.tree.unflatten(tree, values)
