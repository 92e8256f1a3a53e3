"""A reference to a record, the value of a lane: one number, whatever classes it may lead to.

Reading a field gathers from a column of the shared tables. The tables themselves are no part of the value: they are
further parameters of the program, and every primitive that reads a reference can use them (see `tables.py`).
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from functools import partialmethod
from types import FunctionType
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.data.checks import limit, require
from pcbatch.data.container import for_kind
from pcbatch.data.joinable import Joinable
from pcbatch.data.objects.attributes import assign, attribute
from pcbatch.data.objects.equality import equal_records, refuse_written
from pcbatch.data.objects.ref_type import (
    MADE_TABLE,
    REFUSED,
    RefType,
    as_class,
    is_array,
    is_none,
    refused,
    require_present,
    same,
    static_attribute,
    truth,
)
from pcbatch.data.objects.schema import NONE, Pointer
from pcbatch.data.objects.tables import KnownTable, WantsCopies
from pcbatch.data.objects.tuples.atoms import as_record, leads_to_tuples
from pcbatch.data.objects.tuples.parts import are_atoms, equal_plain, has_tuples, part, tuple_fields
from pcbatch.data.origins import number
from pcbatch.data.own_order import Nested, comparing, fields_of, is_comparing, refuse_own_order
from pcbatch.data.sequences.lane_iterator import Asked
from pcbatch.data.sequences.list_order import ask_identity, compare, equal, lacks_order, require_order
from pcbatch.data.values import Index, Value
from pcbatch.decisions import Cure
from pcbatch.errors import Refusal

CALL_HELP = "call it in the batched function, or in a function that it calls"


@for_kind(Pointer)
@jax.tree_util.register_pytree_with_keys_class
class Ref(Joinable):
    """A reference to a record, or an array of them: the roots of a `Packed` that lanes share."""

    __slots__ = ("pcbatch_id", "pcbatch_type")
    pcbatch_id: Value
    pcbatch_type: RefType

    def __init__(self, id_: Value, type_: RefType) -> None:
        object.__setattr__(self, "pcbatch_id", id_)
        object.__setattr__(self, "pcbatch_type", type_)

    def tree_flatten_with_keys(self) -> tuple[tuple[tuple[Value, Value]], RefType]:
        """Return the number of the row, and the type."""
        return ((jax.tree_util.GetAttrKey("id"), self.pcbatch_id),), self.pcbatch_type

    def tree_flatten(self) -> tuple[tuple[Any], RefType]:
        """Return the number of the row, and the type."""
        return (self.pcbatch_id,), self.pcbatch_type

    @classmethod
    def tree_unflatten(cls, type_: RefType, children: Sequence[Any]) -> Ref:
        """Return the reference with a number."""
        return cls(children[0], type_)

    def covering(self, other: Value) -> RefType | None:
        """Return the type of a reference that may be this one or another one, or None."""
        if other is None or isinstance(other, Ref):
            return self.pcbatch_type.covering(None if other is None else other.pcbatch_type)
        return None

    def equals_plain(self, other: Value) -> bool:
        """Return whether this may equal a value that is no record: a tuple, a text or a number."""
        return leads_to_tuples(self) and not isinstance(other, Ref)

    def tied(self, other: Value) -> Value:
        """Return whether the order of two tuples hangs on what follows these parts of theirs; None if `==` tells.

        Parts without an order fail the lane unless they are one object, so that nothing else is asked.
        """
        several = isinstance(other, Ref) and self.only_class() is None
        return number(self.pcbatch_id == other.pcbatch_id) if several and leads_to_tuples(self) else None

    def typed(self, static: RefType) -> Ref:
        """Return the reference with a wider type."""
        return Ref(self.pcbatch_id, static)

    def like(self, other: Value) -> Value:
        """Return a text or a number as a record, where this refers to the tuples of a tree."""
        return as_record(other) if leads_to_tuples(self) else other

    @staticmethod
    def none(static: RefType, shape: tuple[int, ...]) -> Ref:
        """Return references of a shape, all None."""
        return Ref(jnp.full(shape, NONE, jnp.int32), static)

    def __repr__(self) -> str:
        return str(self.pcbatch_type)

    def __getattr__(self, name: str) -> Value:
        """Read a field of the record; the lane fails with an AttributeError if there is none."""
        if name.startswith("__"):
            raise AttributeError(name)
        return attribute(self, name)

    def __copy__(self) -> Ref:
        return self

    def __deepcopy__(self, memo: Any) -> Ref:
        return self

    def __setattr__(self, name: str, value: Value) -> None:
        if self.pcbatch_type.table == MADE_TABLE:
            assign(self, name, value)
            return
        if isinstance(self.pcbatch_type.table, KnownTable):
            title = f"`{name}` is assigned, of one of several objects that existed before the call"
            raise refused(title, "make them in the batched function, so that each lane has its own")
        raise WantsCopies(f"`{name}` of {REFUSED} is assigned", frozenset({self.pcbatch_type.table}))

    def __bool__(self) -> bool:
        return bool(truth(self))

    def __len__(self) -> int:
        if is_array(self):
            return int(self.pcbatch_id.shape[0])
        return len(tuple_fields(self, "`len`"))

    def __getitem__(self, index: Index) -> Value:
        if is_array(self):
            return _root_at(self, index)
        if isinstance(index, slice):
            values = [attribute(self, name) for name in tuple_fields(self, "an index")]
            return tuple(values)[index]
        return part(self, index)

    def __call__(self, *args: Value, **keywords: Value) -> Value:
        """Call the record; only a function that is compiled along can where its classes differ in that."""
        method = static_attribute(self, "__call__")
        if not isinstance(method, FunctionType):
            title = f"{self!r} is called, which differ in what that does"
            why, cures = "it calls a function that is a value of the lane", Cure.ALONG | Cure.LOOP
            raise Refusal("PCB320", title, helps=(CALL_HELP,), cures=cures, why=why)
        require_present(self, "TypeError", "'NoneType' object is not callable")
        called: Value = with_defaults(self, method, method)(*args, **keywords)
        return called

    def __iter__(self) -> Value:
        if is_array(self):
            return iter([_root_at(self, k) for k in range(len(self))])
        if any(
            isinstance(inspect.getattr_static(cls, "__iter__", None), FunctionType) for cls in self.pcbatch_type.types
        ):
            raise Asked
        names = tuple_fields(self, "unpacking")
        return iter([part(self, k) if has_tuples(self) else attribute(self, name) for k, name in enumerate(names)])

    def __eq__(self, other: object) -> Value:
        if other is None:
            return is_none(self)
        if self.equals_plain(other):
            return equal_plain(self, other)
        if not isinstance(other, Ref):
            refuse_written(self.pcbatch_type.types)
            if isinstance(other, int | float | complex | str | bytes | jax.Array):
                return False
            raise refused(f"`==` compares {self!r} with what is no record", "compare fields: `a.word == b.word`")
        try:
            found = _equal_by_fields(self, other)
        except Nested:
            if is_comparing():
                raise
            found = None
        return equal_records(self, other) if found is None else found

    def __ne__(self, other: object) -> Value:
        return number(jnp.logical_not(self == other))

    def __hash__(self) -> int:
        title, helps = f"{REFUSED} has no hash in a lane", ("keep a number in the record, and use that as the key",)
        why = "it makes a dict or set of records of the lane"
        raise Refusal("PCB320", title, helps=helps, cures=Cure.ALONG | Cure.LOOP, why=why)

    def _ordered(self, name: str, other: object) -> Value:
        refuse_own_order(self)
        if not isinstance(other, Ref) or _compared_fields(self, other, name) is None:
            raise refused(f"{REFUSED} cannot be ordered in a lane", "compare fields: `a.key < b.key`")
        require_order(self, other)
        return self.ordered(getattr(operator, name), other)

    __lt__, __le__ = partialmethod(_ordered, "lt"), partialmethod(_ordered, "le")
    __gt__, __ge__ = partialmethod(_ordered, "gt"), partialmethod(_ordered, "ge")

    def has_no_order(self, other: Ref | None) -> Value:
        """Return whether an order asks for a record of a class that has none, or for None."""
        refuse_own_order(self)
        if are_atoms(self):
            help = "put numbers into a list of their own, `[int(x) for x in xs if isinstance(x, int)]`, or texts"
            raise refused("an order of what may be texts and numbers", help)
        if other is None or (pair := _compared_fields(self, other, "lt")) is None:
            return True
        absent = (self.pcbatch_id < 0) | (other.pcbatch_id < 0)
        with comparing(self.pcbatch_type.types[0]):
            return number(jnp.logical_or(absent, lacks_order(*pair)))

    def ordered(self, op: Value, other: Ref) -> Value:
        """Return `op(self, other)`; anything where one has no order."""
        if (pair := _compared_fields(self, other, op.__name__)) is None:
            return False
        ask_identity(*pair, True)
        with comparing(self.pcbatch_type.types[0]):
            return number(compare(op, *pair))

    def at(self, id_: Value) -> Ref:
        """Return the reference to another record."""
        return Ref(id_, self.pcbatch_type)

    def classes(self) -> tuple[type, ...]:
        """Return the classes that the record may be of; none if it is an array of references."""
        return () if is_array(self) else self.pcbatch_type.types

    @property
    def identity(self) -> Value:
        """The number of the record, -1 for None."""
        return self.pcbatch_id

    @property
    def types(self) -> tuple[type, ...]:
        """The classes of the records, also of references in a column."""
        return self.pcbatch_type.types

    @property
    def may_be_none(self) -> bool:
        """Whether the reference may be None."""
        return self.pcbatch_type.optional

    def assumed(self) -> Ref:
        """Return this reference as one that is not None."""
        return as_class(self, object)

    def present(self) -> Ref:
        """Return this reference where it is not None; the lane stops where it is, as None has no place in an order."""
        limit(self.pcbatch_id >= 0, "None is among objects that are sorted: Python refuses it where it compares it")
        return self.assumed()


def _root_at(ref: Ref, index: Index) -> Ref:
    """An element of an array of references, as Python indexes a list."""
    ids, length = ref.pcbatch_id, len(ref)
    if not isinstance(index, slice):
        require((index < length) & (index >= -length), "IndexError", "list index out of range")
    return Ref(ids[index], ref.pcbatch_type)


def element(ref: Ref, index: Index) -> Ref:
    """Return an element of an array of references, at an index that is known to be in it."""
    return Ref(ref.pcbatch_id.at[index].get(mode="clip"), ref.pcbatch_type)


def _compared_fields(a: Ref, b: Ref, name: str) -> tuple[Value, Value] | None:
    """The fields of two records that `dataclass` compares by them, where they are not None; None if it does not."""
    cls = a.only_class()
    if cls is None or cls is not b.only_class():
        return None
    fields = [fields_of(as_class(x, cls), cls, name) for x in (a, b)]
    return None if fields[0] is None else (fields[0], fields[1])


def _equal_by_fields(a: Ref, b: Ref) -> Value:
    """Return whether two records are equal; None if `dataclass` has not made their equality."""
    if (pair := _compared_fields(a, b, "eq")) is None:
        return None
    one, present = same(a, b), (a.pcbatch_id >= 0) & (b.pcbatch_id >= 0)
    ask_identity(*pair, present & jnp.logical_not(one))
    with comparing(a.pcbatch_type.types[0]):
        return number(jnp.logical_or(one, present & equal(*pair)))


def with_defaults(record: Ref, method: Callable[..., Value], call: FunctionType) -> Callable[..., Value]:
    """Return the function that calls a record by its method `call`, with the defaults that the record has."""
    fields = getattr(record.pcbatch_type.types[0], "pcbatch_defaults", {})
    if not fields:
        return lambda *args, **keywords: method(record, *args, **keywords)

    def run(*args: Value, **keywords: Value) -> Value:
        given = inspect.signature(call).bind_partial(record, *args, **keywords).arguments
        left = {name: getattr(record, field) for name, field in fields.items() if name not in given}
        return method(record, *args, **keywords, **left)

    return run
