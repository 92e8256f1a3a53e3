"""Prints of lanes: one host callback per visit of a block, one text per active lane.

    [lane 0] x = 5
    [lane 3] x = 7

Callbacks are not "ordered" in JAX's sense, because those cannot run on lanes of several devices. The order within a
lane is kept otherwise: in a machine, a block that prints runs in a loop of its own (`emit.guard.visited`), and all that
runs later needs the program counters that come out of it; the local strategy hands a number from one callback to the
next (`in_turn`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.ir import message as messages
from pcbatch.ir.message import Message
from pcbatch.ir.ops import Print
from pcbatch.runtime.vm.run_once import run_once

Shown = tuple[dict[str, Any], ...]  # for every print, the values of its variables: [lanes, ...] each


def emit(ops: Sequence[Print], active: jax.Array, lanes: jax.Array, shown: Shown) -> None:
    """Print for the active places of a window, from inside a program that JAX traces.

    Args:
        ops: The prints of a block.
        active: bool[width].
        lanes: int32[width]: the number that each place's lane is printed with.
        shown: The values of their variables, [width, ...].
    """
    jax.debug.callback(partial(_write, tuple(op.message for op in ops)), active, lanes, shown)


def in_turn(ops: Sequence[Print], active: jax.Array, shown: Shown, turn: jax.Array) -> jax.Array:
    """Print for the active lanes after all prints with an earlier `turn` (int32[]); return the next turn."""

    def body(turn: jax.Array) -> jax.Array:
        write = partial(_write, tuple(op.message for op in ops))
        lanes = jnp.arange(active.shape[0])
        # The number is an operand so that the callback needs the one before it.
        jax.debug.callback(lambda active, lanes, shown, turn: write(active, lanes, shown), active, lanes, shown, turn)
        return turn + 1

    return run_once(jnp.any(active), body, turn)


def prints_of(ops: Iterable[object]) -> tuple[Print, ...]:
    """Return the prints among some operations."""
    return tuple(op for op in ops if isinstance(op, Print))


def _write(templates: Sequence[Message], active: Any, lanes: Any, shown: Shown) -> None:
    names = np.asarray(lanes)
    columns = [{name: np.asarray(value) for name, value in values.items()} for values in shown]
    lines = (
        f"[lane {names[k]}] {messages.text(template, {name: column[k] for name, column in values.items()})}"
        for k in np.flatnonzero(np.asarray(active))
        for template, values in zip(templates, columns, strict=True)
    )
    sys.stdout.write("".join(lines))
    sys.stdout.flush()
