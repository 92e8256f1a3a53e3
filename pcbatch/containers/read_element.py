"""Reading one element of a list of the lane; what can be changed in it is a view of the list."""

from __future__ import annotations

from typing import Any

import jax

from pcbatch.containers.columns import leaf_at
from pcbatch.containers.copies import note_copy
from pcbatch.containers.elements import Rows
from pcbatch.containers.optional import Optional
from pcbatch.containers.ordered_keys import plain
from pcbatch.containers.stored import is_part, is_stored
from pcbatch.origins import Origin, note


def element_at(values: Rows, index: Any) -> Any:
    """Return the element of a list in one place of its columns; a container in it is a view."""
    node, place = values.node, (*values.place, index)
    leaves, tree = jax.tree.flatten(node._columns, is_leaf=is_part)

    def read(leaf: Any, origin: Origin) -> Any:
        if is_stored(leaf):
            return leaf.view(place, values)
        if isinstance(leaf, Optional):
            value = jax.tree.map(lambda part: read(part, origin), leaf.value, is_leaf=is_part)
            return Optional(value, leaf_at(leaf.present, place))
        return None if leaf is None else note(leaf_at(leaf, place), origin)

    found = [read(leaf, origin) for leaf, origin in zip(leaves, node.origins, strict=True)]
    element = plain(jax.tree.unflatten(tree, found))
    return note_copy(values, element)
