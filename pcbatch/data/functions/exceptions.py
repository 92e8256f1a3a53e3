"""Exceptions as numbers: what the body of a `try` raises is a value of the lane, by which handlers are chosen.

Zero is no exception. The others are numbered: Python's own in the order of `BUILTIN`, and the user's classes in the
order in which programs raise them.
"""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable
from types import CodeType, ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data import checks
from pcbatch.data.columns import Unset
from pcbatch.data.functions.sequence_builtins import unpacked
from pcbatch.data.object_parts import is_user_code
from pcbatch.data.origins import Tracer, is_noting, leaves, number
from pcbatch.data.values import Index, Value
from pcbatch.errors import NoAttribute, PcbatchError, Refusal

BUILTIN: tuple[type[BaseException], ...] = tuple(
    value
    for _, value in sorted(vars(builtins).items())
    if isinstance(value, type) and issubclass(value, Exception) and not issubclass(value, Warning)
)
OURS = (TypeError, NotImplementedError, NameError, AttributeError)  # may come of what values of lanes lack
NONE = 0
KNOWN = (bool, int, float, complex, str, bytes, type, ModuleType, np.ndarray, np.generic, jax.Array)
_classes: list[type[BaseException]] = list(BUILTIN)


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


def attempt(count: int, expression: Callable[[], Value], *changed: Value) -> Value:
    """Evaluate an expression in the body of a `try`.

    Args:
        count: the number of values that it gives; other than one, it is unpacked.
        expression: the expression, as a function.
        changed: the objects that it changes in place, which are its last values: they are as they were when it raised
            if it does, as no change is made after that (`going_on`).

    Returns:
        The number of the exception that it raises in this lane, and its values, which are arbitrary if it does.
    """
    code: Index = NONE
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
    for check in reversed(made):
        if check.exception in checks.NO_EXCEPTIONS:
            checks.pass_on(check)
        else:
            cls = getattr(builtins, check.exception)
            code = jnp.where(check.failed, np.int32(code_of(cls)), code)
    return (number(code) if isinstance(code, jax.Array) else code, *values)


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
