"""Types put together as objects of Python, whose leaves are cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax

from pcbatch.containers.checks import collecting
from pcbatch.containers.unlike import UnlikeError
from pcbatch.errors import Refusal
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.abstract_values import Abstract, JoinError, Leaf, array_type, with_origins
from pcbatch.lowering.typing.jax_types import from_aval, to_aval
from pcbatch.lowering.typing.pytree import flatten
from pcbatch.origins import Origin, note, noting


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
    flat = [jax.tree.flatten(value) for value in values]

    def run(*leaves: list[Any]) -> Any:
        with noting(), collecting():
            return fn(*(_put_together(tree, cells, part) for (cells, tree), part in zip(flat, leaves, strict=True)))

    try:
        made: Any = jax.eval_shape(run, *([_aval(cell) for cell in cells] for cells, _ in flat))
    except UnlikeError:
        raise JoinError("they hold values of different types", "structure") from None
    except (Refusal, TypeError) as cause:
        raise JoinError(str(cause), "structure") from None
    return jax.tree.map(lambda aval: Cell(from_aval(aval), Origin.ARRAY), made)


def _aval(cell: Cell) -> Any:
    return to_aval(cell.leaf) if isinstance(cell.leaf, ArrayType) else None


def _put_together(tree: Any, cells: list[Cell], leaves: list[Any]) -> Any:
    """The object whose leaves are tracers with the origins of cells, or known values."""
    values = [
        note(leaf, cell.origin) if isinstance(cell.leaf, ArrayType) else cell.leaf.value
        for cell, leaf in zip(cells, leaves, strict=True)
    ]
    return jax.tree.unflatten(tree, values)
