"""The leaves of arguments: arrays with their dtypes and the axis of the lanes, constants, and what is refused."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.call.plain_values import is_number, of_elements, of_one
from pcbatch.call.usage import usage
from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.errors import UsageError
from pcbatch.lowering.typing.abstract_values import is_array
from pcbatch.lowering.typing.jax_types import from_aval
from pcbatch.lowering.typing.pytree import mapped

_NO_DTYPE = (np.object_, np.character, np.datetime64, np.timedelta64, np.void)


def lane_axis_first(param: str, path: Any, leaf: Any, axis: int | None, sizes: dict[str, int], host: bool) -> Any:
    """A leaf with the lanes along its first axis, where it has any. `sizes`: the lanes of each leaf so far."""
    name = param + jax.tree_util.keystr(path)
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return _lane_axis_first_of_shape(name, leaf, axis, sizes)
    check_leaf(param, leaf, path)
    if axis is None:
        return leaf if is_array(leaf) else as_jax_array(name, leaf)
    shape = np.shape(leaf)
    _check_axis(name, shape, axis)
    stays = host and _convertible(leaf)
    array = leaf if stays else as_jax_array(name, leaf)
    if axis not in (0, -len(shape)):
        array = (np if stays else jnp).moveaxis(array, axis, 0)
    _check_size(name, array.shape[0], sizes)
    return array


def _lane_axis_first_of_shape(name: str, leaf: Any, axis: int | None, sizes: dict[str, int]) -> Any:
    """`lane_axis_first` of a `jax.ShapeDtypeStruct`, which is enough for lowering."""
    if axis is None:
        return leaf
    _check_axis(name, leaf.shape, axis)
    _check_size(name, leaf.shape[axis], sizes)
    if axis in (0, -len(leaf.shape)):
        return leaf  # with its sharding
    return jax.eval_shape(lambda x: jnp.moveaxis(x, axis, 0), leaf)


def as_jax_array(name: str, leaf: Any) -> Any:
    """Return a leaf of the argument `name` as an array of JAX; raises UsageError for one that JAX cannot hold."""
    try:
        return jnp.asarray(leaf)
    except OverflowError as error:
        raise usage("PCB405", f"argument `{name}` does not fit JAX's default integer: {error}") from None
    except TypeError:
        raise _no_dtype(name, leaf) from None


def as_jax(tree: Any) -> Any:
    """Replace the arrays of NumPy in a pytree by arrays of JAX, where JAX has their dtype."""
    if not any(map(_convertible, jax.tree.leaves(tree))):
        return tree
    return mapped(lambda leaf: jnp.asarray(leaf) if _convertible(leaf) else leaf, tree)


def _convertible(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray) and not issubclass(leaf.dtype.type, _NO_DTYPE)


def type_of(name: str, leaf: Any, drop: int) -> Any:
    """The type of a leaf less its first `drop` axes."""
    try:
        # An array is not traced for its type: this is done in every call.
        aval: Any = jax.typeof(leaf) if isinstance(leaf, jax.Array) else jax.eval_shape(lambda x: x, leaf)
        return from_aval(aval, drop)
    except jax.errors.InconclusiveDimensionOperation:
        raise _symbolic(name, aval.shape) from None
    except TypeError:
        raise _no_dtype(name, leaf) from None


def _check_axis(name: str, shape: tuple[int, ...], axis: int) -> None:
    if not -len(shape) <= axis < len(shape):
        what = "a scalar" if not shape else f"of shape {shape}"
        raise usage(
            "PCB406", f"argument `{name}` is {what}: it has no axis {axis} to map lanes over", help=_shared_help(name)
        )


def _shared_help(name: str) -> str:
    param = name.partition("[")[0].partition(".")[0]
    if param == name:
        return f"pass one value per lane, or `in_axes={{'{name}': None}}` for a value that all lanes share"
    return f"pass one value per lane, or None in its place in `in_axes` of `{param}` for a value that all lanes share"


def _check_size(name: str, size: int, sizes: dict[str, int]) -> None:
    for other, count in sizes.items():
        if count != size:
            raise usage(
                "PCB407",
                f"arguments have different numbers of lanes: `{other}` has {count}, `{name}` has {size}",
                help="every mapped argument needs the same size along its mapped axis; sizes of 1 are not broadcast",
            )
    sizes[name] = size


def _no_dtype(name: str, leaf: Any) -> UsageError:
    """The error for arrays of strings, dates or objects."""
    title = f"argument `{name}` has dtype {leaf.dtype}, which JAX does not have"
    return UsageError(Diagnostic("PCB405", title, helps=of_elements(name, leaf)))


def _symbolic(name: str, shape: tuple[Any, ...]) -> UsageError:
    title = f"argument `{name}` of shape {shape} has a symbolic size on an axis other than that of the lanes"
    note = "registers and stacks have sizes known while compiling; only the number of lanes may be left open"
    return usage(
        "PCB430", title, note, help="give that axis a number, and leave the axis that lanes are mapped over open"
    )


# The leaves of arguments: which are arrays, which are constants, and which are refused.

TEXTS = "or pass one for each lane: texts, bytes and lists of texts by `pcbatch.ragged`"
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
