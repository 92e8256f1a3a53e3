"""`in_axes` and `out_axes`: the axis of the lanes in each leaf of an argument or a result."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.call.usage import usage
from pcbatch.diagnostics.short_repr import clipped, short
from pcbatch.errors import UsageError
from pcbatch.lowering.typing.abstract_values import Abstract, array_type
from pcbatch.lowering.typing.jax_types import array_struct
from pcbatch.lowering.typing.trace import is_key_array
from pcbatch.options import Options
from pcbatch.runtime.vm.status import Status

Axis = int | None


def checked(
    name: str, out_axes: Any, result: Abstract, same: Sequence[bool], containers: Sequence[bool]
) -> tuple[Axis, ...]:
    """Check `out_axes`, and give every leaf its axis.

    Args:
        name: of the function, for messages.
        out_axes: an axis, None, or a pytree prefix of the result with such leaves.
        result: the type of the result for one lane.
        same: for each leaf, whether it is equal for all lanes by construction.
        containers: for each leaf, whether it is a part of a list, dict or set.

    Returns:
        The axis of each leaf; None for a leaf that comes without lanes.

    Raises:
        UsageError: no such axis, another structure, or None for a leaf that lanes may differ in.
    """
    axes = _broadcast(name, out_axes, result)
    _check_containers(name, axes, containers)
    value = jax.tree.unflatten(result.tree, [0] * len(result.leaves))
    paths = ["result" + jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(value)]
    for axis, leaf, uniform, path in zip(axes, result.leaves, same, paths, strict=True):
        if axis is None:
            if not uniform:
                raise _differs(name, path)
            continue
        rank = len(array_type(leaf).shape) + 1
        if not is_axis(axis):
            help = "write the number of the axis where lanes are to lie, or None for what is the same for all of them"
            raise usage("PCB431", f"out_axes of {name} must be integers or None, not {short(axis)}", help=help)
        if not -rank <= axis < rank:
            title = f"out_axes of {name} puts the lanes on axis {axis} of `{path}`, which has {rank} in all"
            raise usage("PCB431", title, help=f"choose an axis from {-rank} to {rank - 1}")
    return axes


def _check_containers(name: str, axes: Sequence[Axis], containers: Sequence[bool]) -> None:
    """Raise UsageError unless lists have the lanes along their first axis; `containers`: which leaves are theirs."""
    wrong = next((axis for axis, inside in zip(axes, containers, strict=True) if inside and axis != 0), 0)
    if wrong != 0:
        title = f"out_axes of {name} is {wrong} for a list, dict or set, of which each lane has its own"
        raise usage("PCB431", title, help="leave it 0 there: lanes come first in `values` and `lengths`")


def _broadcast(name: str, out_axes: Any, result: Abstract) -> tuple[Axis, ...]:
    """One axis for each leaf, from a prefix of the structure."""
    value = jax.tree.unflatten(result.tree, [0] * len(result.leaves))
    try:
        return tuple(broadcast_axes(out_axes, value))
    except ValueError as error:
        title, help = f"out_axes of {name} does not fit its result", "give one axis for all of it, or a prefix of it"
        raise usage("PCB431", title, clipped(str(error).splitlines()[0], 500), help=help) from None


def _differs(name: str, path: str) -> UsageError:
    title = f"out_axes of {name} is None for `{path}`, which may differ between lanes"
    notes = (
        "None is for what is computed of nothing but constants and arguments that all lanes share, outside of `if`s "
        "and loops that differ between lanes, and of no call of a batched function",
    )
    help = "leave it out, or give an axis, `out_axes=0`, and take the value of one lane"
    return usage("PCB432", title, *notes, help=help)


def aval_with_lanes(aval: Any, axis: Axis) -> Any:
    """Move the lanes from the first axis of a type to another one; None: leave them out."""
    lanes, *shape = aval.shape
    if axis is not None:
        shape.insert(axis % len(aval.shape), lanes)
    return array_struct(tuple(shape), aval.dtype, weak_type=aval.weak_type)


def move_lane_axis(value: Any, axis: Axis, status: Any) -> Any:
    """Move the lanes of a value, [lanes, ...], to another axis; None: take the first lane that has not failed."""
    if axis == 0:
        return value
    host = isinstance(value, np.ndarray)
    if axis is not None:
        return np.moveaxis(value, 0, axis) if host else jnp.moveaxis(value, 0, axis)
    if not value.shape[0]:
        return _zeros_of_one_lane(value)
    return value[(np if host else jnp).argmax(status == int(Status.OK))]


def _zeros_of_one_lane(value: Any) -> Any:
    """Zeros for a result of no lanes, without the axis of the lanes."""
    if is_key_array(value):
        words = jax.random.key_data(value)
        return jax.random.wrap_key_data(jnp.zeros(words.shape[1:], words.dtype), impl=jax.random.key_impl(value))
    return (np if isinstance(value, np.ndarray) else jnp).zeros(value.shape[1:], value.dtype)


STAR = inspect.Parameter.VAR_POSITIONAL


def axes_by_name(fn: Any, options: Options, bound: inspect.BoundArguments, positional: int) -> dict[str, Any]:
    """The axes of each argument, a prefix of its structure. `positional`: the number of arguments without a name."""
    axes, names = options.in_axes, list(bound.arguments)
    if axes is None or is_axis(axes):
        return dict.fromkeys(names, axes)
    if isinstance(axes, Mapping):
        unknown = [name for name in axes if name not in names]
        if unknown:
            title = f"in_axes names `{unknown[0]}`, which is not a parameter of {fn.__name__}"
            raise usage("PCB404", title, help=f"the parameters are {', '.join(names)}")
        return {name: axes.get(name, 0) for name in names}
    kinds = [parameter.kind for parameter in bound.signature.parameters.values()]
    star = kinds.index(STAR) if STAR in kinds else None
    # Entries from `*args` on are a tuple, as these arguments are one parameter.
    if star is not None and isinstance(axes, tuple | list) and len(axes) > star:
        axes, positional = (*axes[:star], tuple(axes[star:])), min(positional, star + 1)
    if not isinstance(axes, tuple | list):
        help = "give one entry per parameter, in order, or a dict by name"
        raise usage("PCB404", f"in_axes must be an int, None, a tuple or a dict, not {short(axes)}", help=help)
    if not positional <= len(axes) <= len(names):
        raise usage(
            "PCB404",
            f"in_axes has {len(axes)} entries, but {fn.__name__} is called with {positional} positional arguments",
            help="give one entry per parameter, in order, or a dict by name",
        )
    return {**dict.fromkeys(names, 0), **dict(zip(names, axes, strict=False))}


def is_axis(axis: object) -> bool:
    """Whether this is the number of an axis; True is none, though Python counts it as 1."""
    return isinstance(axis, int) and not isinstance(axis, bool)


def broadcast_axes(axes: Any, value: Any) -> list[Any]:
    """One axis for each leaf of a value. `axes`: a pytree prefix of it; ValueError if it is none."""
    axes_tree = jax.tree.broadcast(axes, value, is_leaf=lambda x: x is None)
    # None in the value is no leaf, but there is an axis for it.
    all_axes = jax.tree.leaves(axes_tree, is_leaf=lambda x: x is None)
    all_leaves = jax.tree.leaves(value, is_leaf=lambda x: x is None)
    return [axis for axis, leaf in zip(all_axes, all_leaves, strict=True) if leaf is not None]


def leaf_axes(name: str, axes: Any, value: Any) -> list[int | None]:
    """The axis of each leaf of an argument; None for a leaf that all lanes share."""
    try:
        axes_of_leaves = broadcast_axes(axes, value)
    except ValueError as error:
        title, help = f"in_axes of `{name}` does not fit its structure", "give one axis for all its leaves, or a prefix"
        raise usage("PCB404", title, clipped(str(error).splitlines()[0], 500), help=f"{help} of it") from None
    for axis in axes_of_leaves:
        if axis is not None and not is_axis(axis):
            help = "write the number of the axis that lanes lie along, or None for a value that all lanes share"
            raise usage("PCB404", f"in_axes of `{name}` must be integers or None, not {short(axis)}", help=help)
    return axes_of_leaves
