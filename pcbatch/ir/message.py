"""The messages of `fail` and `print`: constant text and values of variables, put together on the host.

    ("bad step ", Field("h", spec=(".3f",)), "\\n")      in text form:      "bad step ", h:(".3f"), "\\n"

A field formats as in an f-string: `!r`, `!s` or `!a` first, then the format spec, which is itself a message because
it may hold values. Values are NumPy scalars and arrays, or plain Python numbers in the interpreters.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pcbatch.diagnostics.short_repr import Shown

CONVERSIONS = ("", "r", "s", "a", "c", "q", "l", "n", "m")
"""Those of f-strings; `c` shows the codes of characters as a text, whose length and format the spec is, "5:>8"; `q` in
quotes; `l` shows as many numbers as the spec says as a list; `n` shows the spec where the value is true, else None; `m`
shows the text that the value is the number of, of those that follow the format in the spec."""
SEPARATOR = "\0"
"""The character before each of the texts that `m` chooses from."""


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


def constant(message: Message) -> str:
    """The text of a message that is no value of a variable."""
    return "".join(part for part in message if isinstance(part, str))


def rename(message: Message, new: Callable[[str], str]) -> Message:
    """Replace every variable of a message by `new(variable)`."""
    return tuple(p if isinstance(p, str) else replace(p, var=new(p.var), spec=rename(p.spec, new)) for p in message)


def joined(parts: Message) -> Message:
    """Join neighbouring texts of a message, and drop empty ones."""
    out: list[Part] = []
    for part in parts:
        if isinstance(part, str) and out and isinstance(out[-1], str):
            out[-1] += part
        elif part != "":
            out.append(part)
    return tuple(out)


def text(message: Message, values: Mapping[str, Any]) -> str:
    """Return a message with the values of one lane. Never raises: a value that no format fits is shown by `str`."""
    return "".join(p if isinstance(p, str) else _field(p, values) for p in message)


def _field(field: Field, values: Mapping[str, Any]) -> str:
    return formatted(values[field.var], field.conversion, text(field.spec, values))


def formatted(value: Any, conversion: str = "", spec: str = "") -> str:
    """Format a value as `f"{value!conversion:spec}"` does; a number is shown as a number, whatever its type."""
    if conversion == "n":
        return spec if bool(np.asarray(value)) else "None"
    if conversion == "m":
        spec, *texts = spec.split(SEPARATOR)
        return format(texts[int(value)], spec)
    if conversion in ("c", "q"):
        return _characters(value, conversion == "q", *spec.partition(":")[::2])
    if conversion == "l" and np.ndim(value) == 1 and spec.isdecimal():
        return f"[{', '.join(map(str, np.asarray(value)[: int(spec)]))}]"
    value = _plain(value)
    if conversion in ("r", "a") and not isinstance(value, np.generic):
        value = ascii(value) if conversion == "a" else repr(value)
    elif conversion:
        value = str(value)
    try:
        return format(value, spec)
    except (TypeError, ValueError):  # arrays, for which plain Python raises
        return str(value)


def _characters(codes: Any, quoted: bool, length: str, spec: str) -> str:
    """The text of the first `length` codes."""
    shown = "".join(map(chr, np.asarray(codes)[: int(length)]))
    try:
        return format(repr(shown) if quoted else shown, spec)
    except (TypeError, ValueError):
        return shown


def _plain(value: Any) -> Any:
    """An array as a NumPy one, one without axes as its scalar; other objects as they are."""
    if hasattr(value, "__array__"):
        value = np.asarray(value)
        return value[()] if value.ndim == 0 else Shown(str(value))  # `!r` shows an array as `print` does
    return value


# Text form


def show(message: Message) -> str:
    """Return the text form of a message, without parentheses around it."""
    return ", ".join(json.dumps(part) if isinstance(part, str) else _show_field(part) for part in message)


def _show_field(field: Field) -> str:
    conversion = f"!{field.conversion}" if field.conversion else ""
    return field.var + conversion + (f":({show(field.spec)})" if field.spec else "")


def unbound_message(name: str) -> Message:
    """Return the message of Python for a read of a local variable without a value."""
    return (f"cannot access local variable '{name}' where it is not associated with a value",)
