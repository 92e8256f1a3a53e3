"""The parts of an exception that a lane keeps: of an object that exists while a `raise` is traced, or of a check."""

from __future__ import annotations

import builtins
import inspect
import re
from collections.abc import Callable
from dataclasses import replace
from types import FunctionType

import jax

from pcbatch.data import checks
from pcbatch.data.columns import Unset
from pcbatch.data.container import Container
from pcbatch.data.elements import or_else
from pcbatch.data.functions.texts import REPR, no_text, template, text
from pcbatch.data.functions.users_code import load_attribute, own_text, users_method
from pcbatch.data.object_parts import is_user_code, parts_of
from pcbatch.data.objects.reference import Ref
from pcbatch.data.texts.lane_text import LaneText
from pcbatch.data.values import Value
from pcbatch.errors import Refusal

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


def of_error(error: BaseException, part: str, exact: bool = False) -> Value:
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
    if may_have(type(error), name):
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
    if not _tells_arguments(error, by):
        return UNKNOWN_TEXT
    if len(error.args) == 1:
        return _written(error.args[0], shown=by is KeyError)
    return _written(error.args) if error.args else ""


def _tells_arguments(error: BaseException, by: type) -> bool:
    """Return whether the text of an exception, by a class of Python, is that of its arguments: that of an OSError
    depends on their kinds, and that of a SyntaxError has a place."""
    if isinstance(error, SyntaxError | ImportError):
        placed = isinstance(error, SyntaxError) and (error.filename, error.lineno) != (None, None)
        return len(error.args) == 1 and error.msg is error.args[0] and not placed
    return by in (BaseException, KeyError, NameError, AttributeError) or (by is OSError and len(error.args) < 2)


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


def where_failed(check: checks.PrimitiveCheck, part: str) -> Value:
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
    return of_error(error, part, exact=True)


def may_have(cls: type[BaseException], name: str) -> bool:
    """Whether an exception of a class may have an attribute: one of its class, or one that a method of it assigns."""
    if inspect.getattr_static(cls, name, None) is not None:
        return True
    methods = (value for one in cls.__mro__ for value in vars(one).values() if isinstance(value, FunctionType))
    return any(name in method.__code__.co_names for method in methods)
