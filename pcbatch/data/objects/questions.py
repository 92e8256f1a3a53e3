"""The questions that operators and builtins of a lane ask of records and their parts.

`RECORDS` are the classes whose values know the answers; everything else has answers of its own.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import jax.numpy as jnp

from pcbatch.data.members import MemberValue
from pcbatch.data.object_parts import is_generated
from pcbatch.data.objects import ref_type
from pcbatch.data.objects.attributes import attribute
from pcbatch.data.objects.decode import RecordList
from pcbatch.data.objects.reference import Ref
from pcbatch.data.objects.reference import element as element_of
from pcbatch.data.objects.tuples.atoms import leads_to_tuples
from pcbatch.data.objects.tuples.classes import NeedsClasses, TupleValue, items_of, python_class
from pcbatch.data.objects.tuples.parts import has_tuples
from pcbatch.data.origins import number
from pcbatch.data.values import Index, Value
from pcbatch.errors import Refusal

RECORDS = (Ref, RecordList, MemberValue)


def is_(a: Value, b: Value) -> Value:
    """The operator `a is b`, also for references."""
    if not isinstance(a, RECORDS):
        a, b = b, a
    match a, b:
        case Ref(), None:
            return ref_type.is_none(a)
        case Ref(), Ref() if leads_to_tuples(a) or leads_to_tuples(b):
            raise _refused("`is` compares tuples, texts or numbers of a tree", "compare by `==`")
        case Ref(), Ref():
            return ref_type.same(a, b)
        case Ref(), _ if type(b) in a.pcbatch_type.types:
            help = "keep in the record what tells them apart, and compare that"
            raise _refused("`is` compares a record with an object that is not in the lane", help)
        case RecordList(), None:
            return a.is_none()
        case RecordList(), RecordList():
            raise _refused("`is` compares lists of records, which are not objects in a lane", "compare the records")
        case MemberValue(), _:
            return a.is_(b)
    return False


def truth(value: Value) -> Value:
    """The condition that a value stands for."""
    match value:
        case Ref():
            return ref_type.truth(value)
        case RecordList():
            return number(value.parts[1] > 0)
    if "__bool__" in value.members.__dict__ or issubclass(value.members, int):
        raise _refused(
            "the members of this enumeration say themselves whether they are true", "compare: `op == Op.ADD`"
        )
    return True


def isinstance_(value: Value, cls: Any) -> Value:
    """The builtin `isinstance`."""
    match value:
        case Ref():
            if ref_type.is_array(value):
                return issubclass(list, cls)
            return _is_of(value, lambda one: issubclass(python_class(one), cls))
        case MemberValue():
            return issubclass(value.members, cls)
    inside = issubclass(value.list_type.type, cls)
    none = value.is_none()
    if isinstance(none, bool):
        return inside
    return number(jnp.where(none, isinstance(None, cls), inside))


def _classes(ref: Ref) -> Iterator[tuple[int, type]]:
    """The numbers of the classes that a record may be of, each with the class."""
    return zip(ref.pcbatch_type.classes, ref.pcbatch_type.types, strict=True)


def _is_of(ref: Ref, test: Callable[[Any], bool]) -> Value:
    """Whether the class of a record, or that of None where it is None, passes a test."""
    inside = ref_type.is_in(ref, [c for c, cls in _classes(ref) if test(cls)])
    if ref.pcbatch_type.optional and test(type(None)):
        return number(jnp.logical_or(inside, ref.pcbatch_id < 0))
    return inside


def type_(value: Value) -> Value:
    """The builtin `type`, also for references."""
    match value:
        case Ref():
            if len(set(map(python_class, value.pcbatch_type.types))) != 1 or value.pcbatch_type.optional:
                title = f"the type of this record is that of the lane: {value!r}"
                raise _refused(title, "write `isinstance(x, TheClass)`")
            return python_class(value.pcbatch_type.types[0])
        case MemberValue():
            return value.members
    return value.list_type.type


def type_test(test: str, value: Value, other: Value) -> Value:
    """A comparison such as `type(value) is other`; `test` is the name of the operator in the syntax tree."""
    wanted = tuple(other) if test in ("In", "NotIn") else (other,)
    holds = _is_of(value, lambda one: python_class(one) in wanted) if isinstance(value, Ref) else type_(value) in wanted
    if test in ("Is", "Eq", "In"):
        return holds
    return not holds if isinstance(holds, bool) else number(jnp.logical_not(holds))


def same_type(test: str, a: Ref, b: Ref) -> Value:
    """A comparison such as `type(a) is type(b)` of two records."""
    holds: Value = False
    for cls in (*a.pcbatch_type.types, type(None)):
        both = [_is_of(value, partial(operator.is_, cls)) for value in (a, b)]
        holds = jnp.logical_or(holds, jnp.logical_and(*both))
    return number(jnp.asarray(holds if test in ("Is", "Eq") else jnp.logical_not(holds)))


def hasattr_(value: Value, name: str) -> Value:
    """The builtin `hasattr`, also for references."""
    match value:
        case Ref():
            place = value.pcbatch_type.schema.place
            return ref_type.is_in(value, [c for c, cls in _classes(value) if place(c, name) or hasattr(cls, name)])
        case MemberValue():
            return hasattr(next(iter(value.members)), name)
    return hasattr(value.list_type.type, name)


def is_sequence(value: Value, count: int, more: bool) -> Value:
    """Whether a sequence pattern of `count` elements, or at least as many if `more`, may match."""
    match value:
        case Ref() if has_tuples(value) and not value.pcbatch_type.optional:
            lengths = {len(items_of(cls) or ()) for cls in value.pcbatch_type.types}
            fits = {length >= count if more else length == count for length in lengths}
            if len(fits) > 1:
                raise NeedsClasses("the pattern of elements")
            return fits.pop()
        case Ref() if any(issubclass(cls, TupleValue) for cls in value.pcbatch_type.types):
            raise NeedsClasses("the pattern of elements")
        case Ref() if not any(issubclass(cls, tuple) for cls in value.pcbatch_type.types):
            return False
        case Ref():
            raise _refused(
                "a record is matched with a pattern of elements", "match its class: `case Node(left, right)`"
            )
        case RecordList():
            length = value.length
            return number(length >= count if more else length == count)
    return False


def field_of(value: Value, cls: type, name: str) -> Value:
    """A field of a value that is known to be of a class."""
    return attribute(ref_type.as_class(value, cls), name) if isinstance(value, Ref) else getattr(value, name)


def element(values: Value, index: Index) -> Value:
    """The element of a list at an index that is known to be in it."""
    return element_of(values, index) if isinstance(values, Ref) else values.element(index)


def load_attribute(value: Value, name: str, substitute: Callable[[Value], Value]) -> Value:
    """The attribute `value.name`, which may be a property or a method; `substitute` makes what runs in their place."""
    if isinstance(value, Ref) and not any(value.pcbatch_type.schema.place(c, name) for c in value.pcbatch_type.classes):
        match ref_type.static_attribute(value, name):
            case property(fget=FunctionType() as getter):
                return substitute(getter)(value)
            case FunctionType() as method:
                return MethodType(substitute(method), value)
    return getattr(value, name) if name.startswith("__") else value.__getattr__(name)  # none of this package's own


def _refused(title: str, help: str) -> Refusal:
    return Refusal("PCB320", title, helps=(help,))


def own_method(value: Ref, name: str) -> FunctionType | None:
    """Return a method that the user has written in the class of a record; None if there is none."""
    found = ref_type.static_attribute(value, name)
    return found if isinstance(found, FunctionType) and not is_generated(found.__code__) else None
