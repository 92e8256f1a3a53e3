"""Functions as values of a lane: records of classes of their own, one class for each function.

A record has a field for each variable that the function has captured, and the function is the `__call__` of the class.
A function that captures nothing has one record, which no list holds: its number is that of the class.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields, make_dataclass
from types import FunctionType
from typing import ClassVar

from pcbatch.data.objects.made_classes import MadeClass


class FunctionValue:
    """The base of the classes of functions.

    Attributes:
        pcbatch_place: where the function is defined, and what else tells it from others.
        pcbatch_told: the operators that compare functions as Python does by the numbers of their records.
        pcbatch_recorded: whether there are records of the class.
        pcbatch_defaults: the fields with the defaults of parameters, by the names of these.
        pcbatch_bound: the number of arguments that a partial of a function of the lane has bound; None for all others.
    """

    pcbatch_place: ClassVar[tuple[object, ...]] = ()
    pcbatch_told: ClassVar[Collection[str]] = ()
    pcbatch_recorded: ClassVar[bool] = True
    pcbatch_defaults: ClassVar[Mapping[str, str]] = {}
    pcbatch_bound: ClassVar[int | None] = None


def function_class(
    place: tuple[object, ...],
    call: FunctionType,
    captured: int | None,
    defaults: Mapping[str, str],
    told: Collection[str],
    bound: int | None = None,
) -> type[FunctionValue]:
    """Return the class of a function with a number of captured values; `call` takes the record before the arguments.

    With None it is no class of records: `call` takes the object in whose table it is.
    """
    namespace = {
        "__call__": call,
        "pcbatch_place": place,
        "pcbatch_told": told,
        "pcbatch_defaults": defaults,
        "pcbatch_recorded": captured is not None,
        "pcbatch_bound": bound,
    }
    name, names = call.__qualname__.removesuffix(".__call__"), [field_of(k) for k in range(captured or 0)]
    cls = make_dataclass(name.rpartition(".")[2], names, bases=(FunctionValue,), namespace=namespace, eq=False)
    cls.__module__, cls.__qualname__ = str(call.__module__), name
    return cls


def field_of(k: int) -> str:
    """Return the name of the field with a captured value."""
    return f"captured_{k}"


def made_class(cls: type) -> MadeClass:
    """Return the class of a function as that of records made in lanes."""
    return MadeClass(cls, tuple(field.name for field in fields(cls)))


def cell_class(place: tuple[object, ...], module: str) -> type[FunctionValue]:
    """Return the class of the cell of a variable that functions share."""
    cls = make_dataclass(
        str(place[0]), [field_of(0)], bases=(FunctionValue,), namespace={"pcbatch_place": place}, eq=False
    )
    cls.__module__ = module
    return cls
