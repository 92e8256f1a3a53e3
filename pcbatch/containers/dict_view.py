"""Views of the keys, values or items of a dict of the lane."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pcbatch.containers import keys as lane_keys
from pcbatch.containers import list_order
from pcbatch.containers.container import Container
from pcbatch.containers.lane_list import LaneList
from pcbatch.containers.pytree_node import pytree_node
from pcbatch.origins import number


@pytree_node("source", static="part")
class DictView(Container):
    """The keys, values or items of a dict of the lane.

    Attributes:
        source: the dict, which this is a view of.
        part: "keys", "values" or "items".
    """

    def __init__(self, source: Any, part: str) -> None:
        self.source, self.part = source, part
        self.parent = self.snapshot = source if isinstance(source, Container) else None

    def __repr__(self) -> str:
        return f"{self.part} of {self.source!r}"

    def length(self) -> Any:
        """Return `len` of the view."""
        return self.source.length()

    def as_list(self) -> LaneList:
        """Return the list of the elements."""
        made: LaneList = getattr(self.source, f"{self.part}_list")()
        return made

    def contains(self, value: Any) -> Any:
        """Return `value in` the view."""
        if self.part == "keys":
            return self.source.contains(value)
        if self.part == "values":
            return self.as_list().contains(value)
        if not isinstance(value, tuple) or len(value) != 2 or self.source.table is None:
            return False
        found = self.source.table.find(lane_keys.hashable(value[0]))
        return number(found.present & list_order.equal(self.source._taken(found), value[1]))

    def __len__(self) -> int:
        return len(self.source)

    def __bool__(self) -> bool:
        return bool(self.source)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.as_list())

    def __contains__(self, value: Any) -> bool:
        return bool(self.contains(value))
