"""The end of a run, when few lanes live: they go on in a machine of fewer lanes, inside the same program.

A loop that lanes leave at different times computes all of them until the last one is done. To look up those that are
left in every visit costs a gather and a scatter each; here they move once, and move back when they are done, so that
results, statuses and stacks stand where they stand without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.lane_window import first_lanes
from pcbatch.runtime.vm.machine import Machine, State


def advance(machine: Machine, state: State, widths: Sequence[int], go: Any = None) -> State:
    """Run all lanes to their end, the last ones in narrower machines.

    Args:
        machine: The machine.
        state: A state of it.
        widths: The lanes of the narrower machines, from wide to narrow; none: all lanes run in one.
        go: bool[], whether to make any trip at all; None: yes.
    """
    if not widths:
        return machine.advance(state, go=go)
    width, *rest = widths
    state = machine.advance_to_few(state, width, go)
    live = state.carry["pc"] < machine.layout.exit
    some = jnp.any(live) if go is None else jnp.any(live) & go

    def narrowed(state: State) -> State:
        index = first_lanes(live, width)
        few = advance(machine, State(taken(machine, state.carry, index), state.shared, state.trips), rest)
        return State(put_back(machine, state.carry, few.carry, index), state.shared, few.trips)

    ended: State = jax.lax.cond(some, narrowed, lambda state: state, state)
    return ended


def taken(machine: Machine, carry: Values, index: jax.Array) -> Values:
    """Return the arrays of a machine of another width: those of the lanes `index`, int32[width].

    Numbers beyond the last lane give lanes that are done, with the frames of the last one: the return address of the
    outermost frame is that of every lane, and is not written again when such a lane begins anew.
    """
    lanes, width = carry["pc"].shape[0], index.shape[0]
    some = jnp.minimum(index, lanes - 1)
    out: Values = {}
    for key, value in carry.items():
        if key in machine.layout.buffers:
            out[key] = value.at[_rows(value, lanes, some)].get(mode="clip")
        elif _of_lanes(machine, key, value):
            rows = machine.layout.rows(key, value)
            out[key] = machine.layout.kept(key, rows.at[index].get(mode="clip"))
        else:
            out[key] = value
    done = jnp.full((width,), machine.layout.exit, carry["pc"].dtype)
    return out | {"pc": jnp.where(index < lanes, out["pc"], done)}


def put_back(machine: Machine, carry: Values, few: Values, index: jax.Array) -> Values:
    """Return the arrays of all lanes, with those of fewer lanes in their places: the inverse of `taken`."""
    lanes = carry["pc"].shape[0]
    out: Values = {}
    for key, value in carry.items():
        if key in machine.layout.buffers:
            out[key] = value.at[_rows(value, lanes, index)].set(few[key], mode="drop")
        elif _of_lanes(machine, key, value):
            rows, new = machine.layout.rows(key, value), machine.layout.rows(key, few[key])
            out[key] = machine.layout.kept(key, rows.at[index].set(new, mode="drop"))
        else:
            out[key] = few[key]
    return out


def _rows(frames: jax.Array, lanes: int, index: jax.Array) -> jax.Array:
    """Return the rows of some lanes in an array of frames, level by level: [depth * lanes, words]."""
    level = jnp.arange(frames.shape[0] // lanes, dtype=jnp.int32)[:, None]
    beyond = jnp.int32(frames.shape[0])
    return jnp.where(index[None] < lanes, level * lanes + index[None], beyond).reshape(-1)


def _of_lanes(machine: Machine, key: str, value: jax.Array) -> bool:
    return bool(value.ndim) and key not in machine.totals
