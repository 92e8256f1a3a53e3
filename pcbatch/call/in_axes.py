"""`in_axes`: the axis of the lanes in each leaf of the arguments."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import jax

from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.diagnostics.short_repr import clipped, short
from pcbatch.errors import UsageError
from pcbatch.options import Options

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
            raise _refused(title, help=f"the parameters are {', '.join(names)}")
        return {name: axes.get(name, 0) for name in names}
    kinds = [parameter.kind for parameter in bound.signature.parameters.values()]
    star = kinds.index(STAR) if STAR in kinds else None
    # Entries from `*args` on are a tuple, as these arguments are one parameter.
    if star is not None and isinstance(axes, tuple | list) and len(axes) > star:
        axes, positional = (*axes[:star], tuple(axes[star:])), min(positional, star + 1)
    if not isinstance(axes, tuple | list):
        help = "give one entry per parameter, in order, or a dict by name"
        raise _refused(f"in_axes must be an int, None, a tuple or a dict, not {short(axes)}", help=help)
    if not positional <= len(axes) <= len(names):
        raise _refused(
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
        raise _refused(title, clipped(str(error).splitlines()[0], 500), help=f"{help} of it") from None
    for axis in axes_of_leaves:
        if axis is not None and not is_axis(axis):
            help = "write the number of the axis that lanes lie along, or None for a value that all lanes share"
            raise _refused(f"in_axes of `{name}` must be integers or None, not {short(axis)}", help=help)
    return axes_of_leaves


def _refused(title: str, *notes: str, help: str) -> UsageError:
    return UsageError(Diagnostic("PCB404", title, notes=notes, helps=(help,)))
