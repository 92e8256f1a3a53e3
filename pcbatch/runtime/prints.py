"""What lanes print: one host callback per visit of a block, one text per active lane.

    [lane 0] x = 5
    [lane 3] x = 7

Callbacks are not "ordered" in JAX's sense, because those cannot run on lanes that are spread over devices. What keeps
the order within a lane: in a machine, a block that prints runs in a loop of its own (`emit.guard.visited`), and all
that runs later needs the program counters that come out of it; the local strategy hands a number from one callback to
the next (`in_turn`).
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

Shown = tuple[dict[str, Any], ...]  # for every print, the values of its variables: [lanes, ...] each


def emit(ops: Sequence[Print], active: jax.Array, shown: Shown) -> None:
    """Print for the active lanes, from inside a program that JAX traces."""
    jax.debug.callback(partial(_write, tuple(op.message for op in ops)), active, shown)


def in_turn(ops: Sequence[Print], active: jax.Array, shown: Shown, turn: jax.Array) -> jax.Array:
    """Print after all that had an earlier turn (int32[]); gives the next one."""

    def body(c: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        write = partial(_write, tuple(op.message for op in ops))
        jax.debug.callback(lambda active, shown, turn: write(active, shown), active, shown, c[1])
        return jnp.zeros((), bool), c[1] + 1

    return jax.lax.while_loop(lambda c: c[0], body, (jnp.any(active), turn))[1]


def prints_of(ops: Iterable[object]) -> tuple[Print, ...]:
    """The prints among some operations."""
    return tuple(op for op in ops if isinstance(op, Print))


def _write(templates: Sequence[Message], active: Any, shown: Shown) -> None:
    columns = [{name: np.asarray(value) for name, value in values.items()} for values in shown]
    lines = (
        f"[lane {lane}] {messages.text(template, {name: column[lane] for name, column in values.items()})}"
        for lane in np.flatnonzero(np.asarray(active))
        for template, values in zip(templates, columns, strict=True)
    )
    sys.stdout.write("".join(lines))
    sys.stdout.flush()
