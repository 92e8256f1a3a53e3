"""Messages rewritten over array leaves: known values become text, a pytree the text of its structure.

before:  print("p = ", p, ", mode ", mode)          after:  print("p = Point(x=", p.x, ", y=", p.y, "), mode fast")
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax

from pcbatch.data.host.host_forms import replaced
from pcbatch.data.members import MemberValue
from pcbatch.data.optional import Optional
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.texts.lane_text import LaneText
from pcbatch.diagnostics.short_repr import Shown
from pcbatch.errors import Refusal
from pcbatch.ir.message import SEPARATOR, Field, Message, formatted, joined
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.abstract_values import Abstract, Known, leaf_names

ASKS = "the text of an object depends on values of the lane"
MADE_FIRST = "make the text of each object in the lane, and show that: `str(x)`"
MARK = "\0"  # stands around the number of a leaf while the text of a structure is made


@dataclass(frozen=True, slots=True)
class Show:
    """Rewrites the messages of a function, whose variables have these types."""

    function: str
    types: Mapping[tuple[str, str], Abstract]

    def __call__(self, message: Message) -> Message:
        return joined(tuple(part for item in message for part in self._part(item)))

    def _part(self, part: str | Field) -> Message:
        if isinstance(part, str):
            return (part,)
        value = self.types.get((self.function, part.var))
        assert value is not None, part.var
        spec = self(part.spec)
        names = leaf_names(part.var, value)
        if value.known:
            return (formatted(value.value(), part.conversion, "".join(s for s in spec if isinstance(s, str))),)
        if is_text(value):
            length = str(value.leaves[1].value) if isinstance(value.leaves[1], Known) else Field(names[1])
            ending = joined((length, ":", *spec)) if spec else (length,)
            return (Field(names[0], "q" if part.conversion in ("r", "a") else "c", ending),)
        if (node := value.tree.node_data()) is not None and node[0] is MemberValue:
            return (Field(names[0], "m", joined((*spec, _texts(value.tree, part.conversion)))),)
        if value.tree == jax.tree.structure(0):
            return (Field(names[0], part.conversion, spec),)
        return _structure(value, names, part.conversion in ("r", "a"))


def is_text(value: Abstract) -> bool:
    """Whether a type is that of texts of the lane."""
    return is_text_node(value.tree)


def is_text_node(tree: Any) -> bool:
    """Whether the root of a structure is a text of the lane."""
    node = tree.node_data()
    return node is not None and node[0] is LaneText


def _texts(tree: Any, conversion: str) -> str:
    """The texts of the members of an enumeration, as the spec of a field has them."""
    make = repr if conversion in ("r", "a") else str if conversion == "s" else format
    members = jax.tree.unflatten(tree, [0]).members
    return "".join(f"{SEPARATOR}{make(member)}" for member in members)


class _Mark(Shown):
    """Stands for a value of the lane while the text of a structure is made: it can be shown, and nothing else."""

    def __init__(self, place: int, fields: list[Field]) -> None:
        super().__init__(f"{MARK}{place}{MARK}")
        self.place, self.fields = place, fields

    def __format__(self, spec: str) -> str:
        if not spec:
            return self.text
        self.fields.append(Field(self.fields[self.place].var, "", (spec,)))
        return f"{MARK}{len(self.fields) - 1}{MARK}"

    def _asked(self, *others: object) -> Any:
        raise TypeError("a method that makes a text asks for a value of the lane")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = _asked
    __hash__ = object.__hash__


def _structure(value: Abstract, names: tuple[str, ...], quoted: bool) -> Message:
    """The text of a pytree around the values of its leaves."""
    fields = [Field(name, "r") for name in names]
    shown: list[Any] = [
        _Mark(k, fields) if isinstance(leaf, ArrayType) else leaf.value for k, leaf in enumerate(value.leaves)
    ]
    number = {id(mark): k for k, mark in enumerate(shown)}

    def is_part(part: object) -> bool:
        """Whether a part is a text, a member, a value that may be None, or a list of numbers: a column and a length."""
        if type(part) in (LaneText, MemberValue, Optional):
            return True
        if type(part) is not LaneList or id(part.columns) not in number:
            return False
        leaf = value.leaves[number[id(part.columns)]]
        return isinstance(leaf, ArrayType) and len(leaf.shape) == 1

    def field(leaf: Any) -> str | Field:
        return fields[number[id(leaf)]] if isinstance(leaf, Shown) else str(leaf)

    def kept(leaf: Any, conversion: str, spec: Message) -> Shown:
        fields.append(Field(fields[number[id(leaf)]].var, conversion, spec))
        return Shown(f"{MARK}{len(fields) - 1}{MARK}")

    def marked(part: Any, quoted: bool = True) -> Any:
        if type(part) is LaneText:
            codes, length = jax.tree.leaves(part)
            return kept(codes, "q" if quoted else "c", (field(length),))
        if type(part) is MemberValue:
            return kept(part.index, "m", (_texts(jax.tree.structure(part), "r" if quoted else ""),))
        if type(part) is LaneList:
            return kept(part.columns, "l", (field(part.length),))
        inner = marked(part.value, quoted) if is_part(part.value) else replaced(part.value, is_part, marked)
        if not isinstance(part.present, Shown):  # known while compiling
            return inner if part.present else None
        return kept(part.present, "n", message(inner))

    def message(whole: Any) -> Message:
        try:
            text = str(whole)
        except Exception as error:  # a method of the user's does more than to show its attributes
            raise Refusal("PCB304", ASKS, helps=(MADE_FIRST,)) from error
        parts = text.split(MARK)  # text, number, text, number, ..., text
        return joined(tuple(fields[int(part)] if k % 2 else part for k, part in enumerate(parts)))

    whole = jax.tree.unflatten(value.tree, shown)
    return message(marked(whole, quoted) if is_part(whole) else replaced(whole, is_part, marked))
