"""The arguments of a call, checked and flattened: types and leaves for each parameter."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.call.array_leaves import as_jax_array, has_hash, is_static, lane_axis_first, type_of
from pcbatch.call.out_axes import axes_by_name, leaf_axes
from pcbatch.call.plain_values import check_rows
from pcbatch.call.signature import bind, signature
from pcbatch.call.usage import usage
from pcbatch.data.host.ragged import Ragged, enters_lanes
from pcbatch.data.host.ragged_forms import as_containers, ragged_in
from pcbatch.data.objects.copies import is_copied, with_copies
from pcbatch.data.objects.made_results import as_argument
from pcbatch.data.objects.packed import with_references
from pcbatch.data.objects.reference import Ref
from pcbatch.data.objects.tables import TABLES, Table
from pcbatch.data.origins import Origin
from pcbatch.diagnostics.short_repr import clipped
from pcbatch.errors import UsageError
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.abstract_values import Abstract, Known, Leaf, is_array, known, with_origins
from pcbatch.lowering.typing.pytree import flatten
from pcbatch.options import Options


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one call, checked and flattened. An array leaf is [lanes, ...], or unbatched if it is shared."""

    types: Mapping[str, Abstract]  # parameter -> type for one lane
    shared: frozenset[str]  # parameters whose leaves are all unbatched
    arrays: Mapping[str, tuple[Any, ...]]  # parameter -> array leaves
    mapped: Mapping[str, tuple[bool, ...]]  # parameter -> which of its array leaves have lanes
    lanes: int
    objects: tuple[int, ...] = ()  # the identities of static leaves that have no hash
    on_one_device: bool = False  # whether it is known that each array has a value, on one device
    copied: frozenset[int] = frozenset()  # the tables of packed objects of which each lane has got a copy
    alone: bool = False  # whether its lanes may run one after the other, where that is estimated to be faster
    staged: bool = False  # whether JAX traces it

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

    def part(self, rows: slice) -> Arguments:
        """Return the arguments of some of the lanes."""
        arrays = {
            name: tuple(x[rows] if mapped else x for x, mapped in zip(leaves, self.mapped[name], strict=True))
            if name in self.mapped
            else leaves
            for name, leaves in self.arrays.items()
        }
        return replace(self, arrays=arrays, lanes=len(range(self.lanes)[rows]))


@dataclass(frozen=True, slots=True)
class _Argument:
    """One argument, flattened: the type for one lane, the array leaves, and which of these have lanes."""

    type: Abstract
    arrays: tuple[Any, ...]
    mapped: tuple[bool, ...] | None  # None: a constant of the program, or a default
    shared: bool
    objects: tuple[int, ...] = ()  # the identities of static leaves that have no hash


def prepare(
    fn: Any,
    options: Options,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    host: bool = False,
    copied: frozenset[int] = frozenset(),
) -> Arguments:
    """Check the arguments of a call and flatten them, with the lanes along the first axis of every mapped leaf.

    Args:
        fn: the plain function.
        options: its options; `in_axes` and `static_argnames` count here.
        args, kwargs: as the user passes them.
        host: leave arrays of NumPy that have lanes on the host (see `on_device`).
        copied: the tables of packed objects that the program changes, so that each lane gets a copy.

    Raises:
        UsageError: a wrong argument, or sizes or axes that do not fit.
    """
    bound = bind(fn, args, kwargs)
    passed = set(bound.arguments)
    bound.apply_defaults()
    axes = axes_by_name(fn, options, bound, len(args))
    sizes: dict[str, int] = {}
    tables: list[Table] = []
    found: dict[str, _Argument] = {}
    of_lanes = {name for name in passed if name not in options.static_argnames}
    values = {
        name: _as_lane_value(name, as_annotated(fn, name, value, axes[name]), axes[name], tables)
        for name, value in bound.arguments.items()
        if name in of_lanes
    }
    if copied:
        values = with_copies(values, _copied_parts(values, axes, copied), tables, copied)
    for name, value in bound.arguments.items():
        if name in of_lanes:
            found[name] = _passed(name, values[name], axes[name], sizes, host)
        else:
            found[name] = _constant(name, value, name in options.static_argnames)
    if tables:
        found[TABLES] = _of_tables(tables)
    return Arguments(
        {name: each.type for name, each in found.items()},
        frozenset(name for name, each in found.items() if each.shared),
        {name: each.arrays for name, each in found.items()},
        {name: each.mapped for name, each in found.items() if each.mapped is not None},
        _lanes(fn, sizes),
        tuple(identity for each in found.values() for identity in each.objects),
        copied=copied,
    )


def _constant(name: str, value: Any, declared: bool) -> _Argument:
    """An argument in `static_argnames` (`declared`), or a default, which all lanes share."""
    value = value if declared or not ragged_in(value) else _with_lists(name, value, None)
    arrays = () if declared else tuple(leaf for leaf in jax.tree.leaves(value) if is_array(leaf))
    return _Argument(_static(name, value, declared), arrays, None, shared=True)


def _as_lane_value(name: str, value: Any, axes: Any, tables: list[Table]) -> Any:
    """An argument with what enters a program in place of lists and objects; its tables are added to those so far."""
    if _with_ragged(name, value):
        value = _with_lists(name, value, axes)
    return as_argument(with_references(value, tables))


def _copied_parts(values: dict[str, Any], axes: dict[str, Any], which: frozenset[int]) -> list[tuple[Ref, bool]]:
    """The references into tables that are copied, and whether they have lanes."""
    parts = []
    for name, value in values.items():
        of_leaves = iter(leaf_axes(name, axes[name], value))
        for part in jax.tree.leaves(value, is_leaf=lambda x: isinstance(x, Ref)):
            found = {next(of_leaves) for _ in jax.tree.leaves(part)}
            if is_copied(part, which):
                if not found <= {0, None}:
                    title = f"in_axes of `{name}` is not 0 for packed objects that the function changes"
                    raise usage("PCB404", title, help="leave it 0, or give None if all lanes begin with the same ones")
                parts.append((part, found == {0}))
    return parts


def _passed(name: str, value: Any, axes: Any, sizes: dict[str, int], host: bool) -> _Argument:
    """An argument that is mapped as `axes` says; the lanes of its leaves are added to those so far."""
    _, tree = _flattened(name, value)
    paths_and_leaves = jax.tree_util.tree_leaves_with_path(value)  # in the same order
    axes_of_leaves = leaf_axes(name, axes, value)
    check_rows(name, value, axes_of_leaves)
    types: list[ArrayType | Known] = []
    arrays: list[Any] = []
    mapped: list[bool] = []
    objects: tuple[int, ...] = ()
    for (path, leaf), axis in zip(paths_and_leaves, axes_of_leaves, strict=True):
        if axis is None and is_static(leaf):  # a function or a string in a shared pytree: part of the program
            types.append(Known(leaf))
            objects += () if has_hash(leaf) else (id(leaf),)
            continue
        arrays.append(lane_axis_first(name, path, leaf, axis, sizes, host))
        mapped.append(axis is not None)
        types.append(type_of(name, arrays[-1], int(axis is not None)))
    shared = all(axis is None for axis in axes_of_leaves)
    return _Argument(Abstract(tree, tuple(types)), tuple(arrays), tuple(mapped), shared, objects)


def _of_tables(tables: list[Table]) -> _Argument:
    """The tables of packed objects, an argument that no parameter names."""
    leaves, tree = flatten(tables)
    types = tuple(type_of("tables", leaf, 0) for leaf in leaves)
    return _Argument(Abstract(tree, types), tuple(leaves), (False,) * len(leaves), shared=True)


def _with_lists(name: str, value: Any, axes: Any) -> Any:
    """An argument with a list of the lane in place of each `Ragged`; where lanes share it, it is one list of lists."""
    parts = jax.tree.leaves(value, is_leaf=enters_lanes)
    of_leaves = iter(leaf_axes(name, axes, value))
    shared = []
    for part in parts:
        found = {next(of_leaves) for _ in jax.tree.leaves(part)}
        if enters_lanes(part):
            if found not in ({0}, {None}):
                title = f"in_axes of `{name}` is not 0 for a `Ragged`, in which each lane has a list of its own"
                raise usage("PCB404", title, help="leave it 0, or give None if all lanes share one list of lists")
            shared.append(found == {None})
    try:
        return as_containers(value, shared)
    except ValueError as error:
        makers = '`pcbatch.ragged([[1, 2], [3], []])` of lists, `pcbatch.ragged(["ab", "c"])` of texts'
        help = f"make it by {makers}, or of the lanes that have not failed"
        raise usage("PCB405", f"argument `{name}` is no lists or texts: {error}", help=help) from None


def types_of_fixed(fn: Any, options: Options, fixed: tuple[Any, ...]) -> dict[str, Abstract]:
    """The types of the first parameters, for values that all lanes share."""
    types_by_name: dict[str, Abstract] = {}
    for name, value in zip(signature(fn).parameters, fixed, strict=False):
        if name in options.static_argnames:
            types_by_name[name] = _static(name, value, True)
        else:
            leaves, tree = _flattened(name, value)
            types = tuple(Known(leaf) if is_static(leaf) else type_of(name, leaf, 0) for leaf in leaves)
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
    types = tuple(type_of(name, leaf, 0) if is_array(leaf) else Known(leaf) for leaf in leaves)
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


def on_device(call: Arguments) -> Arguments:
    """Make arrays of JAX of those of NumPy that `prepare(..., host=True)` has left."""
    arrays = {
        name: tuple(as_jax_array(name, leaf) if isinstance(leaf, np.ndarray) else leaf for leaf in leaves)
        if name in call.mapped
        else leaves
        for name, leaves in call.arrays.items()
    }
    return replace(call, arrays=arrays)


def _lanes(fn: Any, sizes: dict[str, int]) -> int:
    if not sizes:
        raise usage(
            "PCB408",
            f"{fn.__name__} is called without any argument to map lanes over",
            help="map at least one argument, for example a dummy `jnp.arange(lanes)`",
        )
    return next(iter(sizes.values()))


LISTS = frozenset({"list", "List", "MutableSequence"})


def as_annotated(fn: Callable[..., Any], name: str, value: Any, axis: Any) -> Any:
    """Return an argument as lists of lanes, if its parameter is annotated as a list and it is an array that fits.

    Args:
        fn: the plain function.
        name: the parameter.
        value: the argument, of all lanes.
        axis: its entry of `in_axes`.
    """
    if not isinstance(value, jax.Array | np.ndarray) or axis != 0 or isinstance(axis, bool):
        return value
    depth = _depth(getattr(fn, "__annotations__", {}).get(name))
    if not depth or value.ndim != 1 + depth:
        return value
    return _lists(value, depth)


def _lists(value: Any, depth: int) -> Ragged:
    """The array as a `Ragged` of `depth` levels, in which all lists of one level are equally long."""
    made: Any = value
    for level in range(depth, 0, -1):
        lengths = jnp.full(value.shape[:level], value.shape[level], jnp.int32)
        made = Ragged(made, lengths)
    result: Ragged = made
    return result


def _depth(annotation: Any) -> int:
    """The number of lists around each other in an annotation; 0 if it is none of a list."""
    if annotation is None:
        return 0
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    try:
        node: Any = ast.parse(text, mode="eval").body
    except SyntaxError:
        return 0
    depth = 0
    while True:
        base = node.value if isinstance(node, ast.Subscript) else node
        name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", None)
        if name not in LISTS:
            return depth
        depth += 1
        if not isinstance(node, ast.Subscript):
            return depth
        node = node.slice
