"""Arguments of calls whose objects the callee changes in place: they are further results of the call.

sort(grid[i])        ==>      t0 = grid[i];  t1, t0 = call @sort(t0);  grid = support.set_item(grid, (i,), t0)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import gast

from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.build.mutations import set_place
from pcbatch.frontend.source.places import Place, place_of
from pcbatch.frontend.source.tree import Node, load, rebuild


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments of a call by parameter, and the places of those that the callee changes."""

    nodes: Mapping[str, Node]
    places: Mapping[str, Place]

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
                set_place(b, place, place.operands, load(variable, at), at)


def given_places(b: Builder, nodes: Mapping[str, Node], changed: Sequence[str]) -> Given:
    """Return the arguments of a call, with the indices in places that it changes evaluated first."""
    new, places = dict(nodes), {}
    for name in changed:
        place = None if name not in nodes else place_of(b.unit, nodes[name])
        if place is not None:
            new[name] = _with_evaluated_keys(b, nodes[name])
            places[name] = place_of(b.unit, new[name]) or place
    return Given(new, places)


def _with_evaluated_keys(b: Builder, node: Node) -> Node:
    """A place whose indices are variables or literals that nothing else assigns."""
    if isinstance(node, gast.Name):
        return node
    if isinstance(node, gast.Attribute):
        return rebuild(node, lambda child: _with_evaluated_keys(b, child) if child is node.value else child)
    index = _evaluated(b, node.slice)
    value = _with_evaluated_keys(b, node.value)
    return gast.copy_location(gast.Subscript(value=value, slice=index, ctx=node.ctx), node)


def _evaluated(b: Builder, index: Node) -> Node:
    if isinstance(index, gast.Slice | gast.Tuple):
        return rebuild(index, lambda child: _evaluated(b, child) if isinstance(child, gast.expr) else child)
    if isinstance(index, gast.Constant):
        return index
    temp = b.temp()
    b.prim((temp,), index)
    return b.held(temp, index)
