"""Structures of values: the pytrees of JAX, except that a dict keeps the order of its keys.

JAX sorts the keys, so a loop over a dict in a variable would take another order than in plain Python. A dict whose keys
are not sorted is flattened as a node of its own, which gives back the dict as it was. Its leaves stand in JAX's order
all the same: dicts that differ in the order of their keys differ in nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

IsLeaf = Callable[[Any], bool]


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


def is_dict(kind: Any) -> bool:
    """Return whether a class of the nodes of a structure is the one of dicts, in JAX's order of the keys or another."""
    return kind in (dict, _Ordered)


def flatten(value: Any, is_leaf: IsLeaf | None = None) -> tuple[list[Any], Any]:
    """Flatten like `jax.tree.flatten`, but so that `jax.tree.unflatten` gives back the order of all dicts."""

    def stop(part: Any) -> bool:
        return _unsorted(part) or (is_leaf is not None and is_leaf(part))

    leaves, tree = jax.tree.flatten(value, is_leaf=stop)
    return jax.tree.flatten(_marked(value, stop), is_leaf=is_leaf) if any(map(_unsorted, leaves)) else (leaves, tree)


def mapped(fn: Callable[..., Any], value: Any, *others: Any, is_leaf: IsLeaf | None = None) -> Any:
    """Return `jax.tree.map(fn, value, *others)`, in which dicts keep the order that they have in `value`."""
    leaves, tree = flatten(value, is_leaf)
    return jax.tree.unflatten(tree, list(map(fn, leaves, *map(jax.tree.leaves, others))))


def children_of(value: Any) -> tuple[list[Any], Any]:
    """Return the children of a node, and its own structure, which gives back the order of a dict."""
    node = _Ordered(value) if _unsorted(value) else value
    return jax.tree.flatten(node, is_leaf=lambda part: part is not node)


def common_order(a: Any, b: Any) -> Any:
    """Return the structure that two are once each dict that has its keys in another order in them is sorted; None if
    they differ in more."""
    one, two = (jax.tree.unflatten(structure, list(range(structure.num_leaves))) for structure in (a, b))
    tree: Any = flatten(one)[1]
    if tree == flatten(two)[1]:  # unlike in what containers note of their leaves, which is noted anew
        return tree
    tree = jax.tree.structure(one)
    return flatten(_agreed(one, two))[1] if tree == jax.tree.structure(two) else None


def _agreed(x: Any, y: Any) -> Any:
    """A value in which the dicts are sorted whose keys have another order in one of the same structure."""
    if type(x) is dict:
        return {key: _agreed(x[key], y[key]) for key in (x if list(x) == list(y) else sorted(x))}
    parts, tree = jax.tree.flatten(x, is_leaf=lambda part: part is not x)
    others = jax.tree.leaves(y, is_leaf=lambda part: part is not y)
    return x if jax.tree_util.treedef_is_leaf(tree) else jax.tree.unflatten(tree, list(map(_agreed, parts, others)))


def _unsorted(value: Any) -> bool:
    if type(value) is not dict:
        return False
    try:
        return list(value) != sorted(value)
    except TypeError:  # keys that cannot be compared, which JAX refuses
        return False


def _marked(value: Any, stop: IsLeaf) -> Any:
    def mark(leaf: Any) -> Any:
        return _Ordered({key: _marked(part, stop) for key, part in leaf.items()}) if _unsorted(leaf) else leaf

    return jax.tree.map(mark, value, is_leaf=stop)
