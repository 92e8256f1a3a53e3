"""Columns: one leaf of all elements of a list of the lane, element by element along the first axis.

Nothing here knows of lists in lists. Indices are in range, or `put` drops what it is to store.
"""

from __future__ import annotations

import operator
import re
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.checks import going_on
from pcbatch.data.origins import KINDS, kind_of
from pcbatch.data.pytree_node import pytree_node
from pcbatch.data.values import Column, Columns, Flag, Index, Value
from pcbatch.diagnostics.lane_words import type_name
from pcbatch.diagnostics.short_repr import Shown
from pcbatch.errors import Refusal

Shape = tuple[int, ...]

iinfo: Any = jnp.iinfo  # knows the small integers as well; untyped in some releases of JAX


@pytree_node()
class Unset:
    """Stands for the element of a list into which nothing has been stored, so that its type is not known."""

    def __repr__(self) -> str:
        return "?"

    def _nought(self, *_: Value) -> int:
        return 0  # no lane gets here

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _nought
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = _nought
    __lt__ = __le__ = __gt__ = __ge__ = _nought


def element_text(columns: Columns, axes: int = 1) -> str:
    """Return the type of the elements of columns in words, which have so many axes in front."""
    text = repr(jax.tree.map(lambda leaf: Shown(_without_axes(leaf, axes)), columns))
    return "texts" if text == "a text of the lane" else text


def _without_axes(leaf: Value, axes: int) -> str:
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", "")
    text = repr(leaf) if shape is None else f"{dtype}[{','.join(map(str, shape))}]"
    return re.sub(rf"\[(\d+,?){{{axes}}}", "[", text)


def room(columns: Columns, axis: int) -> int | None:
    """Return the size of the columns along an axis; None if there are none."""
    leaf = next(iter(jax.tree.leaves(columns)), None)
    return None if leaf is None else int(leaf.shape[axis])


def same_leaves(a: Value, b: Value) -> bool:
    """Return whether two pytrees have one structure, and the same objects as leaves."""
    (leaves, tree), (others, other) = jax.tree.flatten(a), jax.tree.flatten(b)
    return list(map(id, leaves)) == list(map(id, others)) and bool(operator.eq(tree, other))


def leaf_at(leaf: Column, place: tuple[Index, ...]) -> Value:
    """Return the part of a column at some indices, which are clamped; anything where there is no part."""
    if 0 in leaf.shape[: len(place)]:
        return jnp.broadcast_to(zero_of(leaf), leaf.shape[len(place) :])
    if _are_scalars(leaf, place):  # the equations of the general form, traced in a third of the time
        axes, inner = range(len(place)), leaf.shape[len(place) :]
        starts = (*map(_as_index, place), *[np.int32(0)] * len(inner))
        part = jax.lax.dynamic_slice(leaf, starts, (*[1 for _ in axes], *inner), allow_negative_indices=False)
        return jax.lax.squeeze(part, axes)
    return leaf.at[place].get(mode="clip", wrap_negative_indices=False)


def put(leaf: Column, place: tuple[Index, ...], value: Value) -> Value:
    """Return a column with the part at some indices replaced; an index that is out of range drops it."""
    if 0 in leaf.shape[: len(place)]:
        return leaf
    if (here := going_on()) is not True:
        place = (jnp.where(here, place[0], leaf.shape[0]), *place[1:])
    if _are_scalars(leaf, place) and isinstance(value, jax.Array) and value.dtype == leaf.dtype:
        return _scattered(leaf, place, value)
    return leaf.at[place].set(value, mode="drop", wrap_negative_indices=False)


def _are_scalars(leaf: Column, place: tuple[Index, ...]) -> bool:
    """Whether a place in a column is given by numbers, at least one of which is of the lane."""
    of_lane = [one for one in place if isinstance(one, jax.core.Tracer)]
    known = (type(one) is int or isinstance(one, np.int32) for one in place if not isinstance(one, jax.core.Tracer))
    scalars = all(one.shape == () and one.dtype == np.int32 and not one.weak_type for one in of_lane)
    return bool(of_lane) and isinstance(leaf, jax.Array) and scalars and all(known)


def _scattered(leaf: Column, place: tuple[Index, ...], value: Value) -> Value:
    """Return a column with the part at numbers replaced, by the equation that `leaf.at[place].set(value)` makes."""
    parts = [jax.lax.broadcast_in_dim(_as_index(one), (1,), ()) for one in place]
    indices = parts[0] if len(parts) == 1 else jax.lax.concatenate(parts, 0)
    inner, axes = leaf.shape[len(place) :], tuple(range(len(place)))
    if value.shape != inner:
        value = jax.lax.broadcast_in_dim(value, inner, tuple(range(len(inner) - value.ndim, len(inner))))
    window = tuple(range(len(inner)))
    numbers = jax.lax.ScatterDimensionNumbers(window, inserted_window_dims=axes, scatter_dims_to_operand_dims=axes)
    mode = jax.lax.GatherScatterMode.FILL_OR_DROP
    return jax.lax.scatter(leaf, indices, value, numbers, indices_are_sorted=True, unique_indices=True, mode=mode)


def _as_index(index: Index) -> Value:
    return np.int32(index) if isinstance(index, int) else index


def row(columns: Columns, index: Index) -> Value:
    """Return the row of columns at an index that is in range."""
    return jax.tree.map(
        lambda leaf: jax.lax.dynamic_index_in_dim(leaf, index, 0, False, allow_negative_indices=False), columns
    )


def with_row(columns: Columns, index: Index, element: Value) -> Value:
    """Return columns with the row at an index that is in range replaced."""
    return jax.tree.map(
        lambda leaf, new: jax.lax.dynamic_update_index_in_dim(leaf, new, index, 0, allow_negative_indices=False),
        columns,
        element,
    )


def padded(columns: Columns, axis: int, size: int) -> Columns:
    """Return columns with room for at least so many elements along an axis; what is added may be anything."""

    def pad(leaf: Column) -> Value:
        extra = size - leaf.shape[axis]
        if extra <= 0:
            return leaf
        if leaf.shape[axis] == 0:
            return jnp.broadcast_to(zero_of(leaf), (*leaf.shape[:axis], size, *leaf.shape[axis + 1 :]))
        last = jax.lax.slice_in_dim(leaf, leaf.shape[axis] - 1, leaf.shape[axis], axis=axis)
        shape = (*leaf.shape[:axis], extra, *leaf.shape[axis + 1 :])
        return jnp.concatenate([leaf, jnp.broadcast_to(last, shape)], axis=axis)

    return jax.tree.map(pad, columns)


def zero_of(leaf: Column) -> Value:
    """Return a zero with the dtype of a column, which fills places that nothing reads."""
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        raise Refusal("PCB304", "a list of PRNG keys must begin with one key at least")
    return jnp.zeros((), leaf.dtype)


def unify_leaves(a: Value, a_lead: Shape, b: Value, b_lead: Shape) -> tuple[Value, Value]:
    """Return two numbers or arrays, or columns of such, with the dtype that covers both."""
    x, y = as_array(a), as_array(b)
    x_shape, y_shape = x.shape[len(a_lead) :], y.shape[len(b_lead) :]
    if x_shape != y_shape:
        raise Refusal(
            "PCB304",
            f"the elements of a list of the lane must have one shape, not {x_shape} and {y_shape}",
            helps=("make them of the greatest size, with the number of elements in use beside each",),
        )
    x, y = _promoted(x, y), _promoted(y, x)
    for leaf in (a, b):
        _check_fits(leaf, x.dtype)
    return x, y


def _check_fits(leaf: Value, dtype: Any) -> None:
    """Refuse a number of Python that an integer dtype cannot hold."""
    if type(leaf) is int and jnp.issubdtype(dtype, np.integer) and not iinfo(dtype).min <= leaf <= iinfo(dtype).max:
        raise Refusal("PCB312", f"{leaf} does not fit the elements of a list, which are {dtype}")


def as_array(leaf: Value) -> Value:
    """Return a leaf of an element as an array; raises Refusal for what an array cannot hold."""
    if isinstance(leaf, jax.Array):
        return leaf
    if type(leaf) in KINDS or isinstance(leaf, np.ndarray | np.generic | bool | int | float | complex):
        return jnp.asarray(leaf)
    title = f"a list of the lane cannot hold a value of type {type_name(leaf)}"
    raise Refusal("PCB304", title, helps=("keep numbers, arrays, and tuples or lists of them",))


def _promoted(x: Value, y: Value) -> Value:
    """Return `x` with the dtype that both have together."""
    if x.dtype == y.dtype and x.weak_type == y.weak_type:
        return x
    dtype, weak = _promotion(x.dtype, x.weak_type, y.dtype, y.weak_type)
    if x.dtype == dtype and x.weak_type == weak:
        return x
    # `where` is the way to an array of a weak type.
    return jnp.where(False, jnp.zeros((), y.dtype) if not y.weak_type else kind_of(y.dtype)(0), x)  # type: ignore[misc]


@cache
def _promotion(x: Value, x_weak: bool, y: Value, y_weak: bool) -> tuple[Value, bool]:
    struct: Any = jax.ShapeDtypeStruct
    try:
        out: Value = jax.eval_shape(
            lambda a, b: jnp.where(True, a, b), struct((), x, weak_type=x_weak), struct((), y, weak_type=y_weak)
        )
    except ValueError:  # under `jax_numpy_dtype_promotion="strict"`
        title = f"the elements of a list of the lane must have one type, not {x} and {y}"
        raise Refusal("PCB304", title, helps=("convert one of them, or allow JAX to promote types",)) from None
    return out.dtype, out.weak_type


def numbers(items: list[Value]) -> Value:
    """Return the column of numbers of Python, all of one type."""
    if type(items[0]) is int:
        for extreme in (min(items), max(items)):
            jnp.asarray(extreme)  # raises OverflowError for a number that is too large
    if all(item == items[0] for item in items) and items[0] != 0:
        return jnp.full((len(items),), items[0])
    zeros = jnp.full((len(items),), type(items[0])(0))  # of a weak type, which stores keep
    return zeros.at[:].set(jnp.asarray(np.array(items), zeros.dtype))


def taken(columns: Columns, order: Column) -> Columns:
    """Return the rows of columns at some places, which are clamped; anything where there are none."""

    def rows(leaf: Column) -> Value:
        if leaf.shape[0] == 0:
            return jnp.zeros((*order.shape, *leaf.shape[1:]), leaf.dtype)
        return leaf.at[order].get(mode="clip", wrap_negative_indices=False)

    return jax.tree.map(rows, columns)


def chosen(condition: Flag, a: Columns, b: Columns) -> Columns:
    """Return the rows of `a` where a condition holds, the others of `b`; the rows have the same type."""

    def choose(x: Value, y: Value) -> Value:
        return jnp.where(condition.reshape(-1, *(1,) * (x.ndim - 1)), x, y)

    return jax.tree.map(choose, a, b)


def one_level(value: Value) -> tuple[list[Value], Value]:
    """Return the children of a node and its own structure; no structure for a leaf."""
    children, tree = jax.tree.flatten(value, is_leaf=lambda x: x is not value)
    return ([], None) if len(children) == 1 and children[0] is value else (children, tree)
