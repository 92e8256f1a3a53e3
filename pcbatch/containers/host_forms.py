"""The forms that containers of lanes have in the results of a call.

A result comes with the lanes along the first axis of each leaf of a container. Users get another object in its place,
made for reading: a `Ragged` for lists.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

_forms: dict[type, Callable[[Any], Any]] = {}


def register(container: type, form: Callable[[Any], Any]) -> None:
    """Let results have `form(value)` in place of a container of this class, whose leaves are [lanes, ...] each."""
    _forms[container] = form


def has_form(value: object) -> bool:
    """Whether a value is a container that has another form in results."""
    return type(value) in _forms


def in_host_form(value: Any) -> Any:
    """Return a value with containers in the forms that users see; the leaves may be of any kind."""
    return jax.tree.map(lambda x: _forms[type(x)](x) if has_form(x) else x, value, is_leaf=has_form)


def container_leaves(value: Any) -> list[bool]:
    """Return, for each leaf of a value in order, whether it is part of a container with another form."""
    parts = jax.tree.leaves(value, is_leaf=has_form)
    return [has_form(part) for part in parts for _ in jax.tree.leaves(part)]
