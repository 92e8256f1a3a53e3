"""The array leaves of the variables of a function, and the operations that give a leaf its value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import jax

from pcbatch.data.objects.made import HEAP
from pcbatch.data.objects.tables import TABLES
from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.ir.names import Fresh
from pcbatch.ir.ops import Expr, Move, Prim
from pcbatch.ir.types import BOOL, ArrayType
from pcbatch.lowering.typing.abstract_values import Abstract, Known, leaf_names
from pcbatch.lowering.typing.inferred import Inferred
from pcbatch.lowering.typing.jax_types import from_storage, storage_type, to_aval, zeros
from pcbatch.lowering.typing.trace import JaxprFn


def array_leaves(name: str, value: Abstract) -> tuple[tuple[str, ArrayType], ...]:
    """Return the variables that take the place of `name`, one for each array leaf, with their types."""
    pairs = zip(leaf_names(name, value), value.leaves, strict=True)
    return tuple((leaf, type_) for leaf, type_ in pairs if isinstance(type_, ArrayType))


class Leaves:
    """The leaves of the variables of one function. Their names depend on the variable and its structure only.

    `tables` are those of packed objects, parameters of every function; `heap` are those of records made in lanes, which
    the function has if it `uses_heap`.
    """

    def __init__(self, inferred: Inferred, function: str, variables: Iterable[str], uses_heap: bool) -> None:
        self.inferred, self.function = inferred, function
        self.types: dict[str, ArrayType] = {}
        for variable in variables:
            self.types.update(array_leaves(variable, inferred.types[function, variable]))
        tables = array_leaves(TABLES, inferred.args[TABLES]) if TABLES in inferred.args else ()
        heap = array_leaves(HEAP, inferred.heap) if inferred.heap is not None else ()
        self.types.update((*tables, *(heap if uses_heap else ())))
        self.tables, self.heap = (tuple(leaf for leaf, _ in pairs) for pairs in (tables, heap))
        self.fresh = Fresh(set(self.types))
        self.converted: dict[str, Abstract] = {}  # temporaries that hold values before a conversion

    def abstract(self, name: str, function: str = "") -> Abstract:
        """Return the type of a variable, of another function if one is named."""
        if not function and name in self.converted:
            return self.converted[name]
        if name == HEAP and self.inferred.heap is not None:
            return self.inferred.heap
        return self.inferred.types[function or self.function, name]

    def temporary(self, name: str, value: Abstract) -> str:
        """Return a new variable of a type, which holds a value that is to be converted."""
        temp = self.fresh(name)
        self.converted[temp] = value
        self.types.update(array_leaves(temp, value))
        self.types.setdefault(temp, BOOL)
        return temp

    def of(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the leaves of variables, in order."""
        return tuple(leaf for n in names for leaf, _ in array_leaves(n, self.abstract(n)))


def leaf_move(dst: str, want: ArrayType, src: str, have: ArrayType | Known, loc: Loc | None) -> Move | Prim:
    """Return the operation `dst = src` of leaves, where `dst` may have a wider dtype."""
    if isinstance(have, Known):
        return constant(dst, have, want, loc)
    return Move(dst, src, loc) if have.dtype == want.dtype else cast(dst, src, have, want, loc)


def constant(dst: str, value: Known, type_: ArrayType, loc: Loc | None) -> Prim:
    """Return the operation `dst = value`, a scalar of the given type that is known while compiling."""
    number: Any = value.value
    closed = jax.make_jaxpr(lambda: jax.numpy.full((), number, jax.numpy.dtype(type_.dtype)))()
    return Prim((dst,), Expr(repr(value.value), (), JaxprFn(closed, [None])), loc)


def no_value(dst: str, type_: ArrayType, loc: Loc | None) -> Prim:
    """Return an operation that stores zeros in a variable which has no value yet."""
    stored = storage_type(type_)
    closed = jax.make_jaxpr(lambda: from_storage(zeros(stored, ()), type_))()
    return Prim((dst,), Expr("unset", (), JaxprFn(closed, [None])), loc)


def cast(dst: str, src: str, have: ArrayType, want: ArrayType, loc: Loc | None) -> Prim:
    """Return the operation that converts `src` to the wider dtype of `dst`."""
    closed = jax.make_jaxpr(lambda x: x.astype(want.dtype))(to_aval(have))
    return Prim((dst,), Expr(f"{src}.astype('{want.dtype}')", (src,), JaxprFn(closed, [None])), loc)
