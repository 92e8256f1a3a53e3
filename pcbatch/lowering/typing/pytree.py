"""Structures of values: the pytrees of JAX, except that a dict keeps the order of its keys.

JAX sorts the keys, so a loop over a dict in a variable would take another order than in plain Python. A dict whose keys
are not sorted is flattened as a node of its own, which gives back the dict as it was. Its leaves stand in JAX's order
all the same: dicts that differ in the order of their keys differ in nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax


@jax.tree_util.register_pytree_node_class
class _Ordered:
    """Stands for a dict while it is flattened."""

    def __init__(self, items: dict[Any, Any]) -> None:
        self.items = items

    def tree_flatten(self) -> tuple[list[Any], tuple[Any, ...]]:
        """Return the values in the order of the sorted keys, and the keys in their own order."""
        return [self.items[key] for key in sorted(self.items)], tuple(self.items)

    @classmethod
    def tree_unflatten(cls, keys: tuple[Any, ...], values: Sequence[Any]) -> Any:
        """Return a plain dict, with the keys in their own order."""
        items = dict(zip(sorted(keys), values, strict=True))
        return {key: items[key] for key in keys}


def flatten(value: Any) -> tuple[list[Any], Any]:
    """Flatten like `jax.tree.flatten`, but so that `jax.tree.unflatten` gives back the order of all dicts."""
    leaves, tree = jax.tree.flatten(value, is_leaf=_unsorted)
    return jax.tree.flatten(_marked(value)) if any(map(_unsorted, leaves)) else (leaves, tree)


def mapped(fn: Callable[..., Any], value: Any, *others: Any) -> Any:
    """Return `jax.tree.map(fn, value, *others)`, in which dicts keep the order that they have in `value`."""
    leaves, tree = flatten(value)
    return jax.tree.unflatten(tree, list(map(fn, leaves, *map(jax.tree.leaves, others))))


def children_of(value: Any) -> tuple[list[Any], Any]:
    """Return the children of a node, and its own structure, which gives back the order of a dict."""
    node = _Ordered(value) if _unsorted(value) else value
    return jax.tree.flatten(node, is_leaf=lambda part: part is not node)


def without_order(tree: Any) -> Any:
    """Return the structure in which all dicts are sorted; the order of the leaves is the same."""
    return jax.tree.structure(jax.tree.unflatten(tree, list(range(tree.num_leaves))))


def _unsorted(value: Any) -> bool:
    if type(value) is not dict:
        return False
    try:
        return list(value) != sorted(value)
    except TypeError:  # keys that cannot be compared, which JAX refuses
        return False


def _marked(value: Any) -> Any:
    def mark(leaf: Any) -> Any:
        return _Ordered({key: _marked(part) for key, part in leaf.items()}) if _unsorted(leaf) else leaf

    return jax.tree.map(mark, value, is_leaf=_unsorted)
