"""Classes of the user's that JAX knows the parts of: their objects are pytrees of their attributes."""

from __future__ import annotations

from typing import Any

import jax

from pcbatch.data.object_parts import attributes

_registered: list[type] = []


def register_class(cls: type) -> None:
    """Register a class with JAX, which nobody has registered."""
    jax.tree_util.register_pytree_with_keys(cls, _flatten, _unflattener(cls))
    _registered.append(cls)


def registered_classes() -> int:
    """Return how many classes `register_class` has registered."""
    return len(_registered)


def _flatten(value: Any) -> tuple[tuple[tuple[Any, Any], ...], tuple[str, ...]]:
    found = attributes(value)
    names = tuple(sorted(found))
    return tuple((jax.tree_util.GetAttrKey(name), found[name]) for name in names), names


def _unflattener(cls: type) -> Any:
    def unflatten(names: tuple[str, ...], children: Any) -> Any:
        value: Any = object.__new__(cls)
        for name, child in zip(names, children, strict=True):
            object.__setattr__(value, name, child)
        return value

    return unflatten
