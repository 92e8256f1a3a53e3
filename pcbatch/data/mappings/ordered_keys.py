"""Dicts as elements of containers: columns that keep the order of their keys, which JAX's pytrees sort."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

from pcbatch.data.container import Container
from pcbatch.data.values import Value


@jax.tree_util.register_pytree_with_keys_class
class OrderedKeys(dict[Any, Any]):
    """A dict whose keys are not sorted, as a pytree that keeps their order; the leaves stand in JAX's order."""

    def tree_flatten_with_keys(self) -> tuple[list[tuple[Value, Value]], tuple[Value, ...]]:
        """Return the values in the order of the sorted keys, and the keys in their own order."""
        return [(jax.tree_util.DictKey(key), self[key]) for key in sorted(self)], tuple(self)

    @classmethod
    def tree_unflatten(cls, keys: tuple[Any, ...], values: Sequence[Any]) -> OrderedKeys:
        """Return a dict with the keys in their own order."""
        items = dict(zip(sorted(keys), values, strict=True))
        return cls((key, items[key]) for key in keys)


def ordered(value: Value) -> Value:
    """Return a dict whose keys are not sorted so that it keeps their order in columns; other values unchanged."""
    if type(value) is not dict:
        return value
    try:
        return value if list(value) == sorted(value) else OrderedKeys(value)
    except TypeError:  # keys that cannot be compared, which JAX refuses
        return value


def with_ordered_keys(value: Value) -> Value:
    """Return a value in which all dicts keep the order of their keys in pytrees."""

    def marked(part: Value) -> Value:
        return OrderedKeys((key, with_ordered_keys(each)) for key, each in part.items()) if _is_unsorted(part) else part

    return jax.tree.map(marked, value, is_leaf=_is_unsorted) if _has(value, _is_unsorted) else value


def keeping_order(fn: Callable[..., Value], *values: Value) -> Value:
    """Return `jax.tree.map(fn, *values)`, in which dicts keep the order of their keys if it is that of all values."""
    if not _has(values[0], _is_unsorted):
        return jax.tree.map(fn, *values)
    marked = [with_ordered_keys(value) for value in values]
    alike = len({jax.tree.structure(value) for value in marked}) == 1
    return plain(jax.tree.map(fn, *marked)) if alike else jax.tree.map(fn, *values)


def plain(value: Value) -> Value:
    """Return a value with Python's own dicts in place of those that keep their order; containers stay as they are."""
    if not _has(value, _is_ordered):
        return value

    def unmarked(part: Value) -> Value:
        return {key: plain(each) for key, each in part.items()} if _is_ordered(part) else part

    return jax.tree.map(unmarked, value, is_leaf=lambda part: _is_ordered(part) or isinstance(part, Container))


def _has(value: Value, test: Callable[[Value], bool]) -> bool:
    return any(map(test, jax.tree.leaves(value, is_leaf=lambda part: test(part) or isinstance(part, Container))))


def _is_ordered(value: object) -> bool:
    return isinstance(value, OrderedKeys)


def _is_unsorted(value: object) -> bool:
    return ordered(value) is not value
