"""The forms that containers of lanes have in the results of a call.

A result has the lanes along the first axis of each leaf of a container. Users get an object made for reading instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax


def is_concrete(leaf: Any) -> bool:
    """Whether a leaf is an array of JAX whose elements this process can read."""
    return isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer) and leaf.is_fully_addressable


_forms: dict[type, Callable[[Any], Any]] = {}


def register(container: type, form: Callable[[Any], Any]) -> None:
    """Let results have `form(value)` in place of a container of this class, whose leaves are [lanes, ...] each."""
    _forms[container] = form


def has_form(value: object) -> bool:
    """Whether a value is a container that has another form in results."""
    return type(value) in _forms


def in_host_form(value: Any) -> Any:
    """Return a value with containers in the forms that users see; the leaves may be of any kind."""
    return replaced(value, has_form, lambda x: _forms[type(x)](x))


def replaced(value: Any, is_part: Callable[[object], bool], new: Callable[[Any], Any]) -> Any:
    """Return a pytree with other objects in place of some parts; dicts keep the order of their keys."""
    if is_part(value):
        return new(value)

    def stop(x: object) -> bool:
        return type(x) is dict or is_part(x)

    def one(x: Any) -> Any:
        if is_part(x):
            return new(x)
        return {key: replaced(part, is_part, new) for key, part in x.items()} if type(x) is dict else x

    return jax.tree.map(one, value, is_leaf=stop)


def container_leaves(value: Any) -> list[bool]:
    """Return, for each leaf of a value in order, whether it is part of a container with another form."""
    parts = jax.tree.leaves(value, is_leaf=has_form)
    return [has_form(part) for part in parts for _ in jax.tree.leaves(part)]
