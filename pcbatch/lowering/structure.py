"""Structures of values: the pytrees of JAX, but a dict keeps the order of its keys.

JAX sorts them, so that a loop over a dict that was kept in a variable would go another way than in plain Python. A dict
whose keys are not sorted is flattened as a node of its own, which gives the dict back as it was; nothing else changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax


@jax.tree_util.register_pytree_with_keys_class
class _Ordered:
    """Stands for a dict while it is flattened."""

    def __init__(self, items: dict[Any, Any]) -> None:
        self.items = items

    def tree_flatten_with_keys(self) -> tuple[list[tuple[Any, Any]], tuple[Any, ...]]:
        """The values with their places, and the keys in order."""
        return [(jax.tree_util.DictKey(key), value) for key, value in self.items.items()], tuple(self.items)

    def tree_flatten(self) -> tuple[list[Any], tuple[Any, ...]]:
        """The values, and the keys in order."""
        return list(self.items.values()), tuple(self.items)

    @classmethod
    def tree_unflatten(cls, keys: tuple[Any, ...], values: Sequence[Any]) -> Any:
        """The dict itself."""
        return dict(zip(keys, values, strict=True))


def flatten(value: Any) -> tuple[list[Any], Any]:
    """As `jax.tree.flatten`; `jax.tree.unflatten` gives back the value, the order of all dicts included."""
    leaves, tree = jax.tree.flatten(value, is_leaf=_unsorted)
    return jax.tree.flatten(_marked(value)) if any(map(_unsorted, leaves)) else (leaves, tree)


def paths(tree: Any) -> list[Any]:
    """Where each leaf of a structure stands."""
    probe = jax.tree.unflatten(tree, list(range(tree.num_leaves)))
    return [path for path, _ in jax.tree_util.tree_flatten_with_path(_marked(probe))[0]]


def in_order_of(tree: Any, leaves: Sequence[Any]) -> list[Any]:
    """Leaves that JAX gave, in the order of a structure that `flatten` gave."""
    places = jax.tree.leaves(jax.tree.unflatten(tree, list(range(tree.num_leaves))))
    found = dict(zip(places, leaves, strict=True))
    return [found[k] for k in range(len(found))]


def same_but_for_order(a: Any, b: Any) -> bool:
    """Do two structures differ in the order of keys only?"""
    sorted_: list[Any] = [jax.tree.structure(jax.tree.unflatten(t, list(range(t.num_leaves)))) for t in (a, b)]
    return bool(sorted_[0] == sorted_[1])


def _unsorted(value: Any) -> bool:
    if type(value) is not dict:
        return False
    try:
        return list(value) != sorted(value)
    except TypeError:  # keys that cannot be compared
        return True


def _marked(value: Any) -> Any:
    def mark(leaf: Any) -> Any:
        return _Ordered({key: _marked(part) for key, part in leaf.items()}) if _unsorted(leaf) else leaf

    return jax.tree.map(mark, value, is_leaf=_unsorted)
