"""Objects that existed before the call, where others of their class are records made in lanes."""

from __future__ import annotations

from types import FunctionType, MethodType, ModuleType
from typing import Any

from pcbatch.data.aliasing import MOST, captured_values, cells_of
from pcbatch.data.object_parts import is_user_code, parts_of
from pcbatch.data.objects.made import EXISTING_HELP, made_schema
from pcbatch.errors import Refusal


def captured_record(fn: Any) -> Any:
    """Return an object that a function finds in its globals and cells, or a function of the user's that it names, and
    whose class has records made in lanes; None if there is none."""
    classes = {one.cls for one in made_schema().classes}
    seen: set[int] = set()
    stack: list[Any] = [fn]
    while stack:
        value = stack.pop()
        if id(value) in seen or len(seen) > MOST:
            continue
        seen.add(id(value))
        if type(value) in classes:
            return value
        match value:
            case FunctionType():
                own = value is fn or is_user_code(value.__code__)
                stack += captured_values(value) if own else cells_of(value)  # a wrapper leads on by its cells alone
            case MethodType():
                stack += (value.__self__, value.__func__)
            case _ if not isinstance(value, type | ModuleType):
                parts = parts_of(value)
                stack += () if parts is None else parts[1]
    return None


def existed_before(kept: list[dict[int, Any]]) -> Any:
    """Return an object that several traces of a primitive have stored, which none of them has made; None for none."""
    first, *others = kept
    for other in others:
        for key in first.keys() & other.keys():
            return first[key][0]
    return None


def refuse_existing(value: Any) -> Refusal:
    """Return the error about an object that existed before the lane, where records of its class are made in lanes."""
    title = f"this {type(value).__name__} existed before the call, and others are made in the lane"
    return Refusal("PCB320", title, helps=(EXISTING_HELP,))
