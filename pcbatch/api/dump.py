"""One stage of a batched function as text, for types that the command line gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.api.batched import Batched
from pcbatch.api.stages import Lowered
from pcbatch.call.signature import signature
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.jax_types import from_storage, storage_type
from pcbatch.lowering.typing.pytree import flatten
from pcbatch.options import Options


def dump(
    batched: Batched[..., Any], stage: str, avals: Mapping[str, Any] | None, lanes: int, format: str = "text"
) -> str:
    """Print one stage of a batched function.

    Args:
        batched: the function.
        stage: one of `pcbatch.api.stages.STAGES`.
        avals: the type of each parameter for one example, pytrees of `ArrayType`. None: lower without types.
        lanes: the size of the batch.
        format: "text", "json" or "dot".
    """
    return lowered(batched, avals, lanes).show(stage, format)


def lowered(batched: Batched[..., Any], avals: Mapping[str, Any] | None, lanes: int) -> Lowered:
    """Compile a batched function as far as XLA, for a batch of `lanes`, or without types if `avals` is None."""
    if avals is None:
        return Lowered.untyped(batched.fn, batched._programs.is_batched)
    positions = list(signature(batched.fn).parameters)
    args = {}
    for name, aval in avals.items():
        shared = _is_shared(batched.options, name, positions.index(name))
        args[name] = _zeros(aval, () if shared else (lanes,))
    return batched.lower(**args)


def _is_shared(options: Options, name: str, position: int) -> bool:
    """Whether `in_axes` maps no axis of a parameter."""
    match options.in_axes:
        case None:
            return True
        case Mapping() as axes:
            return axes.get(name, 0) is None
        case tuple() | list() as axes:
            return position < len(axes) and axes[position] is None
        case _:
            return False


def _zeros(aval: Any, front: tuple[int, ...]) -> Any:
    """Arrays of these types, with axes in front."""

    def zeros(t: ArrayType) -> Any:
        stored = storage_type(t)
        return from_storage(jnp.zeros((*front, *stored.shape), stored.dtype), t)

    leaves, tree = flatten(aval)
    return jax.tree.unflatten(tree, [zeros(leaf) for leaf in leaves])
