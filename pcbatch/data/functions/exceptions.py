"""Exceptions as numbers: what the body of a `try` raises is a value of the lane, by which handlers are chosen.

Zero is no exception. The others are numbered: Python's own in the order of `BUILTIN`, and the user's classes in the
order in which programs raise them.

Of an exception itself a lane keeps the parts that handlers read: its text, its arguments, its attributes. They are
taken from an object that exists while the `raise` is traced (`raising`), or from the check that fails (`attempt`). A
class that lacks a part that another one has gives none, which a read of it finds by the number of the class.
"""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import CodeType, ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data import checks
from pcbatch.data.columns import Unset
from pcbatch.data.elements import or_else
from pcbatch.data.exception_parts import UNKNOWN_TEXT, may_have, of_error, where_failed
from pcbatch.data.functions.sequence_builtins import unpacked
from pcbatch.data.functions.users_code import making_exception
from pcbatch.data.object_parts import is_user_code
from pcbatch.data.origins import Tracer, is_noting, leaves, number
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.texts.lane_text import LaneText
from pcbatch.data.values import Index, Value
from pcbatch.errors import NoAttribute, PcbatchError, Refusal

BUILTIN: tuple[type[BaseException], ...] = tuple(
    value
    for _, value in sorted(vars(builtins).items())
    if isinstance(value, type) and issubclass(value, Exception) and not issubclass(value, Warning)
)
OURS = (TypeError, NotImplementedError, NameError, AttributeError)  # may come of what values of lanes lack
NONE = 0
Classes = tuple[type[BaseException], ...]
NO_TEXT = "the text of this exception is one that Python makes by itself, which a lane does not know"
KNOWN = (bool, int, float, complex, str, bytes, type, ModuleType, np.ndarray, np.generic, jax.Array)
_classes: list[type[BaseException]] = list(BUILTIN)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The parts of exceptions that handlers read: each with the classes that these catch, and with those that others
    catch before, which read nothing."""

    parts: tuple[tuple[str, Classes, Classes], ...] = ()


@cache
def wanted(parts: tuple[tuple[str, Classes, Classes], ...]) -> Wanted:
    """Return the parts as one object, the same one for equal parts."""
    return Wanted(parts)


def code_of(cls: type[BaseException]) -> int:
    """Return the number of an exception class."""
    if cls not in _classes:
        _classes.append(cls)
    return _classes.index(cls) + 1


def raised(code: Index) -> Value:
    """Whether the number of an exception stands for one."""
    return number(code != NONE) if isinstance(code, jax.Array) else code != NONE


def is_caught(code: Index, classes: Any) -> Value:
    """Whether an exception, by its number, is of a class or of one of several."""
    caught = [k + 1 for k, cls in enumerate(_classes) if issubclass(cls, classes)]
    if not isinstance(code, jax.Array):
        return code in caught
    result: Value = jnp.zeros((), bool)
    for one in caught:
        result = jnp.logical_or(result, code == one)
    return number(result)


def attempt(count: int, expression: Callable[[], Value], wanted: Wanted | None, *changed: Value) -> Value:
    """Evaluate an expression in the body of a `try`.

    Args:
        count: the number of values that it gives; other than one, it is unpacked.
        expression: the expression, as a function.
        wanted: the parts of an exception that handlers read, if any.
        changed: the objects that it changes in place, which are its last values: they are as they were when it raised
            if it does, as no change is made after that (`going_on`).

    Returns:
        The number of the exception that it raises in this lane, the parts of that, and its values, which are arbitrary
        if it does.
    """
    code: Index = NONE
    parts = () if wanted is None else wanted.parts
    found: list[Value] = [Unset()] * len(parts)
    try:
        with checks.attempting() as made:
            value = expression()
            values = (value,) if count == 1 else unpacked(value, count)
    except (Refusal, PcbatchError, jax.errors.JAXTypeError, jax.errors.JAXIndexError):
        raise
    except Exception as error:  # known to fail while compiling, in lanes that have not failed before
        if type(error) not in (NoAttribute, *BUILTIN) or type(error) in OURS:
            raise
        nothing: Value = 0 if made else Unset()  # the type of the value is that of other operands, if there are any
        cls: type[BaseException] = AttributeError if isinstance(error, NoAttribute) else type(error)
        code, values = code_of(cls), (*(nothing,) * (count - len(changed)), *changed)
        found = [of_error(error, part) if _is_read(cls, of, unread) else Unset() for part, of, unread in parts]
    for check in reversed(made):
        if check.exception in checks.NO_EXCEPTIONS:
            checks.pass_on(check)
        else:
            cls = getattr(builtins, check.exception)
            code = jnp.where(check.failed, np.int32(code_of(cls)), code)
            for k, (part, of, unread) in enumerate(parts):
                if _is_read(cls, of, unread):
                    found[k] = or_else(check.failed, where_failed(check, part), found[k])
    return (number(code) if isinstance(code, jax.Array) else code, *found, *values)


def raising(wanted: tuple[str, ...], make: Callable[[], BaseException]) -> Value:
    """Return the parts of an exception that a lane raises, one value for each that is wanted.

    Args:
        wanted: the names of the parts.
        make: makes the exception, as `raise` does.
    """
    with making_exception():
        error = make()
        found = tuple(of_error(error, part, exact=True) for part in wanted)
    return found[0] if len(found) == 1 else found


def _is_read(cls: type[BaseException], read: Classes, unread: Classes) -> bool:
    return issubclass(cls, read) and not issubclass(cls, unread)


def caught(part: str) -> Value:
    """Stand for a part of the exception in whose handler control is; the lowering of `try` knows its variable."""
    raise AssertionError(part)


def text_read(text: Value, held: Value) -> Value:
    """Return the text of a caught exception; the lane stops where that is one of Python's which it does not know.

    `held` are the objects that may change, and that the text shows as they were at the `raise`.
    """
    del held  # a read of them, for the check of ownership
    if not isinstance(text, str | LaneText):  # of no exception that gets here, so far
        return ""
    return _known(text)


def _known(value: Value) -> Value:
    """Return an argument of a caught exception, or its text; the lane stops where that is a text it does not know."""
    if isinstance(value, str):
        checks.limit(value != UNKNOWN_TEXT, NO_TEXT)
    elif isinstance(value, LaneText):
        checks.limit(jnp.logical_not(value == UNKNOWN_TEXT), NO_TEXT)
    return value


def arguments_read(args: tuple[Value, ...]) -> Value:
    """Return the arguments of a caught exception."""
    return tuple(map(_known, args))


def argument_read(count: Index, value: Value, index: int) -> Value:
    """Return an argument of a caught exception, given how many it has."""
    checks.require(index < count, "IndexError", "tuple index out of range")
    return _known(value)


def attribute_read(code: Index, value: Value, name: str, held: Value, classes: Any) -> Value:
    """Return an attribute of a caught exception, given the number of its class and those that the handler catches.

    `held` are the objects that may change, of which a property may have computed it at the `raise`.
    """
    del held
    without = [k + 1 for k, cls in enumerate(_classes) if issubclass(cls, classes) and not may_have(cls, name)]
    for one in without:
        checks.require(
            code != one, "AttributeError", f"'{_classes[one - 1].__name__}' object has no attribute '{name}'"
        )
    return value


def name_of(code: Index, classes: Any) -> Value:
    """Return the name of the class of a caught exception, of those that the handler catches."""
    names = [cls.__name__ if issubclass(cls, classes) else "" for cls in _classes]
    if not isinstance(code, jax.Array):
        return names[code - 1]
    return LaneList.from_list(names).element(code - 1)


def is_exactly(code: Index, cls: Any) -> Value:
    """Whether a caught exception, by its number, is of this class, and not of one derived from it."""
    if not (isinstance(cls, type) and issubclass(cls, BaseException)):
        return False
    return number(code == code_of(cls)) if isinstance(code, jax.Array) else code == code_of(cls)


def refuse_catching(*values: Value) -> None:
    """Refuse a function that catches exceptions where it may have values of lanes: each lane raises by itself."""
    if is_noting() and not all(isinstance(leaf, KNOWN) and not isinstance(leaf, Tracer) for leaf in leaves(values)):
        raise Refusal("PCB305", "a helper catches exceptions, which each lane raises by itself")


def changing(method: Callable[[], Value], code: CodeType) -> Value:
    """Call a method of a class of the user's that changes its object; `code` is that of its function.

    In the body of a `try` it must not raise: what it has changed until then would be seen, and what it changes after
    that must not be. As a function of the program it may.
    """
    if not checks.catching():
        return method()
    title = f"`{code.co_name}` changes its object and may raise, which a `try` catches"
    refused = Refusal("PCB304", title, functions=(code,))
    try:
        with checks.collecting() as made:
            result = method()
    except (Refusal, PcbatchError, jax.errors.JAXTypeError, jax.errors.JAXIndexError):
        raise
    except Exception as error:
        raise refused from error
    for check in made:
        if check.exception not in checks.NO_EXCEPTIONS:
            raise refused
        checks.pass_on(check)
    return result


def changed_by_class(value: Value, name: str, change: Callable[[], Value]) -> Value:
    """Change an object, which a method or property of that name of a class of the user's may do."""
    found = inspect.getattr_static(type(value), name, None)
    code = getattr(getattr(found, "fset", found), "__code__", None)
    return change() if code is None or not is_user_code(code) else changing(change, code)
