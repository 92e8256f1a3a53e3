"""Abstract values, the types of variables: pytrees whose leaves are array types or values known while compiling.

The lattice of one leaf: nothing yet < known Python value < array type < a wider dtype. Structures and shapes never
change. So `n = x.shape[0]` stays a Python int (and may size an array), while `i = 0` that a loop increments
becomes a weak integer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.exception_parts import UNKNOWN_TEXT
from pcbatch.data.origins import Origin, kind_of, met
from pcbatch.diagnostics.short_repr import Shown, clipped, short
from pcbatch.ir.types import ArrayType
from pcbatch.jax_settings import settings
from pcbatch.lowering.typing.jax_types import from_aval, integer_limits, is_key, jax_dtype, to_aval
from pcbatch.lowering.typing.pytree import common_order

LONGEST = 120  # characters of the type of a variable in a message
NUMBERS = (bool, int, float, complex)  # in the order in which a type is looked for: a bool is an int


class Known:
    """A Python value known while compiling: one for all lanes and visits. Two are equal if no program can tell them
    apart."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Known) and _same(self.value, other.value)

    def __hash__(self) -> int:
        return hash(type(self.value))

    def __repr__(self) -> str:
        return f"Known({short(self.value)})"

    @property
    def is_number(self) -> bool:
        """Whether the value is a number, which can become an array."""
        return isinstance(self.value, NUMBERS)


def _same(a: Any, b: Any) -> bool:
    """Equality that tells 1 from True and 1.0, also inside tuples, and 0.0 from -0.0, but not NaN from NaN."""
    if type(a) is not type(b):
        return False
    if a is b:
        return True
    match a:
        case float():
            return repr(a) == repr(b)
        case complex():
            return _same(a.real, b.real) and _same(a.imag, b.imag)
        case tuple():
            return len(a) == len(b) and all(map(_same, a, b))
        case Enum():
            return False  # another member, whatever a method of it says
    try:
        return bool(a == b)
    except Exception:  # an exotic __eq__ (arrays, raising ones): identity decides
        return False


Leaf = ArrayType | Known


@dataclass(frozen=True, slots=True)
class Abstract:
    """The abstract value of a variable: its structure and one `Leaf` per leaf.

    `origins` says which scalars are numbers of Python in the plain function; it is empty if all are arrays.
    """

    tree: Any
    leaves: tuple[Leaf, ...]
    origins: tuple[Origin, ...] = ()

    def origin(self, k: int) -> Origin:
        """Return the origin of leaf k: a number of Python, an array, or unknown."""
        if isinstance(self.leaves[k], Known):
            return Origin.NUMBER
        return self.origins[k] if self.origins else Origin.ARRAY

    @property
    def known(self) -> bool:
        """Whether all leaves are known while compiling."""
        return all(isinstance(leaf, Known) for leaf in self.leaves)

    @property
    def arrays(self) -> tuple[ArrayType, ...]:
        """Types of the leaves that lanes hold."""
        return tuple(leaf for leaf in self.leaves if isinstance(leaf, ArrayType))

    def value(self) -> Any:
        """The Python value, when it is wholly known."""
        return jax.tree.unflatten(self.tree, [leaf.value for leaf in self.leaves if isinstance(leaf, Known)])

    def rebuild(self, arrays: list[Any]) -> Any:
        """The value with its array leaves taken, in order, from the front of `arrays`."""
        leaves = [leaf.value if isinstance(leaf, Known) else arrays.pop(0) for leaf in self.leaves]
        return jax.tree.unflatten(self.tree, leaves)

    def __str__(self) -> str:
        def show(leaf: Leaf) -> str:
            if not isinstance(leaf, Known):
                return str(leaf).removeprefix("~")
            is_unknown = isinstance(leaf.value, str) and leaf.value == UNKNOWN_TEXT
            return "a text of Python's" if is_unknown else short(leaf.value)

        try:
            text = short(jax.tree.unflatten(self.tree, [Shown(show(leaf)) for leaf in self.leaves]), LONGEST)
        except Exception:  # a class that checks what it is made of
            text = " object at 0x"
        if " object at 0x" not in text:
            return clipped(text, LONGEST)
        # A class without a `__repr__` of its own shows nothing but an address.
        node = self.tree.node_data()
        kind = "value" if node is None else node[0].__name__
        return clipped(f"{kind} of {', '.join(map(show, self.leaves))}", LONGEST)


def is_array(value: object) -> bool:
    """Return whether JAX treats a value as an array; tracers count."""
    return isinstance(value, jax.Array | np.ndarray | np.generic)


def known(value: object) -> Abstract:
    """Return the abstract value of a static value: one leaf, whatever is inside."""
    return Abstract(jax.tree.structure(0), (Known(value),))


class JoinError(Exception):
    """Two abstract values have no common type; the text says why, `kind` what differs: "structure", "shape", "dtype",
    "key" (one of them is a PRNG key), or "value" for one that no array can hold."""

    def __init__(self, cause: str, kind: str) -> None:
        super().__init__(cause)
        self.kind = kind


def array_type(leaf: Leaf) -> ArrayType:
    """Return the array type of a leaf; a known number is a weak scalar. Raises JoinError for other known values."""
    if isinstance(leaf, ArrayType):
        return leaf
    if not leaf.is_number:
        raise JoinError(f"{type(leaf.value).__name__} {short(leaf.value)} is not a number", "value")
    return _number_type(next(kind for kind in NUMBERS if isinstance(leaf.value, kind)), settings())


@cache
def _number_type(kind: Any, settings: tuple[Any, ...]) -> ArrayType:
    del settings  # part of the cache key only
    return from_aval(jax.eval_shape(lambda: jnp.asarray(kind(0))))


def fits(leaf: Known, type_: ArrayType) -> bool:
    """Return whether a known number keeps its value as an array of this type; the rounding of floats is accepted."""
    dtype, number = jax_dtype(type_), leaf.value
    if not isinstance(number, int) or isinstance(number, bool) or type_.dtype == "bool":
        return True
    if jnp.issubdtype(dtype, jnp.integer):
        low, high = integer_limits(dtype)
        return low <= number <= high
    finfo: Any = jnp.finfo  # untyped in some releases of JAX
    return abs(number) <= int(float(finfo(dtype).max))


def with_origins(tree: Any, leaves: tuple[Leaf, ...], origins: Sequence[Origin]) -> Abstract:
    """Return an abstract value with origins, which only scalars of lanes have: other leaves count as arrays."""
    counts = [isinstance(leaf, ArrayType) and leaf.shape == () and not is_key(leaf) for leaf in leaves]
    counted = tuple(one if each else Origin.ARRAY for one, each in zip(origins, counts, strict=True))
    return Abstract(tree, leaves, () if all(one is Origin.ARRAY for one in counted) else counted)


def of_example(value: Abstract) -> Abstract:
    """Return the type of an argument of the batch: its scalars are numbers of Python, unless it has origins itself."""
    if value.origins:
        return value
    return with_origins(value.tree, value.leaves, [Origin.NUMBER] * len(value.leaves))


def materialise(value: Abstract) -> Abstract:
    """Return a value whose known numbers have become arrays. Raises JoinError for other known values."""
    origins = [value.origin(k) for k in range(len(value.leaves))]
    return with_origins(value.tree, tuple(array_type(leaf) for leaf in value.leaves), origins)


def join_leaves(a: Abstract, b: Abstract) -> Abstract:
    """Return the least abstract value of the same structure that covers both. Raises JoinError if there is none."""
    tree = common_tree(a.tree, b.tree)
    if tree is None:
        raise JoinError(f"{a} and {b} have different structures", "structure")
    leaves = tuple(join_leaf(x, y) for x, y in zip(a.leaves, b.leaves, strict=True))
    return with_origins(tree, leaves, [_join_origin(a, b, k) for k in range(len(leaves))])


def _join_origin(a: Abstract, b: Abstract, k: int) -> Origin:
    """The origin of a joined leaf; numbers of different types make one of unknown type."""
    return met(a.origin(k), kind(a.leaves[k]), b.origin(k), kind(b.leaves[k]))


def kind(leaf: Leaf) -> type | None:
    """Return the type of Python's numbers that a leaf has, or the type of a known value."""
    return type(leaf.value) if isinstance(leaf, Known) else kind_of(jax_dtype(leaf))


def common_tree(a: Any, b: Any) -> Any:
    """Return the structure that two values share, or None.

    Dicts whose keys have different orders are sorted, as JAX does.
    """
    try:
        return a if a == b else common_order(a, b)
    except Exception:  # the static fields of a registered class have an exotic __eq__, as arrays have
        return None


def join_leaf(a: Leaf, b: Leaf) -> Leaf:
    """Return the least leaf that covers both. Raises JoinError if there is none."""
    if a == b:
        return a
    x, y = array_type(a), array_type(b)
    if x == y:
        return x
    if x.shape != y.shape:
        kind = "key" if is_key(x) != is_key(y) else "shape"
        raise JoinError(f"{_shown(x)} and {_shown(y)} have different shapes", kind)
    return _promote(x, y, settings())


def _shown(type_: ArrayType) -> str:
    return str(type_).removeprefix("~")


@cache
def _promote(x: ArrayType, y: ArrayType, settings: tuple[Any, ...]) -> ArrayType:
    del settings  # part of the cache key only
    # `where` promotes exactly as JAX does everywhere, weak types and strict mode included.
    try:
        out = jax.eval_shape(lambda a, b: jnp.where(True, a, b), to_aval(x), to_aval(y))
    except Exception as error:
        cause = f"{_shown(x)} and {_shown(y)} have no common type: {str(error).splitlines()[0]}"
        raise JoinError(cause, "key" if is_key(x) or is_key(y) else "dtype") from None
    return from_aval(out)


def leaf_names(name: str, value: Abstract) -> tuple[str, ...]:
    """Return one dotted variable name per leaf: `state.q`, `pair._0`; just `name` for a single plain value."""
    probe = jax.tree.unflatten(value.tree, list(range(len(value.leaves))))
    paths = [path for path, _ in jax.tree_util.tree_flatten_with_path(probe)[0]]
    names = [".".join([name, *map(_path_part, path)]) for path in paths]
    # Odd keys may collide once they are made identifiers; numbering keeps names unique.
    return tuple(names) if len(set(names)) == len(names) else tuple(f"{name}._{i}" for i in range(len(names)))


def _path_part(key: Any) -> str:
    text = str(getattr(key, "name", getattr(key, "key", getattr(key, "idx", key))))
    return text if text.isidentifier() else "_" + "".join(c if c.isalnum() else "_" for c in text)
