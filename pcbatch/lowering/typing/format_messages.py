"""Messages rewritten over array leaves: known values become text, a pytree the text of its structure.

before:  print("p = ", p, ", mode ", mode)          after:  print("p = Point(x=", p.x, ", y=", p.y, "), mode fast")
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax

from pcbatch.ir.message import Field, Message, formatted, joined
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.abstract_values import Abstract, leaf_names

MARK = "\0"  # stands around the number of a leaf while the text of a structure is made


@dataclass(frozen=True, slots=True)
class Show:
    """Rewrites the messages of one function; `type_of` gives the type of a variable."""

    type_of: Callable[[str], Abstract | None]

    def __call__(self, message: Message) -> Message:
        return joined(tuple(part for item in message for part in self._part(item)))

    def _part(self, part: str | Field) -> Message:
        if isinstance(part, str):
            return (part,)
        value = self.type_of(part.var)
        assert value is not None, part.var
        spec = self(part.spec)
        names = leaf_names(part.var, value)
        if value.known:
            return (formatted(value.value(), part.conversion, "".join(s for s in spec if isinstance(s, str))),)
        if value.tree == jax.tree.structure(0):
            return (Field(names[0], part.conversion, spec),)
        return _structure(value, names)


def _structure(value: Abstract, names: tuple[str, ...]) -> Message:
    """The text of a pytree around the values of its leaves."""
    fields = {f"{MARK}{k}{MARK}": name for k, name in enumerate(names)}
    shown: list[Any] = [
        _Written(mark) if isinstance(leaf, ArrayType) else leaf.value
        for leaf, mark in zip(value.leaves, fields, strict=True)
    ]
    text = str(jax.tree.unflatten(value.tree, shown))
    parts = text.split(MARK)  # text, number, text, number, ..., text
    return tuple(Field(names[int(part)], "r") if k % 2 else part for k, part in enumerate(parts))


class _Written:
    """An object that shows as a given text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text
