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
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import RLock
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.ir import message as messages
from pcbatch.ir.message import Message
from pcbatch.ir.ops import Print
from pcbatch.runtime.vm.run_once import run_once

Shown = tuple[dict[str, Any], ...]  # for every print, the values of its variables: [lanes, ...] each


@dataclass(slots=True)
class Journal:
    """The lines that lanes have printed in earlier runs of a program that is run again.

    A lane prints the same in every run, as far as it comes. So the first texts of a lane in a run, as many as earlier
    runs have printed, are left out.

    Attributes:
        earlier: the number of texts that runs before this one have printed, by the number of the lane.
        now: the number in this run.
    """

    earlier: Counter[int] = field(default_factory=Counter)
    now: Counter[int] = field(default_factory=Counter)

    def next_run(self) -> None:
        """Begin another run; the prints of the last one must have come."""
        self.earlier |= self.now
        self.now = Counter()

    def is_new(self, lane: int) -> bool:
        """Count a text of a lane, and return whether no earlier run has printed it."""
        self.now[lane] += 1
        return self.now[lane] > self.earlier[lane]


_journals: list[Journal] = []  # at most one: of the run that holds the lock. Callbacks come from threads of XLA
_lock = RLock()


@contextmanager
def once() -> Iterator[Journal]:
    """Print what programs that repeat print within the context only once. One thread at a time."""
    with _lock:
        journal = Journal()
        _journals.append(journal)
        try:
            yield journal
        finally:
            _journals.remove(journal)


def emit(ops: Sequence[Print], active: jax.Array, lanes: jax.Array, shown: Shown, repeats: bool = False) -> None:
    """Print for the active places of a window, from inside a program that JAX traces.

    Args:
        ops: The prints of a block.
        active: bool[width].
        lanes: int32[width]: the number that each place's lane is printed with.
        shown: The values of their variables, [width, ...].
        repeats: Whether the program may be run again within `once`.
    """
    jax.debug.callback(partial(_write, tuple(op.message for op in ops), repeats), active, lanes, shown)


def in_turn(ops: Sequence[Print], active: jax.Array, shown: Shown, turn: jax.Array, repeats: bool = False) -> jax.Array:
    """Print for the active lanes after all prints with an earlier `turn` (int32[]); return the next turn."""

    def body(turn: jax.Array) -> jax.Array:
        write = partial(_write, tuple(op.message for op in ops), repeats)
        lanes = jnp.arange(active.shape[0])
        # The number is an operand so that the callback needs the one before it.
        jax.debug.callback(lambda active, lanes, shown, turn: write(active, lanes, shown), active, lanes, shown, turn)
        return turn + 1

    return run_once(jnp.any(active), body, turn)


def prints_of(ops: Iterable[object]) -> tuple[Print, ...]:
    """Return the prints among some operations."""
    return tuple(op for op in ops if isinstance(op, Print))


def _write(templates: Sequence[Message], repeats: bool, active: Any, lanes: Any, shown: Shown) -> None:
    journal = _journals[-1] if repeats and _journals else None
    names = np.asarray(lanes)
    columns = [{name: np.asarray(value) for name, value in values.items()} for values in shown]
    lines = (
        f"[lane {names[k]}] {messages.text(template, {name: column[k] for name, column in values.items()})}"
        for k in np.flatnonzero(np.asarray(active))
        for template, values in zip(templates, columns, strict=True)
        if journal is None or journal.is_new(int(names[k]))
    )
    sys.stdout.write("".join(lines))
    sys.stdout.flush()
