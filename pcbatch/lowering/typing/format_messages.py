"""Messages rewritten over array leaves: known values become text, a pytree the text of its structure.

before:  print("p = ", p, ", mode ", mode)          after:  print("p = Point(x=", p.x, ", y=", p.y, "), mode fast")
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax

from pcbatch.data.host.host_forms import replaced
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.texts.lane_text import LaneText
from pcbatch.diagnostics.short_repr import Shown
from pcbatch.ir.message import Field, Message, formatted, joined
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.abstract_values import Abstract, Known, leaf_names

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
        if is_text(value):
            length = str(value.leaves[1].value) if isinstance(value.leaves[1], Known) else Field(names[1])
            ending = joined((length, ":", *spec)) if spec else (length,)
            return (Field(names[0], "q" if part.conversion in ("r", "a") else "c", ending),)
        if value.tree == jax.tree.structure(0):
            return (Field(names[0], part.conversion, spec),)
        return _structure(value, names)


def is_text(value: Abstract) -> bool:
    """Whether a type is that of texts of the lane."""
    return is_text_node(value.tree)


def is_text_node(tree: Any) -> bool:
    """Whether the root of a structure is a text of the lane."""
    node = tree.node_data()
    return node is not None and node[0] is LaneText


def _structure(value: Abstract, names: tuple[str, ...]) -> Message:
    """The text of a pytree around the values of its leaves."""
    fields = [Field(name, "r") for name in names]
    shown: list[Any] = [
        Shown(f"{MARK}{k}{MARK}") if isinstance(leaf, ArrayType) else leaf.value for k, leaf in enumerate(value.leaves)
    ]
    number = {id(mark): k for k, mark in enumerate(shown)}

    def is_list(part: object) -> bool:
        """Whether a part is a list of numbers: one column, and a length."""
        if type(part) is not LaneList or id(part.columns) not in number:
            return False
        leaf = value.leaves[number[id(part.columns)]]
        return isinstance(leaf, ArrayType) and len(leaf.shape) == 1

    def listed(part: Any) -> Shown:
        length = fields[number[id(part.length)]] if isinstance(part.length, Shown) else str(part.length)
        fields.append(Field(fields[number[id(part.columns)]].var, "l", (length,)))
        return Shown(f"{MARK}{len(fields) - 1}{MARK}")

    text = str(replaced(jax.tree.unflatten(value.tree, shown), is_list, listed))
    parts = text.split(MARK)  # text, number, text, number, ..., text
    return tuple(fields[int(part)] if k % 2 else part for k, part in enumerate(parts))
