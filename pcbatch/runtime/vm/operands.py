"""Operands of the operations of a block, for all places of a window, and the application of functions of one lane.

An operand is a whole register, one value for each place, or one value that all lanes share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp

from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.trace import is_key_array
from pcbatch.runtime.vm import lanes_last
from pcbatch.runtime.vm.lane_window import Window, lanes_first


@dataclass(frozen=True, slots=True)
class Whole:
    """An operand that is a whole register, [lanes, ...], in place: touches gather from it and scatter into it."""

    array: Any


@dataclass(frozen=True, slots=True)
class Batch:
    """An operand with one value for each place of the window, [width, ...], or [..., width] if `lanes_are_last`."""

    array: Any
    lanes_are_last: bool = False

    @property
    def value(self) -> Any:
        """The values, [width, ...]."""
        return lanes_first(self.array) if self.lanes_are_last else self.array


@dataclass(frozen=True, slots=True)
class Common:
    """An operand with one value for all lanes, unbatched."""

    value: Any


Operand = Whole | Batch | Common


def moved(operand: Operand, window: Window) -> Operand:
    """Return an operand as the source of a move: a register is read, since only the register itself is stored into."""
    return Batch(window.read(operand.array)) if isinstance(operand, Whole) else operand


def batched(fn: Any, operands: Sequence[Operand], window: Window) -> list[Operand]:
    """Apply a function of one lane to all places at once.

    `fn` takes a value per operand and gives a list. `Common` operands enter it unbatched; if all are, results are
    `Common` as well.
    """
    values = [at_places(operand, window) for operand in operands]
    axes = tuple(None if isinstance(operand, Common) else 0 for operand in operands)
    if all(axis is None for axis in axes):
        return [Common(value) for value in fn(*values)]
    outs: Sequence[Any] = jax.vmap(fn, in_axes=axes, axis_size=window.width)(*values)
    return [Batch(value) for value in outs]


def applied_lanes_last(closed: jex.ClosedJaxpr, operands: Sequence[Operand], window: Window) -> list[Operand]:
    """Evaluate the jaxpr of one lane for all places at once, see `lanes_last.py`."""

    def placed(operand: Operand) -> lanes_last.Placed:
        match operand:
            case Common(value=value):
                return lanes_last.Placed(value, None)
            case Batch(array=array, lanes_are_last=last):
                return lanes_last.Placed(array, -1 if last or jnp.ndim(array) == 1 else 0)
            case Whole(array=array):
                return lanes_last.Placed(window.read(array), 0)

    ins = [placed(operand) for operand in operands]
    ins = [replace(x, array=_of_dtype(x.array, v.aval.dtype)) for x, v in zip(ins, closed.jaxpr.invars, strict=True)]
    outs = lanes_last.evaluate(closed, ins, window.width)
    return [Common(x.array) if x.axis is None else Batch(x.array, x.axis == -1 and x.array.ndim > 1) for x in outs]


def _of_dtype(array: Any, dtype: Any) -> Any:
    return array if is_key_array(array) else jnp.asarray(array, dtype)


def converted(operand: Operand, cast: ArrayType | None) -> Operand:
    """Return a result converted to another type, if one is given."""
    if cast is None:
        return operand
    dtype = jnp.dtype(cast.dtype)
    match operand:
        case Batch(array=array):
            return replace(operand, array=jax.lax.convert_element_type(array, dtype))
        case Common(value=value):
            return Common(jax.lax.convert_element_type(value, dtype))
        case Whole():
            raise AssertionError("a register that is stored into keeps its type")


def at_places(operand: Operand, window: Window) -> Any:
    """Return the values of an operand at the places of a window, [width, ...], or the one that all lanes share."""
    return window.read(operand.array) if isinstance(operand, Whole) else operand.value


def everywhere(operand: Operand, window: Window) -> Any:
    """Return an operand's values at all places, [width, ...]."""
    if isinstance(operand, Common):
        return jnp.broadcast_to(operand.value, (window.width, *jnp.shape(operand.value)))
    return at_places(operand, window)
