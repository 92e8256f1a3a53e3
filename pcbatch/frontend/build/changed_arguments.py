"""Arguments of calls whose objects the callee changes in place: they are further results of the call.

sort(grid[i])        ==>      t0 = grid[i];  t1, t0 = call @sort(t0);  grid = support.set_item(grid, (i,), t0)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import gast

from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.build.evaluation_order import assigned, copied
from pcbatch.frontend.build.mutations import put_back
from pcbatch.frontend.source.places import Place, place_of
from pcbatch.frontend.source.tree import Node, load, rebuild


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments of a call by parameter, and the places of those that the callee changes."""

    nodes: Mapping[str, Node]
    places: dict[str, Place]

    def fixed(self, b: Builder, lower: Callable[[Builder, Node], Node], node: Node) -> Node:
        """An argument; the indices in a place that the callee changes are evaluated here."""
        name = next((name for name in self.places if self.nodes[name] is node), None)
        if name is None:
            return node
        node = _with_evaluated_keys(b, node, lower)
        self.places[name] = place_of(b.unit, node) or self.places[name]
        return node

    def written(
        self,
        b: Builder,
        name: str,
        variables: Mapping[str, str],
        outer: Mapping[str, str],
        taken: Sequence[str],
    ) -> str:
        """The variable that receives what a parameter is after the call.

        Args:
            b: the builder.
            name: the parameter.
            variables: the variables that were passed, by parameter.
            outer: likewise those that the callee has captured.
            taken: the variables that receive other results.
        """
        place = self.places.get(name)
        variable = outer.get(name) if place is None else place.name
        passed = outer.get(name, variables.get(name))
        whole = variable is not None and (place is None or not place.keys)
        return str(variable) if whole and passed == variable and variable not in taken else b.temp()

    def write_back(self, b: Builder, written: Sequence[str], names: Sequence[str], at: Node) -> None:
        """Store what was passed as a part of a variable, and was changed, in that part."""
        for name, variable in zip(names, written, strict=True):
            place = self.places.get(name)
            if place is not None and place.keys:
                put_back(b, place, place.operands, load(variable, at), at)


def given_places(b: Builder, nodes: Mapping[str, Node], changed: Sequence[str]) -> Given:
    """Return the arguments of a call, with the places of those that it changes.

    What an argument after a place takes out of its variable or puts there may move the object that was passed: such a
    place is none, so the check of ownership sees that the object has another name.
    """
    places, names = {}, frozenset[str]()
    for name in reversed(list(nodes)):
        node = nodes[name]
        place = place_of(b.unit, node) if name in changed else None
        if place is not None and (not place.keys or place.name not in names):
            places[name] = place
        names |= assigned(b, node)
    return Given(nodes, places)


def _with_evaluated_keys(b: Builder, node: Node, lower: Callable[[Builder, Node], Node]) -> Node:
    """A place whose indices are variables or literals that nothing else assigns."""
    if isinstance(node, gast.Name):
        return node

    def evaluated(index: Node) -> Node:
        if isinstance(index, gast.Slice | gast.Tuple):
            return rebuild(index, lambda child: evaluated(child) if isinstance(child, gast.expr) else child)
        return index if isinstance(index, gast.Constant) else copied(b, lower(b, index))

    value = _with_evaluated_keys(b, node.value, lower)
    if isinstance(node, gast.Attribute):
        return rebuild(node, lambda child: value if child is node.value else child)
    return gast.copy_location(gast.Subscript(value=value, slice=evaluated(node.slice), ctx=node.ctx), node)
