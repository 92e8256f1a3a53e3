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
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data import checks
from pcbatch.data.columns import Unset
from pcbatch.data.container import Container
from pcbatch.data.elements import or_else
from pcbatch.data.functions.sequence_builtins import unpacked
from pcbatch.data.functions.texts import REPR, no_text, template, text
from pcbatch.data.functions.users_code import load_attribute, making_exception, own_text, users_method
from pcbatch.data.object_parts import is_user_code, parts_of
from pcbatch.data.objects.reference import Ref
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
TEXT, SHOWN, ARGS, COUNT, HELD = "str", "repr", "args", "args#", "held"
"""The parts of an exception: its text, what `repr` shows, its arguments, their number, and the objects in it that may
change.

Others are one argument, as `args[0]`, and attributes, as `attr name`.
"""
ATTRIBUTE = "attr "
TEXTS = (TEXT, SHOWN)
UNKNOWN_TEXT = "\0"  # stands for a text that Python makes by itself, which is not known
EXACT = re.compile(
    r"((list|string|tuple|range object|deque) )?index out of range|pop from (an )?empty (list|deque|set)"
    r"|substring not found"
    r"|(integer |float )?(division|modulo)( or modulo)? by zero|integer division or modulo by zero|float modulo"
    r"|0.* cannot be raised to a negative power|math domain error|math range error|pop index out of range"
    r"|list assignment index out of range|range\(\) arg 3 must not be zero"
    r"|cannot convert float (NaN|infinity) to integer"
    r"|(min|max)\(\) (arg|iterable argument) is (an )?empty( sequence)?|could not convert string to float: .*"
    r"|invalid literal for int\(\) with base \d+: .*|(too many|not enough) values to unpack.*"
    r"|list\.remove\(x\): x not in list|tuple\.index\(x\): x not in tuple|popitem\(\): dictionary is empty"
    r"|empty separator|slice step cannot be zero|negative shift count"
)
"""The texts of checks that are those of Python, letter by letter."""
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
        found = [_of_error(error, part) if _is_read(cls, of, unread) else Unset() for part, of, unread in parts]
    for check in reversed(made):
        if check.exception in checks.NO_EXCEPTIONS:
            checks.pass_on(check)
        else:
            cls = getattr(builtins, check.exception)
            code = jnp.where(check.failed, np.int32(code_of(cls)), code)
            for k, (part, of, unread) in enumerate(parts):
                if _is_read(cls, of, unread):
                    found[k] = or_else(check.failed, _where_failed(check, part), found[k])
    return (number(code) if isinstance(code, jax.Array) else code, *found, *values)


def raising(wanted: tuple[str, ...], make: Callable[[], BaseException]) -> Value:
    """Return the parts of an exception that a lane raises, one value for each that is wanted.

    Args:
        wanted: the names of the parts.
        make: makes the exception, as `raise` does.
    """
    with making_exception():
        error = make()
        found = tuple(_of_error(error, part, exact=True) for part in wanted)
    return found[0] if len(found) == 1 else found


def caught(part: str) -> Value:
    """Stand for a part of the exception in whose handler control is; the lowering of `try` knows its variable."""
    raise AssertionError(part)


def part_of_python(part: str, shown: tuple[object, ...]) -> Value:
    """Return a part of an exception that Python raises by itself, given its message; None if it has none."""
    known = shown[0] if len(shown) == 1 else None
    text = known if isinstance(known, str) and EXACT.fullmatch(known) else UNKNOWN_TEXT
    if part.startswith(ATTRIBUTE):
        return None
    if part == HELD:
        return ()
    if part == SHOWN:
        return UNKNOWN_TEXT
    if part == TEXT:
        return text
    found = _arguments((text,), part)
    return None if isinstance(found, Unset) else found


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
    without = [k + 1 for k, cls in enumerate(_classes) if issubclass(cls, classes) and not _may_have(cls, name)]
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


def _is_read(cls: type[BaseException], read: Classes, unread: Classes) -> bool:
    return issubclass(cls, read) and not issubclass(cls, unread)


def _of_error(error: BaseException, part: str, exact: bool = False) -> Value:
    """Return a part of an exception that exists while a primitive is traced, raised by `raise` if it is `exact`."""
    if part not in TEXTS:
        if part.startswith(ATTRIBUTE):
            return _attribute(error, part.removeprefix(ATTRIBUTE))
        return _held(error) if part == HELD else _arguments(error.args, part)
    if not exact and not _is_users(error) and not EXACT.fullmatch(str(error)):
        return UNKNOWN_TEXT
    _refuse_records(error)
    return _shown(error) if part == SHOWN else _text(error)


def _arguments(args: tuple[Value, ...], part: str) -> Value:
    if part in (ARGS, COUNT):
        return args if part == ARGS else len(args)
    index = int(part.removeprefix(f"{ARGS}[").removesuffix("]"))
    return args[index] if index < len(args) else Unset()


def _attribute(error: BaseException, name: str) -> Value:
    if name in vars(error) or inspect.getattr_static(type(error), name, None) is not None:
        if name not in vars(error) and isinstance(inspect.getattr_static(type(error), name), property):
            _refuse_records(error)
        with checks.collecting() as made:
            value = load_attribute(error, name)
        if any(check.exception not in checks.NO_EXCEPTIONS for check in made):
            title = f"the property `{name}` of {type(error).__name__} may raise, where a handler may not read it"
            raise Refusal(
                "PCB101", title, helps=(f"compute `{name}` in the handler, from attributes that are assigned",)
            )
        for check in made:
            checks.pass_on(check)
        return value
    if _may_have(type(error), name):
        title = f"the attribute `{name}` of this {type(error).__name__} is not set where it is made"
        raise Refusal("PCB101", title, helps=(f"assign `self.{name}` in `__init__`, on all ways through it",))
    return Unset()


def _is_users(error: BaseException) -> bool:
    """Whether a `raise` in code of the user's has raised an exception."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and is_user_code(trace.tb_frame.f_code)


def _text(error: BaseException) -> Value:
    """Return `str(error)`, whose arguments may be values of the lane."""
    by = _owner(error, "__str__")
    if users_method(error, "__str__") is not None:
        return _made_by(lambda: own_text(error, "__str__"))
    if by not in (BaseException, KeyError) and not (by is OSError and len(error.args) < 2):
        return UNKNOWN_TEXT  # such as that of OSError, which depends on the kinds of its arguments
    if len(error.args) == 1:
        return _written(error.args[0], shown=by is KeyError)
    return _written(error.args) if error.args else ""


def _shown(error: BaseException) -> Value:
    """Return `repr(error)`, whose arguments may be values of the lane."""
    if users_method(error, "__repr__") is not None:
        return _made_by(lambda: own_text(error, "__repr__"))
    if _owner(error, "__repr__") is not BaseException:  # by `dataclass`
        return _written(error, shown=True)
    parts = [_written(arg, shown=True) for arg in error.args]
    between = [piece for k, part in enumerate(parts) for piece in ((", ",) if k else ()) + ((part, -1, ""),)]
    return template(f"{type(error).__name__}(", *between, ")")


def _owner(error: BaseException, name: str) -> type:
    """The class from which an exception has a method."""
    return next(cls for cls in type(error).__mro__ if name in vars(cls))


def _refuse_records(error: BaseException) -> None:
    """Refuse to make a text or a property of an exception with an object of the lane, which may change until it is
    read."""
    if any(isinstance(leaf, Ref) for leaf in jax.tree.leaves([error.args, vars(error)], is_leaf=_is_ref)):
        title = f"a {type(error).__name__} holds an object of the lane, and its text or a property of it is read"
        raise Refusal("PCB101", title, helps=("give it the numbers and texts of the object that it shows",))


def _is_ref(value: Value) -> bool:
    return isinstance(value, Ref)


def _made_by(method: Callable[[], Value]) -> Value:
    """Return the text that a method of an exception makes; where that raises, a text that is not known: Python makes
    the text where it is read."""
    with checks.collecting() as made:
        value = method()
    for check in made:
        if check.exception in checks.NO_EXCEPTIONS:
            checks.pass_on(check)
        else:
            value = or_else(check.failed, UNKNOWN_TEXT, value)
    return value


def _held(error: BaseException) -> tuple[Value, ...]:
    """The objects in an exception that may change after its `raise`, where its texts and properties are made."""
    found: list[Value] = []
    waiting = [*error.args, *vars(error).values()]
    while waiting:
        value = waiting.pop()
        if any(value is one for one in found) or isinstance(value, LaneText | Ref):
            continue
        parts = (True, []) if isinstance(value, Container) else parts_of(value)
        if parts is not None:
            found += [value] if parts[0] else []
            waiting += [] if parts[0] else parts[1]
    return tuple(found)


def _written(value: Value, shown: bool = False) -> Value:
    """Return `str(value)`, or `repr(value)`, of any value that has a text."""
    if isinstance(value, str):
        return repr(value) if shown else value
    found = text(value, REPR) if shown else text(value)
    if found is None:
        raise no_text()
    return found


def _where_failed(check: checks.PrimitiveCheck, part: str) -> Value:
    """Return a part of the exception that a check raises; what it asks for counts where the check has failed."""
    with checks.collecting() as made:
        value = _of_check(check, part)
    for inner in made:
        checks.pass_on(replace(inner, failed=inner.failed & check.failed))
    return value


def _of_check(check: checks.PrimitiveCheck, part: str) -> Value:
    """Return a part of the exception that a check raises: Python's own, with one argument."""
    if part.startswith(ATTRIBUTE):
        return Unset()
    if check.argument is not None:
        error: BaseException = getattr(builtins, check.exception)(check.argument())
    else:
        pieces = [part if isinstance(part, str) else (part, -1, "") for part in check.message]
        beginning = "".join(piece if isinstance(piece, str) else "0" for piece in pieces)
        if not EXACT.fullmatch(beginning):
            unknown = part_of_python(part, ())
            return Unset() if unknown is None else unknown
        error = getattr(builtins, check.exception)(template(*pieces))
    return _of_error(error, part, exact=True)


def _may_have(cls: type[BaseException], name: str) -> bool:
    """Whether an exception of a class may have an attribute: one of its class, or one that a method of it assigns."""
    if inspect.getattr_static(cls, name, None) is not None:
        return True
    methods = (value for one in cls.__mro__ for value in vars(one).values() if isinstance(value, FunctionType))
    return any(name in method.__code__.co_names for method in methods)


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
