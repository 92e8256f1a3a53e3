"""Iterators of the lane that are kept, `it = iter(xs)`: a sequence, and the number of elements that were taken.

An iterator is an object that `next` changes. What it goes over may not change meanwhile: the check of ownership knows
that it holds that object.
"""

from __future__ import annotations

from pcbatch.data.pytree_node import pytree_node
from pcbatch.data.values import Index, Value
from pcbatch.decisions import Cure
from pcbatch.errors import Refusal

HELPS = ("take its elements by `next(it)` or in `for x in it`, or make a list of them, `xs = list(it)`",)

GENERATOR = "__generator__"
"""The attribute by which a class tells that its objects stand for generators."""
LISTS: type = type(iter([]))


@pytree_node("sequence", "position", "kind")
class LaneIterator:
    """An iterator over a list, a range, a text or an array; `kind` is no number, so that it is no result of a batch."""

    def __init__(self, sequence: Value, position: Index, kind: type = LISTS) -> None:
        self.sequence, self.position, self.kind = sequence, position, kind

    def __repr__(self) -> str:
        return f"iterator over {self.sequence!r}"

    def __iter__(self) -> Value:
        raise Refusal("PCB304", "an iterator that is kept cannot be taken from here", helps=HELPS)

    __next__ = __iter__

    def __contains__(self, value: object) -> bool:
        return self.__iter__()  # type: ignore[no-any-return]


class Asked(Refusal):
    """Elements come from methods of the user's: the compiler writes out the calls of these."""

    def __init__(self) -> None:
        title = "methods of the user's give elements one by one, and cannot be written out here"
        helps = ("go over the object, in a variable, in a `for` statement",)
        super().__init__("PCB305", title, helps=helps, cures=Cure.ALONG | Cure.METHODS)
