"""The tables that the primitive being traced reads: the columns of every `Packed` among the arguments of a call.

They are one more parameter of the program, which all lanes share, under a name that no variable of the user's can have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.contexts import setting
from pcbatch.data.objects.schema import Schema
from pcbatch.decisions import Decisions
from pcbatch.errors import Refusal

TABLES = "__pcbatch__"
"""The parameter that holds the tables."""

_tables: ContextVar[Sequence[Table] | None] = ContextVar("pcbatch_tables", default=None)


@jax.tree_util.register_pytree_with_keys_class
class Table:
    """The columns of one `Packed`, without its roots."""

    def __init__(self, columns: tuple[Any, ...], schema: Schema, objects: tuple[Any, ...] | None = None) -> None:
        self.columns, self.schema, self.objects = columns, schema, objects

    def tree_flatten_with_keys(self) -> tuple[tuple[tuple[Any, Any], ...], Schema]:
        """Return the columns with their names, and the schema."""
        keys = map(jax.tree_util.GetAttrKey, self.schema.columns)
        return tuple(zip(keys, self.columns, strict=True)), self.schema

    def tree_flatten(self) -> tuple[tuple[Any, ...], Schema]:
        """Return the columns, and the schema."""
        return self.columns, self.schema

    @classmethod
    def tree_unflatten(cls, schema: Schema, columns: Sequence[Any]) -> Table:
        """Make a table of its columns."""
        return cls(tuple(columns), schema)


class KnownTable:
    """The columns of objects that are known while compiling: constants of a program. Equal if all in them is equal."""

    def __init__(self, columns: tuple[Any, ...], schema: Schema) -> None:
        self.columns, self.schema = tuple(map(np.asarray, columns)), schema
        self.key = schema, tuple((one.dtype, one.shape, one.tobytes()) for one in self.columns)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KnownTable) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


class WantsCopies(Refusal):
    """Packed objects are changed: each lane is to have a copy of these tables."""

    def __init__(self, what: str, tables: frozenset[int]) -> None:
        title = f"{what}, where the packed objects are not known: inside a transformation of JAX, or for types alone"
        helps = ("call the batched function outside of `jax.jit`, with objects",)
        super().__init__("PCB320", title, helps=helps, wants=Decisions(tables=tables))


def using_tables(tables: Sequence[Table]) -> AbstractContextManager[None]:
    """Let references lead into these tables within the context."""
    return setting(_tables, tables)


def with_tables(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes the tables as a last argument, for use in references."""

    def run(*args: Any) -> Any:
        *rest, tables = args
        with using_tables(tables):
            return fn(*rest)

    return run


def columns_of(table: int | KnownTable) -> tuple[Any, ...]:
    """Return the columns of a table of the call, or of objects that are known."""
    if isinstance(table, KnownTable):
        return tuple(map(jnp.asarray, table.columns))
    tables = _tables.get()
    if tables is None:
        title = "a record of packed objects is read where the compiler does not see it"
        raise Refusal("PCB320", title, helps=("read its fields in the batched function itself",))
    return tables[table].columns
