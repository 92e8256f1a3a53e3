"""The arguments of a call as leaves per lane: binding, axes, sizes, and the errors that users meet there."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass, replace
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.call.in_axes import axes_by_name, leaf_axes
from pcbatch.call.list_arguments import as_annotated
from pcbatch.call.static_leaves import check_leaf, has_hash, is_number, is_static
from pcbatch.containers.ragged import Ragged
from pcbatch.containers.ragged_forms import as_containers, ragged_in
from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.diagnostics.short_repr import Short, clipped, short
from pcbatch.errors import UsageError
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.abstract_values import Abstract, Known, Leaf, is_array, known, with_origins
from pcbatch.lowering.typing.jax_types import from_aval
from pcbatch.lowering.typing.pytree import flatten
from pcbatch.options import Options
from pcbatch.origins import Origin
from pcbatch.records.arguments import with_references
from pcbatch.records.made_results import as_argument
from pcbatch.records.tables import TABLES, Table


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one call, checked and flattened. An array leaf is [lanes, ...], or unbatched if it is shared."""

    types: Mapping[str, Abstract]  # parameter -> type for one lane
    shared: frozenset[str]  # parameters whose leaves are all unbatched
    arrays: Mapping[str, tuple[Any, ...]]  # parameter -> array leaves
    mapped: Mapping[str, tuple[bool, ...]]  # parameter -> which of its array leaves have lanes
    lanes: int
    objects: tuple[int, ...] = ()  # the identities of static leaves that have no hash

    @property
    def tables(self) -> list[Any]:
        """The tables of packed objects among the arguments."""
        if TABLES not in self.types:
            return []
        tables: list[Any] = jax.tree.unflatten(self.types[TABLES].tree, self.arrays[TABLES])
        return tables

    @property
    def key(self) -> tuple[Any, ...]:
        """The signature of the call, for a cache of programs.

        An object without a hash counts by its identity; the types hold it, so that no later object can have that.
        """
        return (tuple(self.types.items()), self.shared, self.objects)


def usage(code: str, title: str, *notes: str, help: str = "") -> UsageError:
    """Make an error about how the API was used."""
    return UsageError(Diagnostic(code, title, notes=notes, helps=(help,) if help else ()))


def signature(fn: Any) -> inspect.Signature:
    """The parameters of the function itself, whatever `functools.wraps` or `__signature__` claim."""
    parts = (fn.__code__, fn.__defaults__, fn.__kwdefaults__)  # reloading tools change these in old functions
    cached = _signatures.get(fn)
    if cached is not None and all(a is b for a, b in zip(cached[0], parts, strict=True)):
        return cached[1]
    bare = FunctionType(fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    bare.__kwdefaults__ = fn.__kwdefaults__
    own = inspect.signature(bare)
    _signatures[fn] = parts, own
    return own


# Every call needs a signature: the parts of a function that it depends on, and the signature.
_signatures: WeakKeyDictionary[Any, tuple[tuple[Any, ...], inspect.Signature]] = WeakKeyDictionary()


def bind(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> inspect.BoundArguments:
    """Match arguments to parameters, without defaults."""
    parameters = signature(fn)
    try:
        return parameters.bind(*args, **kwargs)
    except TypeError as error:
        help = "pass each parameter once; only those with a default may be left out"
        raise usage(
            "PCB402", f"{fn.__name__}(): {error}", f"the signature is {fn.__name__}{_in_short(parameters)}", help=help
        ) from None


def _in_short(full: inspect.Signature) -> inspect.Signature:
    """A signature whose defaults are shown in short."""
    parameters = full.parameters.values()
    return full.replace(
        parameters=[p if p.default is p.empty else p.replace(default=Short(p.default)) for p in parameters]
    )


def prepare(
    fn: Any, options: Options, args: tuple[Any, ...], kwargs: dict[str, Any], *, host: bool = False
) -> Arguments:
    """Check the arguments of a call and flatten them, with the lanes along the first axis of every mapped leaf.

    Args:
        fn: the plain function.
        options: its options; `in_axes` and `static_argnames` count here.
        args, kwargs: as the user passes them.
        host: leave arrays of NumPy that have lanes on the host (see `on_device`).

    Raises:
        UsageError: a wrong argument, or sizes or axes that do not fit.
    """
    bound = bind(fn, args, kwargs)
    passed = set(bound.arguments)
    bound.apply_defaults()
    axes = axes_by_name(fn, options, bound, len(args))
    types: dict[str, Abstract] = {}
    shared: set[str] = set()
    arrays: dict[str, tuple[Any, ...]] = {}
    mapped: dict[str, tuple[bool, ...]] = {}
    sizes: dict[str, int] = {}
    objects: tuple[int, ...] = ()
    tables: list[Table] = []
    for name, value in bound.arguments.items():
        if name in options.static_argnames or name not in passed:  # a default is shared by all lanes
            declared = name in options.static_argnames
            value = value if declared or not ragged_in(value) else _with_lists(name, value, None)
            types[name] = _static(name, value, declared)
            arrays[name] = () if declared else tuple(leaf for leaf in jax.tree.leaves(value) if is_array(leaf))
            shared.add(name)
            continue
        value = as_annotated(fn, name, value, axes[name])
        if _with_ragged(name, value):
            value = _with_lists(name, value, axes[name])
        value = as_argument(with_references(value, tables))
        _, tree = _flattened(name, value)
        paths_and_leaves = jax.tree_util.tree_leaves_with_path(value)  # in the same order
        axes_of_leaves = leaf_axes(name, axes[name], value)
        _check_no_numbers(name, value, axes_of_leaves)
        lane_types: list[ArrayType | Known] = []
        lane_arrays: list[tuple[Any, bool]] = []
        for (path, leaf), axis in zip(paths_and_leaves, axes_of_leaves, strict=True):
            if axis is None and is_static(leaf):  # a function or a string in a shared pytree: part of the program
                lane_types.append(Known(leaf))
                objects += () if has_hash(leaf) else (id(leaf),)
                continue
            array = _lane_axis_first(name, path, leaf, axis, sizes, host)
            lane_types.append(_type_of(name, array, int(axis is not None)))
            lane_arrays.append((array, axis is not None))
        types[name] = Abstract(tree, tuple(lane_types))
        arrays[name] = tuple(array for array, _ in lane_arrays)
        mapped[name] = tuple(is_mapped for _, is_mapped in lane_arrays)
        if all(axis is None for axis in axes_of_leaves):
            shared.add(name)
    if tables:
        leaves, tree = flatten(tables)
        arrays[TABLES], mapped[TABLES] = tuple(leaves), (False,) * len(leaves)
        types[TABLES] = Abstract(tree, tuple(_type_of("tables", leaf, 0) for leaf in leaves))
        shared.add(TABLES)
    return Arguments(types, frozenset(shared), arrays, mapped, _lanes(fn, sizes), objects)


def _with_lists(name: str, value: Any, axes: Any) -> Any:
    """An argument with a list of the lane in place of each `Ragged`; where lanes share it, it is one list of lists."""
    parts = jax.tree.leaves(value, is_leaf=lambda x: isinstance(x, Ragged))
    of_leaves = iter(leaf_axes(name, axes, value))
    shared = []
    for part in parts:
        found = {next(of_leaves) for _ in jax.tree.leaves(part)}
        if isinstance(part, Ragged):
            if found not in ({0}, {None}):
                title = f"in_axes of `{name}` is not 0 for a `Ragged`, in which each lane has a list of its own"
                raise usage("PCB404", title, help="leave it 0, or give None if all lanes share one list of lists")
            shared.append(found == {None})
    try:
        return as_containers(value, shared)
    except ValueError as error:
        help = "make it by `pcbatch.ragged([[1, 2], [3], []])`, or of the lanes that have not failed"
        raise usage("PCB405", f"argument `{name}` is no lists: {error}", help=help) from None


def checked_names(fn: Any, options: Options) -> Options:
    """Make tuples of the options that name parameters; UsageError for a name that is no parameter."""
    known = signature(fn).parameters
    for option in ("static_argnames", "donate_argnames"):
        names = getattr(options, option)
        names = (names,) if isinstance(names, str) else names
        if not isinstance(names, tuple | list):
            title = f"{option} must be a name or a tuple of names, not {short(names)}"
            raise usage("PCB401", title, help=f'write `{option}="name"` or `{option}=("a", "b")`')
        for name in names:
            if name not in known:
                title = f"{option} names `{name}`, which is not a parameter of {fn.__name__}"
                raise usage("PCB403", title, help=f"the parameters are {', '.join(known)}")
        changes: dict[str, Any] = {option: tuple(names)}
        options = replace(options, **changes)
    both = [name for name in options.donate_argnames if name in options.static_argnames]
    if both:
        title = f"`{both[0]}` is named in static_argnames and in donate_argnames of {fn.__name__}"
        raise usage("PCB403", title, help="leave it out of `donate_argnames`: a constant has no buffer to give away")
    return options


def types_of_fixed(fn: Any, options: Options, fixed: tuple[Any, ...]) -> dict[str, Abstract]:
    """The types of the first parameters, for values that all lanes share."""
    types_by_name: dict[str, Abstract] = {}
    for name, value in zip(signature(fn).parameters, fixed, strict=False):
        if name in options.static_argnames:
            types_by_name[name] = _static(name, value, True)
        else:
            leaves, tree = _flattened(name, value)
            types = tuple(Known(leaf) if is_static(leaf) else _type_of(name, leaf, 0) for leaf in leaves)
            types_by_name[name] = _of_values(tree, leaves, types)
    return types_by_name


def _static(name: str, value: Any, declared: bool) -> Abstract:
    """The type of an argument in `static_argnames` (`declared`), or of a default."""
    if declared:
        try:
            hash(value)
        except TypeError:
            raise usage(
                "PCB403",
                f"static argument `{name}` must be hashable, not {type(value).__name__}",
                help=_hashable_help(name, value),
            ) from None
        return known(value)
    leaves, tree = _flattened(name, value)  # arrays are shared, numbers known while compiling
    types = tuple(_type_of(name, leaf, 0) if is_array(leaf) else Known(leaf) for leaf in leaves)
    return _of_values(tree, leaves, types)


def _of_values(tree: Any, leaves: list[Any], types: tuple[Leaf, ...]) -> Abstract:
    """The type of a value that all lanes share: the function has the very object, and a scalar may be an array."""
    origins = [Origin.UNKNOWN if is_array(leaf) else Origin.NUMBER for leaf in leaves]
    return with_origins(tree, types, origins if Origin.UNKNOWN in origins else [Origin.ARRAY] * len(leaves))


def _flattened(name: str, value: Any) -> tuple[list[Any], Any]:
    try:
        return flatten(value)
    except ValueError as error:
        raise _no_pytree(name, error) from None


def _with_ragged(name: str, value: Any) -> bool:
    try:
        return ragged_in(value)
    except ValueError as error:
        raise _no_pytree(name, error) from None


def _no_pytree(name: str, error: ValueError) -> UsageError:
    """The error of an argument with a dict whose keys JAX cannot sort."""
    help = "let the keys of a dict be of one type, all numbers or all strings"
    return usage("PCB405", f"argument `{name}` is no pytree of JAX", clipped(str(error), 500), help=help)


def _hashable_help(name: str, value: Any) -> str:
    if is_array(value):
        return f"leave it out of `static_argnames`, and say `in_axes={{'{name}': None}}`: all lanes share it"
    if is_dataclass(value):
        return (
            "register its class with `jax.tree_util.register_dataclass`, so that lanes share its arrays; "
            "without arrays `@dataclass(frozen=True)` is enough"
        )
    return "pass a tuple, a number, a string or a function"


def _check_no_numbers(name: str, value: Any, axes: list[int | None]) -> None:
    """Refuse a list of numbers, which is meant as an array, and which JAX takes for many arguments."""
    leaves = jax.tree.leaves(value)
    if type(value) in (list, tuple) and leaves and None not in axes and all(map(is_number, leaves)):
        kind = type(value).__name__
        title, note = f"argument `{name}` is a {kind} of numbers", "JAX takes each of them for an argument of its own"
        raise usage("PCB406", title, note, help=f"pass an array: `jnp.array({name})`")


def on_device(call: Arguments) -> Arguments:
    """Make arrays of JAX of those of NumPy that `prepare(..., host=True)` has left."""
    arrays = {
        name: tuple(_as_jax(name, leaf) if isinstance(leaf, np.ndarray) else leaf for leaf in leaves)
        if name in call.mapped
        else leaves
        for name, leaves in call.arrays.items()
    }
    return replace(call, arrays=arrays)


def _lane_axis_first(param: str, path: Any, leaf: Any, axis: int | None, sizes: dict[str, int], host: bool) -> Any:
    """A leaf with the lanes along its first axis, where it has any. `sizes`: the lanes of each leaf so far."""
    name = param + jax.tree_util.keystr(path)
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return _lane_axis_first_of_shape(name, leaf, axis, sizes)
    check_leaf(param, leaf, path)
    if axis is None:
        return leaf if is_array(leaf) else _as_jax(name, leaf)
    shape = np.shape(leaf)
    _check_axis(name, shape, axis)
    stays = host and _convertible(leaf)
    array = leaf if stays else _as_jax(name, leaf)
    if axis not in (0, -len(shape)):
        array = (np if stays else jnp).moveaxis(array, axis, 0)
    _check_size(name, array.shape[0], sizes)
    return array


def _as_jax(name: str, leaf: Any) -> Any:
    try:
        return jnp.asarray(leaf)
    except OverflowError as error:
        raise usage("PCB405", f"argument `{name}` does not fit JAX's default integer: {error}") from None
    except TypeError:
        raise _no_dtype(name, leaf) from None


def _no_dtype(name: str, leaf: Any) -> UsageError:
    """The error for arrays of strings, dates or objects."""
    return usage(
        "PCB405",
        f"argument `{name}` has dtype {leaf.dtype}, which JAX does not have",
        help="pass numbers, for example the positions of the strings in a table",
    )


def _lane_axis_first_of_shape(name: str, leaf: Any, axis: int | None, sizes: dict[str, int]) -> Any:
    """`_lane_axis_first` of a `jax.ShapeDtypeStruct`, which is enough for lowering."""
    if axis is None:
        return leaf
    _check_axis(name, leaf.shape, axis)
    _check_size(name, leaf.shape[axis], sizes)
    if axis in (0, -len(leaf.shape)):
        return leaf  # with its sharding
    return jax.eval_shape(lambda x: jnp.moveaxis(x, axis, 0), leaf)


def _check_axis(name: str, shape: tuple[int, ...], axis: int) -> None:
    if not -len(shape) <= axis < len(shape):
        what = "a scalar" if not shape else f"of shape {shape}"
        raise usage(
            "PCB406",
            f"argument `{name}` is {what}: it has no axis {axis} to map lanes over",
            help=_shared_help(name),
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


def _type_of(name: str, leaf: Any, drop: int) -> Any:
    """The type of a leaf less its first `drop` axes."""
    try:
        # An array is not traced for its type: this is done in every call.
        aval: Any = jax.typeof(leaf) if isinstance(leaf, jax.Array) else jax.eval_shape(lambda x: x, leaf)
        return from_aval(aval, drop)
    except jax.errors.InconclusiveDimensionOperation:
        raise _symbolic(name, aval.shape) from None
    except TypeError:
        raise _no_dtype(name, leaf) from None


def _symbolic(name: str, shape: tuple[Any, ...]) -> UsageError:
    title = f"argument `{name}` of shape {shape} has a symbolic size on an axis other than that of the lanes"
    note = "registers and stacks have sizes known while compiling; only the number of lanes may be left open"
    return usage(
        "PCB430", title, note, help="give that axis a number, and leave the axis that lanes are mapped over open"
    )


def _lanes(fn: Any, sizes: dict[str, int]) -> int:
    if not sizes:
        raise usage(
            "PCB408",
            f"{fn.__name__} is called without any argument to map lanes over",
            help="map at least one argument, for example a dummy `jnp.arange(lanes)`",
        )
    return next(iter(sizes.values()))


_NO_DTYPE = (np.object_, np.character, np.datetime64, np.timedelta64, np.void)


def as_jax(tree: Any) -> Any:
    """Replace the arrays of NumPy in a pytree by arrays of JAX, where JAX has their dtype."""
    if not any(map(_convertible, jax.tree.leaves(tree))):
        return tree
    return jax.tree.map(lambda leaf: jnp.asarray(leaf) if _convertible(leaf) else leaf, tree)


def _convertible(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray) and not issubclass(leaf.dtype.type, _NO_DTYPE)
