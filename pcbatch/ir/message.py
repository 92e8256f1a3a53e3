"""Messages of `fail` and `print`: constant text and values of variables, put together on the host.

    ("bad step ", Field("h", spec=(".3f",)), "\\n")      in text form:      "bad step ", h:(".3f"), "\\n"

A field formats as in an f-string: `!r`, `!s` or `!a` first, then the format spec, which is itself a message because
it may hold values. Values are NumPy scalars and arrays, or plain Python numbers in the interpreters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

CONVERSIONS = ("", "r", "s", "a")


@dataclass(frozen=True, slots=True)
class Field:
    """The value of a variable in a message."""

    var: str
    conversion: str = ""
    spec: tuple[str | Field, ...] = ()


Part = str | Field
Message = tuple[Part, ...]


def variables(message: Message) -> tuple[str, ...]:
    """The variables that a message shows, each once, in order."""
    return tuple(dict.fromkeys(_variables(message)))


def _variables(message: Message) -> Iterator[str]:
    for part in message:
        if isinstance(part, Field):
            yield part.var
            yield from _variables(part.spec)


def rename(message: Message, new: Callable[[str], str]) -> Message:
    """The message with every variable passed through `new`."""
    return tuple(p if isinstance(p, str) else replace(p, var=new(p.var), spec=rename(p.spec, new)) for p in message)


def joined(parts: Message) -> Message:
    """The same message with neighbouring texts as one, empty ones left out."""
    out: list[Part] = []
    for part in parts:
        if isinstance(part, str) and out and isinstance(out[-1], str):
            out[-1] += part
        elif part != "":
            out.append(part)
    return tuple(out)


def text(message: Message, values: Mapping[str, Any]) -> str:
    """The message with the values of one lane. Never fails: what cannot be formatted is shown as it is."""
    return "".join(p if isinstance(p, str) else _field(p, values) for p in message)


def _field(field: Field, values: Mapping[str, Any]) -> str:
    return formatted(values[field.var], field.conversion, text(field.spec, values))


def formatted(value: Any, conversion: str = "", spec: str = "") -> str:
    """`f"{value!conversion:spec}"`; numbers show as numbers, whatever type they have."""
    value = _plain(value)
    if conversion in ("r", "a") and not isinstance(value, np.generic):
        value = ascii(value) if conversion == "a" else repr(value)
    elif conversion:
        value = str(value)
    try:
        return format(value, spec)
    except (TypeError, ValueError):  # arrays, for which plain Python raises
        return str(value)


def _plain(value: Any) -> Any:
    """An array as a NumPy one, one without axes as its scalar; other objects as they are."""
    if hasattr(value, "__array__"):
        value = np.asarray(value)
        return value[()] if value.ndim == 0 else _Array(value)
    return value


class _Array:
    """An array that `!r` shows as `print` does."""

    def __init__(self, value: np.ndarray) -> None:
        self._text = str(value)

    def __repr__(self) -> str:
        return self._text

    def __str__(self) -> str:
        return self._text


# Text form


def show(message: Message) -> str:
    """The text form, without parentheses around it."""
    return ", ".join(json.dumps(part) if isinstance(part, str) else _show_field(part) for part in message)


def _show_field(field: Field) -> str:
    conversion = f"!{field.conversion}" if field.conversion else ""
    return field.var + conversion + (f":({show(field.spec)})" if field.spec else "")


_FIELD = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*)(?:!([rsa]))?(:\()?")
_COMMA = re.compile(r", *")


def parse(line: str, start: int) -> tuple[Message, int]:
    """Read a message that opens with a parenthesis at `line[start]`; the message and the position after it closes."""
    parts: list[Part] = []
    position = start + 1
    while not line.startswith(")", position):
        if parts:
            comma = _COMMA.match(line, position)
            if comma is None:
                raise ValueError("expected , or ) in the message")
            position = comma.end()
        part, position = _parse_part(line, position)
        parts.append(part)
    return tuple(parts), position + 1


def _parse_part(line: str, position: int) -> tuple[Part, int]:
    if line.startswith('"', position):
        try:
            value, end = json.JSONDecoder().raw_decode(line, position)
        except json.JSONDecodeError:
            raise ValueError("a text of the message is never closed") from None
        return str(value), end
    found = _FIELD.match(line, position)
    if found is None:
        raise ValueError('expected a variable or a "text" in the message')
    if not found[3]:
        return Field(found[1], found[2] or ""), found.end()
    spec, end = parse(line, found.end() - 1)
    return Field(found[1], found[2] or "", spec), end
