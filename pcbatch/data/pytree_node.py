"""Classes that are nodes of JAX's pytrees, by the names of their attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import jax

ClassT = TypeVar("ClassT", bound=type[Any])


def pytree_node(*parts: str, static: str | None = None, named: bool = False) -> Callable[[ClassT], ClassT]:
    """Return a decorator that makes a class a node of pytrees; its subclasses have to be decorated as well.

    Args:
        *parts: the attributes that are its children, the first parameters of the class. They may be any objects.
        static: the attribute that is static data, the parameter behind them; None: there is none.
        named: whether the paths of its leaves have the names of the attributes.
    """
    keys = tuple(map(jax.tree_util.GetAttrKey, parts))

    def flatten(node: Any) -> tuple[tuple[Any, ...], Any]:
        return tuple([getattr(node, part) for part in parts]), None if static is None else getattr(node, static)

    def flatten_with_keys(node: Any) -> tuple[tuple[tuple[Any, Any], ...], Any]:
        children, data = flatten(node)
        return tuple(zip(keys, children, strict=True)), data

    def registered(cls: ClassT) -> ClassT:
        def unflatten(data: Any, children: Iterable[Any]) -> Any:
            return cls(*children) if static is None else cls(*children, data)

        if named:
            jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
        else:
            jax.tree_util.register_pytree_node(cls, flatten, unflatten)
        return cls

    return registered
