"""Texts of users' values, short enough for a message, and a help for `sorted`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

MOST = 60  # characters of a value
ARRAYS = frozenset({"numpy", "jax", "jaxlib"})  # packages
DEEPEST = 6  # levels of a value
BRACKETS: dict[Any, tuple[str, str]] = {tuple: ("(", ")"), list: ("[", "]"), set: ("{", "}"), frozenset: ("{", "}")}


def short(value: object, most: int = MOST) -> str:
    """Return the `repr` of a value in at most `most` characters; of a longer one the beginning, followed by its type.

    Never raises, and reads no more of a container than it shows.
    """
    text = _Text(most)
    try:
        text.add(value, 0)
    except _Full:
        return f"{text.text[: most - 3]}... of type {type(value).__name__}"
    return text.text


def clipped(text: str, most: int) -> str:
    """Cut a text to at most `most` characters."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


class Shown:
    """An object that shows as a given text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


class _Full(Exception):
    """Raised when the text has its greatest length."""


class _Text:
    def __init__(self, most: int) -> None:
        self.most = most
        self.text = ""

    def put(self, text: str) -> None:
        self.text += text
        if len(self.text) > self.most:
            raise _Full

    def add(self, value: Any, depth: int) -> None:
        """Append the text of a value; raise `_Full` at the greatest length."""
        kind = type(value)
        if depth > DEEPEST:
            self.put("...")
        elif isinstance(value, str | bytes | bytearray) and len(value) > self.most:
            self.put(_plain(value[: self.most])[:-1])
            raise _Full
        elif isinstance(value, tuple) and hasattr(value, "_fields"):
            self.fields(kind.__name__, zip(value._fields, value, strict=False), depth)
        elif kind in BRACKETS:
            self.sequence(value, depth)
        elif kind is dict:
            self.mapping(value, depth)
        elif dataclasses.is_dataclass(value) and getattr(kind.__repr__, "__wrapped__", None) is not None:
            shown = [field.name for field in dataclasses.fields(value) if field.repr]
            self.fields(kind.__qualname__, ((name, getattr(value, name, None)) for name in shown), depth)
        elif kind.__module__.split(".")[0] in ARRAYS and _size(value) > 1:
            self.put(f"{kind.__name__}({value.dtype}{list(value.shape)})")
        else:
            self.put(_plain(value))

    def fields(self, name: str, parts: Iterable[tuple[str, object]], depth: int) -> None:
        self.put(f"{name}(")
        for k, (key, part) in enumerate(parts):
            self.put(", " if k else "")
            self.put(f"{key}=")
            self.add(part, depth + 1)
        self.put(")")

    def sequence(self, value: Any, depth: int) -> None:
        opening, closing = BRACKETS[type(value)]
        if not value and isinstance(value, set | frozenset):
            self.put(f"{type(value).__name__}()")
            return
        self.put(f"frozenset({opening}" if isinstance(value, frozenset) else opening)
        for k, part in enumerate(value):
            self.put(", " if k else "")
            self.add(part, depth + 1)
        self.put("," if isinstance(value, tuple) and len(value) == 1 else "")
        self.put(f"{closing})" if isinstance(value, frozenset) else closing)

    def mapping(self, value: Any, depth: int) -> None:
        self.put("{")
        for k, (key, part) in enumerate(value.items()):
            self.put(", " if k else "")
            self.add(key, depth + 1)
            self.put(": ")
            self.add(part, depth + 1)
        self.put("}")


def _size(value: Any) -> int:
    try:
        return int(value.size)
    except Exception:
        return 0


def _plain(value: object, show: Callable[[object], str] = repr) -> str:
    """Return the `repr` of an object, which may be code of the user's; its type if that raises."""
    try:
        return str(show(value))
    except Exception as error:
        return f"<a {type(value).__name__}, whose repr raises {type(error).__name__}>"
