"""Values in place of old ones, which stay where a lane has raised before what a `try` catches."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.data.checks import going_on
from pcbatch.data.columns import Shape, Unset, padded
from pcbatch.data.mappings.ordered_keys import plain
from pcbatch.data.origins import either, note


def kept(old: Any, new: Any, lead: Shape = ()) -> Any:
    """Return an element, or columns with a lead, in place of old ones, which stay where a lane has raised before."""
    from pcbatch.data.elements import prepare, unify

    if (here := going_on()) is True or isinstance(old, Unset):
        return new
    if lead:
        old, new = unify(padded(old, 0, lead[0]), lead, new, lead)
        return jax.tree.map(partial(jnp.where, here), new, old)
    old, new = unify(prepare(old), (), prepare(new), ())
    return plain(jax.tree.map(lambda x, y: note(jnp.where(here, y, x), either(x, y)), old, new))


def kept_length(old: Any, new: Any) -> Any:
    """Return a length, which may be known, in place of an old one."""
    return new if (here := going_on()) is True else jnp.where(here, new, old)
