"""Groups of registers: scalars of one dtype that blocks write together are rows of one array inside the loop of trips.

XLA:CPU runs one kernel for each array that a block writes, and a kernel of few lanes costs its start. Rows of one array
[rows, lanes] are written by one. Eight rows are the most: XLA does not fuse a concatenation of many operands. Outside
of the loop every register is an array of its own, so that nothing else knows of groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.runtime.vm.lane_window import Window

ENABLED = True  # benchmarks compare with a machine that has no groups
ROWS = 8  # of a group, at most
MOST_BYTES = 512  # of a register in a group: of more, kernels cost their bytes
BYTES = 2500  # that a kernel writes in the time that it takes to start
# XLA cannot write rows in place that the same kernel reads, and copies the array first; measured, two rows do not gain.
ROWS_START = 2.2


@dataclass(frozen=True, slots=True)
class Group:
    """Some registers, by state key, as rows of one array [rows, lanes]."""

    key: str  # the state key of the array
    members: tuple[str, ...]

    def pack(self, carry: Mapping[str, Any]) -> Any:
        """Return the array, of a state with one for each register."""
        return jnp.stack([carry[member] for member in self.members])

    def write(self, array: Any, new: Mapping[str, Any], window: Window, mask: jax.Array) -> jax.Array:
        """Return the array with the values `new`, [width] each, in some rows, for the lanes of the places in `mask`."""
        if window.dense:
            rows = {v: array[k] for k, v in enumerate(self.members)}
            new_rows = [window.write(row, new[v], mask) if v in new else row for v, row in rows.items()]
            return jnp.stack(new_rows)
        lanes = window.targets(mask)
        for v, value in new.items():
            array = array.at[self.members.index(v), lanes].set(value, mode="drop", unique_indices=True)
        written: jax.Array = array
        return written


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of a machine; no register is in two."""

    groups: tuple[Group, ...] = ()
    place: Mapping[str, tuple[Group, int]] = field(default_factory=dict)  # state key of a register -> its row

    def pack(self, carry: Mapping[str, Any]) -> dict[str, Any]:
        """Return the state as the loop of trips carries it."""
        rest = {key: value for key, value in carry.items() if key not in self.place}
        return rest | {group.key: group.pack(carry) for group in self.groups}

    def unpack(self, carry: Mapping[str, Any]) -> dict[str, Any]:
        """Return the state with an array for each register: the inverse of `pack`."""
        keys = {group.key for group in self.groups}
        rest = {key: value for key, value in carry.items() if key not in keys}
        return rest | {v: carry[group.key][row] for v, (group, row) in self.place.items()}

    def read(self, carry: Mapping[str, Any], key: str) -> Any:
        """Return a register of a packed state."""
        if key not in self.place:
            return carry[key]
        group, row = self.place[key]
        return carry[group.key][row]

    def write(
        self, carry: Mapping[str, Any], new: Mapping[str, Any], window: Window, mask: jax.Array
    ) -> dict[str, jax.Array]:
        """Return the arrays of the groups that have some of these registers, all of which are in one."""
        values = {g: {v: new[v] for v in g.members if v in new} for g in self.groups}
        return {g.key: g.write(carry[g.key], rows, window, mask) for g, rows in values.items() if rows}

    def keys(self, registers: Iterable[str]) -> tuple[str, ...]:
        """Return the state keys of the arrays that hold these registers."""
        return tuple(dict.fromkeys(self.place[v][0].key if v in self.place else v for v in registers))


def groups_of(members: Sequence[Sequence[str]]) -> Groups:
    """Return groups of these registers, by state key."""
    made = tuple(Group(f"rows:{k}", tuple(each)) for k, each in enumerate(members))
    return Groups(made, {v: (group, row) for group in made for row, v in enumerate(group.members)})


def plan(
    writes: Sequence[Iterable[str]], dtypes: Mapping[str, Any], lanes: int, most: int = ROWS
) -> tuple[tuple[str, ...], ...]:
    """Group scalar registers, each of at least two and at most `most`.

    Registers that all the same blocks write come first. Then two groups become one if visits of all blocks, one of
    each, become cheaper by it, first those that gain most; but each block that writes to a group writes at least half
    of its rows: how often lanes visit a block is not known, and a hot loop that writes one register must not pay for
    eight.

    Args:
        writes: For each block the registers that it writes.
        dtypes: The dtypes of those that may be in a group.
        lanes: The number of lanes.
        most: The most registers of a group.
    """
    small = {v: np.dtype(t) for v, t in dtypes.items() if lanes * np.dtype(t).itemsize <= MOST_BYTES}
    blocks = [frozenset(each) & small.keys() for each in writes]
    groups = _alike(blocks, small, most)
    while True:
        gains = [
            (gain, a, b)
            for a, b in combinations(groups, 2)
            if small[a[0]] == small[b[0]] and len(a) + len(b) <= most
            if (gain := _gain(blocks, (a, b), lanes * small[a[0]].itemsize)) > 0
        ]
        if not gains:
            break
        _, a, b = max(gains, key=lambda each: each[0])
        groups = [group for group in groups if group not in (a, b)] + [a + b]
    apart = {group: tuple((v,) for v in group) for group in groups if len(group) > 1}
    return tuple(g for g, parts in apart.items() if _gain(blocks, parts, lanes * small[g[0]].itemsize) > 0)


def _alike(blocks: Sequence[frozenset[str]], dtypes: Mapping[str, Any], most: int) -> list[tuple[str, ...]]:
    """Return groups of registers of one dtype that the same blocks write; each register that is written is in one."""
    writers: dict[Any, list[str]] = {}
    for v, dtype in dtypes.items():
        if any(v in block for block in blocks):
            writers.setdefault((dtype, tuple(v in block for block in blocks)), []).append(v)
    return [tuple(each[k : k + most]) for each in writers.values() for k in range(0, len(each), most)]


def _gain(blocks: Sequence[frozenset[str]], parts: Sequence[tuple[str, ...]], row: int) -> float:
    """Return what one visit of every block saves if these groups become one; none if some block writes less than half
    of its rows. `row`: the bytes of a register."""
    group = tuple(v for part in parts for v in part)
    if any(0 < 2 * len(block.intersection(group)) < len(group) for block in blocks):
        return 0.0
    return sum(sum(_cost(block, part, row) for part in parts) - _cost(block, group, row) for block in blocks)


def _cost(block: frozenset[str], group: tuple[str, ...], row: int) -> float:
    """Return what a block pays to write its registers of a group, in starts of a kernel."""
    if block.isdisjoint(group):
        return 0.0
    return (1 if len(group) == 1 else ROWS_START) + len(group) * row / BYTES
